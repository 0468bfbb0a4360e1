//! `BlockMatMul` of the domain `oarlock`: a few rows times 4-bit or 8-bit weights in blocks.
//!
//! Dequantizing the weights first would write and read them again at several times their size. Instead, the integers of a block are
//! converted to floats, multiplied and summed in registers, and the sum is multiplied by the scale of the block. Two 4-bit integers
//! share a byte, so the elements of A at even and odd indices are separated first, once for all columns.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::array::from_fn;
use std::marker::PhantomData;
use std::sync::Arc;

use oarlock_cpu_base::OARLOCK_DOMAIN;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::{SimdTarget, SimdTask};
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_cpu_gemm::{FEW_ROWS, ScratchBuffer};
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, Result, dtype_set, ensure,
};

const INTEGER_DTYPES: DtypeSet = dtype_set(&[Dtype::I4, Dtype::U4, Dtype::I8, Dtype::U8]);
/// Bytes that are processed at once: one integer of each fills one zmm or two ymm of `f32`.
const LANES: usize = 16;

pub(super) fn block_matmul_kernel() -> Kernel<Cpu> {
    let [floats, weights] =
        [OperandSpec::new(DtypeSet::F32), OperandSpec::new(INTEGER_DTYPES).with_dtype_group(1)];
    let optional = weights.with_flags(OperandFlags::OPTIONAL);
    Kernel::new_prepared("BlockMatMul", |cpu: &Cpu, call| {
        let sizes = BlockMatmulShape::new(call)?;
        call.describe_kernel(&format!("weights dequantized in one pass, {}", cpu.isa().without_amx()));
        Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| sizes.run(cpu, call)))
    })
    .with_domain(OARLOCK_DOMAIN)
    .with_support_check(|_, call| BlockMatmulShape::new(call).map(drop))
    .with_workspace(|_, call| {
        Ok((BlockMatmulShape::new(call)?.scratch_elements() * size_of::<f32>() + 64) as u64)
    })
    .with_flags(KernelFlags::DETERMINISTIC)
    .with_inputs([
        floats.with_name("A").with_rank(1, u32::MAX),
        weights.with_name("W").with_rank(2, 2),
        floats.with_name("scale").with_rank(2, 2),
        optional.with_name("zero").with_rank(2, 2),
    ])
    .with_outputs([floats.with_name("Y")])
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct BlockMatmulShape {
    rows: usize,
    columns: usize,
    depth: usize,
    block: usize,
    dtype: Dtype,
}

impl BlockMatmulShape {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let (a, w, scale) = (call.input(0)?.dims(), call.input(1)?, call.input(2)?.dims());
        let block = usize::try_from(call.int_attribute("block_size")?.unwrap_or(0)).unwrap_or(0);
        let ([rows @ .., depth], [columns, length]) = (a, w.dims()) else {
            return Err(oarlock_sdk::PluginError::invalid_argument(
                "expected rows and a matrix, found others",
            ));
        };
        let count = rows.iter().try_fold(1i64, |count, rows| count.checked_mul(*rows)).unwrap_or(i64::MAX);
        ensure!(
            depth == length,
            invalid_argument,
            "expected weights of {depth} elements a row, found {length}"
        );
        ensure!(
            // With more rows, arithmetic is the limit instead of memory; the engine then dequantizes and multiplies in f32.
            (1..=FEW_ROWS as i64).contains(&count) && *columns > 0,
            unimplemented,
            "expected 1 to {FEW_ROWS} rows and some columns, found {count} and {columns}"
        );
        let sizes = Self {
            rows: count as usize,
            columns: *columns as usize,
            depth: *depth as usize,
            block,
            dtype: w.dtype(),
        };
        // Blocks must consist of whole vectors of bytes, so that the scale changes only between vectors.
        let step = LANES * sizes.integers_per_byte();
        ensure!(
            block > 0 && block.is_multiple_of(step) && sizes.depth.is_multiple_of(block) && *depth > 0,
            unimplemented,
            "expected whole blocks of a multiple of {step} elements, found blocks of {block} in rows of {depth}"
        );
        let expected = [*columns, depth / block as i64];
        let zero = call.optional_input(3)?;
        ensure!(
            scale == expected && zero.is_none_or(|zero| zero.dims() == expected),
            invalid_argument,
            "expected scales and zero points of shape {expected:?}, found {scale:?} and {:?}",
            zero.map(|zero| zero.dims())
        );
        Ok(sizes)
    }

    /// Integers per byte.
    fn integers_per_byte(&self) -> usize {
        if [Dtype::I4, Dtype::U4].contains(&self.dtype) { 2 } else { 1 }
    }

    /// The number of floats in the deinterleaved rows.
    fn scratch_elements(&self) -> usize {
        // With one integer per byte, rows need no deinterleaving.
        if self.integers_per_byte() == 2 { self.rows * self.depth } else { 0 }
    }

    fn run(&self, cpu: &Cpu, call: &KernelCall<'_>) -> Result<()> {
        let found = Self::new(call)?;
        ensure!(
            found == *self,
            invalid_argument,
            "expected operands of the shapes that were prepared for, found others"
        );
        let bytes = |index: usize| -> Result<Option<&[u8]>> {
            let Some(operand) = call.optional_input(index)? else { return Ok(None) };
            let (block, offset) = operand.memory_location();
            let address = block.0.wrapping_add(offset) as *const u8;
            // SAFETY: device memory is host memory, and the call guarantees its operands.
            Ok(Some(unsafe { std::slice::from_raw_parts(address, operand.size_in_bytes() as usize) }))
        };
        let blocks = self.columns * self.depth / self.block;
        let (weights, zeros) = (bytes(1)?.unwrap_or_default(), bytes(3)?);
        // SAFETY: as above.
        let (a, scales, y) = unsafe {
            (
                call.input(0)?.elements::<f32>()?,
                call.input(2)?.elements::<f32>()?,
                call.output(0)?.elements_mut::<f32>()?,
            )
        };
        let shared = self.integers_per_byte();
        ensure!(
            weights.len() == self.columns * self.depth / shared
                && scales.len() == blocks
                && zeros.is_none_or(|zeros| zeros.len() == blocks.div_ceil(shared))
                && a.len() == self.rows * self.depth
                && y.len() == self.rows * self.columns,
            invalid_argument,
            "expected operands as large as their shapes say, found others"
        );
        let mut scratch = ScratchBuffer::from_call(call);
        let a = if shared == 2 {
            // A byte contains two neighbors. Splitting a vector of bytes into low and high halves takes one shift, but interleaving
            // the results would take shuffles for every vector; so the row is reordered once, for all columns.
            self.deinterleave_rows(a, scratch.allocate_elements(self.scratch_elements()))
        } else {
            a
        };
        let matrix = BlockQuantizedMatrix { sizes: *self, weights, scales, zeros };
        // Chosen once per call, so that the loops have no branch on the dtype.
        let multiply = match self.dtype {
            Dtype::U4 => BlockQuantizedMatrix::multiply_row::<UnsignedNibbles>,
            Dtype::I4 => BlockQuantizedMatrix::multiply_row::<SignedNibbles>,
            Dtype::U8 => BlockQuantizedMatrix::multiply_row::<UnsignedBytes>,
            _ => BlockQuantizedMatrix::multiply_row::<SignedBytes>,
        };
        for (row, y) in a.chunks_exact(self.depth).zip(y.chunks_exact_mut(self.columns)) {
            multiply(matrix, cpu, row, y);
        }
        Ok(())
    }

    /// Reorders rows: for each `LANES` bytes, first the elements that match their low halves, then those that match their high
    /// halves.
    fn deinterleave_rows<'s>(&self, a: &[f32], apart: &'s mut [f32]) -> &'s [f32] {
        for (from, to) in a.chunks_exact(2 * LANES).zip(apart.chunks_exact_mut(2 * LANES)) {
            for (lane, pair) in from.chunks_exact(2).enumerate() {
                (to[lane], to[LANES + lane]) = (pair[0], pair[1]);
            }
        }
        apart
    }
}

trait PackedIntegers: Sync {
    /// Integers per byte.
    const PER_BYTE: usize;

    /// One integer of each byte: the low one (`place` 0) or the high one (1).
    fn unpack_lanes(bytes: &[u8; LANES], place: usize) -> [f32; LANES];

    /// The integer at an index.
    fn unpack_at(bytes: &[u8], index: usize) -> f32;
}

struct UnsignedNibbles;
struct SignedNibbles;
struct UnsignedBytes;
struct SignedBytes;

impl PackedIntegers for UnsignedNibbles {
    const PER_BYTE: usize = 2;

    #[inline(always)]
    fn unpack_lanes(bytes: &[u8; LANES], place: usize) -> [f32; LANES] {
        bytes.map(|byte| (i32::from(byte) >> (4 * place) & 15) as f32)
    }

    #[inline(always)]
    fn unpack_at(bytes: &[u8], index: usize) -> f32 {
        f32::from(bytes[index / 2] >> (index % 2 * 4) & 15)
    }
}

impl PackedIntegers for SignedNibbles {
    const PER_BYTE: usize = 2;

    #[inline(always)]
    fn unpack_lanes(bytes: &[u8; LANES], place: usize) -> [f32; LANES] {
        // Shifted to the top and back: the arithmetic right shift extends the sign.
        bytes.map(|byte| (i32::from(byte) << (28 - 4 * place) >> 28) as f32)
    }

    #[inline(always)]
    fn unpack_at(bytes: &[u8], index: usize) -> f32 {
        (i32::from(bytes[index / 2]) << (28 - index % 2 * 4) >> 28) as f32
    }
}

impl PackedIntegers for UnsignedBytes {
    const PER_BYTE: usize = 1;

    #[inline(always)]
    fn unpack_lanes(bytes: &[u8; LANES], _place: usize) -> [f32; LANES] {
        bytes.map(f32::from)
    }

    #[inline(always)]
    fn unpack_at(bytes: &[u8], index: usize) -> f32 {
        f32::from(bytes[index])
    }
}

impl PackedIntegers for SignedBytes {
    const PER_BYTE: usize = 1;

    #[inline(always)]
    fn unpack_lanes(bytes: &[u8; LANES], _place: usize) -> [f32; LANES] {
        bytes.map(|byte| f32::from(byte.cast_signed()))
    }

    #[inline(always)]
    fn unpack_at(bytes: &[u8], index: usize) -> f32 {
        f32::from(bytes[index].cast_signed())
    }
}

#[derive(Clone, Copy)]
struct BlockQuantizedMatrix<'a> {
    sizes: BlockMatmulShape,
    weights: &'a [u8],
    scales: &'a [f32],
    zeros: Option<&'a [u8]>,
}

impl BlockQuantizedMatrix<'_> {
    /// Multiplies a deinterleaved row with all columns.
    fn multiply_row<I: PackedIntegers>(self, cpu: &Cpu, row: &[f32], y: &mut [f32]) {
        parallel_for_parts(
            cpu,
            self.sizes.columns,
            grain_for(self.sizes.depth),
            OutputRows::new(y, 1),
            |first, y| {
                cpu.isa().vectorize(BlockMatmulColumns {
                    matrix: self,
                    row,
                    first,
                    y,
                    integers: PhantomData::<I>,
                });
            },
        );
    }
}

/// Some columns of an output row.
struct BlockMatmulColumns<'a, 'b, I> {
    matrix: BlockQuantizedMatrix<'a>,
    row: &'a [f32],
    first: usize,
    y: &'b mut [f32],
    integers: PhantomData<I>,
}

impl<I: PackedIntegers> SimdTask for BlockMatmulColumns<'_, '_, I> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let BlockQuantizedMatrix { sizes: BlockMatmulShape { depth, block, .. }, weights, scales, zeros } =
            self.matrix;
        let (blocks, width) = (depth / block, depth / I::PER_BYTE);
        let row = self.row.as_chunks::<LANES>().0;
        for (column, y) in (self.first..).zip(self.y) {
            let bytes = weights[column * width..][..width].as_chunks::<LANES>().0;
            let parts = bytes.chunks_exact(block / I::PER_BYTE / LANES).zip(row.chunks_exact(block / LANES));
            let places = (column * blocks..).zip(&scales[column * blocks..]);
            // One sum per lane over all blocks, added up only at the end of the column.
            let mut sums = [0f32; LANES];
            for ((place, scale), (bytes, row)) in places.zip(parts) {
                let zero = zeros.map_or(0.0, |zeros| I::unpack_at(zeros, place));
                // Each block has a separate sum, so that the scale is applied once to the sum instead of to each product.
                let mut own = [0f32; LANES];
                for (bytes, row) in bytes.iter().zip(row.chunks_exact(I::PER_BYTE)) {
                    for (place, row) in row.iter().enumerate() {
                        let weights = I::unpack_lanes(bytes, place);
                        own = from_fn(|lane| multiply_add::<T>(weights[lane] - zero, row[lane], own[lane]));
                    }
                }
                sums = from_fn(|lane| multiply_add::<T>(own[lane], *scale, sums[lane]));
            }
            // Added one by one: with a pairwise sum, the compiler would arrange vectors in pairs throughout the loop.
            *y = sums.iter().sum();
        }
    }
}

#[inline(always)]
fn multiply_add<T: SimdTarget>(one: f32, other: f32, sum: f32) -> f32 {
    if T::HAS_FMA { one.mul_add(other, sum) } else { one * other + sum }
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    fn pack_test_weights(dtype: Dtype, dims: &[i64], factor: i64) -> (Vec<f32>, TestArray) {
        let low = if dtype == Dtype::I4 || dtype == Dtype::I8 { -8 } else { 0 };
        let count: i64 = dims.iter().product();
        let values: Vec<i32> = (0..count).map(|x| (x * factor % 16 + low) as i32).collect();
        let result = KERNELS.run_kernel(
            "Cast",
            21,
            &[],
            &[Some(&TestArray::from_values(dims, &values))],
            &[Some((dtype, dims))],
        );
        let array = result.expect("integers").into_iter().next().flatten().expect("an output");
        (values.iter().map(|value| *value as f32).collect(), array)
    }

    #[test]
    fn a_product_of_few_rows_matches_the_dequantized_blocks() {
        for (dtype, rows, columns, depth, block) in [
            (Dtype::U4, 1, 5, 64, 32),
            (Dtype::I4, 3, 4, 128, 64),
            (Dtype::U8, 2, 7, 48, 16),
            (Dtype::I8, 4, 33, 32, 32),
        ] {
            let blocks = depth / block;
            let (weights, w) = pack_test_weights(dtype, &[columns, depth], 7);
            let (zeros, zero) = pack_test_weights(dtype, &[columns, blocks], 5);
            let a: Vec<f32> = (0..rows * depth).map(|x| ((x * 37 % 101) as f32 - 50.0) / 64.0).collect();
            let scales: Vec<f32> = (0..columns * blocks).map(|x| (x % 9) as f32 * 0.25 - 1.0).collect();
            let (left, scale) = (
                TestArray::from_values(&[rows, depth], &a),
                TestArray::from_values(&[columns, blocks], &scales),
            );
            for with_zero in [true, false] {
                let inputs = [Some(&left), Some(&w), Some(&scale), with_zero.then_some(&zero)];
                let inputs = &inputs[..if with_zero { 4 } else { 3 }];
                let attributes = [("block_size", TestAttribute::Int(block))];
                for isa in ["scalar", "sse4.1", "avx2", "avx512"] {
                    let output = [Some((Dtype::F32, &[rows, columns][..]))];
                    let result =
                        KERNELS.run_with_isa(isa, "oarlock:BlockMatMul", 1, &attributes, inputs, &output);
                    let result = result.expect("a product").into_iter().next().flatten().expect("an output");
                    for (index, found) in result.values::<f32>().into_iter().enumerate() {
                        let (row, column) = (index / columns as usize, index % columns as usize);
                        let expected: f64 = (0..depth as usize)
                            .map(|at| {
                                let place = column * blocks as usize + at / block as usize;
                                let zero = if with_zero { zeros[place] } else { 0.0 };
                                let weight = (weights[column * depth as usize + at] - zero) * scales[place];
                                f64::from(a[row * depth as usize + at]) * f64::from(weight)
                            })
                            .sum();
                        let near = 1e-5 * depth as f64 * 16.0;
                        assert!(
                            (f64::from(found) - expected).abs() < near,
                            "{dtype:?} {isa} {index}: {found} for {expected}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn many_rows_and_odd_blocks_are_left_to_others() {
        let refusal = |rows: i64, block: i64| {
            let (w, scale) = (
                pack_test_weights(Dtype::U4, &[4, 64], 7).1,
                TestArray::from_values(&[4, 64 / block], &vec![1f32; (256 / block) as usize]),
            );
            let a = TestArray::from_values(&[rows, 64], &vec![1f32; (rows * 64) as usize]);
            let inputs = [Some(&a), Some(&w), Some(&scale)];
            let output = [Some((Dtype::F32, &[rows, 4][..]))];
            KERNELS
                .run_kernel(
                    "oarlock:BlockMatMul",
                    1,
                    &[("block_size", TestAttribute::Int(block))],
                    &inputs,
                    &output,
                )
                .err()
        };
        assert_eq!(refusal(4, 32), None);
        assert!(refusal(5, 32).is_some_and(|message| message.contains("1 to 4 rows")));
        assert!(refusal(1, 16).is_some_and(|message| message.contains("multiple of 32")));
    }
}
