//! Ops that see the same elements in another shape, and those that say what the shape is.

use super::call::{Call, axes as dimensions, of_attribute, wrong_attribute};
use super::fact::{Dim, Listed, PartialDims, product};
use super::output::{Output, Shape, broadcast, of_rank, one};
use super::table::{LATEST, Rule, rule};
use crate::shape::MOST_DIMENSIONS;
use crate::{Constant, Dtype, Error, Result, shape};

pub(super) const RULES: &[Rule] = &[
    rule("Reshape", 1, 4, &[], reshape_by_attribute),
    rule("Reshape", 5, LATEST, &[1], reshape_by_input),
    rule("Flatten", 1, LATEST, &[], flatten),
    rule("Squeeze", 1, 12, &[], |call| squeeze_by(call, call.int_list("axes")?, of_attribute("axes"))),
    rule("Squeeze", 13, LATEST, &[1], squeeze_by_input),
    rule("Unsqueeze", 1, 12, &[], unsqueeze_by_attribute),
    rule("Unsqueeze", 13, LATEST, &[1], unsqueeze_by_input),
    rule("Expand", 8, LATEST, &[1], expand),
    rule("Shape", 1, LATEST, &[], shape_of),
    rule("Size", 1, LATEST, &[], size_of),
];

/// A rank that an input's length says, if tensors can have it.
pub(super) fn rank_of(call: &Call<'_>, input: usize) -> Result<Option<usize>> {
    let Some(length) = call.list_length(input)?.known() else { return Ok(None) };
    let rank = usize::try_from(length).ok().filter(|rank| *rank <= MOST_DIMENSIONS);
    rank.map(Some).ok_or_else(|| call.wrong(input, format!("at most {MOST_DIMENSIONS} elements"), length))
}

/// A shape that is the elements of an input.
pub(super) fn stated_shape(call: &Call<'_>, input: usize) -> Result<Option<PartialDims>> {
    let rank = rank_of(call, input)?;
    match call.ints(input)? {
        Some(sizes) if sizes.iter().any(|size| *size < 0) => {
            Err(call.wrong(input, "sizes of at least 0", format!("{sizes:?}")))
        }
        Some(sizes) => Ok(Some(sizes.into_iter().map(Dim::Known).collect())),
        None => Ok(rank.map(of_rank)),
    }
}

fn reshape_by_attribute(call: &Call<'_>) -> Result<Vec<Output>> {
    let target = call.int_list("shape")?.ok_or_else(|| wrong_attribute("shape", "a shape", "none"))?;
    one(reshape(call, target).map_err(of_attribute("shape"))?)
}

fn reshape_by_input(call: &Call<'_>) -> Result<Vec<Output>> {
    let rank = rank_of(call, 1)?;
    match call.ints(1)? {
        Some(target) => one(reshape(call, &target).map_err(call.blame(1))?),
        None => one(rank.map(of_rank)),
    }
}

/// A 0 stands for the size that the input has in this place, a -1 for what is left.
fn reshape(call: &Call<'_>, target: &[i64]) -> Result<PartialDims> {
    let wrong = |expected: &str| {
        let data = call.dims(0).ok().flatten().map_or_else(|| "any".into(), |dims| Listed(dims).to_string());
        Error::invalid_argument(format!("expected {expected} for the input's {data}, found {target:?}"))
    };
    if target.len() > MOST_DIMENSIONS || target.iter().any(|size| *size < -1) {
        return Err(wrong("sizes of at least -1, not too many,"));
    }
    let zero_is_zero = call.flag("allowzero", false)?;
    let open = target.iter().position(|size| *size == -1);
    if target.iter().filter(|size| **size == -1).count() > 1
        || zero_is_zero && open.is_some() && target.contains(&0)
    {
        return Err(wrong("at most one -1, and none beside a 0 that means 0,"));
    }
    let data = call.dims(0)?;
    let mut dims = PartialDims::new();
    // Sizes that are copied cancel out, so that they need not be known.
    let mut left: Option<PartialDims> = data.map(PartialDims::from_slice);
    let mut asked = PartialDims::new();
    for (axis, size) in target.iter().enumerate() {
        if *size == 0 && !zero_is_zero {
            let Some(data) = data else {
                dims.push(Dim::Unknown);
                continue;
            };
            dims.push(*data.get(axis).ok_or_else(|| wrong("a 0 only where the input has a size"))?);
            if let Some(left) = &mut left {
                left[axis] = Dim::Known(1);
            }
        } else {
            dims.push(Dim::Known(*size));
            asked.extend((*size != -1).then_some(Dim::Known(*size)));
        }
    }
    let Some(axis) = open else {
        let from = data.map_or(Ok(Dim::Unknown), product)?;
        return if from.agrees(product(&dims)?) { Ok(dims) } else { Err(wrong("as many elements")) };
    };
    if dims.contains(&Dim::Known(0)) {
        return Err(wrong("no -1 beside a size of 0, which leaves it open,"));
    }
    let (asked, left) = (product(&asked)?, left.map_or(Ok(Dim::Unknown), |left| product(&left))?);
    if !left.may_divide_by(asked) {
        return Err(wrong("a -1 that can be a whole number"));
    }
    dims[axis] = left.over(asked)?;
    Ok(dims)
}

fn flatten(call: &Call<'_>) -> Result<Vec<Output>> {
    let Some(dims) = call.dims(0)? else { return one(of_rank(2)) };
    // The axis is where to cut, so there is one place more than there are dimensions.
    let axis = call.int_or("axis", 1)?;
    let from_end = if axis < 0 { axis.saturating_add_unsigned(dims.len() as u64) } else { axis };
    let at = usize::try_from(from_end).ok().filter(|at| *at <= dims.len());
    let at = at.ok_or_else(|| wrong_attribute("axis", format!("-{0} to {0}", dims.len()), axis))?;
    one([product(&dims[..at])?, product(&dims[at..])?].as_slice())
}

fn squeeze_by_input(call: &Call<'_>) -> Result<Vec<Output>> {
    if call.given(1).is_none() {
        return squeeze_by(call, None, |error| error);
    }
    let count = rank_of(call, 1)?;
    match (call.ints(1)?, call.dims(0)?, count) {
        (Some(axes), ..) => squeeze_by(call, Some(&axes), call.blame(1)),
        (None, Some(dims), Some(count)) => match dims.len().checked_sub(count) {
            Some(rank) => one(of_rank(rank)),
            None => Err(call.wrong(1, format!("at most {} axes", dims.len()), count)),
        },
        _ => one(None),
    }
}

/// Without axes, every dimension of size 1 goes.
fn squeeze_by(call: &Call<'_>, axes: Option<&[i64]>, blame: impl Fn(Error) -> Error) -> Result<Vec<Output>> {
    let Some(dims) = call.dims(0)? else { return one(None) };
    let Some(axes) = axes.filter(|axes| !axes.is_empty() || call.given(1).is_some()) else {
        if dims.contains(&Dim::Unknown) {
            return one(None);
        }
        return one(dims.iter().copied().filter(|dim| *dim != Dim::Known(1)).collect::<PartialDims>());
    };
    let axes = dimensions(axes, dims.len()).map_err(&blame)?;
    if let Some(axis) = axes.iter().find(|axis| !dims[**axis].agrees(Dim::Known(1))) {
        return Err(call.wrong(0, format!("size 1 in dimension {axis}, which is to go"), Listed(dims)));
    }
    let left = dims.iter().enumerate().filter(|(axis, _)| !axes.contains(axis)).map(|(_, dim)| *dim);
    one(left.collect::<PartialDims>())
}

fn unsqueeze_by_attribute(call: &Call<'_>) -> Result<Vec<Output>> {
    let axes = call.int_list("axes")?.ok_or_else(|| wrong_attribute("axes", "axes", "none"))?;
    one(unsqueeze(call, axes).map_err(of_attribute("axes"))?)
}

fn unsqueeze_by_input(call: &Call<'_>) -> Result<Vec<Output>> {
    // One axis may come without a dimension of its own.
    let count = if call.dims(1)?.is_some_and(<[Dim]>::is_empty) { Some(1) } else { rank_of(call, 1)? };
    match (call.ints(1)?, call.dims(0)?, count) {
        (Some(axes), ..) => one(unsqueeze(call, &axes).map_err(call.blame(1))?),
        (None, Some(dims), Some(count)) => one(of_rank(dims.len() + count)),
        _ => one(None),
    }
}

fn unsqueeze(call: &Call<'_>, axes: &[i64]) -> Result<Shape> {
    let Some(dims) = call.dims(0)? else { return Ok(None) };
    let rank = dims.len() + axes.len();
    if rank > MOST_DIMENSIONS {
        return Err(Error::out_of_range(format!(
            "expected at most {MOST_DIMENSIONS} dimensions, found {rank}"
        )));
    }
    let axes = dimensions(axes, rank)?;
    let mut rest = dims.iter().copied();
    let dim = |axis| if axes.contains(&axis) { Some(Dim::Known(1)) } else { rest.next() };
    Ok((0..rank).map(dim).collect())
}

fn expand(call: &Call<'_>) -> Result<Vec<Output>> {
    let target = stated_shape(call, 1)?;
    one(broadcast(&call.shape(0)?, &target).map_err(call.blame(1))?)
}

fn shape_of(call: &Call<'_>) -> Result<Vec<Output>> {
    let (start, end) = (call.int_or("start", 0)?, call.int("end")?);
    let Some(dims) = call.dims(0)? else {
        return one(Output::from(of_rank(1)).of_dtype(Dtype::I64));
    };
    let rank = dims.len();
    let place = |at: i64| {
        let from_start = if at < 0 { at.saturating_add_unsigned(rank as u64).max(0) } else { at };
        usize::try_from(from_start).unwrap_or(rank).min(rank)
    };
    let (start, end) = (place(start), end.map_or(rank, place));
    let dims = dims.get(start..end).unwrap_or_default();
    match dims.iter().map(|dim| dim.known()).collect::<Option<Vec<_>>>() {
        Some(sizes) => one(Constant::of_ints(&sizes)),
        None => one(Output::from([Dim::from(dims.len())].as_slice()).of_dtype(Dtype::I64)),
    }
}

fn size_of(call: &Call<'_>) -> Result<Vec<Output>> {
    let dims = call.input(0)?.known_dims();
    match dims.map(|dims| shape::element_count(&dims)).transpose().map_err(call.blame(0))? {
        Some(count) => one(Constant::new(Dtype::I64, &[], count.to_ne_bytes().to_vec())?),
        None => one(Output::from(of_rank(0)).of_dtype(Dtype::I64)),
    }
}
