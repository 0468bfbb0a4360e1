//! NHWC convolutions and poolings, which the engine uses for images.

use super::context::{InferenceContext, attribute_error};
use super::conv::transposed_sizes;
use super::fact::{DisplayDims, PartialDim, PartialDims};
use super::output::{InferredOutput, single_output};
use super::rule::{InferenceRule, LATEST, rule};
use super::window::{SpatialWindow, spatial_dims};
use crate::{Dtype, Result};

pub(super) const RULES: &[InferenceRule] = &[
    rule("Conv", 1, LATEST, &[], infer_nhwc_conv).in_oarlock_domain(),
    rule("ConvTranspose", 1, LATEST, &[], infer_nhwc_conv_transpose).in_oarlock_domain(),
    rule("MaxPool AveragePool", 1, LATEST, &[], infer_nhwc_pool).in_oarlock_domain(),
];

/// The dimensions of an NHWC input with any number of spatial dimensions.
struct ImageInput<'a> {
    batches: PartialDim,
    spatial: &'a [PartialDim],
    channels: PartialDim,
}

impl<'a> ImageInput<'a> {
    fn read_image(call: &InferenceContext<'a>) -> Result<Option<Self>> {
        let dims = call.dims_of_at_least(0, 3)?;
        Ok(dims.and_then(|dims| match dims {
            [batches, spatial @ .., channels] => {
                Some(Self { batches: *batches, spatial, channels: *channels })
            }
            _ => None,
        }))
    }

    /// `kernel` contains the spatial sizes of the weight, if they are known.
    fn spatial_window(
        &self,
        call: &InferenceContext<'a>,
        kernel: Option<&[PartialDim]>,
    ) -> Result<SpatialWindow<'a>> {
        let rank = self.spatial.len();
        let unknown = PartialDims::from_elem(PartialDim::Unknown, rank);
        let kernel = kernel.unwrap_or(&unknown);
        if kernel.len() != rank {
            return Err(call.input_error(1, format!("{rank} spatial dimensions"), DisplayDims(kernel)));
        }
        SpatialWindow::read_window(call, rank, Some((1, kernel)))
    }

    /// The shape of an output with one element for each window and channel.
    fn output_dims(
        &self,
        call: &InferenceContext<'_>,
        window: &SpatialWindow<'_>,
        channels: PartialDim,
        may_overhang: bool,
    ) -> Result<PartialDims> {
        let counts = window.count_windows(call, 0, self.spatial, may_overhang)?;
        Ok([self.batches].into_iter().chain(counts).chain([channels]).collect())
    }
}

fn group_count(call: &InferenceContext<'_>) -> Result<i64> {
    match call.int_attribute_or("group", 1)? {
        groups if groups >= 1 => Ok(groups),
        groups => Err(attribute_error("group", "at least 1", groups)),
    }
}

fn infer_nhwc_conv(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let dtype = match call.string_attribute("output_precision", "")? {
        "" => call.input(1)?.dtype,
        "bf16" => Dtype::BF16,
        other => return Err(attribute_error("output_precision", "nothing or `bf16`", format!("`{other}`"))),
    };
    Ok(infer_biased_conv(call, 2, 3)?.into_iter().map(|output| output.with_dtype(dtype)).collect())
}

/// `bias` and `residual` are the indices of these inputs.
pub(super) fn infer_biased_conv(
    call: &InferenceContext<'_>,
    bias: usize,
    residual: usize,
) -> Result<Vec<InferredOutput>> {
    let groups = group_count(call)?;
    let (image, weight) = (ImageInput::read_image(call)?, spatial_dims(call, 1)?);
    if let Some(([outputs, channels_per_group], _)) = weight {
        if !outputs.may_divide_by(groups) {
            return Err(call.input_error(
                1,
                format!("a number of outputs that {groups} groups divide"),
                outputs,
            ));
        }
        if let Some(image) = &image
            && !image.channels.may_equal(channels_per_group.try_mul(groups)?)
        {
            let expected = format!("{channels_per_group} channels for each of {groups} groups");
            return Err(call.input_error(0, expected, format!("{} channels", image.channels)));
        }
        call.expect_dims(bias, &[outputs])?;
    }
    let Some(image) = image else { return single_output(None) };
    let outputs = weight.map_or(PartialDim::Unknown, |([outputs, _], _)| outputs);
    let window = image.spatial_window(call, weight.map(|(_, kernel)| kernel))?;
    let dims = image.output_dims(call, &window, outputs, false)?;
    call.expect_dims(residual, &dims)?;
    single_output(dims)
}

fn infer_nhwc_conv_transpose(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let groups = group_count(call)?;
    let (image, weight) = (ImageInput::read_image(call)?, spatial_dims(call, 1)?);
    let Some(image) = image else { return single_output(None) };
    let [channels, outputs_per_group] = weight.map_or([PartialDim::Unknown; 2], |(outer, _)| outer);
    if !image.channels.may_equal(channels) || !image.channels.may_divide_by(groups) {
        return Err(call.input_error(
            1,
            format!("{} channels, in {groups} groups", image.channels),
            channels,
        ));
    }
    let outputs = outputs_per_group.try_mul(groups)?;
    call.expect_dims(2, &[outputs])?;
    let window = image.spatial_window(call, weight.map(|(_, kernel)| kernel))?;
    let sizes = transposed_sizes(call, &window, image.spatial)?;
    let dims: PartialDims = [image.batches].into_iter().chain(sizes).chain([outputs]).collect();
    call.expect_dims(3, &dims)?;
    single_output(dims)
}

fn infer_nhwc_pool(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let Some(image) = ImageInput::read_image(call)? else { return single_output(None) };
    let window = SpatialWindow::read_window(call, image.spatial.len(), None)?;
    single_output(image.output_dims(
        call,
        &window,
        image.channels,
        call.flag_attribute("ceil_mode", false)?,
    )?)
}
