//! Poolings: one element for each window of a channel.

use super::call::{Call, wrong_attribute};
use super::fact::{Dim, PartialDims};
use super::output::{Output, Shape, of_rank, one};
use super::table::{LATEST, Rule, rule};
use super::window::{Window, spatial};
use crate::Result;

pub(super) const RULES: &[Rule] = &[
    rule("AveragePool LpPool", 1, LATEST, &[], |call| one(pool(call)?)),
    rule("MaxPool", 1, LATEST, &[], |call| pool(call).map(|dims| vec![dims.clone().into(), dims.into()])),
    rule("MaxUnpool", 9, LATEST, &[2], unpool),
    rule("GlobalAveragePool GlobalLpPool GlobalMaxPool", 1, LATEST, &[], global_pool),
    rule("MaxRoiPool", 1, LATEST, &[], pool_regions),
    rule("RoiAlign", 10, LATEST, &[], align_regions),
];

fn pool(call: &Call<'_>) -> Result<Shape> {
    let Some((outer, dims)) = spatial(call, 0)? else { return Ok(None) };
    let window = Window::read(call, dims.len(), None)?;
    let counts = window.count(call, 0, dims, call.flag("ceil_mode", false)?)?;
    Ok(Some(outer.into_iter().chain(counts).collect()))
}

fn unpool(call: &Call<'_>) -> Result<Vec<Output>> {
    let Some((outer, dims)) = spatial(call, 0)? else { return one(None) };
    call.input(1)?;
    call.expect_dims(1, &[&outer[..], dims].concat())?;
    if call.given(2).is_some() {
        call.expect_dims(2, &[Dim::from(dims.len() + 2)])?;
        return one(match call.ints(2)? {
            Some(sizes) if sizes.len() != dims.len() + 2 || sizes.iter().any(|size| *size < 0) => {
                let expected = format!("{} sizes of at least 0", dims.len() + 2);
                return Err(call.wrong(2, expected, format!("{sizes:?}")));
            }
            Some(sizes) => sizes.into_iter().map(Dim::Known).collect(),
            None => of_rank(dims.len() + 2),
        });
    }
    let window = Window::read(call, dims.len(), None)?;
    let mut unpooled = PartialDims::from_slice(&outer);
    for (axis, dim) in dims.iter().enumerate() {
        let (_, pads) = window.pads(axis)?;
        let size = dim.minus(1)?.times(window.stride(axis))?.plus(window.extent(axis)?)?.minus(pads)?;
        if size.known().is_some_and(|size| size < 0) {
            return Err(wrong_attribute("pads", "pads that leave something", format!("a size of {size}")));
        }
        unpooled.push(size);
    }
    one(unpooled)
}

fn global_pool(call: &Call<'_>) -> Result<Vec<Output>> {
    let Some(mut dims) = call.dims_of_at_least(0, 2)?.map(PartialDims::from_slice) else { return one(None) };
    dims.iter_mut().skip(2).for_each(|dim| *dim = Dim::Known(1));
    one(dims)
}

fn pool_regions(call: &Call<'_>) -> Result<Vec<Output>> {
    let size = call.int_list("pooled_shape")?;
    let Some([height, width]) = size.and_then(|size| <[i64; 2]>::try_from(size).ok()) else {
        return Err(wrong_attribute("pooled_shape", "a height and a width", format!("{size:?}")));
    };
    if height < 1 || width < 1 {
        return Err(wrong_attribute("pooled_shape", "sizes of at least 1", format!("{height} and {width}")));
    }
    one(regions(call, 5, height, width)?.as_slice())
}

fn align_regions(call: &Call<'_>) -> Result<Vec<Output>> {
    let size = |name| match call.int_or(name, 1)? {
        size if size >= 1 => Ok(size),
        size => Err(wrong_attribute(name, "at least 1", size)),
    };
    let found = regions(call, 4, size("output_height")?, size("output_width")?)?;
    call.input(2)?;
    call.expect_dims(2, &found[..1])?;
    one(found.as_slice())
}

fn regions(call: &Call<'_>, corners: i64, height: i64, width: i64) -> Result<[Dim; 4]> {
    let [_, channels, _, _] = call.dims_of_rank(0)?.unwrap_or([Dim::Unknown; 4]);
    let [count, found] = call.dims_of_rank(1)?.unwrap_or([Dim::Unknown; 2]);
    if !found.agrees(Dim::Known(corners)) {
        return Err(call.wrong(1, format!("{corners} numbers for each region"), found));
    }
    Ok([count, channels, Dim::Known(height), Dim::Known(width)])
}
