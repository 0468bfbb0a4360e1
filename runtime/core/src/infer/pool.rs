//! Pooling: one output element for each window of a channel.

use super::context::{InferenceContext, attribute_error};
use super::fact::{PartialDim, PartialDims};
use super::output::{InferredOutput, PartialShape, single_output, unknown_dims};
use super::rule::{InferenceRule, LATEST, rule};
use super::window::{SpatialWindow, spatial_dims};
use crate::Result;

pub(super) const RULES: &[InferenceRule] = &[
    rule("AveragePool LpPool", 1, LATEST, &[], |call| single_output(pool_shape(call)?)),
    rule("MaxPool", 1, LATEST, &[], |call| {
        pool_shape(call).map(|dims| vec![dims.clone().into(), dims.into()])
    }),
    rule("MaxUnpool", 9, LATEST, &[2], infer_max_unpool),
    rule("GlobalAveragePool GlobalLpPool GlobalMaxPool", 1, LATEST, &[], infer_global_pool),
    rule("MaxRoiPool", 1, LATEST, &[], infer_roi_pool),
    rule("RoiAlign", 10, LATEST, &[], infer_roi_align),
];

fn pool_shape(call: &InferenceContext<'_>) -> Result<PartialShape> {
    let Some((outer, dims)) = spatial_dims(call, 0)? else { return Ok(None) };
    let window = SpatialWindow::read_window(call, dims.len(), None)?;
    let counts = window.count_windows(call, 0, dims, call.flag_attribute("ceil_mode", false)?)?;
    Ok(Some(outer.into_iter().chain(counts).collect()))
}

fn infer_max_unpool(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let Some((outer, dims)) = spatial_dims(call, 0)? else { return single_output(None) };
    call.input(1)?;
    call.expect_dims(1, &[&outer[..], dims].concat())?;
    if call.optional_input(2).is_some() {
        call.expect_dims(2, &[PartialDim::from(dims.len() + 2)])?;
        return single_output(match call.input_ints(2)? {
            Some(sizes) if sizes.len() != dims.len() + 2 || sizes.iter().any(|size| *size < 0) => {
                let expected = format!("{} sizes of at least 0", dims.len() + 2);
                return Err(call.input_error(2, expected, format!("{sizes:?}")));
            }
            Some(sizes) => sizes.into_iter().map(PartialDim::Known).collect(),
            None => unknown_dims(dims.len() + 2),
        });
    }
    let window = SpatialWindow::read_window(call, dims.len(), None)?;
    let mut unpooled = PartialDims::from_slice(&outer);
    for (axis, dim) in dims.iter().enumerate() {
        let (_, pads) = window.axis_pads(axis)?;
        let size = dim
            .try_sub(1)?
            .try_mul(window.stride(axis))?
            .try_add(window.kernel_extent(axis)?)?
            .try_sub(pads)?;
        if size.known_size().is_some_and(|size| size < 0) {
            return Err(attribute_error("pads", "pads that leave something", format!("a size of {size}")));
        }
        unpooled.push(size);
    }
    single_output(unpooled)
}

fn infer_global_pool(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let Some(mut dims) = call.dims_of_at_least(0, 2)?.map(PartialDims::from_slice) else {
        return single_output(None);
    };
    dims.iter_mut().skip(2).for_each(|dim| *dim = PartialDim::Known(1));
    single_output(dims)
}

fn infer_roi_pool(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let size = call.ints_attribute("pooled_shape")?;
    let Some([height, width]) = size.and_then(|size| <[i64; 2]>::try_from(size).ok()) else {
        return Err(attribute_error("pooled_shape", "a height and a width", format!("{size:?}")));
    };
    if height < 1 || width < 1 {
        return Err(attribute_error("pooled_shape", "sizes of at least 1", format!("{height} and {width}")));
    }
    single_output(roi_dims(call, 5, height, width)?.as_slice())
}

fn infer_roi_align(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let size = |name| match call.int_attribute_or(name, 1)? {
        size if size >= 1 => Ok(size),
        size => Err(attribute_error(name, "at least 1", size)),
    };
    let found = roi_dims(call, 4, size("output_height")?, size("output_width")?)?;
    call.input(2)?;
    call.expect_dims(2, &found[..1])?;
    single_output(found.as_slice())
}

fn roi_dims(call: &InferenceContext<'_>, corners: i64, height: i64, width: i64) -> Result<[PartialDim; 4]> {
    let [_, channels, _, _] = call.dims_of_rank(0)?.unwrap_or([PartialDim::Unknown; 4]);
    let [count, found] = call.dims_of_rank(1)?.unwrap_or([PartialDim::Unknown; 2]);
    if !found.may_equal(PartialDim::Known(corners)) {
        return Err(call.input_error(1, format!("{corners} numbers for each region"), found));
    }
    Ok([count, channels, PartialDim::Known(height), PartialDim::Known(width)])
}
