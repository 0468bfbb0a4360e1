//! Ops that change the dtype but not the shape.

use super::context::{InferenceContext, attribute_error};
use super::elementwise::infer_same_shape;
use super::fact::{DisplayDims, PartialDim, PartialDims};
use super::output::{InferredOutput, single_output};
use super::rule::{InferenceRule, LATEST, rule};
use crate::{Dtype, Result};

pub(super) const RULES: &[InferenceRule] = &[
    rule("Cast", 1, 5, &[], infer_cast_by_name),
    rule("Cast", 6, LATEST, &[], infer_cast),
    rule("BitCast", 26, LATEST, &[], infer_bit_cast),
    rule("CastLike", 15, LATEST, &[], infer_cast_like),
    rule("QuantizeLinear", 10, LATEST, &[], infer_quantize),
    rule("DequantizeLinear", 10, LATEST, &[], infer_dequantize),
    rule("DynamicQuantizeLinear", 11, LATEST, &[], infer_dynamic_quantize),
];

fn infer_cast(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    single_output(InferredOutput::from(call.input_shape(0)?).with_dtype(cast_target(call)?))
}

fn cast_target(call: &InferenceContext<'_>) -> Result<Dtype> {
    call.dtype_attribute("to")?.ok_or_else(|| attribute_error("to", "the number of a dtype", "none"))
}

/// The first versions specify the dtype by its name in ONNX's protobuf.
fn infer_cast_by_name(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let name = call.string_attribute("to", "")?;
    let dtype = match name.to_ascii_uppercase().as_str() {
        "FLOAT" => Dtype::F32,
        "DOUBLE" => Dtype::F64,
        "FLOAT16" => Dtype::F16,
        "BOOL" => Dtype::Bool,
        "STRING" => Dtype::String,
        "COMPLEX64" => Dtype::C64,
        "COMPLEX128" => Dtype::C128,
        other => other
            .to_ascii_lowercase()
            .parse()
            .map_err(|_| attribute_error("to", "the name of a dtype", format!("`{name}`")))?,
    };
    single_output(InferredOutput::from(call.input_shape(0)?).with_dtype(dtype))
}

fn infer_bit_cast(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let (from, to) = (call.input(0)?.dtype, cast_target(call)?);
    if from.bits() != to.bits() || to == Dtype::String || from == Dtype::String {
        return Err(attribute_error("to", format!("a dtype of numbers of {} bits", from.bits()), to));
    }
    single_output(InferredOutput::from(call.input_shape(0)?).with_dtype(to))
}

fn infer_cast_like(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    single_output(InferredOutput::from(call.input_shape(0)?).with_dtype(call.input(1)?.dtype))
}

fn infer_quantize(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    check_scales(call)?;
    let stated = output_dtype_attribute(call)?;
    let dtype = match (call.optional_input(2), stated) {
        (Some(zero), Some(stated)) if zero.dtype != stated => {
            return Err(attribute_error(
                "output_dtype",
                format!("{}, the dtype of y_zero_point", zero.dtype),
                stated,
            ));
        }
        (Some(zero), _) => zero.dtype,
        (None, stated) => stated.unwrap_or(Dtype::U8),
    };
    single_output(InferredOutput::from(call.input_shape(0)?).with_dtype(dtype))
}

fn infer_dequantize(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    check_scales(call)?;
    let dtype = output_dtype_attribute(call)?.unwrap_or(call.input(1)?.dtype);
    single_output(InferredOutput::from(call.input_shape(0)?).with_dtype(dtype))
}

fn output_dtype_attribute(call: &InferenceContext<'_>) -> Result<Option<Dtype>> {
    if call.int_attribute_or("output_dtype", 0)? == 0 {
        Ok(None)
    } else {
        call.dtype_attribute("output_dtype")
    }
}

/// Scales are per tensor, per axis or per block. Zero points have the same shape.
fn check_scales(call: &InferenceContext<'_>) -> Result<()> {
    let (x, scales) = (call.input_dims(0)?, call.input_dims(1)?);
    let Some(scales) = scales else { return Ok(()) };
    if scales.is_empty() || scales == [PartialDim::Known(1)] {
        return call.expect_one_element(2);
    }
    // A list of unknown length may have one element, that is, be per tensor.
    let Some(x) = x.filter(|_| scales != [PartialDim::Unknown]) else { return Ok(()) };
    call.expect_dims(2, scales)?;
    if call.version() < 13 {
        return Err(call.input_error(1, "one scale", DisplayDims(scales)));
    }
    // With rank 1, there is only one axis, so the attribute is irrelevant.
    let axis = if x.len() == 1 { 0 } else { call.axis_attribute("axis", 1, x.len())? };
    let block = call.int_attribute_or("block_size", 0)?;
    if block < 0 {
        return Err(attribute_error("block_size", "at least 0", block));
    }
    let mut expected = PartialDims::from_slice(x);
    if block > 0 {
        expected[axis] = x[axis].try_add(block - 1)?.try_div(block)?;
    } else if scales.len() == 1 {
        expected = [x[axis]].as_slice().into();
    } else {
        // Without `block_size`, the number of scales determines the size of the blocks.
        expected[axis] = PartialDim::Unknown;
    }
    call.expect_dims(1, &expected)
}

fn infer_dynamic_quantize(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let scalar = || PartialDims::new().into();
    let mut outputs = infer_same_shape(call)?;
    outputs.extend([scalar(), scalar()]);
    Ok(outputs)
}
