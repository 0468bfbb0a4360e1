//! Convolutions and poolings whose channels are the last dimension, as the engine lays images out.

use super::call::{Call, wrong_attribute};
use super::conv::transposed_sizes;
use super::fact::{Dim, Listed, PartialDims};
use super::output::{Output, one};
use super::table::{LATEST, Rule, rule};
use super::window::{Window, spatial};
use crate::{Dtype, Result};

pub(super) const RULES: &[Rule] = &[
    rule("Conv", 1, LATEST, &[], conv_of_precision).of_domain("oarlock"),
    rule("ConvTranspose", 1, LATEST, &[], conv_transpose).of_domain("oarlock"),
    rule("MaxPool AveragePool", 1, LATEST, &[], pool).of_domain("oarlock"),
];

/// An image.
struct Image<'a> {
    batches: Dim,
    spatial: &'a [Dim],
    channels: Dim,
}

impl<'a> Image<'a> {
    fn read(call: &Call<'a>) -> Result<Option<Self>> {
        let dims = call.dims_of_at_least(0, 3)?;
        Ok(dims.and_then(|dims| match dims {
            [batches, spatial @ .., channels] => {
                Some(Self { batches: *batches, spatial, channels: *channels })
            }
            _ => None,
        }))
    }

    /// The window of a kernel, of which as much as is known is given.
    fn window(&self, call: &Call<'a>, kernel: Option<&[Dim]>) -> Result<Window<'a>> {
        let rank = self.spatial.len();
        let unknown = PartialDims::from_elem(Dim::Unknown, rank);
        let kernel = kernel.unwrap_or(&unknown);
        if kernel.len() != rank {
            return Err(call.wrong(1, format!("{rank} spatial dimensions"), Listed(kernel)));
        }
        Window::read(call, rank, Some((1, kernel)))
    }

    /// The shape of what windows over this make, with so many channels.
    fn under(
        &self,
        call: &Call<'_>,
        window: &Window<'_>,
        channels: Dim,
        may_overhang: bool,
    ) -> Result<PartialDims> {
        let counts = window.count(call, 0, self.spatial, may_overhang)?;
        Ok([self.batches].into_iter().chain(counts).chain([channels]).collect())
    }
}

fn groups(call: &Call<'_>) -> Result<i64> {
    match call.int_or("group", 1)? {
        groups if groups >= 1 => Ok(groups),
        groups => Err(wrong_attribute("group", "at least 1", groups)),
    }
}

/// A convolution whose output may be rounded.
fn conv_of_precision(call: &Call<'_>) -> Result<Vec<Output>> {
    let dtype = match call.text("output_precision", "")? {
        "" => call.input(1)?.dtype,
        "bf16" => Dtype::BF16,
        other => return Err(wrong_attribute("output_precision", "nothing or `bf16`", format!("`{other}`"))),
    };
    Ok(conv(call, 2, 3)?.into_iter().map(|output| output.of_dtype(dtype)).collect())
}

/// A convolution whose bias and residual are at these places.
pub(super) fn conv(call: &Call<'_>, bias: usize, residual: usize) -> Result<Vec<Output>> {
    let groups = groups(call)?;
    let (image, weight) = (Image::read(call)?, spatial(call, 1)?);
    if let Some(([outputs, channels_per_group], _)) = weight {
        if !outputs.may_divide_by(groups) {
            return Err(call.wrong(1, format!("a number of outputs that {groups} groups divide"), outputs));
        }
        if let Some(image) = &image
            && !image.channels.agrees(channels_per_group.times(groups)?)
        {
            let expected = format!("{channels_per_group} channels for each of {groups} groups");
            return Err(call.wrong(0, expected, format!("{} channels", image.channels)));
        }
        call.expect_dims(bias, &[outputs])?;
    }
    let Some(image) = image else { return one(None) };
    let outputs = weight.map_or(Dim::Unknown, |([outputs, _], _)| outputs);
    let window = image.window(call, weight.map(|(_, kernel)| kernel))?;
    let dims = image.under(call, &window, outputs, false)?;
    call.expect_dims(residual, &dims)?;
    one(dims)
}

fn conv_transpose(call: &Call<'_>) -> Result<Vec<Output>> {
    let groups = groups(call)?;
    let (image, weight) = (Image::read(call)?, spatial(call, 1)?);
    let Some(image) = image else { return one(None) };
    let [channels, outputs_per_group] = weight.map_or([Dim::Unknown; 2], |(outer, _)| outer);
    if !image.channels.agrees(channels) || !image.channels.may_divide_by(groups) {
        return Err(call.wrong(1, format!("{} channels, in {groups} groups", image.channels), channels));
    }
    let outputs = outputs_per_group.times(groups)?;
    call.expect_dims(2, &[outputs])?;
    let window = image.window(call, weight.map(|(_, kernel)| kernel))?;
    let sizes = transposed_sizes(call, &window, image.spatial)?;
    let dims: PartialDims = [image.batches].into_iter().chain(sizes).chain([outputs]).collect();
    call.expect_dims(3, &dims)?;
    one(dims)
}

fn pool(call: &Call<'_>) -> Result<Vec<Output>> {
    let Some(image) = Image::read(call)? else { return one(None) };
    let window = Window::read(call, image.spatial.len(), None)?;
    one(image.under(call, &window, image.channels, call.flag("ceil_mode", false)?)?)
}
