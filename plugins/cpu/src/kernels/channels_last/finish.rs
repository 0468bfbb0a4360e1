//! What follows a convolution while its results are at hand.

use crate::isa::Isa;
use crate::kernels::activation::Activation;

/// A bias for each channel, a residual that has the shape of the output, and an activation, in this order.
#[derive(Clone, Copy)]
pub(super) struct Finish<'a> {
    pub(super) bias: Option<&'a [f32]>,
    pub(super) residual: Residual<'a>,
    pub(super) activation: Activation,
}

/// Where the residual is.
#[derive(Clone, Copy)]
pub(super) enum Residual<'a> {
    /// There is none.
    None,
    /// In memory of its own: as numbers, or as pairs of bf16 where a convolution is told of them.
    Apart(&'a [f32]),
    /// Where the output goes: each element is read before it is written, by the same thread.
    InPlace,
}

impl Finish<'_> {
    /// The bias from a channel on; null where there is none.
    pub(super) fn bias_from(&self, channel: usize) -> *const f32 {
        self.bias.map_or(std::ptr::null(), |bias| bias[channel..].as_ptr())
    }

    /// The residual from an element on, whose output is there; null where there is none.
    pub(super) fn residual_from(&self, element: usize, output: *mut f32) -> *const f32 {
        match self.residual {
            Residual::None => std::ptr::null(),
            Residual::Apart(residual) => residual[element..].as_ptr(),
            Residual::InPlace => output.cast_const(),
        }
    }

    /// Where results are cut off while they are in registers, if that is to be done.
    pub(super) fn bounds(&self) -> Option<[f32; 2]> {
        self.activation.bounds().filter(|_| !self.activation.is_none())
    }

    /// Whether there is something left to do to results that were cut off.
    pub(super) fn is_left(&self) -> bool {
        self.activation.bounds().is_none()
    }

    /// Does what is left to results that lie side by side.
    pub(super) fn apply(&self, isa: Isa, results: &mut [f32]) {
        self.activation.apply(isa, results);
    }
}
