//! Convolutions.

use super::call::{Call, wrong_attribute};
use super::elementwise::same;
use super::fact::{Dim, Listed, PartialDims, product};
use super::output::{Output, Shape, one};
use super::table::{LATEST, Rule, rule};
use super::window::{Padding, Sizes, Window, spatial};
use crate::Result;

pub(super) const RULES: &[Rule] = &[
    rule("Conv", 1, LATEST, &[], |call| one(conv(call, 1, 2)?)),
    rule("ConvInteger", 10, LATEST, &[], |call| one(conv(call, 1, NO_BIAS)?)),
    rule("QLinearConv", 10, LATEST, &[], |call| one(conv(call, 3, 8)?)),
    rule("DeformConv", 19, LATEST, &[], deform),
    rule("ConvTranspose", 1, LATEST, &[], transpose),
    rule("CausalConvWithState", 27, LATEST, &[], causal),
];

/// An input that no op has.
const NO_BIAS: usize = usize::MAX;

fn conv(call: &Call<'_>, weight: usize, bias: usize) -> Result<Shape> {
    let groups = groups(call, "group")?;
    let Some((outer, kernel)) = spatial(call, weight)? else {
        let dims = spatial(call, 0)?;
        return Ok(dims.map(|([batches, _], spatial)| {
            [batches, Dim::Unknown].into_iter().chain(spatial.iter().map(|_| Dim::Unknown)).collect()
        }));
    };
    let [features, channels_per_group] = outer;
    if !features.may_divide_by(groups) {
        return Err(call.wrong(
            weight,
            format!("a number of features that {groups} groups divide"),
            features,
        ));
    }
    call.expect_dims(bias, &[features])?;
    let Some(([batches, channels], dims)) = spatial(call, 0)? else { return Ok(None) };
    if kernel.len() != dims.len() {
        return Err(call.wrong(weight, format!("{} spatial dimensions", dims.len()), Listed(kernel)));
    }
    if !channels.agrees(channels_per_group.times(groups)?) {
        let expected = format!("{channels_per_group} channels for each of {groups} groups");
        return Err(call.wrong(0, expected, format!("{channels} channels")));
    }
    let window = Window::read(call, dims.len(), Some((weight, kernel)))?;
    let counts = window.count(call, 0, dims, false)?;
    Ok(Some([batches, features].into_iter().chain(counts).collect()))
}

fn groups(call: &Call<'_>, name: &str) -> Result<i64> {
    match call.int_or(name, 1)? {
        groups if groups >= 1 => Ok(groups),
        groups => Err(wrong_attribute(name, "at least 1", groups)),
    }
}

fn deform(call: &Call<'_>) -> Result<Vec<Output>> {
    let output = conv(call, 1, 3)?;
    call.input(2)?;
    if let (Some(output), Some((_, kernel))) = (&output, spatial(call, 1)?) {
        let places = product(kernel)?.times(groups(call, "offset_group")?)?;
        let with =
            |channels| -> PartialDims { [output[0], channels].iter().chain(&output[2..]).copied().collect() };
        call.expect_dims(2, &with(places.times(Dim::from(kernel.len()))?))?;
        call.expect_dims(4, &with(places))?;
    }
    one(output)
}

fn transpose(call: &Call<'_>) -> Result<Vec<Output>> {
    let groups = groups(call, "group")?;
    let (x, weight) = (spatial(call, 0)?, spatial(call, 1)?);
    let Some(([batches, channels], dims)) = x else { return one(None) };
    let [found, features_per_group] = weight.map_or([Dim::Unknown; 2], |(outer, _)| outer);
    if !channels.agrees(found) || !channels.may_divide_by(groups) {
        return Err(call.wrong(1, format!("{channels} channels, in {groups} groups"), found));
    }
    let features = features_per_group.times(groups)?;
    call.expect_dims(2, &[features])?;
    let unknown = PartialDims::from_elem(Dim::Unknown, dims.len());
    let kernel = weight.map_or(unknown.as_slice(), |(_, kernel)| kernel);
    if kernel.len() != dims.len() {
        return Err(call.wrong(1, format!("{} spatial dimensions", dims.len()), Listed(kernel)));
    }
    let window = Window::read(call, dims.len(), Some((1, kernel)))?;
    let sizes = transposed_sizes(call, &window, dims)?;
    one([batches, features].into_iter().chain(sizes).collect::<PartialDims>())
}

/// The sizes of what a transposed convolution makes of an image.
pub(super) fn transposed_sizes(call: &Call<'_>, window: &Window<'_>, dims: &[Dim]) -> Result<PartialDims> {
    if let Some(stated) = call.int_list("output_shape")?.filter(|stated| !stated.is_empty()) {
        // Some exporters put the batch and the channels before.
        let sizes = stated
            .len()
            .checked_sub(dims.len())
            .filter(|more| [0, 2].contains(more))
            .map(|more| &stated[more..]);
        let sizes = sizes.filter(|sizes| sizes.iter().all(|size| *size >= 0));
        let expected =
            || wrong_attribute("output_shape", format!("{} sizes", dims.len()), format!("{stated:?}"));
        return Ok(sizes.ok_or_else(expected)?.iter().copied().map(Dim::Known).collect());
    }
    let more = Sizes::read(call, "output_padding", dims.len(), 0, 0)?;
    let size = |(axis, dim): (usize, &Dim)| {
        let stride = window.stride(axis);
        if window.padding() == Padding::Same {
            return dim.times(stride);
        }
        let (_, pads) = window.pads(axis)?;
        let size =
            dim.minus(1)?.times(stride)?.plus(window.extent(axis)?)?.plus(more.get(axis))?.minus(pads)?;
        match size {
            Dim::Known(size) if size < 0 => {
                Err(wrong_attribute("pads", "pads that leave something", format!("a size of {size}")))
            }
            size => Ok(size),
        }
    };
    dims.iter().enumerate().map(size).collect()
}

/// Each channel with a kernel of its own, and what the next call needs of this one's end.
fn causal(call: &Call<'_>) -> Result<Vec<Output>> {
    let [batches, channels, _] = call.dims_of_rank(0)?.unwrap_or([Dim::Unknown; 3]);
    let [_, _, kernel] = call.dims_of_rank(1)?.unwrap_or([Dim::Unknown; 3]);
    call.expect_dims(1, &[channels, Dim::Known(1), Dim::Unknown])?;
    if kernel == Dim::Known(0) {
        return Err(call.wrong(1, "a kernel of at least 1", 0));
    }
    call.expect_dims(2, &[channels])?;
    let state = [batches, channels, kernel.minus(1)?];
    call.expect_dims(3, &state)?;
    let mut outputs = same(call)?;
    outputs.push(state.as_slice().into());
    Ok(outputs)
}
