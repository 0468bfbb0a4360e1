//! Sliding windows, shared by convolutions and poolings.

use super::context::{InferenceContext, attribute_error};
use super::fact::{DisplayDims, PartialDim, PartialDims};
use crate::Result;

/// The attributes that place windows on the spatial dimensions.
pub(super) struct SpatialWindow<'a> {
    kernel: PartialDims,
    strides: AxisValues<'a>,
    dilations: AxisValues<'a>,
    pads: AxisValues<'a>,
    padding: PaddingMode,
}

/// What determines the padding.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum PaddingMode {
    /// The attribute `pads`.
    Stated,
    /// The output size, which is the input size divided by the stride, rounded up.
    Same,
    /// There is no padding.
    Valid,
}

/// A value for each axis, or a default for all.
#[derive(Clone, Copy)]
pub(super) struct AxisValues<'a> {
    stated: Option<&'a [i64]>,
    otherwise: i64,
}

impl<'a> AxisValues<'a> {
    /// Reads an attribute that must have `count` values of at least `least`.
    pub(super) fn read_axis_values(
        call: &InferenceContext<'a>,
        name: &str,
        count: usize,
        least: i64,
        otherwise: i64,
    ) -> Result<Self> {
        let stated = call.ints_attribute(name)?.filter(|stated| !stated.is_empty() || count == 0);
        if let Some(found) =
            stated.filter(|sizes| sizes.len() != count || sizes.iter().any(|size| *size < least))
        {
            let expected = format!("{count} numbers of at least {least}");
            return Err(attribute_error(name, expected, format!("{found:?}")));
        }
        Ok(Self { stated, otherwise })
    }

    pub(super) fn get(self, axis: usize) -> i64 {
        self.stated.and_then(|stated| stated.get(axis)).copied().unwrap_or(self.otherwise)
    }
}

/// Splits the dimensions of an NCHW input into batch and channels, and the spatial ones.
pub(super) fn spatial_dims<'a>(
    call: &InferenceContext<'a>,
    input: usize,
) -> Result<Option<([PartialDim; 2], &'a [PartialDim])>> {
    let dims = call.dims_of_at_least(input, 3)?;
    Ok(dims.and_then(<[PartialDim]>::split_first_chunk::<2>).map(|(outer, spatial)| (*outer, spatial)))
}

impl<'a> SpatialWindow<'a> {
    /// Reads the attributes. The kernel sizes come from an attribute, from the weight, or from both, which must then agree.
    pub(super) fn read_window(
        call: &InferenceContext<'a>,
        axes: usize,
        weight: Option<(usize, &[PartialDim])>,
    ) -> Result<Self> {
        let stated = call.ints_attribute("kernel_shape")?.filter(|stated| !stated.is_empty());
        let kernel: PartialDims = match (stated, weight) {
            (Some(stated), _) if stated.len() != axes || stated.iter().any(|size| *size < 1) => {
                let expected = format!("{axes} numbers of at least 1");
                return Err(attribute_error("kernel_shape", expected, format!("{stated:?}")));
            }
            (Some(stated), _) => stated.iter().copied().map(PartialDim::Known).collect(),
            (None, Some((_, weight))) => weight.into(),
            (None, None) => return Err(attribute_error("kernel_shape", format!("{axes} numbers"), "none")),
        };
        if let Some((input, weight)) = weight {
            if !(weight.len() == kernel.len() && weight.iter().zip(&kernel).all(|(a, b)| a.may_equal(*b))) {
                return Err(call.input_error(
                    input,
                    format!("the spatial sizes {}", DisplayDims(&kernel)),
                    DisplayDims(weight),
                ));
            }
            if weight.contains(&PartialDim::Known(0)) {
                return Err(call.input_error(input, "spatial sizes of at least 1", DisplayDims(weight)));
            }
        }
        Ok(Self {
            kernel,
            strides: AxisValues::read_axis_values(call, "strides", axes, 1, 1)?,
            dilations: AxisValues::read_axis_values(call, "dilations", axes, 1, 1)?,
            pads: AxisValues::read_axis_values(call, "pads", axes * 2, 0, 0)?,
            padding: PaddingMode::read_padding(call)?,
        })
    }

    pub(super) fn padding_mode(&self) -> PaddingMode {
        self.padding
    }

    pub(super) fn stride(&self, axis: usize) -> i64 {
        self.strides.get(axis)
    }

    /// The number of elements from the first to the last of a window, dilation included.
    pub(super) fn kernel_extent(&self, axis: usize) -> Result<PartialDim> {
        self.kernel[axis].try_sub(1)?.try_mul(self.dilations.get(axis))?.try_add(1)
    }

    /// The padding before an axis, and the total of both sides.
    pub(super) fn axis_pads(&self, axis: usize) -> Result<(PartialDim, PartialDim)> {
        if self.padding == PaddingMode::Valid {
            return Ok((PartialDim::Known(0), PartialDim::Known(0)));
        }
        let before = PartialDim::Known(self.pads.get(axis));
        Ok((before, before.try_add(self.pads.get(axis + self.kernel.len()))?))
    }

    /// The number of window positions along each axis.
    pub(super) fn count_windows(
        &self,
        call: &InferenceContext<'_>,
        input: usize,
        dims: &[PartialDim],
        may_overhang: bool,
    ) -> Result<PartialDims> {
        let count =
            |(axis, dim): (usize, &PartialDim)| self.count_along_axis(call, input, axis, *dim, may_overhang);
        dims.iter().enumerate().map(count).collect()
    }

    fn count_along_axis(
        &self,
        call: &InferenceContext<'_>,
        input: usize,
        axis: usize,
        dim: PartialDim,
        may_overhang: bool,
    ) -> Result<PartialDim> {
        let stride = self.stride(axis);
        if self.padding == PaddingMode::Same {
            return dim.try_add(stride - 1)?.try_div(stride);
        }
        let (before, added) = self.axis_pads(axis)?;
        let (padded, extent) = (dim.try_add(added)?, self.kernel_extent(axis)?);
        let room = padded.try_sub(extent)?;
        // With `may_overhang`, even the first window may extend past the end.
        let least = if may_overhang { 1 - stride } else { 0 };
        if room.known_size().is_some_and(|room| room < least) {
            let expected = format!("at least {extent} in spatial dimension {axis}, pads included");
            return Err(call.input_error(input, expected, padded));
        }
        let mut moves = room.try_div(stride)?;
        if may_overhang {
            moves = room.try_add(stride - 1)?.try_div(stride)?;
            // The last window must start inside the input or the padding before it.
            if let (PartialDim::Known(start), PartialDim::Known(end)) =
                (moves.try_mul(stride)?, dim.try_add(before)?)
                && start >= end
            {
                moves = moves.try_sub(1)?;
            }
        }
        moves.try_add(1)
    }
}

impl PaddingMode {
    fn read_padding(call: &InferenceContext<'_>) -> Result<Self> {
        match call.string_attribute("auto_pad", "NOTSET")? {
            "NOTSET" | "" => Ok(Self::Stated),
            "SAME_UPPER" | "SAME_LOWER" => Ok(Self::Same),
            "VALID" => Ok(Self::Valid),
            other => Err(attribute_error(
                "auto_pad",
                "NOTSET, SAME_UPPER, SAME_LOWER or VALID",
                format!("`{other}`"),
            )),
        }
    }
}
