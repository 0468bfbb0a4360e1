//! Block-quantized weights: few bits, with a scale for each block of a row.
//!
//! The bytes stay as in the file. ONNX packs sub-byte dtypes in the same order, so the bytes are reinterpreted as such a dtype,
//! and `DequantizeLinear` converts them to floats during a run.

use oarlock_core::schema::ACCURACY_LEVEL;
use oarlock_core::{Attribute, Constant, Dtype, Error, Result};

use super::contrib_op::ContribOp;
use super::lowering::{ContribLowering, build_attributes};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;

pub(super) const BLOCK_QUANTIZED_OPS: &[ContribOp] = &[
    ContribOp {
        op: "MatMulNBits",
        inputs: "A B scales zero_points? !g_idx bias?",
        attributes: "K N accuracy_level bits block_size weight_prepacked=0",
        outputs: "Y",
        lower: lower_matmul_nbits,
    },
    ContribOp {
        op: "GatherBlockQuantized",
        inputs: "data indices scales zero_points?",
        attributes: "bits block_size gather_axis quantize_axis",
        outputs: "output",
        lower: lower_gather,
    },
];

/// The unsigned dtype of so many bits.
fn packed_dtype(bits: i64) -> Result<Dtype> {
    match bits {
        2 => Ok(Dtype::U2),
        4 => Ok(Dtype::U4),
        8 => Ok(Dtype::U8),
        other => Err(Error::unimplemented(format!("expected `bits` of 2, 4 or 8, found {other}"))),
    }
}

/// Layout of the weights of a product.
struct BlockQuantizedWeights {
    rows: i64,
    /// Elements of a row that count, and elements including the padding of the last block.
    width: i64,
    padded: i64,
    count: i64,
    size: i64,
    bits: i64,
    dtype: Dtype,
}

impl BlockQuantizedWeights {
    fn new(op: &ContribLowering<'_>) -> Result<Self> {
        let (width, rows, size) =
            (op.positive_attribute("K")?, op.positive_attribute("N")?, op.positive_attribute("block_size")?);
        let bits = op.int_attribute("bits", 4)?;
        let dtype = packed_dtype(bits)?;
        if size < 16 || size.count_ones() != 1 {
            return Err(invalid_model("a `block_size` of 16 or more that is a power of two", size));
        }
        let count = width / size + i64::from(width % size > 0);
        let padded =
            count.checked_mul(size).ok_or_else(|| invalid_model("a `K` that is no larger", width))?;
        Ok(Self { rows, width, padded, count, size, bits, dtype })
    }
}

fn lower_matmul_nbits(op: &mut ContribLowering<'_>) -> Result<()> {
    let blocks = BlockQuantizedWeights::new(op)?;
    let (rows, count) = (blocks.rows, blocks.count);
    let weights = op.known_input(1, "B")?;
    let weights = weights.reinterpret_as(blocks.dtype, &[rows, blocks.padded])?;
    let weights = op.add_constant(weights);
    let scales = op.add_reshape(op.input(2)?, &[rows, count]);
    let zeros = match op.optional_input(3) {
        None => BlockZeroPoints::Whole(middle_zero_points(op, &blocks)?),
        Some(zeros) if op.dtype(zeros) == Some(Dtype::U8) => {
            let bytes = op.known_input(3, "zero_points")?;
            BlockZeroPoints::Whole(repack_zero_points(op, &blocks, &bytes)?)
        }
        Some(zeros) => BlockZeroPoints::Real(op.add_reshape(zeros, &[rows, count])),
    };
    let mut real = dequantize_blocks(op, &blocks, weights, scales, zeros);
    if blocks.padded != blocks.width {
        let bounds = [op.add_ints(&[0]), op.add_ints(&[blocks.width])];
        real = op.add_slice(real, bounds, 1);
    }
    let transposed = op.add_transpose(real, &[1, 0]);
    // Kernels that read the integers may compute as exactly as the model wants, or more so.
    let level = op.int_attribute(ACCURACY_LEVEL, 0)?;
    let level = (level != 0).then(|| (ACCURACY_LEVEL.to_owned(), Attribute::Int(level)));
    let operands = [Some(op.input(0)?), Some(transposed)];
    let mut result = op.add_node("MatMul", &operands, level.into_iter().collect(), 1)[0];
    if let Some(bias) = op.optional_input(5) {
        result = op.add_op("Add", &[result, bias]);
    }
    op.set_output(0, result);
    Ok(())
}

enum BlockZeroPoints {
    Whole(ValueId),
    /// A zero point that need not be an integer.
    Real(ValueId),
}

/// Dequantizes the weights.
fn dequantize_blocks(
    op: &mut ContribLowering<'_>,
    blocks: &BlockQuantizedWeights,
    weights: ValueId,
    scales: ValueId,
    zeros: BlockZeroPoints,
) -> ValueId {
    let attributes =
        build_attributes([("axis", Attribute::Int(1)), ("block_size", Attribute::Int(blocks.size))]);
    let whole = if let BlockZeroPoints::Whole(zeros) = zeros { Some(zeros) } else { None };
    let result = op.add_node("DequantizeLinear", &[Some(weights), Some(scales), whole], attributes, 1)[0];
    let BlockZeroPoints::Real(zeros) = zeros else { return result };
    let moved = op.add_op("Mul", &[zeros, scales]);
    let moved = op.add_unsqueeze(moved, &[2]);
    let parted = op.add_reshape(result, &[blocks.rows, blocks.count, blocks.size]);
    let result = op.add_op("Sub", &[parted, moved]);
    op.add_reshape(result, &[blocks.rows, blocks.padded])
}

/// Default zero points: the middle of the range.
fn middle_zero_points(op: &mut ContribLowering<'_>, blocks: &BlockQuantizedWeights) -> Result<ValueId> {
    let byte = match blocks.bits {
        2 => 0b1010_1010,
        4 => 0x88,
        _ => 0x80,
    };
    let elements = blocks.rows.checked_mul(blocks.count).and_then(|count| usize::try_from(count).ok());
    let shared = (8 / blocks.bits) as usize;
    // One for each scale, so they take no more bytes than the model has.
    let known = op.known_constant(op.input(2)?).map(|scales| scales.size_in_bytes());
    let elements = elements.filter(|count| known.is_some_and(|bytes| *count <= bytes));
    let elements =
        elements.ok_or_else(|| invalid_model("constant `scales`, one for each block", "another number"))?;
    let constant =
        Constant::new(blocks.dtype, &[blocks.rows, blocks.count], vec![byte; elements.div_ceil(shared)])?;
    Ok(op.add_constant(constant))
}

/// Repacks zero points: the op pads each row to whole bytes, whereas ONNX packs a tensor without gaps.
fn repack_zero_points(
    op: &mut ContribLowering<'_>,
    blocks: &BlockQuantizedWeights,
    packed: &Constant,
) -> Result<ValueId> {
    let shared = 8 / blocks.bits;
    let dims = [blocks.rows, blocks.count];
    if blocks.count % shared == 0 {
        let constant = packed.reinterpret_as(blocks.dtype, &dims)?;
        return Ok(op.add_constant(constant));
    }
    let (row, bits) = ((blocks.count + shared - 1) / shared, blocks.bits as usize);
    let expected = usize::try_from(row.saturating_mul(blocks.rows)).unwrap_or(usize::MAX);
    if packed.size_in_bytes() != expected {
        return Err(invalid_model(format!("{expected} bytes of `zero_points`"), packed.size_in_bytes()));
    }
    let (mut bytes, mut filled) = (Vec::new(), 8);
    for row in packed.bytes()?.chunks_exact(row as usize) {
        for index in 0..blocks.count as usize {
            let bit = index * bits;
            let number = row[bit / 8] >> (bit % 8) & ((1 << bits) - 1);
            if filled == 8 {
                bytes.push(0);
                filled = 0;
            }
            if let Some(last) = bytes.last_mut() {
                *last |= number << filled;
            }
            filled += bits;
        }
    }
    let constant = Constant::new(blocks.dtype, &dims, bytes)?;
    Ok(op.add_constant(constant))
}

/// Gathers rows of a packed table and dequantizes them.
fn lower_gather(op: &mut ContribLowering<'_>) -> Result<()> {
    let (data, indices) = (op.known_input(0, "data")?, op.input(1)?);
    let axis = gather_axis(op, data.dims().len())?;
    let size = op.int_attribute("block_size", 128)?;
    if size < 16 {
        return Err(invalid_model("a `block_size` of 16 or more", size));
    }
    let table = PackedTable::new(op, &data)?;
    let is_shared = table.shared > 1;
    if is_shared && axis == table.rank - 1 {
        let message = "expected a `gather_axis` along which numbers do not share bytes, found the last one";
        return Err(Error::unimplemented(message));
    }
    let take = |op: &mut ContribLowering<'_>, from: ValueId| {
        op.add_op_with("Gather", &[from, indices], [("axis", Attribute::Int(axis))])
    };
    let rows = op.add_constant(table.bytes);
    let rows = take(op, rows);
    let rows = unpack_bytes(op, rows, table.shared)?;
    let scales = op.input(2)?;
    let scales = take(op, scales);
    let (rows, scales_as) = (op.add_cast(rows, Dtype::F32), op.add_cast(scales, Dtype::F32));
    let zeros = match op.optional_input(3) {
        Some(_) => {
            let zeros = op.known_input(3, "zero_points")?;
            let zeros = PackedTable::new(op, &zeros)?;
            let count = op.known_input(2, "scales")?.dims().last().copied();
            let (shared, is_signed) = (zeros.shared, zeros.is_signed);
            let zeros = op.add_constant(zeros.bytes);
            let zeros = take(op, zeros);
            let zeros = unpack_bytes(op, zeros, shared)?;
            let bounds = [op.add_ints(&[0]), op.add_ints(&[count.unwrap_or(0)])];
            let zeros = op.add_slice(zeros, bounds, -1);
            let zeros = op.add_cast(zeros, Dtype::F32);
            Some(if is_signed { sign_extend(op, zeros)? } else { zeros })
        }
        None if table.is_signed || table.middle == 0.0 => None,
        None => Some(op.add_float_scalar(table.middle)?),
    };
    let rows = if table.is_signed { sign_extend(op, rows)? } else { rows };
    let repeated = |op: &mut ContribLowering<'_>, value: ValueId| repeat_blocks(op, value, rows, size);
    let moved = match zeros {
        Some(zeros) if op.optional_input(3).is_some() => {
            let zeros = repeated(op, zeros)?;
            op.add_op("Sub", &[rows, zeros])
        }
        Some(zero) => op.add_op("Sub", &[rows, zero]),
        None => rows,
    };
    let factors = repeated(op, scales_as)?;
    let result = op.add_op("Mul", &[moved, factors]);
    let result = op.add_cast_like(result, scales);
    op.set_output(0, result);
    Ok(())
}

/// A table in which several elements may share a byte.
struct PackedTable {
    bytes: Constant,
    rank: i64,
    /// Elements for each byte.
    shared: i64,
    is_signed: bool,
    /// Default zero point.
    middle: f64,
}

impl PackedTable {
    fn new(op: &ContribLowering<'_>, data: &Constant) -> Result<Self> {
        let rank = data.dims().len() as i64;
        let (shared, is_signed, middle) = match data.dtype() {
            Dtype::U4 => (2, false, 0.0),
            Dtype::I4 => (2, true, 0.0),
            Dtype::U8 => {
                let bits = op.int_attribute("bits", 4)?;
                packed_dtype(bits)?;
                let middle = f64::from(1_u32 << (bits - 1));
                return Ok(Self { bytes: data.clone(), rank, shared: 8 / bits, is_signed: false, middle });
            }
            other => {
                let message = format!("expected `data` of `u8`, `u4` or `i4`, found `{other}`");
                return Err(Error::unimplemented(message));
            }
        };
        let mut dims = data.dims().to_vec();
        let last = dims.last_mut().filter(|last| **last % 2 == 0).ok_or_else(|| {
            Error::unimplemented("expected rows of an even number of elements, found an odd one")
        })?;
        *last /= 2;
        let bytes = data.reinterpret_as(Dtype::U8, &dims)?;
        Ok(Self { bytes, rank, shared, is_signed, middle })
    }
}

/// The gather axis, after a check that blocks lie along the last axis.
fn gather_axis(op: &ContribLowering<'_>, rank: usize) -> Result<i64> {
    let rank = rank as i64;
    let axis = |name, default| {
        let axis = op.int_attribute(name, default)?;
        let place = if axis < 0 { axis.saturating_add(rank) } else { axis };
        if (0..rank).contains(&place) {
            Ok(place)
        } else {
            Err(invalid_model(format!("one of {rank} axes as `{name}`"), axis))
        }
    };
    let [picked, along] = [axis("gather_axis", 0)?, axis("quantize_axis", 1)?];
    if along == picked || along != rank - 1 {
        let message = format!("expected blocks along the last axis of {rank}, found them along {along}");
        return Err(Error::unimplemented(message));
    }
    Ok(picked)
}

/// Unpacks elements into a byte each, lowest bits first.
fn unpack_bytes(op: &mut ContribLowering<'_>, bytes: ValueId, shared: i64) -> Result<ValueId> {
    if shared == 1 {
        return Ok(bytes);
    }
    let bits = 8 / shared;
    let byte = |op: &mut ContribLowering<'_>, value: i64| {
        let value = op.add_int_scalar(value)?;
        Ok::<_, Error>(op.add_cast(value, Dtype::U8))
    };
    let mask = byte(op, (1 << bits) - 1)?;
    let mut parts = Vec::new();
    for at in 0..shared {
        let shift = byte(op, at * bits)?;
        let direction = [("direction", Attribute::String("RIGHT".to_owned()))];
        let part = op.add_op_with("BitShift", &[bytes, shift], direction);
        let part = op.add_op("BitwiseAnd", &[part, mask]);
        parts.push(op.add_unsqueeze(part, &[-1]));
    }
    let parts = op.add_concat(&parts, -1);
    // Merge the last two dimensions.
    let outer = op.slice_shape(bytes, 0, Some(-1));
    let rest = op.add_ints(&[-1]);
    Ok(op.add_reshape_to(parts, &[outer, rest]))
}

/// Converts unsigned 4-bit numbers to signed ones.
fn sign_extend(op: &mut ContribLowering<'_>, numbers: ValueId) -> Result<ValueId> {
    let (seven, sixteen) = (op.add_float_scalar(7.0)?, op.add_float_scalar(16.0)?);
    let is_below = op.add_op("Greater", &[numbers, seven]);
    let below = op.add_op("Sub", &[numbers, sixteen]);
    Ok(op.add_op("Where", &[is_below, below, numbers]))
}

/// Repeats a value of each block for all elements of the block.
fn repeat_blocks(op: &mut ContribLowering<'_>, value: ValueId, rows: ValueId, size: i64) -> Result<ValueId> {
    let wide = op.add_unsqueeze(value, &[-1]);
    let (outer, size) = (op.slice_shape(value, 0, None), op.add_ints(&[size]));
    let dims = op.add_concat(&[outer, size], 0);
    let wide = op.add_op("Expand", &[wide, dims]);
    let (outer, rest) = (op.slice_shape(value, 0, Some(-1)), op.add_ints(&[-1]));
    let wide = op.add_reshape_to(wide, &[outer, rest]);
    // The last block may be shorter.
    let bounds = [op.add_ints(&[0]), op.slice_shape(rows, -1, None)];
    Ok(op.add_slice(wide, bounds, -1))
}
