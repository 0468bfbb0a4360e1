//! Ops that make tensors of nothing but a shape, a few numbers or chance.

use super::call::{Call, of_attribute, wrong_attribute};
use super::fact::{Dim, PartialDims};
use super::output::{Output, one};
use super::reshape::stated_shape;
use super::table::{LATEST, Rule, rule};
use crate::{Attribute, Constant, Dtype, Error, Result};

pub(super) const RULES: &[Rule] = &[
    rule("Constant", 1, LATEST, &[], constant),
    rule("ConstantOfShape", 9, LATEST, &[0], constant_of_shape),
    rule("Range", 11, LATEST, &[0, 1, 2], range),
    rule("EyeLike", 9, LATEST, &[], eye_like),
    rule("RandomNormal RandomUniform", 1, LATEST, &[], random),
    rule("RandomNormalLike RandomUniformLike Bernoulli", 1, LATEST, &[], like),
    rule("Multinomial", 7, LATEST, &[], multinomial),
];

fn constant(call: &Call<'_>) -> Result<Vec<Output>> {
    const HOLDERS: [&str; 7] =
        ["value", "value_float", "value_floats", "value_int", "value_ints", "value_string", "value_strings"];
    let mut found = HOLDERS.into_iter().filter_map(|name| call.attribute(name));
    let (Some(value), None) = (found.next(), found.next()) else {
        return Err(wrong_attribute("value", "exactly one attribute that holds a value", "none or several"));
    };
    let floats = |floats: &[f64], dims: &[i64]| {
        let bytes: Vec<u8> = floats.iter().flat_map(|float| (*float as f32).to_ne_bytes()).collect();
        Constant::new(Dtype::F32, dims, bytes)
    };
    let length = |length: usize| i64::try_from(length).unwrap_or(i64::MAX);
    let strings = |dims: PartialDims| Output::from(dims).of_dtype(Dtype::String);
    one(match value {
        Attribute::Tensor(value) => Output::from(value.clone()),
        Attribute::Float(value) => floats(&[*value], &[])?.into(),
        Attribute::Floats(values) => floats(values, &[length(values.len())])?.into(),
        Attribute::Int(value) => Constant::new(Dtype::I64, &[], value.to_ne_bytes().to_vec())?.into(),
        Attribute::Ints(values) => Constant::of_ints(values).into(),
        Attribute::String(_) => strings(PartialDims::new()),
        Attribute::Strings(values) => strings([Dim::from(values.len())].as_slice().into()),
    })
}

fn constant_of_shape(call: &Call<'_>) -> Result<Vec<Output>> {
    let dtype = match call.constant("value")? {
        Some(value) if value.dims().iter().any(|size| *size != 1) => {
            return Err(wrong_attribute("value", "one element", format!("the shape {:?}", value.dims())));
        }
        value => value.map_or(Dtype::F32, Constant::dtype),
    };
    one(Output::from(stated_shape(call, 0)?).of_dtype(dtype))
}

fn range(call: &Call<'_>) -> Result<Vec<Output>> {
    (0..3).try_for_each(|input| call.expect_one_element(input))?;
    let dtype = call.input(0)?.dtype;
    let length = match dtype.is_float() {
        true => match (call.floats(0)?.as_deref(), call.floats(1)?.as_deref(), call.floats(2)?.as_deref()) {
            (Some([start]), Some([limit]), Some([delta])) => {
                // The difference has the precision of the elements, as it has where the elements are computed.
                let distance =
                    if dtype == Dtype::F64 { limit - start } else { f64::from((limit - start) as f32) };
                count_floats(distance, *delta)
            }
            _ => Ok(Dim::Unknown),
        },
        false => match (call.int_value(0)?, call.int_value(1)?, call.int_value(2)?) {
            (Dim::Known(start), Dim::Known(limit), Dim::Known(delta)) => count_ints(start, limit, delta),
            _ => Ok(Dim::Unknown),
        },
    };
    one(Output::from([length.map_err(call.blame(2))?].as_slice()).of_dtype(dtype))
}

fn count_floats(distance: f64, delta: f64) -> Result<Dim> {
    let steps = (distance / delta).ceil();
    // 2^63 and above, which a cast would cut, are as impossible as what is no number.
    if delta == 0.0 || !steps.is_finite() || steps >= i64::MAX as f64 {
        let found = format!("{delta} for a distance of {distance}");
        return Err(Error::invalid_argument(format!("expected steps that reach the limit, found {found}")));
    }
    Ok(Dim::Known(steps.max(0.0) as i64))
}

fn count_ints(start: i64, limit: i64, delta: i64) -> Result<Dim> {
    let (start, limit, delta) = (i128::from(start), i128::from(limit), i128::from(delta));
    if delta == 0 {
        return Err(Error::invalid_argument("expected steps other than 0, found 0"));
    }
    let distance = if delta > 0 { limit - start } else { start - limit };
    let steps = distance.max(0).unsigned_abs().div_ceil(delta.unsigned_abs());
    let steps = i64::try_from(steps);
    steps
        .map(Dim::Known)
        .map_err(|_| Error::resource_exhausted(format!("expected fewer than 2^63 steps, found {steps:?}")))
}

fn eye_like(call: &Call<'_>) -> Result<Vec<Output>> {
    call.dims_of_rank::<2>(0)?;
    like(call)
}

/// The shape of the input, and its dtype unless the attribute says another one.
fn like(call: &Call<'_>) -> Result<Vec<Output>> {
    let dtype = call.dtype("dtype")?.unwrap_or(call.input(0)?.dtype);
    one(Output::from(call.shape(0)?).of_dtype(dtype))
}

fn random(call: &Call<'_>) -> Result<Vec<Output>> {
    let dims = call.int_list("shape")?.ok_or_else(|| wrong_attribute("shape", "a shape", "none"))?;
    crate::shape::element_count(dims).map_err(of_attribute("shape"))?;
    let dims: PartialDims = dims.iter().copied().map(Dim::Known).collect();
    one(Output::from(dims).of_dtype(call.dtype("dtype")?.unwrap_or(Dtype::F32)))
}

fn multinomial(call: &Call<'_>) -> Result<Vec<Output>> {
    let [batches, _] = call.dims_of_rank(0)?.unwrap_or([Dim::Unknown; 2]);
    let count = call.int_or("sample_size", 1)?;
    if count < 0 {
        return Err(wrong_attribute("sample_size", "at least 0", count));
    }
    let dtype = call.dtype("dtype")?.unwrap_or(Dtype::I32);
    one(Output::from([batches, Dim::Known(count)].as_slice()).of_dtype(dtype))
}
