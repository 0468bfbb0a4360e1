//! Ops that put the same elements into another order, and those that join, cut or repeat tensors.

use super::call::{Call, of_attribute, wrong_attribute};
use super::elementwise::same;
use super::fact::{Dim, Listed, PartialDims};
use super::output::{Output, Shape, of_rank, one};
use super::reshape::rank_of;
use super::table::{LATEST, Rule, rule};
use crate::{Error, Result, shape};

pub(super) const RULES: &[Rule] = &[
    rule("Transpose", 1, LATEST, &[], transpose),
    rule("Concat", 1, LATEST, &[], concat),
    rule("Split", 1, 1, &[1], split),
    rule("Split", 2, 12, &[], split),
    rule("Split", 13, LATEST, &[1], split),
    rule("Tile", 1, 5, &[1, 2], tile_axis),
    rule("Tile", 6, LATEST, &[1], tile),
    rule("DepthToSpace", 1, LATEST, &[], depth_to_space),
    rule("SpaceToDepth", 1, LATEST, &[], space_to_depth),
    rule("ReverseSequence", 10, LATEST, &[], reverse_sequence),
];

fn transpose(call: &Call<'_>) -> Result<Vec<Output>> {
    let order = call.int_list("perm")?;
    let (dims, order) = match (call.dims(0)?, order) {
        (None, order) => return one(order.map(|order| of_rank(order.len()))),
        (Some(dims), None) => return one(dims.iter().rev().copied().collect::<PartialDims>()),
        (Some(dims), Some(order)) => (dims, order),
    };
    let axes = super::call::axes(order, dims.len()).map_err(of_attribute("perm"))?;
    if axes.len() != dims.len() {
        let expected = format!("each of the {} axes of {}", dims.len(), Listed(dims));
        return Err(wrong_attribute("perm", expected, format!("{order:?}")));
    }
    one(axes.into_iter().map(|axis| dims[axis]).collect::<PartialDims>())
}

fn concat(call: &Call<'_>) -> Result<Vec<Output>> {
    call.input(0)?;
    let axis_attribute = call.int_or("axis", 1)?;
    let mut joined: Shape = None;
    let mut is_complete = true;
    for input in 0..call.input_count() {
        let Some(dims) = call.dims(input)? else {
            is_complete = false;
            continue;
        };
        let axis = shape::axis(axis_attribute, dims.len()).map_err(of_attribute("axis"))?;
        let Some(joined) = &mut joined else {
            joined = Some(dims.into());
            continue;
        };
        let mut expected = joined.clone();
        if let Some(dim) = expected.get_mut(axis) {
            *dim = Dim::Unknown;
        }
        call.expect_dims(input, &expected)?;
        for (at, (sum, dim)) in joined.iter_mut().zip(dims).enumerate() {
            *sum = if at == axis { sum.plus(*dim).map_err(call.blame(input))? } else { sum.or(*dim) };
        }
    }
    if let (Some(joined), false) = (&mut joined, is_complete) {
        let axis = shape::axis(axis_attribute, joined.len())?;
        joined[axis] = Dim::Unknown;
    }
    one(joined)
}

fn split(call: &Call<'_>) -> Result<Vec<Output>> {
    let dims = call.dims(0)?;
    let axis = dims.map(|dims| call.axis("axis", 0, dims.len())).transpose()?;
    let whole = dims.zip(axis).map_or(Dim::Unknown, |(dims, axis)| dims[axis]);
    let sizes = if call.given(1).is_some() {
        parts_by_input(call, whole)?
    } else if let Some(sizes) = call.int_list("split")? {
        stated_parts(sizes, whole).map_err(of_attribute("split"))?
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

fn parts_by_input(call: &Call<'_>, whole: Dim) -> Result<Vec<Dim>> {
    let count = call.list_length(1)?;
    if let Some(sizes) = call.ints(1)? {
        return stated_parts(&sizes, whole).map_err(call.blame(1));
    }
    if count.known().is_some_and(|count| Dim::from(call.output_count()).known() > Some(count)) {
        return Err(call.wrong(1, format!("a size for each of {} outputs", call.output_count()), count));
    }
    Ok(vec![Dim::Unknown; call.output_count()])
}

fn stated_parts(sizes: &[i64], whole: Dim) -> Result<Vec<Dim>> {
    let wrong = || {
        Error::invalid_argument(format!(
            "expected sizes of at least 0 that add up to {whole}, found {sizes:?}"
        ))
    };
    let sum = sizes.iter().try_fold(0i64, |sum, size| sum.checked_add(*size)).ok_or_else(wrong)?;
    if sizes.iter().any(|size| *size < 0) || !whole.agrees(Dim::Known(sum)) {
        return Err(wrong());
    }
    Ok(sizes.iter().copied().map(Dim::Known).collect())
}

/// Equal parts, one for each output. Where the number of parts is an attribute, the last one may be smaller.
fn equal_parts(call: &Call<'_>, whole: Dim) -> Result<Vec<Dim>> {
    let wanted = call.output_count();
    if call.version() < 18 {
        let count = Dim::from(wanted);
        if wanted == 0 || !whole.may_divide_by(count) {
            return Err(call.wrong(0, format!("a size that can be cut into {wanted} equal parts"), whole));
        }
        return Ok(vec![whole.over(count)?; wanted]);
    }
    let count = call.positive("num_outputs")?;
    let size = whole.plus(count - 1)?.over(count)?;
    let last = whole.minus(size.times(count - 1)?)?;
    if last.known().is_some_and(|last| last < 0) {
        return Err(wrong_attribute("num_outputs", format!("a number of parts that {whole} has"), count));
    }
    // Outputs at the end may be unwanted, but there are never more than parts.
    let made = usize::try_from(count).unwrap_or(usize::MAX).min(wanted);
    let is_last = |at: usize| i64::try_from(at).is_ok_and(|at| at == count - 1);
    Ok((0..made).map(|at| if is_last(at) { last } else { size }).collect())
}

fn tile(call: &Call<'_>) -> Result<Vec<Output>> {
    let rank = rank_of(call, 1)?;
    let Some(dims) = call.dims(0)? else { return one(rank.map(of_rank)) };
    let Some(repeats) = call.ints(1)? else {
        call.expect_dims(1, &[Dim::from(dims.len())])?;
        return one(of_rank(dims.len()));
    };
    if repeats.len() != dims.len() || repeats.iter().any(|count| *count < 0) {
        let expected = format!("{} numbers of at least 0, one for each dimension", dims.len());
        return Err(call.wrong(1, expected, format!("{repeats:?}")));
    }
    let tiled: Result<PartialDims> = dims.iter().zip(repeats).map(|(dim, count)| dim.times(count)).collect();
    one(tiled.map_err(call.blame(1))?)
}

fn tile_axis(call: &Call<'_>) -> Result<Vec<Output>> {
    let Some(mut dims) = call.shape(0)? else { return one(None) };
    let count = call.int_value(1)?;
    if count.known().is_some_and(|count| count < 0) {
        return Err(call.wrong(1, "at least 0", count));
    }
    let Dim::Known(axis) = call.int_value(2)? else { return one(of_rank(dims.len())) };
    let axis = shape::axis(axis, dims.len()).map_err(call.blame(2))?;
    dims[axis] = dims[axis].times(count).map_err(call.blame(1))?;
    one(dims)
}

fn depth_to_space(call: &Call<'_>) -> Result<Vec<Output>> {
    let block = call.positive("blocksize")?;
    let area = Dim::from(block).times(block).map_err(of_attribute("blocksize"))?;
    let [n, c, h, w] = call.dims_of_rank(0)?.unwrap_or([Dim::Unknown; 4]);
    if !c.may_divide_by(area) {
        return Err(call.wrong(0, format!("a number of channels that {area} divides"), c));
    }
    one([n, c.over(area)?, h.times(block)?, w.times(block)?].as_slice())
}

fn space_to_depth(call: &Call<'_>) -> Result<Vec<Output>> {
    let block = call.positive("blocksize")?;
    let area = Dim::from(block).times(block).map_err(of_attribute("blocksize"))?;
    let [n, c, h, w] = call.dims_of_rank(0)?.unwrap_or([Dim::Unknown; 4]);
    if !h.may_divide_by(block) || !w.may_divide_by(block) {
        return Err(call.wrong(0, format!("a height and width that {block} divides"), Listed(&[h, w])));
    }
    one([n, c.times(area)?, h.over(block)?, w.over(block)?].as_slice())
}

fn reverse_sequence(call: &Call<'_>) -> Result<Vec<Output>> {
    let Some(dims) = call.dims_of_at_least(0, 2)? else { return same(call) };
    let (batch, time) = (call.axis("batch_axis", 1, dims.len())?, call.axis("time_axis", 0, dims.len())?);
    if batch > 1 || time > 1 || batch == time {
        return Err(wrong_attribute("batch_axis", "0 or 1, and `time_axis` the other", batch));
    }
    call.expect_dims(1, &[dims[batch]])?;
    same(call)
}
