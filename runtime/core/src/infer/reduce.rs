//! Reductions: many elements along some axes become one.

use super::context::{InferenceContext, blame_attribute, resolve_axes as dimensions};
use super::fact::PartialDim;
use super::output::{InferredOutput, PartialShape, single_output, unknown_dims};
use super::rule::{InferenceRule, LATEST, rule};
use crate::Result;

pub(super) const RULES: &[InferenceRule] = &[
    rule("ReduceSum", 1, 12, &[], infer_reduce_by_attribute),
    rule("ReduceSum", 13, LATEST, &[1], infer_reduce_by_input),
    rule(
        "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean",
        1,
        17,
        &[],
        infer_reduce_by_attribute,
    ),
    rule("ReduceMin ReduceProd ReduceSumSquare", 1, 17, &[], infer_reduce_by_attribute),
    rule(
        "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean",
        18,
        LATEST,
        &[1],
        infer_reduce_by_input,
    ),
    rule("ReduceMin ReduceProd ReduceSumSquare", 18, LATEST, &[1], infer_reduce_by_input),
    rule("ArgMax ArgMin", 1, LATEST, &[], infer_arg_reduce),
];

fn infer_reduce_by_attribute(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    infer_reduce(call, call.ints_attribute("axes")?.unwrap_or_default()).map_err(blame_attribute("axes"))
}

fn infer_reduce_by_input(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    if call.optional_input(1).is_none() {
        return infer_reduce(call, &[]);
    }
    let count = call.list_length(1)?;
    match call.input_ints(1)? {
        Some(axes) => infer_reduce(call, &axes).map_err(call.blame_input(1)),
        None if count == PartialDim::Known(0) => infer_reduce(call, &[]),
        None => single_output(reduced_unknown_shape(call, count)?),
    }
}

/// No axes means all axes, unless an attribute makes the op a no-op.
fn infer_reduce(call: &InferenceContext<'_>, axes: &[i64]) -> Result<Vec<InferredOutput>> {
    if axes.is_empty() && call.flag_attribute("noop_with_empty_axes", false)? {
        return single_output(call.input_shape(0)?);
    }
    let keep = call.flag_attribute("keepdims", true)?;
    let Some(dims) = call.input_dims(0)? else {
        return single_output(if axes.is_empty() && !keep { Some(unknown_dims(0)) } else { None });
    };
    let axes = if axes.is_empty() { (0..dims.len()).collect() } else { dimensions(axes, dims.len())? };
    single_output(reduced_shape(dims, &axes, keep))
}

/// The shape if only the number of axes is known, or not even that.
fn reduced_unknown_shape(call: &InferenceContext<'_>, count: PartialDim) -> Result<PartialShape> {
    let Some(dims) = call.input_dims(0)? else { return Ok(None) };
    if call.flag_attribute("keepdims", true)? {
        return Ok(Some(unknown_dims(dims.len())));
    }
    let Some(count) = count.known_size() else { return Ok(None) };
    let left = usize::try_from(count).ok().and_then(|count| dims.len().checked_sub(count));
    let left = left.ok_or_else(|| call.input_error(1, format!("at most {} axes", dims.len()), count))?;
    Ok(Some(unknown_dims(left)))
}

fn infer_arg_reduce(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let Some(dims) = call.input_dims(0)? else { return single_output(None) };
    let axis = call.axis_attribute("axis", 0, dims.len())?;
    single_output(reduced_shape(dims, &[axis], call.flag_attribute("keepdims", true)?))
}

/// Reduced dimensions become 1 or disappear.
fn reduced_shape(dims: &[PartialDim], axes: &[usize], keep: bool) -> PartialShape {
    let left = dims.iter().enumerate().filter_map(|(axis, dim)| match axes.contains(&axis) {
        true => keep.then_some(PartialDim::Known(1)),
        false => Some(*dim),
    });
    Some(left.collect())
}
