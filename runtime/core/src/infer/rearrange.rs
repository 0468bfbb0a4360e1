//! Ops that reorder elements, and ops that join, split or tile tensors.

use super::context::{InferenceContext, attribute_error, blame_attribute};
use super::elementwise::infer_same_shape;
use super::fact::{DisplayDims, PartialDim, PartialDims};
use super::output::{InferredOutput, PartialShape, single_output, unknown_dims};
use super::reshape::rank_from_length;
use super::rule::{InferenceRule, LATEST, rule};
use crate::{Error, Result, shape};

pub(super) const RULES: &[InferenceRule] = &[
    rule("Transpose", 1, LATEST, &[], infer_transpose),
    rule("Concat", 1, LATEST, &[], infer_concat),
    rule("Split", 1, 1, &[1], infer_split),
    rule("Split", 2, 12, &[], infer_split),
    rule("Split", 13, LATEST, &[1], infer_split),
    rule("Tile", 1, 5, &[1, 2], infer_tile_axis),
    rule("Tile", 6, LATEST, &[1], infer_tile),
    rule("DepthToSpace", 1, LATEST, &[], infer_depth_to_space),
    rule("SpaceToDepth", 1, LATEST, &[], infer_space_to_depth),
    rule("ReverseSequence", 10, LATEST, &[], infer_reverse_sequence),
];

fn infer_transpose(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let order = call.ints_attribute("perm")?;
    let (dims, order) = match (call.input_dims(0)?, order) {
        (None, order) => return single_output(order.map(|order| unknown_dims(order.len()))),
        (Some(dims), None) => return single_output(dims.iter().rev().copied().collect::<PartialDims>()),
        (Some(dims), Some(order)) => (dims, order),
    };
    let axes = super::context::resolve_axes(order, dims.len()).map_err(blame_attribute("perm"))?;
    if axes.len() != dims.len() {
        let expected = format!("each of the {} axes of {}", dims.len(), DisplayDims(dims));
        return Err(attribute_error("perm", expected, format!("{order:?}")));
    }
    single_output(axes.into_iter().map(|axis| dims[axis]).collect::<PartialDims>())
}

fn infer_concat(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    call.input(0)?;
    let axis_attribute = call.int_attribute_or("axis", 1)?;
    let mut joined: PartialShape = None;
    let mut is_complete = true;
    for input in 0..call.input_count() {
        let Some(dims) = call.input_dims(input)? else {
            is_complete = false;
            continue;
        };
        let axis = shape::resolve_axis(axis_attribute, dims.len()).map_err(blame_attribute("axis"))?;
        let Some(joined) = &mut joined else {
            joined = Some(dims.into());
            continue;
        };
        let mut expected = joined.clone();
        if let Some(dim) = expected.get_mut(axis) {
            *dim = PartialDim::Unknown;
        }
        call.expect_dims(input, &expected)?;
        for (at, (sum, dim)) in joined.iter_mut().zip(dims).enumerate() {
            *sum = if at == axis {
                sum.try_add(*dim).map_err(call.blame_input(input))?
            } else {
                sum.refine_with(*dim)
            };
        }
    }
    if let (Some(joined), false) = (&mut joined, is_complete) {
        let axis = shape::resolve_axis(axis_attribute, joined.len())?;
        joined[axis] = PartialDim::Unknown;
    }
    single_output(joined)
}

fn infer_split(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let dims = call.input_dims(0)?;
    let axis = dims.map(|dims| call.axis_attribute("axis", 0, dims.len())).transpose()?;
    let whole = dims.zip(axis).map_or(PartialDim::Unknown, |(dims, axis)| dims[axis]);
    let sizes = if call.optional_input(1).is_some() {
        input_parts(call, whole)?
    } else if let Some(sizes) = call.ints_attribute("split")? {
        stated_parts(sizes, whole).map_err(blame_attribute("split"))?
    } else {
        equal_parts(call, whole)?
    };
    let part = |size| {
        let (dims, axis) = dims.zip(axis)?;
        let mut part = PartialDims::from_slice(dims);
        part[axis] = size;
        Some(part)
    };
    Ok(sizes.into_iter().map(|size| part(size).into()).collect())
}

fn input_parts(call: &InferenceContext<'_>, whole: PartialDim) -> Result<Vec<PartialDim>> {
    let count = call.list_length(1)?;
    if let Some(sizes) = call.input_ints(1)? {
        return stated_parts(&sizes, whole).map_err(call.blame_input(1));
    }
    if count
        .known_size()
        .is_some_and(|count| PartialDim::from(call.output_count()).known_size() > Some(count))
    {
        return Err(call.input_error(
            1,
            format!("a size for each of {} outputs", call.output_count()),
            count,
        ));
    }
    Ok(vec![PartialDim::Unknown; call.output_count()])
}

fn stated_parts(sizes: &[i64], whole: PartialDim) -> Result<Vec<PartialDim>> {
    let wrong = || {
        Error::invalid_argument(format!(
            "expected sizes of at least 0 that add up to {whole}, found {sizes:?}"
        ))
    };
    let sum = sizes.iter().try_fold(0i64, |sum, size| sum.checked_add(*size)).ok_or_else(wrong)?;
    if sizes.iter().any(|size| *size < 0) || !whole.may_equal(PartialDim::Known(sum)) {
        return Err(wrong());
    }
    Ok(sizes.iter().copied().map(PartialDim::Known).collect())
}

/// The sizes of equal parts, one for each output. If an attribute gives their number, the last one may be smaller.
fn equal_parts(call: &InferenceContext<'_>, whole: PartialDim) -> Result<Vec<PartialDim>> {
    let wanted = call.output_count();
    if call.version() < 18 {
        let count = PartialDim::from(wanted);
        if wanted == 0 || !whole.may_divide_by(count) {
            return Err(call.input_error(
                0,
                format!("a size that can be cut into {wanted} equal parts"),
                whole,
            ));
        }
        return Ok(vec![whole.try_div(count)?; wanted]);
    }
    let count = call.positive_attribute("num_outputs")?;
    let size = whole.try_add(count - 1)?.try_div(count)?;
    let last = whole.try_sub(size.try_mul(count - 1)?)?;
    if last.known_size().is_some_and(|last| last < 0) {
        return Err(attribute_error("num_outputs", format!("a number of parts that {whole} has"), count));
    }
    // Trailing outputs may be left out, but there are never more outputs than parts.
    let made = usize::try_from(count).unwrap_or(usize::MAX).min(wanted);
    let is_last = |at: usize| i64::try_from(at).is_ok_and(|at| at == count - 1);
    Ok((0..made).map(|at| if is_last(at) { last } else { size }).collect())
}

fn infer_tile(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let rank = rank_from_length(call, 1)?;
    let Some(dims) = call.input_dims(0)? else { return single_output(rank.map(unknown_dims)) };
    let Some(repeats) = call.input_ints(1)? else {
        call.expect_dims(1, &[PartialDim::from(dims.len())])?;
        return single_output(unknown_dims(dims.len()));
    };
    if repeats.len() != dims.len() || repeats.iter().any(|count| *count < 0) {
        let expected = format!("{} numbers of at least 0, one for each dimension", dims.len());
        return Err(call.input_error(1, expected, format!("{repeats:?}")));
    }
    let tiled: Result<PartialDims> =
        dims.iter().zip(repeats).map(|(dim, count)| dim.try_mul(count)).collect();
    single_output(tiled.map_err(call.blame_input(1))?)
}

fn infer_tile_axis(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let Some(mut dims) = call.input_shape(0)? else { return single_output(None) };
    let count = call.input_int(1)?;
    if count.known_size().is_some_and(|count| count < 0) {
        return Err(call.input_error(1, "at least 0", count));
    }
    let PartialDim::Known(axis) = call.input_int(2)? else { return single_output(unknown_dims(dims.len())) };
    let axis = shape::resolve_axis(axis, dims.len()).map_err(call.blame_input(2))?;
    dims[axis] = dims[axis].try_mul(count).map_err(call.blame_input(1))?;
    single_output(dims)
}

fn infer_depth_to_space(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let block = call.positive_attribute("blocksize")?;
    let area = PartialDim::from(block).try_mul(block).map_err(blame_attribute("blocksize"))?;
    let [n, c, h, w] = call.dims_of_rank(0)?.unwrap_or([PartialDim::Unknown; 4]);
    if !c.may_divide_by(area) {
        return Err(call.input_error(0, format!("a number of channels that {area} divides"), c));
    }
    single_output([n, c.try_div(area)?, h.try_mul(block)?, w.try_mul(block)?].as_slice())
}

fn infer_space_to_depth(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let block = call.positive_attribute("blocksize")?;
    let area = PartialDim::from(block).try_mul(block).map_err(blame_attribute("blocksize"))?;
    let [n, c, h, w] = call.dims_of_rank(0)?.unwrap_or([PartialDim::Unknown; 4]);
    if !h.may_divide_by(block) || !w.may_divide_by(block) {
        return Err(call.input_error(
            0,
            format!("a height and width that {block} divides"),
            DisplayDims(&[h, w]),
        ));
    }
    single_output([n, c.try_mul(area)?, h.try_div(block)?, w.try_div(block)?].as_slice())
}

fn infer_reverse_sequence(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let Some(dims) = call.dims_of_at_least(0, 2)? else { return infer_same_shape(call) };
    let (batch, time) =
        (call.axis_attribute("batch_axis", 1, dims.len())?, call.axis_attribute("time_axis", 0, dims.len())?);
    if batch > 1 || time > 1 || batch == time {
        return Err(attribute_error("batch_axis", "0 or 1, and `time_axis` the other", batch));
    }
    call.expect_dims(1, &[dims[batch]])?;
    infer_same_shape(call)
}
