//! Ops that make the dimensions of a tensor longer or shorter by a factor.

use super::call::{Call, axes as dimensions, of_attribute, wrong_attribute};
use super::fact::{Dim, PartialDims, product};
use super::output::{Output, of_rank, one};
use super::table::{LATEST, Rule, rule};
use crate::{Error, Result};

pub(super) const RULES: &[Rule] = &[
    rule("Upsample", 1, 6, &[], upsample_images),
    rule("Upsample", 7, 8, &[], upsample_by_attribute),
    rule("Upsample", 9, LATEST, &[1], |call| resize_by(call, 1)),
    rule("Resize", 10, 10, &[1], |call| resize_by(call, 1)),
    rule("Resize", 11, LATEST, &[2, 3], resize),
];

fn upsample_images(call: &Call<'_>) -> Result<Vec<Output>> {
    let factor = |name| call.float(name)?.ok_or_else(|| wrong_attribute(name, "a number", "none"));
    let (height, width) = (factor("height_scale")?, factor("width_scale")?);
    let [n, c, h, w] = call.dims_of_rank(0)?.unwrap_or([Dim::Unknown; 4]);
    let height = scaled(h, height).map_err(of_attribute("height_scale"))?;
    one([n, c, height, scaled(w, width).map_err(of_attribute("width_scale"))?].as_slice())
}

fn upsample_by_attribute(call: &Call<'_>) -> Result<Vec<Output>> {
    let factors = call.float_list("scales")?.ok_or_else(|| wrong_attribute("scales", "numbers", "none"))?;
    let Some(dims) = call.shape(0)? else { return one(of_rank(factors.len())) };
    let axes: Vec<_> = (0..dims.len()).collect();
    one(scaled_by(dims, &axes, factors).map_err(of_attribute("scales"))?)
}

/// The factors are an input, and the sizes another one; one of both is there, and has elements.
fn resize(call: &Call<'_>) -> Result<Vec<Output>> {
    match (is_there(call, 2), is_there(call, 3)) {
        (Some(true), Some(true)) => Err(call.wrong(3, "no sizes beside factors", "both")),
        (Some(false), Some(false)) => Err(call.wrong(2, "factors, or sizes as input 3", "neither")),
        (Some(true), _) | (_, Some(false)) => resize_by(call, 2),
        (_, Some(true)) | (Some(false), _) => resize_to_sizes(call),
        (None, None) => one(call.shape(0)?.map(|dims| of_rank(dims.len()))),
    }
}

/// Whether an input has elements; none where nobody knows.
fn is_there(call: &Call<'_>, input: usize) -> Option<bool> {
    let Some(fact) = call.given(input) else { return Some(false) };
    match product(fact.dims.as_ref()?) {
        Ok(Dim::Known(count)) => Some(count != 0),
        _ => None,
    }
}

/// The dimensions that factors and sizes are for.
fn axes(call: &Call<'_>, rank: usize) -> Result<Vec<usize>> {
    match call.int_list("axes")?.filter(|axes| !axes.is_empty()) {
        Some(axes) => dimensions(axes, rank).map_err(of_attribute("axes")),
        None => Ok((0..rank).collect()),
    }
}

/// A part of an input that is to be taken instead of the whole does not count: that is what everybody does, whatever the
/// text of the standard says.
fn resize_by(call: &Call<'_>, input: usize) -> Result<Vec<Output>> {
    call.list_length(input)?;
    let Some(mut dims) = call.shape(0)? else { return one(None) };
    let axes = axes(call, dims.len())?;
    if let Some(factors) = call.floats(input)? {
        return one(scaled_by(dims, &axes, &factors).map_err(call.blame(input))?);
    }
    call.expect_dims(input, &[Dim::from(axes.len())])?;
    axes.into_iter().for_each(|axis| dims[axis] = Dim::Unknown);
    one(dims)
}

fn scaled_by(dims: PartialDims, axes: &[usize], factors: &[f64]) -> Result<PartialDims> {
    if factors.len() != axes.len() {
        let (expected, found) = (axes.len(), factors.len());
        return Err(Error::invalid_argument(format!(
            "expected {expected} factors, one for each axis, found {found}"
        )));
    }
    let mut all = dims;
    for (axis, factor) in axes.iter().zip(factors) {
        all[*axis] = scaled(all[*axis], *factor)?;
    }
    Ok(all)
}

/// Computed in the precision that factors have, so that a third of 3 is 1.
fn scaled(dim: Dim, factor: f64) -> Result<Dim> {
    if !(factor > 0.0 && factor.is_finite()) {
        return Err(Error::invalid_argument(format!("expected factors of more than 0, found {factor}")));
    }
    let Dim::Known(size) = dim else { return Ok(Dim::Unknown) };
    whole(f64::from((size as f32 * factor as f32).floor()))
}

fn whole(size: f64) -> Result<Dim> {
    if (0.0..i64::MAX as f64).contains(&size) {
        return Ok(Dim::Known(size as i64));
    }
    Err(Error::resource_exhausted(format!("expected a size that tensors can have, found {size}")))
}

fn resize_to_sizes(call: &Call<'_>) -> Result<Vec<Output>> {
    call.list_length(3)?;
    let Some(mut dims) = call.shape(0)? else { return one(None) };
    let axes = axes(call, dims.len())?;
    let Some(sizes) = call.ints(3)? else {
        call.expect_dims(3, &[Dim::from(axes.len())])?;
        axes.into_iter().for_each(|axis| dims[axis] = Dim::Unknown);
        return one(dims);
    };
    if sizes.len() != axes.len() || sizes.iter().any(|size| *size < 0) {
        let expected = format!("{} sizes of at least 0, one for each axis", axes.len());
        return Err(call.wrong(3, expected, format!("{sizes:?}")));
    }
    let factor = kept_factor(call, &dims, &axes, &sizes)?;
    for (axis, size) in axes.into_iter().zip(sizes) {
        dims[axis] = match (factor, dims[axis]) {
            (Factor::Free, _) => Dim::Known(size),
            // Half a place is rounded up.
            (Factor::Common(factor), Dim::Known(size)) => whole((size as f64 * factor + 0.5).floor())?,
            _ => Dim::Unknown,
        };
    }
    one(dims)
}

/// By which factor all axes change.
#[derive(Clone, Copy)]
enum Factor {
    /// Each by its own.
    Free,
    /// All by this one, so that proportions stay.
    Common(f64),
    /// All by one that depends on sizes that are not known.
    Unknown,
}

fn kept_factor(call: &Call<'_>, dims: &[Dim], axes: &[usize], sizes: &[i64]) -> Result<Factor> {
    let choose: fn(f64, f64) -> f64 = match call.text("keep_aspect_ratio_policy", "stretch")? {
        "stretch" => return Ok(Factor::Free),
        "not_larger" => f64::min,
        "not_smaller" => f64::max,
        other => {
            let expected = "stretch, not_larger or not_smaller";
            return Err(wrong_attribute("keep_aspect_ratio_policy", expected, format!("`{other}`")));
        }
    };
    let known: Option<Vec<i64>> = axes.iter().map(|axis| dims[*axis].known()).collect();
    let Some(known) = known else { return Ok(Factor::Unknown) };
    if known.contains(&0) {
        return Err(call.wrong(0, "sizes of more than 0, which proportions need", "0"));
    }
    let factors = sizes.iter().zip(known).map(|(size, known)| *size as f64 / known as f64);
    Ok(factors.reduce(choose).map_or(Factor::Free, Factor::Common))
}
