//! What follows a convolution while its results are at hand.

use crate::isa::Isa;
use crate::kernels::activation::FusedActivation;

/// A bias for each channel, a residual that has the shape of the output, and an activation, in this order.
#[derive(Clone, Copy)]
pub(super) struct ConvEpilogue<'a> {
    pub(super) bias: Option<&'a [f32]>,
    pub(super) residual: ResidualSource<'a>,
    pub(super) activation: FusedActivation,
}

/// Where the residual is.
#[derive(Clone, Copy)]
pub(super) enum ResidualSource<'a> {
    /// There is none.
    None,
    /// In memory of its own: as numbers, or as pairs of bf16 where a convolution is told of them.
    Apart(&'a [f32]),
    /// Where the output goes: each element is read before it is written, by the same thread.
    InPlace,
}

impl ConvEpilogue<'_> {
    /// The bias from a channel on; null where there is none.
    pub(super) fn bias_pointer(&self, channel: usize) -> *const f32 {
        self.bias.map_or(std::ptr::null(), |bias| bias[channel..].as_ptr())
    }

    /// The residual from an element on, whose output is there; null where there is none.
    pub(super) fn residual_pointer(&self, element: usize, output: *mut f32) -> *const f32 {
        match self.residual {
            ResidualSource::None => std::ptr::null(),
            ResidualSource::Apart(residual) => residual[element..].as_ptr(),
            ResidualSource::InPlace => output.cast_const(),
        }
    }

    /// Where results are cut off while they are in registers, if that is to be done.
    pub(super) fn clamp_bounds(&self) -> Option<[f32; 2]> {
        self.activation.clip_bounds().filter(|_| !self.activation.is_none())
    }

    /// Whether there is something left to do to results that were cut off.
    pub(super) fn has_remaining(&self) -> bool {
        self.activation.clip_bounds().is_none()
    }

    /// Does what is left to results that lie side by side.
    pub(super) fn apply_remaining(&self, isa: Isa, results: &mut [f32]) {
        self.activation.apply_with_isa(isa, results);
    }
}
