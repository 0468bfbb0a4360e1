//! Ops that create tensors from a shape, a few numbers, or the random generator.

use super::context::{InferenceContext, attribute_error, blame_attribute};
use super::fact::{PartialDim, PartialDims};
use super::output::{InferredOutput, single_output};
use super::reshape::stated_shape;
use super::rule::{InferenceRule, LATEST, rule};
use crate::{Attribute, Constant, Dtype, Error, Result};

pub(super) const RULES: &[InferenceRule] = &[
    rule("Constant", 1, LATEST, &[], infer_constant),
    rule("ConstantOfShape", 9, LATEST, &[0], infer_constant_of_shape),
    rule("Range", 11, LATEST, &[0, 1, 2], infer_range),
    rule("EyeLike", 9, LATEST, &[], infer_eye_like),
    rule("RandomNormal RandomUniform", 1, LATEST, &[], infer_random),
    rule("RandomNormalLike RandomUniformLike Bernoulli", 1, LATEST, &[], infer_random_like),
    rule("Multinomial", 7, LATEST, &[], infer_multinomial),
    rule("RandomSample", 1, LATEST, &[], infer_random_like).in_oarlock_domain(),
];

fn infer_constant(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    const VALUE_ATTRIBUTES: [&str; 7] =
        ["value", "value_float", "value_floats", "value_int", "value_ints", "value_string", "value_strings"];
    let mut found = VALUE_ATTRIBUTES.into_iter().filter_map(|name| call.attribute(name));
    let (Some(value), None) = (found.next(), found.next()) else {
        return Err(attribute_error("value", "exactly one attribute that holds a value", "none or several"));
    };
    let floats = |floats: &[f64], dims: &[i64]| {
        let bytes: Vec<u8> = floats.iter().flat_map(|float| (*float as f32).to_ne_bytes()).collect();
        Constant::new(Dtype::F32, dims, bytes)
    };
    let length = |length: usize| i64::try_from(length).unwrap_or(i64::MAX);
    let strings = |dims: PartialDims| InferredOutput::from(dims).with_dtype(Dtype::String);
    single_output(match value {
        Attribute::Tensor(value) => InferredOutput::from(value.clone()),
        Attribute::Float(value) => floats(&[*value], &[])?.into(),
        Attribute::Floats(values) => floats(values, &[length(values.len())])?.into(),
        Attribute::Int(value) => Constant::new(Dtype::I64, &[], value.to_ne_bytes().to_vec())?.into(),
        Attribute::Ints(values) => Constant::from_ints(values).into(),
        Attribute::String(_) => strings(PartialDims::new()),
        Attribute::Strings(values) => strings([PartialDim::from(values.len())].as_slice().into()),
    })
}

fn infer_constant_of_shape(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let dtype = match call.tensor_attribute("value")? {
        Some(value) if value.dims().iter().any(|size| *size != 1) => {
            return Err(attribute_error("value", "one element", format!("the shape {:?}", value.dims())));
        }
        value => value.map_or(Dtype::F32, Constant::dtype),
    };
    single_output(InferredOutput::from(stated_shape(call, 0)?).with_dtype(dtype))
}

fn infer_range(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    (0..3).try_for_each(|input| call.expect_one_element(input))?;
    let dtype = call.input(0)?.dtype;
    let length = match dtype.is_float() {
        true => match (
            call.input_floats(0)?.as_deref(),
            call.input_floats(1)?.as_deref(),
            call.input_floats(2)?.as_deref(),
        ) {
            (Some([start]), Some([limit]), Some([delta])) => {
                // Subtract in the precision of the elements, as the kernel does; otherwise the lengths could differ.
                let distance =
                    if dtype == Dtype::F64 { limit - start } else { f64::from((limit - start) as f32) };
                count_floats(distance, *delta)
            }
            _ => Ok(PartialDim::Unknown),
        },
        false => match (call.input_int(0)?, call.input_int(1)?, call.input_int(2)?) {
            (PartialDim::Known(start), PartialDim::Known(limit), PartialDim::Known(delta)) => {
                count_ints(start, limit, delta)
            }
            _ => Ok(PartialDim::Unknown),
        },
    };
    single_output(InferredOutput::from([length.map_err(call.blame_input(2))?].as_slice()).with_dtype(dtype))
}

fn count_floats(distance: f64, delta: f64) -> Result<PartialDim> {
    let steps = (distance / delta).ceil();
    // A cast would saturate 2^63 and above, so they are as invalid as NaN.
    if delta == 0.0 || !steps.is_finite() || steps >= i64::MAX as f64 {
        let found = format!("{delta} for a distance of {distance}");
        return Err(Error::invalid_argument(format!("expected steps that reach the limit, found {found}")));
    }
    Ok(PartialDim::Known(steps.max(0.0) as i64))
}

fn count_ints(start: i64, limit: i64, delta: i64) -> Result<PartialDim> {
    let (start, limit, delta) = (i128::from(start), i128::from(limit), i128::from(delta));
    if delta == 0 {
        return Err(Error::invalid_argument("expected steps other than 0, found 0"));
    }
    let distance = if delta > 0 { limit - start } else { start - limit };
    let steps = distance.max(0).unsigned_abs().div_ceil(delta.unsigned_abs());
    let steps = i64::try_from(steps);
    steps
        .map(PartialDim::Known)
        .map_err(|_| Error::resource_exhausted(format!("expected fewer than 2^63 steps, found {steps:?}")))
}

fn infer_eye_like(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    call.dims_of_rank::<2>(0)?;
    infer_random_like(call)
}

/// Shape and dtype come from the input, unless an attribute overrides the dtype.
fn infer_random_like(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let dtype = call.dtype_attribute("dtype")?.unwrap_or(call.input(0)?.dtype);
    single_output(InferredOutput::from(call.input_shape(0)?).with_dtype(dtype))
}

fn infer_random(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let dims = call.ints_attribute("shape")?.ok_or_else(|| attribute_error("shape", "a shape", "none"))?;
    crate::shape::element_count(dims).map_err(blame_attribute("shape"))?;
    let dims: PartialDims = dims.iter().copied().map(PartialDim::Known).collect();
    single_output(InferredOutput::from(dims).with_dtype(call.dtype_attribute("dtype")?.unwrap_or(Dtype::F32)))
}

fn infer_multinomial(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let [batches, _] = call.dims_of_rank(0)?.unwrap_or([PartialDim::Unknown; 2]);
    let count = call.int_attribute_or("sample_size", 1)?;
    if count < 0 {
        return Err(attribute_error("sample_size", "at least 0", count));
    }
    let dtype = call.dtype_attribute("dtype")?.unwrap_or(Dtype::I32);
    single_output(InferredOutput::from([batches, PartialDim::Known(count)].as_slice()).with_dtype(dtype))
}
