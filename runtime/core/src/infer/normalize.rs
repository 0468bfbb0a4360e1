//! Normalization: elements get a common mean and variance; the shape does not change.

use super::context::{InferenceContext, attribute_error, blame_attribute, resolve_axes as dimensions};
use super::elementwise::{expect_broadcasts_to, infer_same_shape};
use super::fact::{PartialDim, PartialDims};
use super::output::{InferredOutput, PartialShape, single_output};
use super::rule::{InferenceRule, LATEST, rule};
use crate::Result;

pub(super) const RULES: &[InferenceRule] = &[
    rule("BatchNormalization", 1, 13, &[], infer_batch_norm),
    rule("BatchNormalization", 14, LATEST, &[], infer_batch_norm),
    rule("InstanceNormalization", 1, LATEST, &[], infer_instance_norm),
    rule("GroupNormalization", 18, LATEST, &[], infer_group_norm),
    rule("LayerNormalization", 17, LATEST, &[], infer_layer_norm),
    rule("RMSNormalization", 23, LATEST, &[], infer_rms_norm),
    rule("MeanVarianceNormalization", 9, LATEST, &[], infer_mean_variance_norm),
    rule("LRN", 1, LATEST, &[], infer_local_response_norm),
];

/// The size of the second dimension. An input of rank 1 has a single channel.
fn channel_count(call: &InferenceContext<'_>) -> Result<PartialDim> {
    Ok(match call.dims_of_at_least(0, 1)? {
        Some([_, channels, ..]) => *channels,
        Some(_) => PartialDim::Known(1),
        None => PartialDim::Unknown,
    })
}

fn infer_batch_norm(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let channels = channel_count(call)?;
    let mut statistics: PartialShape = Some([channels].as_slice().into());
    // The first versions permit statistics per element instead of per channel.
    if call.version() < 9 && !call.flag_attribute("spatial", true)? {
        statistics = call.input_dims(0)?.map(|dims| dims.iter().skip(1).copied().collect());
    }
    for input in 1..5 {
        call.input(input)?;
        statistics.as_ref().map_or(Ok(()), |expected| call.expect_dims(input, expected))?;
    }
    let mut outputs = infer_same_shape(call)?;
    outputs.extend((1..5).map(|_| statistics.clone().into()));
    Ok(outputs)
}

fn infer_instance_norm(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    call.dims_of_at_least(0, 2)?;
    expect_scale_and_bias(call, channel_count(call)?)
}

fn expect_scale_and_bias(call: &InferenceContext<'_>, count: PartialDim) -> Result<Vec<InferredOutput>> {
    for input in 1..3 {
        call.input(input)?;
        call.expect_dims(input, &[count])?;
    }
    infer_same_shape(call)
}

fn infer_group_norm(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    call.dims_of_at_least(0, 2)?;
    let (groups, channels) = (call.positive_attribute("num_groups")?, channel_count(call)?);
    if !channels.may_divide_by(groups) {
        return Err(attribute_error(
            "num_groups",
            format!("a number that divides {channels} channels"),
            groups,
        ));
    }
    expect_scale_and_bias(call, if call.version() < 21 { PartialDim::Known(groups) } else { channels })
}

fn infer_layer_norm(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    call.input(1)?;
    let statistics = match call.input_dims(0)? {
        Some(dims) => {
            let axis = call.axis_attribute("axis", -1, dims.len())?;
            let normalized = Some(PartialDims::from_slice(dims));
            expect_broadcasts_to(call, 1, &normalized)?;
            expect_broadcasts_to(call, 2, &normalized)?;
            let mean = |(at, dim): (usize, &PartialDim)| if at < axis { *dim } else { PartialDim::Known(1) };
            Some(dims.iter().enumerate().map(mean).collect())
        }
        None => None,
    };
    let stash = call.dtype_attribute("stash_type")?.unwrap_or(crate::Dtype::F32);
    let statistics = || InferredOutput::from(statistics.clone()).with_dtype(stash);
    Ok(vec![call.input_shape(0)?.into(), statistics(), statistics()])
}

fn infer_rms_norm(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    call.input(1)?;
    if let Some(dims) = call.input_dims(0)? {
        call.axis_attribute("axis", -1, dims.len())?;
        expect_broadcasts_to(call, 1, &Some(dims.into()))?;
    }
    infer_same_shape(call)
}

fn infer_mean_variance_norm(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    if let (Some(dims), axes) = (call.input_dims(0)?, call.ints_attribute("axes")?) {
        dimensions(axes.unwrap_or(&[0, 2, 3]), dims.len()).map_err(blame_attribute("axes"))?;
    }
    infer_same_shape(call)
}

fn infer_local_response_norm(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    call.dims_of_at_least(0, 2)?;
    call.positive_attribute("size")?;
    single_output(call.input_shape(0)?)
}
