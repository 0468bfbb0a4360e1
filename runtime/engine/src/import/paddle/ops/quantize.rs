//! Numbers of few bits. Paddle writes down the largest number of a tensor or a channel, and ONNX the size of a step.

use oarlock_core::{Dtype, Error, Result};

use super::{Table, int, like};
use crate::graph::ValueId;
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::Operand;
use crate::import::paddle::program::{Program, with};
use crate::import::place::wrong;

pub(super) const OPS: Table = &[
    ("dequantize_linear", |program, op| {
        let (x, scale) = (program.input(op, "X")?, program.input(op, "Scale")?);
        let made = restored(program, op, x, scale.id, scale.dtype())?;
        program.give(op, "Y", made)
    }),
    ("fake_channel_wise_dequantize_max_abs", restore_channels),
    ("fake_channel_wise_quantize_dequantize_abs_max", |program, op| both(program, op, Scale::OfChannels)),
    ("fake_dequantize_max_abs", restore),
    ("fake_quantize_dequantize_abs_max", |program, op| both(program, op, Scale::OfAll)),
    ("fake_quantize_dequantize_moving_average_abs_max", |program, op| both(program, op, Scale::Given)),
    ("fake_quantize_moving_average_abs_max", whole),
    ("fake_quantize_range_abs_max", whole),
    ("moving_average_abs_max_scale", |program, op| {
        let x = program.input(op, "X")?.id;
        program.give(op, "Out", x)
    }),
    ("quantize_linear", |program, op| {
        let (mut x, scale) = (program.input(op, "X")?, program.input(op, "Scale")?.id);
        if op.int("round_type", 1) == 1 && op.int("quant_axis", -1) < 0 {
            x.id = limited(program, x, scale);
        }
        let made = quantized(program, op, x, scale)?;
        // What follows takes it for a number of the same type.
        let made = match program.output_dtype(op, "Y") {
            Some(dtype) if dtype != Dtype::I8 => program.cast(made, dtype),
            _ => made,
        };
        program.give(op, "Y", made)
    }),
];

/// Where the largest number comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scale {
    Given,
    OfAll,
    OfChannels,
}

/// The largest number of 8 bits. Others are not supported.
fn largest(op: &OpDesc) -> Result<f64> {
    match op.int("bit_length", op.int("quant_bits", 8)) {
        8 => Ok(127.0),
        other => Err(Error::unimplemented(format!("expected numbers of 8 bits, found some of {other}"))),
    }
}

/// The size of a step: one for all, or one for each channel of an axis.
fn step<'m>(program: &mut Program<'m>, op: &OpDesc, scale: ValueId, dtype: Dtype) -> Result<(ValueId, i64)> {
    let axis = op.int("quant_axis", -1);
    let most = program.number(largest(op)?, dtype)?;
    let shape = program.ints(if axis < 0 { &[] } else { &[-1] });
    let scale = program.apply("Reshape", &[scale, shape]);
    Ok((program.apply("Div", &[scale, most]), axis.max(0)))
}

fn zero<'m>(program: &mut Program<'m>, step: ValueId, is_one: bool) -> Result<ValueId> {
    let zero = program.number(0.0, Dtype::I8)?;
    if is_one {
        return Ok(zero);
    }
    let shape = program.apply("Shape", &[step]);
    Ok(program.apply("Expand", &[zero, shape]))
}

/// Numbers no larger than the largest one, so that the smallest of all numbers of 8 bits is not used.
fn limited<'m>(program: &mut Program<'m>, x: Operand<'m>, scale: ValueId) -> ValueId {
    let none = program.ints(&[]);
    let most = program.apply("Reshape", &[scale, none]);
    let least = program.apply("Neg", &[most]);
    program.apply("Clip", &[x.id, least, most])
}

fn quantized<'m>(program: &mut Program<'m>, op: &OpDesc, x: Operand<'m>, scale: ValueId) -> Result<ValueId> {
    let (step, axis) = step(program, op, scale, x.dtype())?;
    let zero = zero(program, step, op.int("quant_axis", -1) < 0)?;
    Ok(program.node("QuantizeLinear", &[x.id, step, zero], with([("axis", int(axis))])))
}

fn restored<'m>(
    program: &mut Program<'m>,
    op: &OpDesc,
    x: Operand<'m>,
    scale: ValueId,
    dtype: Dtype,
) -> Result<ValueId> {
    let (step, axis) = step(program, op, scale, dtype)?;
    let whole = if x.stated == Some(Dtype::I8) { x.id } else { program.cast(x.id, Dtype::I8) };
    Ok(program.node("DequantizeLinear", &[whole, step], with([("axis", int(axis))])))
}

/// To few bits and back.
fn both<'m>(program: &mut Program<'m>, op: &'m OpDesc, from: Scale) -> Result<()> {
    let x = program.input(op, "X")?;
    let mut few = x.id;
    let scale = match from {
        Scale::Given => {
            let scale = program.input(op, "InScale")?.id;
            few = limited(program, x, scale);
            scale
        }
        Scale::OfAll | Scale::OfChannels => {
            let sizes = program.apply("Abs", &[x.id]);
            let channel = if from == Scale::OfAll { -1 } else { x.axis(op.int("quant_axis", 0))? };
            let axes: Vec<i64> = (0..x.rank()?).filter(|axis| *axis != channel).collect();
            let axes = program.ints(&axes);
            program.node("ReduceMax", &[sizes, axes], with([("keepdims", int(0))]))
        }
    };
    let axis = if from == Scale::OfChannels { x.axis(op.int("quant_axis", 0))? } else { -1 };
    let most = like(program, x, largest(op)?)?;
    let shape = program.ints(if axis < 0 { &[] } else { &[-1] });
    let scale = program.apply("Reshape", &[scale, shape]);
    let step = program.apply("Div", &[scale, most]);
    let zero = zero(program, step, axis < 0)?;
    let axis = || with([("axis", int(axis.max(0)))]);
    let few = program.node("QuantizeLinear", &[few, step, zero], axis());
    let made = program.node("DequantizeLinear", &[few, step, zero], axis());
    program.give(op, "Out", made)
}

/// To few bits, which the program takes for numbers of the same type.
fn whole<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, scale) = (program.input(op, "X")?, program.input(op, "InScale")?.id);
    let x = Operand { id: limited(program, x, scale), ..x };
    let few = quantized(program, op, x, scale)?;
    let made = program.cast(few, x.dtype());
    program.give(op, "Out", made)?;
    program.give(op, "OutScale", scale)
}

/// `x · scale / max_range`.
fn restore<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, scale) = (program.input(op, "X")?, program.input(op, "Scale")?);
    let most = program.number(op.float("max_range", 127.0), scale.dtype())?;
    let whole = if x.stated == Some(scale.dtype()) { x.id } else { program.cast(x.id, scale.dtype()) };
    let product = program.apply("Mul", &[whole, scale.id]);
    let made = program.apply("Div", &[product, most]);
    program.give(op, "Out", made)
}

/// The same with a scale for each channel, and maybe one more for all.
fn restore_channels<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, scales, bits) = (program.input(op, "X")?, program.inputs(op, "Scales")?, op.ints("quant_bits"));
    let dtype = scales.first().map_or(Dtype::F32, |scale| scale.dtype());
    let mut made = if x.stated == Some(dtype) { x.id } else { program.cast(x.id, dtype) };
    for (at, scale) in scales.iter().enumerate() {
        if bits.get(at) != Some(&8) {
            return Err(wrong("`quant_bits` of 8 for each scale", format!("{bits:?}")));
        }
        let axis = if at == 0 { x.axis(op.int("quant_axis", 0))? } else { -1 };
        let shape: Vec<i64> = (0..x.rank()?).map(|of| if of == axis { -1 } else { 1 }).collect();
        let shape = program.ints(if axis < 0 { &[] } else { &shape });
        let aligned = program.apply("Reshape", &[scale.id, shape]);
        let most = program.number(127.0, dtype)?;
        let step = program.apply("Div", &[aligned, most]);
        made = program.apply("Mul", &[made, step]);
    }
    program.give(op, "Out", made)
}
