//! Convolutions.

use super::context::{InferenceContext, attribute_error};
use super::elementwise::infer_same_shape;
use super::fact::{DisplayDims, PartialDim, PartialDims, dim_product};
use super::output::{InferredOutput, PartialShape, single_output};
use super::rule::{InferenceRule, LATEST, rule};
use super::window::{AxisValues, PaddingMode, SpatialWindow, spatial_dims};
use crate::Result;

pub(super) const RULES: &[InferenceRule] = &[
    rule("Conv", 1, LATEST, &[], |call| single_output(conv_shape(call, 1, 2)?)),
    rule("ConvInteger", 10, LATEST, &[], |call| single_output(conv_shape(call, 1, NO_BIAS)?)),
    rule("QLinearConv", 10, LATEST, &[], |call| single_output(conv_shape(call, 3, 8)?)),
    rule("DeformConv", 19, LATEST, &[], infer_deform_conv),
    rule("ConvTranspose", 1, LATEST, &[], infer_conv_transpose),
    rule("CausalConvWithState", 27, LATEST, &[], infer_causal_conv),
];

/// For ops without a bias: an index that no input has.
const NO_BIAS: usize = usize::MAX;

fn conv_shape(call: &InferenceContext<'_>, weight: usize, bias: usize) -> Result<PartialShape> {
    let groups = group_count(call, "group")?;
    let Some((outer, kernel)) = spatial_dims(call, weight)? else {
        let dims = spatial_dims(call, 0)?;
        return Ok(dims.map(|([batches, _], spatial)| {
            [batches, PartialDim::Unknown]
                .into_iter()
                .chain(spatial.iter().map(|_| PartialDim::Unknown))
                .collect()
        }));
    };
    let [features, channels_per_group] = outer;
    if !features.may_divide_by(groups) {
        return Err(call.input_error(
            weight,
            format!("a number of features that {groups} groups divide"),
            features,
        ));
    }
    call.expect_dims(bias, &[features])?;
    let Some(([batches, channels], dims)) = spatial_dims(call, 0)? else { return Ok(None) };
    if kernel.len() != dims.len() {
        return Err(call.input_error(
            weight,
            format!("{} spatial dimensions", dims.len()),
            DisplayDims(kernel),
        ));
    }
    if !channels.may_equal(channels_per_group.try_mul(groups)?) {
        let expected = format!("{channels_per_group} channels for each of {groups} groups");
        return Err(call.input_error(0, expected, format!("{channels} channels")));
    }
    let window = SpatialWindow::read_window(call, dims.len(), Some((weight, kernel)))?;
    let counts = window.count_windows(call, 0, dims, false)?;
    Ok(Some([batches, features].into_iter().chain(counts).collect()))
}

fn group_count(call: &InferenceContext<'_>, name: &str) -> Result<i64> {
    match call.int_attribute_or(name, 1)? {
        groups if groups >= 1 => Ok(groups),
        groups => Err(attribute_error(name, "at least 1", groups)),
    }
}

fn infer_deform_conv(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let output = conv_shape(call, 1, 3)?;
    call.input(2)?;
    if let (Some(output), Some((_, kernel))) = (&output, spatial_dims(call, 1)?) {
        let places = dim_product(kernel)?.try_mul(group_count(call, "offset_group")?)?;
        let with =
            |channels| -> PartialDims { [output[0], channels].iter().chain(&output[2..]).copied().collect() };
        call.expect_dims(2, &with(places.try_mul(PartialDim::from(kernel.len()))?))?;
        call.expect_dims(4, &with(places))?;
    }
    single_output(output)
}

fn infer_conv_transpose(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let groups = group_count(call, "group")?;
    let (x, weight) = (spatial_dims(call, 0)?, spatial_dims(call, 1)?);
    let Some(([batches, channels], dims)) = x else { return single_output(None) };
    let [found, features_per_group] = weight.map_or([PartialDim::Unknown; 2], |(outer, _)| outer);
    if !channels.may_equal(found) || !channels.may_divide_by(groups) {
        return Err(call.input_error(1, format!("{channels} channels, in {groups} groups"), found));
    }
    let features = features_per_group.try_mul(groups)?;
    call.expect_dims(2, &[features])?;
    let unknown = PartialDims::from_elem(PartialDim::Unknown, dims.len());
    let kernel = weight.map_or(unknown.as_slice(), |(_, kernel)| kernel);
    if kernel.len() != dims.len() {
        return Err(call.input_error(1, format!("{} spatial dimensions", dims.len()), DisplayDims(kernel)));
    }
    let window = SpatialWindow::read_window(call, dims.len(), Some((1, kernel)))?;
    let sizes = transposed_sizes(call, &window, dims)?;
    single_output([batches, features].into_iter().chain(sizes).collect::<PartialDims>())
}

/// The spatial sizes of the output of a transposed convolution.
pub(super) fn transposed_sizes(
    call: &InferenceContext<'_>,
    window: &SpatialWindow<'_>,
    dims: &[PartialDim],
) -> Result<PartialDims> {
    if let Some(stated) = call.ints_attribute("output_shape")?.filter(|stated| !stated.is_empty()) {
        // Some exporters include batch and channels.
        let sizes = stated
            .len()
            .checked_sub(dims.len())
            .filter(|more| [0, 2].contains(more))
            .map(|more| &stated[more..]);
        let sizes = sizes.filter(|sizes| sizes.iter().all(|size| *size >= 0));
        let expected =
            || attribute_error("output_shape", format!("{} sizes", dims.len()), format!("{stated:?}"));
        return Ok(sizes.ok_or_else(expected)?.iter().copied().map(PartialDim::Known).collect());
    }
    let more = AxisValues::read_axis_values(call, "output_padding", dims.len(), 0, 0)?;
    let size = |(axis, dim): (usize, &PartialDim)| {
        let stride = window.stride(axis);
        if window.padding_mode() == PaddingMode::Same {
            return dim.try_mul(stride);
        }
        let (_, pads) = window.axis_pads(axis)?;
        let size = dim
            .try_sub(1)?
            .try_mul(stride)?
            .try_add(window.kernel_extent(axis)?)?
            .try_add(more.get(axis))?
            .try_sub(pads)?;
        match size {
            PartialDim::Known(size) if size < 0 => {
                Err(attribute_error("pads", "pads that leave something", format!("a size of {size}")))
            }
            size => Ok(size),
        }
    };
    dims.iter().enumerate().map(size).collect()
}

/// A depthwise convolution over a sequence. The second output is the tail of the input, from which the next call continues.
fn infer_causal_conv(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let [batches, channels, _] = call.dims_of_rank(0)?.unwrap_or([PartialDim::Unknown; 3]);
    let [_, _, kernel] = call.dims_of_rank(1)?.unwrap_or([PartialDim::Unknown; 3]);
    call.expect_dims(1, &[channels, PartialDim::Known(1), PartialDim::Unknown])?;
    if kernel == PartialDim::Known(0) {
        return Err(call.input_error(1, "a kernel of at least 1", 0));
    }
    call.expect_dims(2, &[channels])?;
    let state = [batches, channels, kernel.try_sub(1)?];
    call.expect_dims(3, &state)?;
    let mut outputs = infer_same_shape(call)?;
    outputs.push(state.as_slice().into());
    Ok(outputs)
}
