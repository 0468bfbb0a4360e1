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
    /// In memory of its own: numbers, or pairs of bf16 if the convolution was created for these.
    Apart(&'a [f32]),
    /// In the memory of the output: each element is read before it is written, by the same thread.
    InPlace,
}

impl ConvEpilogue<'_> {
    /// A pointer to the bias of a channel and the following ones; null if there is none.
    pub(super) fn bias_pointer(&self, channel: usize) -> *const f32 {
        self.bias.map_or(std::ptr::null(), |bias| bias[channel..].as_ptr())
    }

    /// A pointer to the residual of an element, whose output is at `output`, and of the following ones; null if there is none.
    pub(super) fn residual_pointer(&self, element: usize, output: *mut f32) -> *const f32 {
        match self.residual {
            ResidualSource::None => std::ptr::null(),
            ResidualSource::Apart(residual) => residual[element..].as_ptr(),
            ResidualSource::InPlace => output.cast_const(),
        }
    }

    /// The bounds of the clamp that micro-kernels apply in registers, if the activation is one.
    pub(super) fn clamp_bounds(&self) -> Option<[f32; 2]> {
        self.activation.clip_bounds().filter(|_| !self.activation.is_none())
    }

    /// True if the micro-kernels leave an activation to be applied afterward.
    pub(super) fn has_remaining(&self) -> bool {
        self.activation.clip_bounds().is_none()
    }

    /// Applies the activation that micro-kernels cannot to contiguous results.
    pub(super) fn apply_remaining(&self, isa: Isa, results: &mut [f32]) {
        self.activation.apply_with_isa(isa, results);
    }
}
