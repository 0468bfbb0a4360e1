//! Ops that change the shape but not the elements, and ops that return a shape.

use super::context::{InferenceContext, attribute_error, blame_attribute, resolve_axes as dimensions};
use super::fact::{DisplayDims, PartialDim, PartialDims, dim_product};
use super::output::{InferredOutput, PartialShape, broadcast_shapes, single_output, unknown_dims};
use super::rule::{InferenceRule, LATEST, rule};
use crate::shape::MAX_RANK;
use crate::{Constant, Dtype, Error, Result, shape};

pub(super) const RULES: &[InferenceRule] = &[
    rule("Reshape", 1, 4, &[], infer_reshape_by_attribute),
    rule("Reshape", 5, LATEST, &[1], infer_reshape_by_input),
    rule("Flatten", 1, LATEST, &[], infer_flatten),
    rule("Squeeze", 1, 12, &[], |call| {
        infer_squeeze(call, call.ints_attribute("axes")?, blame_attribute("axes"))
    }),
    rule("Squeeze", 13, LATEST, &[1], infer_squeeze_by_input),
    rule("Unsqueeze", 1, 12, &[], infer_unsqueeze_by_attribute),
    rule("Unsqueeze", 13, LATEST, &[1], infer_unsqueeze_by_input),
    rule("Expand", 8, LATEST, &[1], infer_expand),
    rule("Shape", 1, LATEST, &[], infer_shape),
    rule("Size", 1, LATEST, &[], infer_size),
];

/// A rank given by the length of an input; checked against the maximum.
pub(super) fn rank_from_length(call: &InferenceContext<'_>, input: usize) -> Result<Option<usize>> {
    let Some(length) = call.list_length(input)?.known_size() else { return Ok(None) };
    let rank = usize::try_from(length).ok().filter(|rank| *rank <= MAX_RANK);
    rank.map(Some).ok_or_else(|| call.input_error(input, format!("at most {MAX_RANK} elements"), length))
}

/// A shape given by the elements of an input.
pub(super) fn stated_shape(call: &InferenceContext<'_>, input: usize) -> Result<Option<PartialDims>> {
    let rank = rank_from_length(call, input)?;
    match call.input_ints(input)? {
        Some(sizes) if sizes.iter().any(|size| *size < 0) => {
            Err(call.input_error(input, "sizes of at least 0", format!("{sizes:?}")))
        }
        Some(sizes) => Ok(Some(sizes.into_iter().map(PartialDim::Known).collect())),
        None => Ok(rank.map(unknown_dims)),
    }
}

fn infer_reshape_by_attribute(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let target = call.ints_attribute("shape")?.ok_or_else(|| attribute_error("shape", "a shape", "none"))?;
    single_output(reshape_dims(call, target).map_err(blame_attribute("shape"))?)
}

fn infer_reshape_by_input(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let rank = rank_from_length(call, 1)?;
    match call.input_ints(1)? {
        Some(target) => single_output(reshape_dims(call, &target).map_err(call.blame_input(1))?),
        None => single_output(rank.map(unknown_dims)),
    }
}

/// In the target, a 0 copies the size of the input, and a -1 is inferred from the number of elements.
fn reshape_dims(call: &InferenceContext<'_>, target: &[i64]) -> Result<PartialDims> {
    let wrong = |expected: &str| {
        let data = call
            .input_dims(0)
            .ok()
            .flatten()
            .map_or_else(|| "any".into(), |dims| DisplayDims(dims).to_string());
        Error::invalid_argument(format!("expected {expected} for the input's {data}, found {target:?}"))
    };
    if target.len() > MAX_RANK || target.iter().any(|size| *size < -1) {
        return Err(wrong("sizes of at least -1, not too many,"));
    }
    let zero_is_zero = call.flag_attribute("allowzero", false)?;
    let open = target.iter().position(|size| *size == -1);
    if target.iter().filter(|size| **size == -1).count() > 1
        || zero_is_zero && open.is_some() && target.contains(&0)
    {
        return Err(wrong("at most one -1, and none beside a 0 that means 0,"));
    }
    let data = call.input_dims(0)?;
    let mut dims = PartialDims::new();
    // Copied sizes appear on both sides and cancel out, so they need not be known.
    let mut left: Option<PartialDims> = data.map(PartialDims::from_slice);
    let mut asked = PartialDims::new();
    for (axis, size) in target.iter().enumerate() {
        if *size == 0 && !zero_is_zero {
            let Some(data) = data else {
                dims.push(PartialDim::Unknown);
                continue;
            };
            dims.push(*data.get(axis).ok_or_else(|| wrong("a 0 only where the input has a size"))?);
            if let Some(left) = &mut left {
                left[axis] = PartialDim::Known(1);
            }
        } else {
            dims.push(PartialDim::Known(*size));
            asked.extend((*size != -1).then_some(PartialDim::Known(*size)));
        }
    }
    let Some(axis) = open else {
        let from = data.map_or(Ok(PartialDim::Unknown), dim_product)?;
        return if from.may_equal(dim_product(&dims)?) { Ok(dims) } else { Err(wrong("as many elements")) };
    };
    if dims.contains(&PartialDim::Known(0)) {
        return Err(wrong("no -1 beside a size of 0, which leaves it open,"));
    }
    let (asked, left) =
        (dim_product(&asked)?, left.map_or(Ok(PartialDim::Unknown), |left| dim_product(&left))?);
    if !left.may_divide_by(asked) {
        return Err(wrong("a -1 that can be a whole number"));
    }
    dims[axis] = left.try_div(asked)?;
    Ok(dims)
}

fn infer_flatten(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let Some(dims) = call.input_dims(0)? else { return single_output(unknown_dims(2)) };
    // The axis is a cut between dimensions, so it may equal the rank.
    let axis = call.int_attribute_or("axis", 1)?;
    let from_end = if axis < 0 { axis.saturating_add_unsigned(dims.len() as u64) } else { axis };
    let at = usize::try_from(from_end).ok().filter(|at| *at <= dims.len());
    let at = at.ok_or_else(|| attribute_error("axis", format!("-{0} to {0}", dims.len()), axis))?;
    single_output([dim_product(&dims[..at])?, dim_product(&dims[at..])?].as_slice())
}

fn infer_squeeze_by_input(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    if call.optional_input(1).is_none() {
        return infer_squeeze(call, None, |error| error);
    }
    let count = rank_from_length(call, 1)?;
    match (call.input_ints(1)?, call.input_dims(0)?, count) {
        (Some(axes), ..) => infer_squeeze(call, Some(&axes), call.blame_input(1)),
        (None, Some(dims), Some(count)) => match dims.len().checked_sub(count) {
            Some(rank) => single_output(unknown_dims(rank)),
            None => Err(call.input_error(1, format!("at most {} axes", dims.len()), count)),
        },
        _ => single_output(None),
    }
}

/// No axes means every dimension of size 1.
fn infer_squeeze(
    call: &InferenceContext<'_>,
    axes: Option<&[i64]>,
    blame: impl Fn(Error) -> Error,
) -> Result<Vec<InferredOutput>> {
    let Some(dims) = call.input_dims(0)? else { return single_output(None) };
    let Some(axes) = axes.filter(|axes| !axes.is_empty() || call.optional_input(1).is_some()) else {
        if dims.contains(&PartialDim::Unknown) {
            return single_output(None);
        }
        return single_output(
            dims.iter().copied().filter(|dim| *dim != PartialDim::Known(1)).collect::<PartialDims>(),
        );
    };
    let axes = dimensions(axes, dims.len()).map_err(&blame)?;
    if let Some(axis) = axes.iter().find(|axis| !dims[**axis].may_equal(PartialDim::Known(1))) {
        return Err(call.input_error(
            0,
            format!("size 1 in dimension {axis}, which is to go"),
            DisplayDims(dims),
        ));
    }
    let left = dims.iter().enumerate().filter(|(axis, _)| !axes.contains(axis)).map(|(_, dim)| *dim);
    single_output(left.collect::<PartialDims>())
}

fn infer_unsqueeze_by_attribute(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let axes = call.ints_attribute("axes")?.ok_or_else(|| attribute_error("axes", "axes", "none"))?;
    single_output(unsqueeze_shape(call, axes).map_err(blame_attribute("axes"))?)
}

fn infer_unsqueeze_by_input(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    // A single axis may be a scalar.
    let count = if call.input_dims(1)?.is_some_and(<[PartialDim]>::is_empty) {
        Some(1)
    } else {
        rank_from_length(call, 1)?
    };
    match (call.input_ints(1)?, call.input_dims(0)?, count) {
        (Some(axes), ..) => single_output(unsqueeze_shape(call, &axes).map_err(call.blame_input(1))?),
        (None, Some(dims), Some(count)) => single_output(unknown_dims(dims.len() + count)),
        _ => single_output(None),
    }
}

fn unsqueeze_shape(call: &InferenceContext<'_>, axes: &[i64]) -> Result<PartialShape> {
    let Some(dims) = call.input_dims(0)? else { return Ok(None) };
    let rank = dims.len() + axes.len();
    if rank > MAX_RANK {
        return Err(Error::out_of_range(format!("expected at most {MAX_RANK} dimensions, found {rank}")));
    }
    let axes = dimensions(axes, rank)?;
    let mut rest = dims.iter().copied();
    let dim = |axis| if axes.contains(&axis) { Some(PartialDim::Known(1)) } else { rest.next() };
    Ok((0..rank).map(dim).collect())
}

fn infer_expand(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let target = stated_shape(call, 1)?;
    single_output(broadcast_shapes(&call.input_shape(0)?, &target).map_err(call.blame_input(1))?)
}

fn infer_shape(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let (start, end) = (call.int_attribute_or("start", 0)?, call.int_attribute("end")?);
    let Some(dims) = call.input_dims(0)? else {
        return single_output(InferredOutput::from(unknown_dims(1)).with_dtype(Dtype::I64));
    };
    let rank = dims.len();
    let place = |at: i64| {
        let from_start = if at < 0 { at.saturating_add_unsigned(rank as u64).max(0) } else { at };
        usize::try_from(from_start).unwrap_or(rank).min(rank)
    };
    let (start, end) = (place(start), end.map_or(rank, place));
    let dims = dims.get(start..end).unwrap_or_default();
    match dims.iter().map(|dim| dim.known_size()).collect::<Option<Vec<_>>>() {
        Some(sizes) => single_output(Constant::from_ints(&sizes)),
        None => single_output(
            InferredOutput::from([PartialDim::from(dims.len())].as_slice()).with_dtype(Dtype::I64),
        ),
    }
}

fn infer_size(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let dims = call.input(0)?.known_dims();
    match dims.map(|dims| shape::element_count(&dims)).transpose().map_err(call.blame_input(0))? {
        Some(count) => single_output(Constant::new(Dtype::I64, &[], count.to_ne_bytes().to_vec())?),
        None => single_output(InferredOutput::from(unknown_dims(0)).with_dtype(Dtype::I64)),
    }
}
