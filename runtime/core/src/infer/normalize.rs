//! Ops that bring elements to a common mean and variance, and leave the shape as it is.

use super::call::{Call, axes as dimensions, of_attribute, wrong_attribute};
use super::elementwise::{expect_repeats_to, same};
use super::fact::{Dim, PartialDims};
use super::output::{Output, Shape, one};
use super::table::{LATEST, Rule, rule};
use crate::Result;

pub(super) const RULES: &[Rule] = &[
    rule("BatchNormalization", 1, 13, &[], batch),
    rule("BatchNormalization", 14, LATEST, &[], batch),
    rule("InstanceNormalization", 1, LATEST, &[], instance),
    rule("GroupNormalization", 18, LATEST, &[], group),
    rule("LayerNormalization", 17, LATEST, &[], layer),
    rule("RMSNormalization", 23, LATEST, &[], root_mean_square),
    rule("MeanVarianceNormalization", 9, LATEST, &[], mean_variance),
    rule("LRN", 1, LATEST, &[], local_response),
];

/// The second dimension is that of the channels. A list is one of channels' means.
fn channels(call: &Call<'_>) -> Result<Dim> {
    Ok(match call.dims_of_at_least(0, 1)? {
        Some([_, channels, ..]) => *channels,
        Some(_) => Dim::Known(1),
        None => Dim::Unknown,
    })
}

fn batch(call: &Call<'_>) -> Result<Vec<Output>> {
    let channels = channels(call)?;
    let mut statistics: Shape = Some([channels].as_slice().into());
    // The first versions could have statistics for each place of each channel.
    if call.version() < 9 && !call.flag("spatial", true)? {
        statistics = call.dims(0)?.map(|dims| dims.iter().skip(1).copied().collect());
    }
    for input in 1..5 {
        call.input(input)?;
        statistics.as_ref().map_or(Ok(()), |expected| call.expect_dims(input, expected))?;
    }
    let mut outputs = same(call)?;
    outputs.extend((1..5).map(|_| statistics.clone().into()));
    Ok(outputs)
}

fn instance(call: &Call<'_>) -> Result<Vec<Output>> {
    call.dims_of_at_least(0, 2)?;
    expect_for_each(call, channels(call)?)
}

/// Checks that there is a scale and a bias for each of something.
fn expect_for_each(call: &Call<'_>, count: Dim) -> Result<Vec<Output>> {
    for input in 1..3 {
        call.input(input)?;
        call.expect_dims(input, &[count])?;
    }
    same(call)
}

fn group(call: &Call<'_>) -> Result<Vec<Output>> {
    call.dims_of_at_least(0, 2)?;
    let (groups, channels) = (call.positive("num_groups")?, channels(call)?);
    if !channels.may_divide_by(groups) {
        return Err(wrong_attribute(
            "num_groups",
            format!("a number that divides {channels} channels"),
            groups,
        ));
    }
    expect_for_each(call, if call.version() < 21 { Dim::Known(groups) } else { channels })
}

fn layer(call: &Call<'_>) -> Result<Vec<Output>> {
    call.input(1)?;
    let statistics = match call.dims(0)? {
        Some(dims) => {
            let axis = call.axis("axis", -1, dims.len())?;
            let normalized = Some(PartialDims::from_slice(dims));
            expect_repeats_to(call, 1, &normalized)?;
            expect_repeats_to(call, 2, &normalized)?;
            let mean = |(at, dim): (usize, &Dim)| if at < axis { *dim } else { Dim::Known(1) };
            Some(dims.iter().enumerate().map(mean).collect())
        }
        None => None,
    };
    let stash = call.dtype("stash_type")?.unwrap_or(crate::Dtype::F32);
    let statistics = || Output::from(statistics.clone()).of_dtype(stash);
    Ok(vec![call.shape(0)?.into(), statistics(), statistics()])
}

fn root_mean_square(call: &Call<'_>) -> Result<Vec<Output>> {
    call.input(1)?;
    if let Some(dims) = call.dims(0)? {
        call.axis("axis", -1, dims.len())?;
        expect_repeats_to(call, 1, &Some(dims.into()))?;
    }
    same(call)
}

fn mean_variance(call: &Call<'_>) -> Result<Vec<Output>> {
    if let (Some(dims), axes) = (call.dims(0)?, call.int_list("axes")?) {
        dimensions(axes.unwrap_or(&[0, 2, 3]), dims.len()).map_err(of_attribute("axes"))?;
    }
    same(call)
}

fn local_response(call: &Call<'_>) -> Result<Vec<Output>> {
    call.dims_of_at_least(0, 2)?;
    call.positive("size")?;
    one(call.shape(0)?)
}
