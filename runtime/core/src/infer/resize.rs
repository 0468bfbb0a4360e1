//! Ops that scale the dimensions of a tensor.

use super::context::{InferenceContext, attribute_error, blame_attribute, resolve_axes as dimensions};
use super::fact::{PartialDim, PartialDims, dim_product};
use super::output::{InferredOutput, single_output, unknown_dims};
use super::rule::{InferenceRule, LATEST, rule};
use crate::{Error, Result};

pub(super) const RULES: &[InferenceRule] = &[
    rule("Upsample", 1, 6, &[], infer_upsample_images),
    rule("Upsample", 7, 8, &[], infer_upsample_by_attribute),
    rule("Upsample", 9, LATEST, &[1], |call| infer_resize_by_factors(call, 1)),
    rule("Resize", 10, 10, &[1], |call| infer_resize_by_factors(call, 1)),
    rule("Resize", 11, LATEST, &[2, 3], infer_resize),
];

fn infer_upsample_images(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let factor = |name| call.float_attribute(name)?.ok_or_else(|| attribute_error(name, "a number", "none"));
    let (height, width) = (factor("height_scale")?, factor("width_scale")?);
    let [n, c, h, w] = call.dims_of_rank(0)?.unwrap_or([PartialDim::Unknown; 4]);
    let height = scale_dim(h, height).map_err(blame_attribute("height_scale"))?;
    single_output([n, c, height, scale_dim(w, width).map_err(blame_attribute("width_scale"))?].as_slice())
}

fn infer_upsample_by_attribute(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let factors =
        call.floats_attribute("scales")?.ok_or_else(|| attribute_error("scales", "numbers", "none"))?;
    let Some(dims) = call.input_shape(0)? else { return single_output(unknown_dims(factors.len())) };
    let axes: Vec<_> = (0..dims.len()).collect();
    single_output(scale_dims(dims, &axes, factors).map_err(blame_attribute("scales"))?)
}

/// Factors and sizes are separate inputs; exactly one of them must have elements.
fn infer_resize(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    match (has_elements(call, 2), has_elements(call, 3)) {
        (Some(true), Some(true)) => Err(call.input_error(3, "no sizes beside factors", "both")),
        (Some(false), Some(false)) => Err(call.input_error(2, "factors, or sizes as input 3", "neither")),
        (Some(true), _) | (_, Some(false)) => infer_resize_by_factors(call, 2),
        (_, Some(true)) | (Some(false), _) => infer_resize_to_sizes(call),
        (None, None) => single_output(call.input_shape(0)?.map(|dims| unknown_dims(dims.len()))),
    }
}

/// True if an input has elements; `None` if that is unknown.
fn has_elements(call: &InferenceContext<'_>, input: usize) -> Option<bool> {
    let Some(fact) = call.optional_input(input) else { return Some(false) };
    match dim_product(fact.dims.as_ref()?) {
        Ok(PartialDim::Known(count)) => Some(count != 0),
        _ => None,
    }
}

/// The axes that factors and sizes apply to; all by default.
fn resize_axes(call: &InferenceContext<'_>, rank: usize) -> Result<Vec<usize>> {
    match call.ints_attribute("axes")?.filter(|axes| !axes.is_empty()) {
        Some(axes) => dimensions(axes, rank).map_err(blame_attribute("axes")),
        None => Ok((0..rank).collect()),
    }
}

/// The region of interest does not affect the size. The text of the standard differs, but all implementations do this.
fn infer_resize_by_factors(call: &InferenceContext<'_>, input: usize) -> Result<Vec<InferredOutput>> {
    call.list_length(input)?;
    let Some(mut dims) = call.input_shape(0)? else { return single_output(None) };
    let axes = resize_axes(call, dims.len())?;
    if let Some(factors) = call.input_floats(input)? {
        return single_output(scale_dims(dims, &axes, &factors).map_err(call.blame_input(input))?);
    }
    call.expect_dims(input, &[PartialDim::from(axes.len())])?;
    axes.into_iter().for_each(|axis| dims[axis] = PartialDim::Unknown);
    single_output(dims)
}

fn scale_dims(dims: PartialDims, axes: &[usize], factors: &[f64]) -> Result<PartialDims> {
    if factors.len() != axes.len() {
        let (expected, found) = (axes.len(), factors.len());
        return Err(Error::invalid_argument(format!(
            "expected {expected} factors, one for each axis, found {found}"
        )));
    }
    let mut all = dims;
    for (axis, factor) in axes.iter().zip(factors) {
        all[*axis] = scale_dim(all[*axis], *factor)?;
    }
    Ok(all)
}

/// Computes in `f32`, the precision of the factors, so that a third of 3 is 1.
fn scale_dim(dim: PartialDim, factor: f64) -> Result<PartialDim> {
    if !(factor > 0.0 && factor.is_finite()) {
        return Err(Error::invalid_argument(format!("expected factors of more than 0, found {factor}")));
    }
    let PartialDim::Known(size) = dim else { return Ok(PartialDim::Unknown) };
    whole_size(f64::from((size as f32 * factor as f32).floor()))
}

fn whole_size(size: f64) -> Result<PartialDim> {
    if (0.0..i64::MAX as f64).contains(&size) {
        return Ok(PartialDim::Known(size as i64));
    }
    Err(Error::resource_exhausted(format!("expected a size that tensors can have, found {size}")))
}

fn infer_resize_to_sizes(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    call.list_length(3)?;
    let Some(mut dims) = call.input_shape(0)? else { return single_output(None) };
    let axes = resize_axes(call, dims.len())?;
    let Some(sizes) = call.input_ints(3)? else {
        call.expect_dims(3, &[PartialDim::from(axes.len())])?;
        axes.into_iter().for_each(|axis| dims[axis] = PartialDim::Unknown);
        return single_output(dims);
    };
    if sizes.len() != axes.len() || sizes.iter().any(|size| *size < 0) {
        let expected = format!("{} sizes of at least 0, one for each axis", axes.len());
        return Err(call.input_error(3, expected, format!("{sizes:?}")));
    }
    let factor = common_factor(call, &dims, &axes, &sizes)?;
    for (axis, size) in axes.into_iter().zip(sizes) {
        dims[axis] = match (factor, dims[axis]) {
            (ScaleFactor::Free, _) => PartialDim::Known(size),
            // Round half up.
            (ScaleFactor::Common(factor), PartialDim::Known(size)) => {
                whole_size((size as f64 * factor + 0.5).floor())?
            }
            _ => PartialDim::Unknown,
        };
    }
    single_output(dims)
}

/// How the aspect ratio policy relates the axes.
#[derive(Clone, Copy)]
enum ScaleFactor {
    /// Each axis has its own factor.
    Free,
    /// All axes share this factor, which keeps the aspect ratio.
    Common(f64),
    /// All axes share a factor that depends on unknown sizes.
    Unknown,
}

fn common_factor(
    call: &InferenceContext<'_>,
    dims: &[PartialDim],
    axes: &[usize],
    sizes: &[i64],
) -> Result<ScaleFactor> {
    let choose: fn(f64, f64) -> f64 = match call.string_attribute("keep_aspect_ratio_policy", "stretch")? {
        "stretch" => return Ok(ScaleFactor::Free),
        "not_larger" => f64::min,
        "not_smaller" => f64::max,
        other => {
            let expected = "stretch, not_larger or not_smaller";
            return Err(attribute_error("keep_aspect_ratio_policy", expected, format!("`{other}`")));
        }
    };
    let known: Option<Vec<i64>> = axes.iter().map(|axis| dims[*axis].known_size()).collect();
    let Some(known) = known else { return Ok(ScaleFactor::Unknown) };
    if known.contains(&0) {
        return Err(call.input_error(0, "sizes of more than 0, which proportions need", "0"));
    }
    let factors = sizes.iter().zip(known).map(|(size, known)| *size as f64 / known as f64);
    Ok(factors.reduce(choose).map_or(ScaleFactor::Free, ScaleFactor::Common))
}
