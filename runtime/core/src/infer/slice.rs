//! Ops that crop or pad a tensor.

use super::context::{InferenceContext, attribute_error, blame_attribute, resolve_axes as dimensions};
use super::fact::{PartialDim, PartialDims};
use super::output::{InferredOutput, PartialShape, single_output, unknown_dims};
use super::reshape::rank_from_length;
use super::rule::{InferenceRule, LATEST, rule};
use crate::{Error, Result};

pub(super) const RULES: &[InferenceRule] = &[
    rule("Slice", 1, 9, &[], infer_slice_by_attribute),
    rule("Slice", 10, LATEST, &[1, 2, 3, 4], infer_slice_by_input),
    rule("Pad", 1, 1, &[], |call| infer_pad_by_attribute(call, "paddings")),
    rule("Pad", 2, 10, &[], |call| infer_pad_by_attribute(call, "pads")),
    rule("Pad", 11, 17, &[1], infer_pad_by_input),
    rule("Pad", 18, LATEST, &[1, 3], infer_pad_by_input),
    rule("CenterCropPad", 18, LATEST, &[1], infer_center_crop_pad),
];

fn infer_slice_by_attribute(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let bounds = |name| call.ints_attribute(name)?.ok_or_else(|| attribute_error(name, "a list", "none"));
    let (starts, ends) = (bounds("starts")?, bounds("ends")?);
    if starts.len() != ends.len() {
        return Err(attribute_error("ends", format!("as many as starts, {}", starts.len()), ends.len()));
    }
    let Some(dims) = call.input_dims(0)? else { return single_output(None) };
    let axes = axes_or_first(call.ints_attribute("axes")?, starts.len(), dims.len())
        .map_err(blame_attribute("axes"))?;
    let mut sliced = PartialDims::from_slice(dims);
    for ((axis, start), end) in axes.into_iter().zip(starts).zip(ends) {
        sliced[axis] = range_length(dims[axis], *start, *end, 1);
    }
    single_output(sliced)
}

fn infer_slice_by_input(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let count = call.list_length(1)?;
    let optional =
        |input| if call.optional_input(input).is_some() { call.input_ints(input) } else { Ok(None) };
    for input in 2..5 {
        call.expect_dims(input, &[count])?;
    }
    let steps = optional(4)?;
    if steps.as_ref().is_some_and(|steps| steps.contains(&0)) {
        return Err(call.input_error(4, "steps other than 0", "0"));
    }
    let Some(dims) = call.input_dims(0)? else { return single_output(None) };
    let axes = optional(3)?;
    let (starts, ends) = (call.input_ints(1)?, call.input_ints(2)?);
    let values = starts.as_ref().or(ends.as_ref()).or(axes.as_ref()).map(Vec::len);
    let count = values.or(count.known_size().and_then(|count| usize::try_from(count).ok()));
    let (Some(count), true) = (count, axes.is_some() || call.optional_input(3).is_none()) else {
        return single_output(unknown_dims(dims.len()));
    };
    let lists = [(1, &starts), (2, &ends), (3, &axes), (4, &steps)];
    if let Some((input, list)) =
        lists.iter().find(|(_, list)| list.as_ref().is_some_and(|list| list.len() != count))
    {
        let found = list.as_ref().map_or(0, Vec::len);
        return Err(call.input_error(*input, format!("as many as there are starts, {count}"), found));
    }
    let axes = axes_or_first(axes.as_deref(), count, dims.len()).map_err(call.blame_input(3))?;
    let is_step_known = steps.is_some() || call.optional_input(4).is_none();
    let mut sliced = PartialDims::from_slice(dims);
    for (at, axis) in axes.into_iter().enumerate() {
        sliced[axis] = match (&starts, &ends, is_step_known) {
            (Some(starts), Some(ends), true) => {
                range_length(dims[axis], starts[at], ends[at], steps.as_ref().map_or(1, |steps| steps[at]))
            }
            _ => PartialDim::Unknown,
        };
    }
    single_output(sliced)
}

/// The listed axes, or the first `count` ones.
fn axes_or_first(axes: Option<&[i64]>, count: usize, rank: usize) -> Result<Vec<usize>> {
    let found = axes.map_or(count, <[_]>::len);
    if found != count || axes.is_none() && count > rank {
        return Err(Error::invalid_argument(format!(
            "expected {count} axes of {rank} dimensions, found {found}"
        )));
    }
    axes.map_or_else(|| Ok((0..count).collect()), |axes| dimensions(axes, rank))
}

/// The number of indices in a range, after clamping start and end to the dimension.
fn range_length(dim: PartialDim, start: i64, end: i64, step: i64) -> PartialDim {
    let PartialDim::Known(size) = dim else { return PartialDim::Unknown };
    if size == 0 {
        return PartialDim::Known(0);
    }
    let from_start = |index: i64| if index < 0 { index.saturating_add(size) } else { index };
    let (start, end) = (from_start(start), from_start(end));
    let distance = if step > 0 {
        end.clamp(0, size) - start.clamp(0, size)
    } else {
        // With a negative step, the end may be one before the first index.
        start.clamp(0, size - 1) - end.clamp(-1, size - 1)
    };
    let count = distance.max(0).unsigned_abs().div_ceil(step.unsigned_abs());
    i64::try_from(count).map_or(PartialDim::Unknown, PartialDim::Known)
}

fn infer_pad_by_attribute(call: &InferenceContext<'_>, name: &str) -> Result<Vec<InferredOutput>> {
    let pads = call.ints_attribute(name)?.ok_or_else(|| attribute_error(name, "a list", "none"))?;
    let Some(dims) = call.input_dims(0)? else { return single_output(PartialShape::None) };
    let axes: Vec<_> = (0..dims.len()).collect();
    single_output(pad_dims(call, dims, &axes, pads).map_err(blame_attribute(name))?)
}

fn infer_pad_by_input(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    call.list_length(1)?;
    call.expect_one_element(2)?;
    let Some(dims) = call.input_dims(0)? else { return single_output(PartialShape::None) };
    let axes = match call.optional_input(3) {
        None => Some((0..dims.len()).collect()),
        Some(_) => {
            let axes = call.input_ints(3)?.map(|axes| dimensions(&axes, dims.len()));
            axes.transpose().map_err(call.blame_input(3))?
        }
    };
    match (axes, call.input_ints(1)?) {
        (Some(axes), Some(pads)) => {
            single_output(pad_dims(call, dims, &axes, &pads).map_err(call.blame_input(1))?)
        }
        (Some(axes), None) => {
            let mut padded = PartialDims::from_slice(dims);
            axes.into_iter().for_each(|axis| padded[axis] = PartialDim::Unknown);
            single_output(padded)
        }
        (None, _) => single_output(unknown_dims(dims.len())),
    }
}

/// Adds the pads before and after each axis. Negative pads crop.
fn pad_dims(
    call: &InferenceContext<'_>,
    dims: &[PartialDim],
    axes: &[usize],
    pads: &[i64],
) -> Result<PartialDims> {
    if pads.len() != axes.len() * 2 {
        let (expected, found) = (axes.len() * 2, pads.len());
        return Err(Error::invalid_argument(format!(
            "expected {expected} pads, two for each axis, found {found}"
        )));
    }
    let (before, behind) = pads.split_at(axes.len());
    let only_constant = call.string_attribute("mode", "constant")? == "constant";
    let mut padded = PartialDims::from_slice(dims);
    for ((axis, before), behind) in axes.iter().zip(before).zip(behind) {
        let size = dims[*axis].try_add(*before)?.try_add(*behind)?;
        if size.known_size().is_some_and(|size| size < 0) {
            return Err(Error::invalid_argument(format!(
                "expected pads that leave a size of at least 0, found {before} and {behind} for {}",
                dims[*axis]
            )));
        }
        if !only_constant && dims[*axis] == PartialDim::Known(0) && size != PartialDim::Known(0) {
            return Err(Error::invalid_argument(format!(
                "expected elements to repeat along axis {axis}, found none"
            )));
        }
        padded[*axis] = size;
    }
    Ok(padded)
}

fn infer_center_crop_pad(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let Some(mut dims) = call.input_shape(0)? else { return single_output(None) };
    let count = rank_from_length(call, 1)?;
    let axes = match call.ints_attribute("axes")? {
        Some(axes) => dimensions(axes, dims.len()).map_err(blame_attribute("axes"))?,
        None => (0..dims.len()).collect(),
    };
    let sizes = call.input_ints(1)?;
    let found = sizes.as_ref().map(Vec::len).or(count);
    if let Some(found) = found.filter(|found| *found != axes.len()) {
        return Err(call.input_error(1, format!("{} sizes, one for each axis", axes.len()), found));
    }
    for (at, axis) in axes.into_iter().enumerate() {
        dims[axis] = sizes.as_ref().map_or(PartialDim::Unknown, |sizes| PartialDim::Known(sizes[at]));
    }
    single_output(dims)
}
