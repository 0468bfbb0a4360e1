//! Quantization. Paddle stores the largest absolute value of a tensor or channel, where ONNX stores the step size.

use oarlock_core::{Dtype, Error, Result};

use super::{TranslatorTable, add_scalar_like, int_attribute};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::PaddleOperand;

pub(super) const QUANTIZE_OPS: TranslatorTable = &[
    ("dequantize_linear", |importer, op| {
        let (x, scale) = (importer.input(op, "X")?, importer.input(op, "Scale")?);
        let result = add_dequantize(importer, op, x, scale.id, scale.dtype())?;
        importer.set_output(op, "Y", result)
    }),
    ("fake_channel_wise_dequantize_max_abs", lower_channel_dequantize),
    ("fake_channel_wise_quantize_dequantize_abs_max", |importer, op| {
        lower_fake_quantize(importer, op, ScaleSource::OfChannels)
    }),
    ("fake_dequantize_max_abs", lower_dequantize),
    ("fake_quantize_dequantize_abs_max", |importer, op| {
        lower_fake_quantize(importer, op, ScaleSource::OfAll)
    }),
    ("fake_quantize_dequantize_moving_average_abs_max", |importer, op| {
        lower_fake_quantize(importer, op, ScaleSource::Given)
    }),
    ("fake_quantize_moving_average_abs_max", lower_quantize),
    ("fake_quantize_range_abs_max", lower_quantize),
    ("moving_average_abs_max_scale", |importer, op| {
        let x = importer.input(op, "X")?.id;
        importer.set_output(op, "Out", x)
    }),
    ("quantize_linear", |importer, op| {
        let (mut x, scale) = (importer.input(op, "X")?, importer.input(op, "Scale")?.id);
        if op.int_attribute("round_type", 1) == 1 && op.int_attribute("quant_axis", -1) < 0 {
            x.id = clamp_to_scale(importer, x, scale);
        }
        let result = add_quantize(importer, op, x, scale)?;
        // The program declares the quantized value with the dtype of the input.
        let result = match importer.output_dtype(op, "Y") {
            Some(dtype) if dtype != Dtype::I8 => importer.add_cast(result, dtype),
            _ => result,
        };
        importer.set_output(op, "Y", result)
    }),
];

/// Origin of the scale.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ScaleSource {
    Given,
    OfAll,
    OfChannels,
}

/// The largest 8-bit value; other widths are not supported.
fn quantized_limit(op: &OpDesc) -> Result<f64> {
    match op.int_attribute("bit_length", op.int_attribute("quant_bits", 8)) {
        8 => Ok(127.0),
        other => Err(Error::unimplemented(format!("expected numbers of 8 bits, found some of {other}"))),
    }
}

/// Converts the largest value to a step size, for the tensor or for each channel of an axis.
fn scale_to_step<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &OpDesc,
    scale: ValueId,
    dtype: Dtype,
) -> Result<(ValueId, i64)> {
    let axis = op.int_attribute("quant_axis", -1);
    let most = importer.add_scalar(quantized_limit(op)?, dtype)?;
    let shape = importer.add_ints(if axis < 0 { &[] } else { &[-1] });
    let scale = importer.add_op("Reshape", &[scale, shape]);
    Ok((importer.add_op("Div", &[scale, most]), axis.max(0)))
}

fn zero_point<'m>(importer: &mut PaddleImporter<'m>, step: ValueId, is_one: bool) -> Result<ValueId> {
    let zero = importer.add_scalar(0.0, Dtype::I8)?;
    if is_one {
        return Ok(zero);
    }
    let shape = importer.add_op("Shape", &[step]);
    Ok(importer.add_op("Expand", &[zero, shape]))
}

/// Clamps to ±scale, so that −128 is never used.
fn clamp_to_scale<'m>(importer: &mut PaddleImporter<'m>, x: PaddleOperand<'m>, scale: ValueId) -> ValueId {
    let none = importer.add_ints(&[]);
    let most = importer.add_op("Reshape", &[scale, none]);
    let least = importer.add_op("Neg", &[most]);
    importer.add_op("Clip", &[x.id, least, most])
}

fn add_quantize<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &OpDesc,
    x: PaddleOperand<'m>,
    scale: ValueId,
) -> Result<ValueId> {
    let (step, axis) = scale_to_step(importer, op, scale, x.dtype())?;
    let zero = zero_point(importer, step, op.int_attribute("quant_axis", -1) < 0)?;
    Ok(importer.add_op_with(
        "QuantizeLinear",
        &[x.id, step, zero],
        build_attributes([("axis", int_attribute(axis))]),
    ))
}

fn add_dequantize<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &OpDesc,
    x: PaddleOperand<'m>,
    scale: ValueId,
    dtype: Dtype,
) -> Result<ValueId> {
    let (step, axis) = scale_to_step(importer, op, scale, dtype)?;
    let whole = if x.stated == Some(Dtype::I8) { x.id } else { importer.add_cast(x.id, Dtype::I8) };
    Ok(importer.add_op_with(
        "DequantizeLinear",
        &[whole, step],
        build_attributes([("axis", int_attribute(axis))]),
    ))
}

/// Quantizes and dequantizes at once.
fn lower_fake_quantize<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    from: ScaleSource,
) -> Result<()> {
    let x = importer.input(op, "X")?;
    let mut few = x.id;
    let scale = match from {
        ScaleSource::Given => {
            let scale = importer.input(op, "InScale")?.id;
            few = clamp_to_scale(importer, x, scale);
            scale
        }
        ScaleSource::OfAll | ScaleSource::OfChannels => {
            let sizes = importer.add_op("Abs", &[x.id]);
            let channel = if from == ScaleSource::OfAll {
                -1
            } else {
                x.normalize_axis(op.int_attribute("quant_axis", 0))?
            };
            let axes: Vec<i64> = (0..x.rank()?).filter(|axis| *axis != channel).collect();
            let axes = importer.add_ints(&axes);
            importer.add_op_with(
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
    let most = add_scalar_like(importer, x, quantized_limit(op)?)?;
    let shape = importer.add_ints(if axis < 0 { &[] } else { &[-1] });
    let scale = importer.add_op("Reshape", &[scale, shape]);
    let step = importer.add_op("Div", &[scale, most]);
    let zero = zero_point(importer, step, axis < 0)?;
    let axis = || build_attributes([("axis", int_attribute(axis.max(0)))]);
    let few = importer.add_op_with("QuantizeLinear", &[few, step, zero], axis());
    let result = importer.add_op_with("DequantizeLinear", &[few, step, zero], axis());
    importer.set_output(op, "Out", result)
}

/// Quantizes; the program treats the result as a tensor of the same dtype.
fn lower_quantize<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, scale) = (importer.input(op, "X")?, importer.input(op, "InScale")?.id);
    let x = PaddleOperand { id: clamp_to_scale(importer, x, scale), ..x };
    let few = add_quantize(importer, op, x, scale)?;
    let result = importer.add_cast(few, x.dtype());
    importer.set_output(op, "Out", result)?;
    importer.set_output(op, "OutScale", scale)
}

/// `x · scale / max_range`.
fn lower_dequantize<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, scale) = (importer.input(op, "X")?, importer.input(op, "Scale")?);
    let most = importer.add_scalar(op.float_attribute("max_range", 127.0), scale.dtype())?;
    let whole = if x.stated == Some(scale.dtype()) { x.id } else { importer.add_cast(x.id, scale.dtype()) };
    let product = importer.add_op("Mul", &[whole, scale.id]);
    let result = importer.add_op("Div", &[product, most]);
    importer.set_output(op, "Out", result)
}

/// The same with a scale for each channel, and possibly another for the whole tensor.
fn lower_channel_dequantize<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, scales, bits) =
        (importer.input(op, "X")?, importer.inputs(op, "Scales")?, op.ints_attribute("quant_bits"));
    let dtype = scales.first().map_or(Dtype::F32, |scale| scale.dtype());
    let mut result = if x.stated == Some(dtype) { x.id } else { importer.add_cast(x.id, dtype) };
    for (at, scale) in scales.iter().enumerate() {
        if bits.get(at) != Some(&8) {
            return Err(invalid_model("`quant_bits` of 8 for each scale", format!("{bits:?}")));
        }
        let axis = if at == 0 { x.normalize_axis(op.int_attribute("quant_axis", 0))? } else { -1 };
        let shape: Vec<i64> = (0..x.rank()?).map(|of| if of == axis { -1 } else { 1 }).collect();
        let shape = importer.add_ints(if axis < 0 { &[] } else { &shape });
        let aligned = importer.add_op("Reshape", &[scale.id, shape]);
        let most = importer.add_scalar(127.0, dtype)?;
        let step = importer.add_op("Div", &[aligned, most]);
        result = importer.add_op("Mul", &[result, step]);
    }
    importer.set_output(op, "Out", result)
}
