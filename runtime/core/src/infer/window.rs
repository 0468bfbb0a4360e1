//! Windows that move over the spatial dimensions of a tensor: what convolutions and poolings have in common.

use super::call::{Call, wrong_attribute};
use super::fact::{Dim, Listed, PartialDims};
use crate::Result;

/// How windows lie on the spatial dimensions.
pub(super) struct Window<'a> {
    kernel: PartialDims,
    strides: Sizes<'a>,
    dilations: Sizes<'a>,
    pads: Sizes<'a>,
    padding: Padding,
}

/// Who says how much is added around the input.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Padding {
    /// The attribute `pads`.
    Stated,
    /// The sizes of the output, which are those of the input divided by the strides.
    Same,
    /// Nobody: there is none.
    Valid,
}

/// A number for each axis, or the same one for all where none are given.
#[derive(Clone, Copy)]
pub(super) struct Sizes<'a> {
    stated: Option<&'a [i64]>,
    otherwise: i64,
}

impl<'a> Sizes<'a> {
    /// Reads an attribute, which has a number of at least `least` for each of `count` axes.
    pub(super) fn read(
        call: &Call<'a>,
        name: &str,
        count: usize,
        least: i64,
        otherwise: i64,
    ) -> Result<Self> {
        let stated = call.int_list(name)?.filter(|stated| !stated.is_empty() || count == 0);
        if let Some(found) =
            stated.filter(|sizes| sizes.len() != count || sizes.iter().any(|size| *size < least))
        {
            let expected = format!("{count} numbers of at least {least}");
            return Err(wrong_attribute(name, expected, format!("{found:?}")));
        }
        Ok(Self { stated, otherwise })
    }

    pub(super) fn get(self, axis: usize) -> i64 {
        self.stated.and_then(|stated| stated.get(axis)).copied().unwrap_or(self.otherwise)
    }
}

/// The spatial dimensions of an input that begins with a batch and channels, after those two.
pub(super) fn spatial<'a>(call: &Call<'a>, input: usize) -> Result<Option<([Dim; 2], &'a [Dim])>> {
    let dims = call.dims_of_at_least(input, 3)?;
    Ok(dims.and_then(<[Dim]>::split_first_chunk::<2>).map(|(outer, spatial)| (*outer, spatial)))
}

impl<'a> Window<'a> {
    /// Reads the attributes. The kernel's sizes are an attribute, those of the weight, or both.
    pub(super) fn read(call: &Call<'a>, axes: usize, weight: Option<(usize, &[Dim])>) -> Result<Self> {
        let stated = call.int_list("kernel_shape")?.filter(|stated| !stated.is_empty());
        let kernel: PartialDims = match (stated, weight) {
            (Some(stated), _) if stated.len() != axes || stated.iter().any(|size| *size < 1) => {
                let expected = format!("{axes} numbers of at least 1");
                return Err(wrong_attribute("kernel_shape", expected, format!("{stated:?}")));
            }
            (Some(stated), _) => stated.iter().copied().map(Dim::Known).collect(),
            (None, Some((_, weight))) => weight.into(),
            (None, None) => return Err(wrong_attribute("kernel_shape", format!("{axes} numbers"), "none")),
        };
        if let Some((input, weight)) = weight {
            if !(weight.len() == kernel.len() && weight.iter().zip(&kernel).all(|(a, b)| a.agrees(*b))) {
                return Err(call.wrong(
                    input,
                    format!("the spatial sizes {}", Listed(&kernel)),
                    Listed(weight),
                ));
            }
            if weight.contains(&Dim::Known(0)) {
                return Err(call.wrong(input, "spatial sizes of at least 1", Listed(weight)));
            }
        }
        Ok(Self {
            kernel,
            strides: Sizes::read(call, "strides", axes, 1, 1)?,
            dilations: Sizes::read(call, "dilations", axes, 1, 1)?,
            pads: Sizes::read(call, "pads", axes * 2, 0, 0)?,
            padding: Padding::read(call)?,
        })
    }

    pub(super) fn padding(&self) -> Padding {
        self.padding
    }

    pub(super) fn stride(&self, axis: usize) -> i64 {
        self.strides.get(axis)
    }

    /// How many elements a window reaches over.
    pub(super) fn extent(&self, axis: usize) -> Result<Dim> {
        self.kernel[axis].minus(1)?.times(self.dilations.get(axis))?.plus(1)
    }

    /// What is added before an axis, and what is added in all.
    pub(super) fn pads(&self, axis: usize) -> Result<(Dim, Dim)> {
        if self.padding == Padding::Valid {
            return Ok((Dim::Known(0), Dim::Known(0)));
        }
        let before = Dim::Known(self.pads.get(axis));
        Ok((before, before.plus(self.pads.get(axis + self.kernel.len()))?))
    }

    /// How many windows there are along each axis of an input.
    pub(super) fn count(
        &self,
        call: &Call<'_>,
        input: usize,
        dims: &[Dim],
        may_overhang: bool,
    ) -> Result<PartialDims> {
        let count = |(axis, dim): (usize, &Dim)| self.count_along(call, input, axis, *dim, may_overhang);
        dims.iter().enumerate().map(count).collect()
    }

    fn count_along(
        &self,
        call: &Call<'_>,
        input: usize,
        axis: usize,
        dim: Dim,
        may_overhang: bool,
    ) -> Result<Dim> {
        let stride = self.stride(axis);
        if self.padding == Padding::Same {
            return dim.plus(stride - 1)?.over(stride);
        }
        let (before, added) = self.pads(axis)?;
        let (padded, extent) = (dim.plus(added)?, self.extent(axis)?);
        let room = padded.minus(extent)?;
        // A window that may reach beyond the end may do so from the first one on.
        let least = if may_overhang { 1 - stride } else { 0 };
        if room.known().is_some_and(|room| room < least) {
            let expected = format!("at least {extent} in spatial dimension {axis}, pads included");
            return Err(call.wrong(input, expected, padded));
        }
        let mut moves = room.over(stride)?;
        if may_overhang {
            moves = room.plus(stride - 1)?.over(stride)?;
            // The last window begins inside the input or in what is before it.
            if let (Dim::Known(start), Dim::Known(end)) = (moves.times(stride)?, dim.plus(before)?)
                && start >= end
            {
                moves = moves.minus(1)?;
            }
        }
        moves.plus(1)
    }
}

impl Padding {
    fn read(call: &Call<'_>) -> Result<Self> {
        match call.text("auto_pad", "NOTSET")? {
            "NOTSET" | "" => Ok(Self::Stated),
            "SAME_UPPER" | "SAME_LOWER" => Ok(Self::Same),
            "VALID" => Ok(Self::Valid),
            other => Err(wrong_attribute(
                "auto_pad",
                "NOTSET, SAME_UPPER, SAME_LOWER or VALID",
                format!("`{other}`"),
            )),
        }
    }
}
