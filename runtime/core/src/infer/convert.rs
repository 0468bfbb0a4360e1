//! Ops that change the dtype and keep the shape.

use super::call::{Call, wrong_attribute};
use super::elementwise::same;
use super::fact::{Dim, Listed, PartialDims};
use super::output::{Output, one};
use super::table::{LATEST, Rule, rule};
use crate::{Dtype, Result};

pub(super) const RULES: &[Rule] = &[
    rule("Cast", 1, 5, &[], cast_by_name),
    rule("Cast", 6, LATEST, &[], cast),
    rule("BitCast", 26, LATEST, &[], bit_cast),
    rule("CastLike", 15, LATEST, &[], cast_like),
    rule("QuantizeLinear", 10, LATEST, &[], quantize),
    rule("DequantizeLinear", 10, LATEST, &[], dequantize),
    rule("DynamicQuantizeLinear", 11, LATEST, &[], quantize_dynamically),
];

fn cast(call: &Call<'_>) -> Result<Vec<Output>> {
    one(Output::from(call.shape(0)?).of_dtype(target(call)?))
}

fn target(call: &Call<'_>) -> Result<Dtype> {
    call.dtype("to")?.ok_or_else(|| wrong_attribute("to", "the number of a dtype", "none"))
}

/// The first versions named the dtype as ONNX's files do.
fn cast_by_name(call: &Call<'_>) -> Result<Vec<Output>> {
    let name = call.text("to", "")?;
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
            .map_err(|_| wrong_attribute("to", "the name of a dtype", format!("`{name}`")))?,
    };
    one(Output::from(call.shape(0)?).of_dtype(dtype))
}

fn bit_cast(call: &Call<'_>) -> Result<Vec<Output>> {
    let (from, to) = (call.input(0)?.dtype, target(call)?);
    if from.bits() != to.bits() || to == Dtype::String || from == Dtype::String {
        return Err(wrong_attribute("to", format!("a dtype of numbers of {} bits", from.bits()), to));
    }
    one(Output::from(call.shape(0)?).of_dtype(to))
}

fn cast_like(call: &Call<'_>) -> Result<Vec<Output>> {
    one(Output::from(call.shape(0)?).of_dtype(call.input(1)?.dtype))
}

fn quantize(call: &Call<'_>) -> Result<Vec<Output>> {
    check_scales(call)?;
    let stated = dtype_if_stated(call)?;
    let dtype = match (call.given(2), stated) {
        (Some(zero), Some(stated)) if zero.dtype != stated => {
            return Err(wrong_attribute(
                "output_dtype",
                format!("{}, the dtype of y_zero_point", zero.dtype),
                stated,
            ));
        }
        (Some(zero), _) => zero.dtype,
        (None, stated) => stated.unwrap_or(Dtype::U8),
    };
    one(Output::from(call.shape(0)?).of_dtype(dtype))
}

fn dequantize(call: &Call<'_>) -> Result<Vec<Output>> {
    check_scales(call)?;
    let dtype = dtype_if_stated(call)?.unwrap_or(call.input(1)?.dtype);
    one(Output::from(call.shape(0)?).of_dtype(dtype))
}

fn dtype_if_stated(call: &Call<'_>) -> Result<Option<Dtype>> {
    if call.int_or("output_dtype", 0)? == 0 { Ok(None) } else { call.dtype("output_dtype") }
}

/// One scale for all, one for each index of an axis, or one for each block along it. Zero points are like scales.
fn check_scales(call: &Call<'_>) -> Result<()> {
    let (x, scales) = (call.dims(0)?, call.dims(1)?);
    let Some(scales) = scales else { return Ok(()) };
    if scales.is_empty() || scales == [Dim::Known(1)] {
        return call.expect_one_element(2);
    }
    // A list of unknown length may have one element too.
    let Some(x) = x.filter(|_| scales != [Dim::Unknown]) else { return Ok(()) };
    call.expect_dims(2, scales)?;
    if call.version() < 13 {
        return Err(call.wrong(1, "one scale", Listed(scales)));
    }
    // The axis of a list does not matter.
    let axis = if x.len() == 1 { 0 } else { call.axis("axis", 1, x.len())? };
    let block = call.int_or("block_size", 0)?;
    if block < 0 {
        return Err(wrong_attribute("block_size", "at least 0", block));
    }
    let mut expected = PartialDims::from_slice(x);
    if block > 0 {
        expected[axis] = x[axis].plus(block - 1)?.over(block)?;
    } else if scales.len() == 1 {
        expected = [x[axis]].as_slice().into();
    } else {
        // The size of the blocks follows from the number of scales.
        expected[axis] = Dim::Unknown;
    }
    call.expect_dims(1, &expected)
}

fn quantize_dynamically(call: &Call<'_>) -> Result<Vec<Output>> {
    let scalar = || PartialDims::new().into();
    let mut outputs = same(call)?;
    outputs.extend([scalar(), scalar()]);
    Ok(outputs)
}
