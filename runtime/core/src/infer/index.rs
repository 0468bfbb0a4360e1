//! Ops that pick elements by index, or write to places that indices name.

use super::call::{Call, wrong_attribute};
use super::elementwise::same;
use super::fact::{Dim, Listed, PartialDims};
use super::output::{Output, Shape, of_rank, one};
use super::table::{LATEST, Rule, rule};
use crate::Result;

pub(super) const RULES: &[Rule] = &[
    rule("Gather", 1, LATEST, &[], gather),
    rule("GatherElements", 11, LATEST, &[], gather_elements),
    rule("GatherND", 11, LATEST, &[], gather_nd),
    rule("Scatter ScatterElements", 9, LATEST, &[], scatter_elements),
    rule("ScatterND", 11, LATEST, &[], scatter_nd),
    rule("TensorScatter", 24, LATEST, &[], scatter_tensor),
    rule("OneHot", 9, LATEST, &[1], one_hot),
    rule("TopK", 1, 9, &[], |call| top(call, Dim::Known(call.positive("k")?))),
    rule("TopK", 10, LATEST, &[1], |call| top(call, call.int_value(1)?)),
    rule("Compress", 9, LATEST, &[], compress),
    rule("NonZero", 9, LATEST, &[], non_zero),
    rule("Unique", 11, LATEST, &[], unique),
    rule("DynamicTimeWarping", 1, LATEST, &[], warp).of_domain("oarlock"),
    rule("NonMaxSuppression", 10, LATEST, &[], non_max_suppression),
];

/// Dimensions with one of them taken out and others put into its place.
fn replace(dims: &[Dim], axis: usize, by: &[Dim]) -> PartialDims {
    dims[..axis].iter().chain(by).chain(&dims[axis + 1..]).copied().collect()
}

fn gather(call: &Call<'_>) -> Result<Vec<Output>> {
    let (data, indices) = (call.dims_of_at_least(0, 1)?, call.dims(1)?);
    let Some(data) = data else { return one(None) };
    let axis = call.axis("axis", 0, data.len())?;
    one(indices.map(|indices| replace(data, axis, indices)))
}

fn gather_elements(call: &Call<'_>) -> Result<Vec<Output>> {
    let Some(data) = call.dims_of_at_least(0, 1)? else { return one(call.shape(1)?) };
    let axis = call.axis("axis", 0, data.len())?;
    let Some(indices) = call.dims(1)? else { return one(of_rank(data.len())) };
    expect_within(call, 1, data, axis)?;
    one(indices)
}

/// Checks that an input has no size above those of the data, but for one axis.
fn expect_within(call: &Call<'_>, input: usize, data: &[Dim], axis: usize) -> Result<()> {
    let Some(found) = call.dims(input)? else { return Ok(()) };
    let fits = |(at, (found, size)): (usize, (&Dim, &Dim))| match (found, size) {
        (Dim::Known(found), Dim::Known(size)) => at == axis || found <= size,
        _ => true,
    };
    if found.len() == data.len() && found.iter().zip(data).enumerate().all(fits) {
        return Ok(());
    }
    let expected = format!("sizes of at most {}, but for axis {axis}", Listed(data));
    Err(call.wrong(input, expected, Listed(found)))
}

fn gather_nd(call: &Call<'_>) -> Result<Vec<Output>> {
    let (Some(data), Some(indices)) = (call.dims_of_at_least(0, 1)?, call.dims_of_at_least(1, 1)?) else {
        return one(None);
    };
    let most = data.len().min(indices.len());
    let batch = call.int_or("batch_dims", 0)?;
    let batch = usize::try_from(batch)
        .ok()
        .filter(|batch| *batch < most)
        .ok_or_else(|| wrong_attribute("batch_dims", format!("0 to before {most}"), batch))?;
    if !data[..batch].iter().zip(&indices[..batch]).all(|(a, b)| a.agrees(*b)) {
        let expected = format!("the shape to begin with {}", Listed(&data[..batch]));
        return Err(call.wrong(1, expected, Listed(indices)));
    }
    let Some((outer, rest)) = picked(call, &data[batch..], indices)? else { return one(None) };
    one(outer.iter().chain(rest).copied().collect::<PartialDims>())
}

/// The dimensions of a list of indices of several dimensions each, and those of what each of them picks.
fn picked<'a>(
    call: &Call<'_>,
    data: &'a [Dim],
    indices: &'a [Dim],
) -> Result<Option<(&'a [Dim], &'a [Dim])>> {
    let [outer @ .., length] = indices else { return Ok(None) };
    let Dim::Known(length) = length else { return Ok(None) };
    let rest =
        usize::try_from(*length).ok().filter(|length| *length >= 1).and_then(|length| data.get(length..));
    match rest {
        Some(rest) => Ok(Some((outer, rest))),
        None => {
            let expected = format!("a last dimension of 1 to {}, as many as can be indexed", data.len());
            Err(call.wrong(1, expected, Listed(indices)))
        }
    }
}

fn scatter_elements(call: &Call<'_>) -> Result<Vec<Output>> {
    if let Some(indices) = call.dims(1)? {
        call.expect_dims(2, indices)?;
    }
    call.input(2)?;
    if let Some(data) = call.dims_of_at_least(0, 1)? {
        expect_within(call, 1, data, call.axis("axis", 0, data.len())?)?;
    }
    same(call)
}

fn scatter_nd(call: &Call<'_>) -> Result<Vec<Output>> {
    call.input(2)?;
    if let (Some(data), Some(indices)) = (call.dims_of_at_least(0, 1)?, call.dims_of_at_least(1, 1)?)
        && let Some((outer, rest)) = picked(call, data, indices)?
    {
        call.expect_dims(2, &outer.iter().chain(rest).copied().collect::<PartialDims>())?;
    }
    same(call)
}

fn scatter_tensor(call: &Call<'_>) -> Result<Vec<Output>> {
    call.input(1)?;
    if let Some(cache) = call.dims_of_at_least(0, 2)? {
        let axis = call.axis("axis", -2, cache.len())?;
        if axis == 0 {
            return Err(wrong_attribute("axis", "another axis than that of the batch", 0));
        }
        let mut expected = PartialDims::from_slice(cache);
        expected[axis] = Dim::Unknown;
        call.expect_dims(1, &expected)?;
        call.expect_dims(2, &[cache[0]])?;
        if let Some([Dim::Known(size), Dim::Known(found)]) =
            call.dims(1)?.map(|dims| [cache[axis], dims[axis]])
            && found > size
        {
            return Err(call.wrong(1, format!("at most {size} in dimension {axis}"), found));
        }
    }
    same(call)
}

fn one_hot(call: &Call<'_>) -> Result<Vec<Output>> {
    let depth = call.int_value(1)?;
    if depth.known().is_some_and(|depth| depth < 0) {
        return Err(call.wrong(1, "at least 0", depth));
    }
    call.input(2)?;
    call.expect_dims(2, &[Dim::Known(2)])?;
    let Some(mut dims) = call.shape(0)? else { return one(Shape::None) };
    dims.insert(call.axis("axis", -1, dims.len() + 1)?, depth);
    one(dims)
}

fn top(call: &Call<'_>, count: Dim) -> Result<Vec<Output>> {
    let Some(mut dims) = call.shape(0)? else { return Ok(vec![Shape::None.into(), Shape::None.into()]) };
    let axis = call.axis("axis", -1, dims.len())?;
    let is_possible = match (count, dims[axis]) {
        (Dim::Known(count), Dim::Known(size)) => (0..=size).contains(&count),
        (count, _) => count.known().is_none_or(|count| count >= 0),
    };
    if !is_possible {
        return Err(call.wrong(1, format!("0 to {}, the size of axis {axis}", dims[axis]), count));
    }
    dims[axis] = count;
    Ok(vec![dims.clone().into(), dims.into()])
}

fn compress(call: &Call<'_>) -> Result<Vec<Output>> {
    call.list_length(1)?;
    if call.attribute("axis").is_none() {
        return one(of_rank(1));
    }
    let Some(mut dims) = call.shape(0)? else { return one(None) };
    let axis = call.axis("axis", 0, dims.len())?;
    dims[axis] = Dim::Unknown;
    one(dims)
}

fn non_zero(call: &Call<'_>) -> Result<Vec<Output>> {
    // A number is looked at as if it were a list of one.
    let rank = call.dims(0)?.map_or(Dim::Unknown, |dims| Dim::from(dims.len().max(1)));
    one([rank, Dim::Unknown].as_slice())
}

fn unique(call: &Call<'_>) -> Result<Vec<Output>> {
    let mut found = call.shape(0)?;
    let mut length = match &found {
        Some(dims) => super::fact::product(dims)?,
        None => Dim::Unknown,
    };
    if call.attribute("axis").is_none() {
        found = Some(of_rank(1));
    } else if let Some(dims) = &mut found {
        let axis = call.axis("axis", 0, dims.len())?;
        length = dims[axis];
        dims[axis] = Dim::Unknown;
    }
    let inverse = [length].as_slice().into();
    Ok(vec![found.into(), of_rank(1).into(), inverse, of_rank(1).into()])
}

/// The rows and the columns of the places on a way whose length depends on the costs.
fn warp(call: &Call<'_>) -> Result<Vec<Output>> {
    match call.dims(0)? {
        Some([_, _]) | None => {}
        Some([batch, _, _]) if batch.agrees(Dim::Known(1)) => {}
        Some(dims) => return Err(call.wrong(0, "two dimensions, or a 1 and two others", Listed(dims))),
    }
    one([Dim::Known(2), Dim::Unknown].as_slice())
}

fn non_max_suppression(call: &Call<'_>) -> Result<Vec<Output>> {
    let [batches, boxes, corners] = call.dims_of_rank(0)?.unwrap_or([Dim::Unknown; 3]);
    if !corners.agrees(Dim::Known(4)) {
        return Err(call.wrong(0, "4 numbers for each box", corners));
    }
    call.input(1)?;
    call.expect_dims(1, &[batches, Dim::Unknown, boxes])?;
    (2..5).try_for_each(|input| call.expect_one_element(input))?;
    one([Dim::Unknown, Dim::Known(3)].as_slice())
}
