//! The epilogue of a convolution, which runs while its results are in registers or in cache.

use oarlock_cpu_base::fused_activation::FusedActivation;
use oarlock_cpu_base::isa::Isa;

/// A bias per channel, a residual with the shape of the output, and an activation, in this order.
#[derive(Clone, Copy)]
pub(super) struct ConvEpilogue<'a> {
    pub(super) bias: Option<&'a [f32]>,
    pub(super) residual: ResidualSource<'a>,
    pub(super) activation: FusedActivation,
}

#[derive(Clone, Copy)]
pub(super) enum ResidualSource<'a> {
    None,
    /// In other memory than the output: as numbers, or as pairs of bf16 if the convolution was created for them.
    Apart(&'a [f32]),
    /// In the memory of the output: each element is read before it is written, by the same thread.
    InPlace,
}

impl ConvEpilogue<'_> {
    /// The bias from a channel on; null if there is none.
    pub(super) fn bias_pointer(&self, channel: usize) -> *const f32 {
        self.bias.map_or(std::ptr::null(), |bias| bias[channel..].as_ptr())
    }

    /// The residual from an element on, whose output is at `output`; null if there is none.
    pub(super) fn residual_pointer(&self, element: usize, output: *mut f32) -> *const f32 {
        match self.residual {
            ResidualSource::None => std::ptr::null(),
            ResidualSource::Apart(residual) => residual[element..].as_ptr(),
            ResidualSource::InPlace => output.cast_const(),
        }
    }

    /// Bounds of the clamp that micro-kernels apply in registers, if any.
    pub(super) fn clamp_bounds(&self) -> Option<[f32; 2]> {
        self.activation.clip_bounds().filter(|_| !self.activation.is_none())
    }

    /// True if an activation is left to apply after the clamp.
    pub(super) fn has_remaining(&self) -> bool {
        self.activation.clip_bounds().is_none()
    }

    /// Applies what micro-kernels could not to contiguous results.
    pub(super) fn apply_remaining(&self, isa: Isa, results: &mut [f32]) {
        self.activation.apply_with_isa(isa, results);
    }
}
