//! Ops that gather elements by index, or scatter them.

use super::context::{InferenceContext, attribute_error};
use super::elementwise::infer_same_shape;
use super::fact::{DisplayDims, PartialDim, PartialDims};
use super::output::{InferredOutput, PartialShape, single_output, unknown_dims};
use super::rule::{InferenceRule, LATEST, rule};
use crate::Result;

pub(super) const RULES: &[InferenceRule] = &[
    rule("Gather", 1, LATEST, &[], infer_gather),
    rule("GatherElements", 11, LATEST, &[], infer_gather_elements),
    rule("GatherND", 11, LATEST, &[], infer_gather_nd),
    rule("Scatter ScatterElements", 9, LATEST, &[], infer_scatter_elements),
    rule("ScatterND", 11, LATEST, &[], infer_scatter_nd),
    rule("TensorScatter", 24, LATEST, &[], infer_tensor_scatter),
    rule("OneHot", 9, LATEST, &[1], infer_one_hot),
    rule("TopK", 1, 9, &[], |call| infer_top_k(call, PartialDim::Known(call.positive_attribute("k")?))),
    rule("TopK", 10, LATEST, &[1], |call| infer_top_k(call, call.input_int(1)?)),
    rule("Compress", 9, LATEST, &[], infer_compress),
    rule("NonZero", 9, LATEST, &[], infer_non_zero),
    rule("Unique", 11, LATEST, &[], infer_unique),
    rule("DynamicTimeWarping", 1, LATEST, &[], infer_time_warping).in_oarlock_domain(),
    rule("NonMaxSuppression", 10, LATEST, &[], infer_non_max_suppression),
];

/// Replaces one dimension by any number of others.
fn replace_axis(dims: &[PartialDim], axis: usize, by: &[PartialDim]) -> PartialDims {
    dims[..axis].iter().chain(by).chain(&dims[axis + 1..]).copied().collect()
}

fn infer_gather(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let (data, indices) = (call.dims_of_at_least(0, 1)?, call.input_dims(1)?);
    let Some(data) = data else { return single_output(None) };
    let axis = call.axis_attribute("axis", 0, data.len())?;
    single_output(indices.map(|indices| replace_axis(data, axis, indices)))
}

fn infer_gather_elements(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let Some(data) = call.dims_of_at_least(0, 1)? else { return single_output(call.input_shape(1)?) };
    let axis = call.axis_attribute("axis", 0, data.len())?;
    let Some(indices) = call.input_dims(1)? else { return single_output(unknown_dims(data.len())) };
    expect_within(call, 1, data, axis)?;
    single_output(indices)
}

/// Checks that no size of an input exceeds that of the data, except along one axis.
fn expect_within(call: &InferenceContext<'_>, input: usize, data: &[PartialDim], axis: usize) -> Result<()> {
    let Some(found) = call.input_dims(input)? else { return Ok(()) };
    let fits = |(at, (found, size)): (usize, (&PartialDim, &PartialDim))| match (found, size) {
        (PartialDim::Known(found), PartialDim::Known(size)) => at == axis || found <= size,
        _ => true,
    };
    if found.len() == data.len() && found.iter().zip(data).enumerate().all(fits) {
        return Ok(());
    }
    let expected = format!("sizes of at most {}, but for axis {axis}", DisplayDims(data));
    Err(call.input_error(input, expected, DisplayDims(found)))
}

fn infer_gather_nd(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let (Some(data), Some(indices)) = (call.dims_of_at_least(0, 1)?, call.dims_of_at_least(1, 1)?) else {
        return single_output(None);
    };
    let most = data.len().min(indices.len());
    let batch = call.int_attribute_or("batch_dims", 0)?;
    let batch = usize::try_from(batch)
        .ok()
        .filter(|batch| *batch < most)
        .ok_or_else(|| attribute_error("batch_dims", format!("0 to before {most}"), batch))?;
    if !data[..batch].iter().zip(&indices[..batch]).all(|(a, b)| a.may_equal(*b)) {
        let expected = format!("the shape to begin with {}", DisplayDims(&data[..batch]));
        return Err(call.input_error(1, expected, DisplayDims(indices)));
    }
    let Some((outer, rest)) = split_gather_nd(call, &data[batch..], indices)? else {
        return single_output(None);
    };
    single_output(outer.iter().chain(rest).copied().collect::<PartialDims>())
}

/// Splits the result of `GatherND` into the leading dimensions of the indices and the trailing ones of the data.
fn split_gather_nd<'a>(
    call: &InferenceContext<'_>,
    data: &'a [PartialDim],
    indices: &'a [PartialDim],
) -> Result<Option<(&'a [PartialDim], &'a [PartialDim])>> {
    let [outer @ .., length] = indices else { return Ok(None) };
    let PartialDim::Known(length) = length else { return Ok(None) };
    let rest =
        usize::try_from(*length).ok().filter(|length| *length >= 1).and_then(|length| data.get(length..));
    match rest {
        Some(rest) => Ok(Some((outer, rest))),
        None => {
            let expected = format!("a last dimension of 1 to {}, as many as can be indexed", data.len());
            Err(call.input_error(1, expected, DisplayDims(indices)))
        }
    }
}

fn infer_scatter_elements(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    if let Some(indices) = call.input_dims(1)? {
        call.expect_dims(2, indices)?;
    }
    call.input(2)?;
    if let Some(data) = call.dims_of_at_least(0, 1)? {
        expect_within(call, 1, data, call.axis_attribute("axis", 0, data.len())?)?;
    }
    infer_same_shape(call)
}

fn infer_scatter_nd(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    call.input(2)?;
    if let (Some(data), Some(indices)) = (call.dims_of_at_least(0, 1)?, call.dims_of_at_least(1, 1)?)
        && let Some((outer, rest)) = split_gather_nd(call, data, indices)?
    {
        call.expect_dims(2, &outer.iter().chain(rest).copied().collect::<PartialDims>())?;
    }
    infer_same_shape(call)
}

fn infer_tensor_scatter(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    call.input(1)?;
    if let Some(cache) = call.dims_of_at_least(0, 2)? {
        let axis = call.axis_attribute("axis", -2, cache.len())?;
        if axis == 0 {
            return Err(attribute_error("axis", "another axis than that of the batch", 0));
        }
        let mut expected = PartialDims::from_slice(cache);
        expected[axis] = PartialDim::Unknown;
        call.expect_dims(1, &expected)?;
        call.expect_dims(2, &[cache[0]])?;
        if let Some([PartialDim::Known(size), PartialDim::Known(found)]) =
            call.input_dims(1)?.map(|dims| [cache[axis], dims[axis]])
            && found > size
        {
            return Err(call.input_error(1, format!("at most {size} in dimension {axis}"), found));
        }
    }
    infer_same_shape(call)
}

fn infer_one_hot(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let depth = call.input_int(1)?;
    if depth.known_size().is_some_and(|depth| depth < 0) {
        return Err(call.input_error(1, "at least 0", depth));
    }
    call.input(2)?;
    call.expect_dims(2, &[PartialDim::Known(2)])?;
    let Some(mut dims) = call.input_shape(0)? else { return single_output(PartialShape::None) };
    dims.insert(call.axis_attribute("axis", -1, dims.len() + 1)?, depth);
    single_output(dims)
}

fn infer_top_k(call: &InferenceContext<'_>, count: PartialDim) -> Result<Vec<InferredOutput>> {
    let Some(mut dims) = call.input_shape(0)? else {
        return Ok(vec![PartialShape::None.into(), PartialShape::None.into()]);
    };
    let axis = call.axis_attribute("axis", -1, dims.len())?;
    let is_possible = match (count, dims[axis]) {
        (PartialDim::Known(count), PartialDim::Known(size)) => (0..=size).contains(&count),
        (count, _) => count.known_size().is_none_or(|count| count >= 0),
    };
    if !is_possible {
        return Err(call.input_error(1, format!("0 to {}, the size of axis {axis}", dims[axis]), count));
    }
    dims[axis] = count;
    Ok(vec![dims.clone().into(), dims.into()])
}

fn infer_compress(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    call.list_length(1)?;
    if call.attribute("axis").is_none() {
        return single_output(unknown_dims(1));
    }
    let Some(mut dims) = call.input_shape(0)? else { return single_output(None) };
    let axis = call.axis_attribute("axis", 0, dims.len())?;
    dims[axis] = PartialDim::Unknown;
    single_output(dims)
}

fn infer_non_zero(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    // A scalar counts as a list of one.
    let rank = call.input_dims(0)?.map_or(PartialDim::Unknown, |dims| PartialDim::from(dims.len().max(1)));
    single_output([rank, PartialDim::Unknown].as_slice())
}

fn infer_unique(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let mut found = call.input_shape(0)?;
    let mut length = match &found {
        Some(dims) => super::fact::dim_product(dims)?,
        None => PartialDim::Unknown,
    };
    if call.attribute("axis").is_none() {
        found = Some(unknown_dims(1));
    } else if let Some(dims) = &mut found {
        let axis = call.axis_attribute("axis", 0, dims.len())?;
        length = dims[axis];
        dims[axis] = PartialDim::Unknown;
    }
    let inverse = [length].as_slice().into();
    Ok(vec![found.into(), unknown_dims(1).into(), inverse, unknown_dims(1).into()])
}

/// Row and column of each point on the path, whose length depends on the costs.
fn infer_time_warping(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    match call.input_dims(0)? {
        Some([_, _]) | None => {}
        Some([batch, _, _]) if batch.may_equal(PartialDim::Known(1)) => {}
        Some(dims) => {
            return Err(call.input_error(0, "two dimensions, or a 1 and two others", DisplayDims(dims)));
        }
    }
    single_output([PartialDim::Known(2), PartialDim::Unknown].as_slice())
}

fn infer_non_max_suppression(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let [batches, boxes, corners] = call.dims_of_rank(0)?.unwrap_or([PartialDim::Unknown; 3]);
    if !corners.may_equal(PartialDim::Known(4)) {
        return Err(call.input_error(0, "4 numbers for each box", corners));
    }
    call.input(1)?;
    call.expect_dims(1, &[batches, PartialDim::Unknown, boxes])?;
    (2..5).try_for_each(|input| call.expect_one_element(input))?;
    single_output([PartialDim::Unknown, PartialDim::Known(3)].as_slice())
}
