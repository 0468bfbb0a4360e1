//! Ops that cut something off tensors or add something around them.

use super::call::{Call, axes as dimensions, of_attribute, wrong_attribute};
use super::fact::{Dim, PartialDims};
use super::output::{Output, Shape, of_rank, one};
use super::reshape::rank_of;
use super::table::{LATEST, Rule, rule};
use crate::{Error, Result};

pub(super) const RULES: &[Rule] = &[
    rule("Slice", 1, 9, &[], slice_by_attribute),
    rule("Slice", 10, LATEST, &[1, 2, 3, 4], slice_by_input),
    rule("Pad", 1, 1, &[], |call| pad_by_attribute(call, "paddings")),
    rule("Pad", 2, 10, &[], |call| pad_by_attribute(call, "pads")),
    rule("Pad", 11, 17, &[1], pad_by_input),
    rule("Pad", 18, LATEST, &[1, 3], pad_by_input),
    rule("CenterCropPad", 18, LATEST, &[1], center),
];

fn slice_by_attribute(call: &Call<'_>) -> Result<Vec<Output>> {
    let bounds = |name| call.int_list(name)?.ok_or_else(|| wrong_attribute(name, "a list", "none"));
    let (starts, ends) = (bounds("starts")?, bounds("ends")?);
    if starts.len() != ends.len() {
        return Err(wrong_attribute("ends", format!("as many as starts, {}", starts.len()), ends.len()));
    }
    let Some(dims) = call.dims(0)? else { return one(None) };
    let axes =
        axes_or_first(call.int_list("axes")?, starts.len(), dims.len()).map_err(of_attribute("axes"))?;
    let mut sliced = PartialDims::from_slice(dims);
    for ((axis, start), end) in axes.into_iter().zip(starts).zip(ends) {
        sliced[axis] = range_length(dims[axis], *start, *end, 1);
    }
    one(sliced)
}

fn slice_by_input(call: &Call<'_>) -> Result<Vec<Output>> {
    let count = call.list_length(1)?;
    let optional = |input| if call.given(input).is_some() { call.ints(input) } else { Ok(None) };
    for input in 2..5 {
        call.expect_dims(input, &[count])?;
    }
    let steps = optional(4)?;
    if steps.as_ref().is_some_and(|steps| steps.contains(&0)) {
        return Err(call.wrong(4, "steps other than 0", "0"));
    }
    let Some(dims) = call.dims(0)? else { return one(None) };
    let axes = optional(3)?;
    let (starts, ends) = (call.ints(1)?, call.ints(2)?);
    let values = starts.as_ref().or(ends.as_ref()).or(axes.as_ref()).map(Vec::len);
    let count = values.or(count.known().and_then(|count| usize::try_from(count).ok()));
    let (Some(count), true) = (count, axes.is_some() || call.given(3).is_none()) else {
        return one(of_rank(dims.len()));
    };
    let lists = [(1, &starts), (2, &ends), (3, &axes), (4, &steps)];
    if let Some((input, list)) =
        lists.iter().find(|(_, list)| list.as_ref().is_some_and(|list| list.len() != count))
    {
        let found = list.as_ref().map_or(0, Vec::len);
        return Err(call.wrong(*input, format!("as many as there are starts, {count}"), found));
    }
    let axes = axes_or_first(axes.as_deref(), count, dims.len()).map_err(call.blame(3))?;
    let is_step_known = steps.is_some() || call.given(4).is_none();
    let mut sliced = PartialDims::from_slice(dims);
    for (at, axis) in axes.into_iter().enumerate() {
        sliced[axis] = match (&starts, &ends, is_step_known) {
            (Some(starts), Some(ends), true) => {
                range_length(dims[axis], starts[at], ends[at], steps.as_ref().map_or(1, |steps| steps[at]))
            }
            _ => Dim::Unknown,
        };
    }
    one(sliced)
}

/// The axes that are listed, or else the first ones.
fn axes_or_first(axes: Option<&[i64]>, count: usize, rank: usize) -> Result<Vec<usize>> {
    let found = axes.map_or(count, <[_]>::len);
    if found != count || axes.is_none() && count > rank {
        return Err(Error::invalid_argument(format!(
            "expected {count} axes of {rank} dimensions, found {found}"
        )));
    }
    axes.map_or_else(|| Ok((0..count).collect()), |axes| dimensions(axes, rank))
}

/// How many indices there are from a start to before an end, both of which are moved into the dimension first.
fn range_length(dim: Dim, start: i64, end: i64, step: i64) -> Dim {
    let Dim::Known(size) = dim else { return Dim::Unknown };
    if size == 0 {
        return Dim::Known(0);
    }
    let from_start = |index: i64| if index < 0 { index.saturating_add(size) } else { index };
    let (start, end) = (from_start(start), from_start(end));
    let distance = if step > 0 {
        end.clamp(0, size) - start.clamp(0, size)
    } else {
        // Backwards, the end is before the first index.
        start.clamp(0, size - 1) - end.clamp(-1, size - 1)
    };
    let count = distance.max(0).unsigned_abs().div_ceil(step.unsigned_abs());
    i64::try_from(count).map_or(Dim::Unknown, Dim::Known)
}

fn pad_by_attribute(call: &Call<'_>, name: &str) -> Result<Vec<Output>> {
    let pads = call.int_list(name)?.ok_or_else(|| wrong_attribute(name, "a list", "none"))?;
    let Some(dims) = call.dims(0)? else { return one(Shape::None) };
    let axes: Vec<_> = (0..dims.len()).collect();
    one(pad(call, dims, &axes, pads).map_err(of_attribute(name))?)
}

fn pad_by_input(call: &Call<'_>) -> Result<Vec<Output>> {
    call.list_length(1)?;
    call.expect_one_element(2)?;
    let Some(dims) = call.dims(0)? else { return one(Shape::None) };
    let axes = match call.given(3) {
        None => Some((0..dims.len()).collect()),
        Some(_) => {
            let axes = call.ints(3)?.map(|axes| dimensions(&axes, dims.len()));
            axes.transpose().map_err(call.blame(3))?
        }
    };
    match (axes, call.ints(1)?) {
        (Some(axes), Some(pads)) => one(pad(call, dims, &axes, &pads).map_err(call.blame(1))?),
        (Some(axes), None) => {
            let mut padded = PartialDims::from_slice(dims);
            axes.into_iter().for_each(|axis| padded[axis] = Dim::Unknown);
            one(padded)
        }
        (None, _) => one(of_rank(dims.len())),
    }
}

/// Adds what comes before each axis and what comes behind it. Less than 0 cuts off.
fn pad(call: &Call<'_>, dims: &[Dim], axes: &[usize], pads: &[i64]) -> Result<PartialDims> {
    if pads.len() != axes.len() * 2 {
        let (expected, found) = (axes.len() * 2, pads.len());
        return Err(Error::invalid_argument(format!(
            "expected {expected} pads, two for each axis, found {found}"
        )));
    }
    let (before, behind) = pads.split_at(axes.len());
    let only_constant = call.text("mode", "constant")? == "constant";
    let mut padded = PartialDims::from_slice(dims);
    for ((axis, before), behind) in axes.iter().zip(before).zip(behind) {
        let size = dims[*axis].plus(*before)?.plus(*behind)?;
        if size.known().is_some_and(|size| size < 0) {
            return Err(Error::invalid_argument(format!(
                "expected pads that leave a size of at least 0, found {before} and {behind} for {}",
                dims[*axis]
            )));
        }
        if !only_constant && dims[*axis] == Dim::Known(0) && size != Dim::Known(0) {
            return Err(Error::invalid_argument(format!(
                "expected elements to repeat along axis {axis}, found none"
            )));
        }
        padded[*axis] = size;
    }
    Ok(padded)
}

fn center(call: &Call<'_>) -> Result<Vec<Output>> {
    let Some(mut dims) = call.shape(0)? else { return one(None) };
    let count = rank_of(call, 1)?;
    let axes = match call.int_list("axes")? {
        Some(axes) => dimensions(axes, dims.len()).map_err(of_attribute("axes"))?,
        None => (0..dims.len()).collect(),
    };
    let sizes = call.ints(1)?;
    let found = sizes.as_ref().map(Vec::len).or(count);
    if let Some(found) = found.filter(|found| *found != axes.len()) {
        return Err(call.wrong(1, format!("{} sizes, one for each axis", axes.len()), found));
    }
    for (at, axis) in axes.into_iter().enumerate() {
        dims[axis] = sizes.as_ref().map_or(Dim::Unknown, |sizes| Dim::Known(sizes[at]));
    }
    one(dims)
}
