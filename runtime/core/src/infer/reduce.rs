//! Ops that make one element of many along some axes.

use super::call::{Call, axes as dimensions, of_attribute};
use super::fact::Dim;
use super::output::{Output, Shape, of_rank, one};
use super::table::{LATEST, Rule, rule};
use crate::Result;

pub(super) const RULES: &[Rule] = &[
    rule("ReduceSum", 1, 12, &[], by_attribute),
    rule("ReduceSum", 13, LATEST, &[1], by_input),
    rule("ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean", 1, 17, &[], by_attribute),
    rule("ReduceMin ReduceProd ReduceSumSquare", 1, 17, &[], by_attribute),
    rule("ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean", 18, LATEST, &[1], by_input),
    rule("ReduceMin ReduceProd ReduceSumSquare", 18, LATEST, &[1], by_input),
    rule("ArgMax ArgMin", 1, LATEST, &[], best_along_axis),
];

fn by_attribute(call: &Call<'_>) -> Result<Vec<Output>> {
    reduce(call, call.int_list("axes")?.unwrap_or_default()).map_err(of_attribute("axes"))
}

fn by_input(call: &Call<'_>) -> Result<Vec<Output>> {
    if call.given(1).is_none() {
        return reduce(call, &[]);
    }
    let count = call.list_length(1)?;
    match call.ints(1)? {
        Some(axes) => reduce(call, &axes).map_err(call.blame(1)),
        None if count == Dim::Known(0) => reduce(call, &[]),
        None => one(reduce_unknown(call, count)?),
    }
}

/// Without axes, all of them are meant, unless the op says that none are.
fn reduce(call: &Call<'_>, axes: &[i64]) -> Result<Vec<Output>> {
    if axes.is_empty() && call.flag("noop_with_empty_axes", false)? {
        return one(call.shape(0)?);
    }
    let keep = call.flag("keepdims", true)?;
    let Some(dims) = call.dims(0)? else {
        return one(if axes.is_empty() && !keep { Some(of_rank(0)) } else { None });
    };
    let axes = if axes.is_empty() { (0..dims.len()).collect() } else { dimensions(axes, dims.len())? };
    one(without(dims, &axes, keep))
}

/// What is left when the axes are known by their number at most.
fn reduce_unknown(call: &Call<'_>, count: Dim) -> Result<Shape> {
    let Some(dims) = call.dims(0)? else { return Ok(None) };
    if call.flag("keepdims", true)? {
        return Ok(Some(of_rank(dims.len())));
    }
    let Some(count) = count.known() else { return Ok(None) };
    let left = usize::try_from(count).ok().and_then(|count| dims.len().checked_sub(count));
    let left = left.ok_or_else(|| call.wrong(1, format!("at most {} axes", dims.len()), count))?;
    Ok(Some(of_rank(left)))
}

fn best_along_axis(call: &Call<'_>) -> Result<Vec<Output>> {
    let Some(dims) = call.dims(0)? else { return one(None) };
    let axis = call.axis("axis", 0, dims.len())?;
    one(without(dims, &[axis], call.flag("keepdims", true)?))
}

/// Dimensions of which some are 1 or left out.
fn without(dims: &[Dim], axes: &[usize], keep: bool) -> Shape {
    let left = dims.iter().enumerate().filter_map(|(axis, dim)| match axes.contains(&axis) {
        true => keep.then_some(Dim::Known(1)),
        false => Some(*dim),
    });
    Some(left.collect())
}
