//! Numbers of few bits. Paddle writes down the largest number of a tensor or a channel, and ONNX the size of a step.

use oarlock_core::{Dtype, Error, Result};

use super::{TranslatorTable, add_scalar_like, int_attribute};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::PaddleOperand;

pub(super) const QUANTIZE_OPS: TranslatorTable = &[
    ("dequantize_linear", |program, op| {
        let (x, scale) = (program.input(op, "X")?, program.input(op, "Scale")?);
        let made = add_dequantize(program, op, x, scale.id, scale.dtype())?;
        program.set_output(op, "Y", made)
    }),
    ("fake_channel_wise_dequantize_max_abs", lower_channel_dequantize),
    ("fake_channel_wise_quantize_dequantize_abs_max", |program, op| {
        lower_fake_quantize(program, op, ScaleSource::OfChannels)
    }),
    ("fake_dequantize_max_abs", lower_dequantize),
    ("fake_quantize_dequantize_abs_max", |program, op| lower_fake_quantize(program, op, ScaleSource::OfAll)),
    ("fake_quantize_dequantize_moving_average_abs_max", |program, op| {
        lower_fake_quantize(program, op, ScaleSource::Given)
    }),
    ("fake_quantize_moving_average_abs_max", lower_quantize),
    ("fake_quantize_range_abs_max", lower_quantize),
    ("moving_average_abs_max_scale", |program, op| {
        let x = program.input(op, "X")?.id;
        program.set_output(op, "Out", x)
    }),
    ("quantize_linear", |program, op| {
        let (mut x, scale) = (program.input(op, "X")?, program.input(op, "Scale")?.id);
        if op.int_attribute("round_type", 1) == 1 && op.int_attribute("quant_axis", -1) < 0 {
            x.id = clamp_to_scale(program, x, scale);
        }
        let made = add_quantize(program, op, x, scale)?;
        // What follows takes it for a number of the same type.
        let made = match program.output_dtype(op, "Y") {
            Some(dtype) if dtype != Dtype::I8 => program.add_cast(made, dtype),
            _ => made,
        };
        program.set_output(op, "Y", made)
    }),
];

/// Where the largest number comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ScaleSource {
    Given,
    OfAll,
    OfChannels,
}

/// The largest number of 8 bits. Others are not supported.
fn quantized_limit(op: &OpDesc) -> Result<f64> {
    match op.int_attribute("bit_length", op.int_attribute("quant_bits", 8)) {
        8 => Ok(127.0),
        other => Err(Error::unimplemented(format!("expected numbers of 8 bits, found some of {other}"))),
    }
}

/// The size of a step: one for all, or one for each channel of an axis.
fn scale_to_step<'m>(
    program: &mut PaddleImporter<'m>,
    op: &OpDesc,
    scale: ValueId,
    dtype: Dtype,
) -> Result<(ValueId, i64)> {
    let axis = op.int_attribute("quant_axis", -1);
    let most = program.add_scalar(quantized_limit(op)?, dtype)?;
    let shape = program.add_ints(if axis < 0 { &[] } else { &[-1] });
    let scale = program.add_op("Reshape", &[scale, shape]);
    Ok((program.add_op("Div", &[scale, most]), axis.max(0)))
}

fn zero_point<'m>(program: &mut PaddleImporter<'m>, step: ValueId, is_one: bool) -> Result<ValueId> {
    let zero = program.add_scalar(0.0, Dtype::I8)?;
    if is_one {
        return Ok(zero);
    }
    let shape = program.add_op("Shape", &[step]);
    Ok(program.add_op("Expand", &[zero, shape]))
}

/// Numbers no larger than the largest one, so that the smallest of all numbers of 8 bits is not used.
fn clamp_to_scale<'m>(program: &mut PaddleImporter<'m>, x: PaddleOperand<'m>, scale: ValueId) -> ValueId {
    let none = program.add_ints(&[]);
    let most = program.add_op("Reshape", &[scale, none]);
    let least = program.add_op("Neg", &[most]);
    program.add_op("Clip", &[x.id, least, most])
}

fn add_quantize<'m>(
    program: &mut PaddleImporter<'m>,
    op: &OpDesc,
    x: PaddleOperand<'m>,
    scale: ValueId,
) -> Result<ValueId> {
    let (step, axis) = scale_to_step(program, op, scale, x.dtype())?;
    let zero = zero_point(program, step, op.int_attribute("quant_axis", -1) < 0)?;
    Ok(program.add_op_with(
        "QuantizeLinear",
        &[x.id, step, zero],
        build_attributes([("axis", int_attribute(axis))]),
    ))
}

fn add_dequantize<'m>(
    program: &mut PaddleImporter<'m>,
    op: &OpDesc,
    x: PaddleOperand<'m>,
    scale: ValueId,
    dtype: Dtype,
) -> Result<ValueId> {
    let (step, axis) = scale_to_step(program, op, scale, dtype)?;
    let whole = if x.stated == Some(Dtype::I8) { x.id } else { program.add_cast(x.id, Dtype::I8) };
    Ok(program.add_op_with(
        "DequantizeLinear",
        &[whole, step],
        build_attributes([("axis", int_attribute(axis))]),
    ))
}

/// To few bits and back.
fn lower_fake_quantize<'m>(
    program: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    from: ScaleSource,
) -> Result<()> {
    let x = program.input(op, "X")?;
    let mut few = x.id;
    let scale = match from {
        ScaleSource::Given => {
            let scale = program.input(op, "InScale")?.id;
            few = clamp_to_scale(program, x, scale);
            scale
        }
        ScaleSource::OfAll | ScaleSource::OfChannels => {
            let sizes = program.add_op("Abs", &[x.id]);
            let channel = if from == ScaleSource::OfAll {
                -1
            } else {
                x.normalize_axis(op.int_attribute("quant_axis", 0))?
            };
            let axes: Vec<i64> = (0..x.rank()?).filter(|axis| *axis != channel).collect();
            let axes = program.add_ints(&axes);
            program.add_op_with(
                "ReduceMax",
                &[sizes, axes],
                build_attributes([("keepdims", int_attribute(0))]),
            )
        }
    };
    let axis = if from == ScaleSource::OfChannels {
        x.normalize_axis(op.int_attribute("quant_axis", 0))?
    } else {
        -1
    };
    let most = add_scalar_like(program, x, quantized_limit(op)?)?;
    let shape = program.add_ints(if axis < 0 { &[] } else { &[-1] });
    let scale = program.add_op("Reshape", &[scale, shape]);
    let step = program.add_op("Div", &[scale, most]);
    let zero = zero_point(program, step, axis < 0)?;
    let axis = || build_attributes([("axis", int_attribute(axis.max(0)))]);
    let few = program.add_op_with("QuantizeLinear", &[few, step, zero], axis());
    let made = program.add_op_with("DequantizeLinear", &[few, step, zero], axis());
    program.set_output(op, "Out", made)
}

/// To few bits, which the program takes for numbers of the same type.
fn lower_quantize<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, scale) = (program.input(op, "X")?, program.input(op, "InScale")?.id);
    let x = PaddleOperand { id: clamp_to_scale(program, x, scale), ..x };
    let few = add_quantize(program, op, x, scale)?;
    let made = program.add_cast(few, x.dtype());
    program.set_output(op, "Out", made)?;
    program.set_output(op, "OutScale", scale)
}

/// `x · scale / max_range`.
fn lower_dequantize<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, scale) = (program.input(op, "X")?, program.input(op, "Scale")?);
    let most = program.add_scalar(op.float_attribute("max_range", 127.0), scale.dtype())?;
    let whole = if x.stated == Some(scale.dtype()) { x.id } else { program.add_cast(x.id, scale.dtype()) };
    let product = program.add_op("Mul", &[whole, scale.id]);
    let made = program.add_op("Div", &[product, most]);
    program.set_output(op, "Out", made)
}

/// The same with a scale for each channel, and maybe one more for all.
fn lower_channel_dequantize<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, scales, bits) =
        (program.input(op, "X")?, program.inputs(op, "Scales")?, op.ints_attribute("quant_bits"));
    let dtype = scales.first().map_or(Dtype::F32, |scale| scale.dtype());
    let mut made = if x.stated == Some(dtype) { x.id } else { program.add_cast(x.id, dtype) };
    for (at, scale) in scales.iter().enumerate() {
        if bits.get(at) != Some(&8) {
            return Err(invalid_model("`quant_bits` of 8 for each scale", format!("{bits:?}")));
        }
        let axis = if at == 0 { x.normalize_axis(op.int_attribute("quant_axis", 0))? } else { -1 };
        let shape: Vec<i64> = (0..x.rank()?).map(|of| if of == axis { -1 } else { 1 }).collect();
        let shape = program.add_ints(if axis < 0 { &[] } else { &shape });
        let aligned = program.add_op("Reshape", &[scale.id, shape]);
        let most = program.add_scalar(127.0, dtype)?;
        let step = program.add_op("Div", &[aligned, most]);
        made = program.add_op("Mul", &[made, step]);
    }
    program.set_output(op, "Out", made)
}
