//! Convolutions and poolings of images whose channels are last, which is how the engine lays them out: the channels of
//! a pixel lie side by side, so that vectors of them are loaded, multiplied and stored as they lie, whatever the window.
//!
//! A convolution is computed in one of several ways ([`algorithm`] decides): as a product of matrices whose left rows are
//! read through pointers ([`dense`]), as products of transformed tiles ([`winograd`]), or channel by channel ([`depthwise`]).
//! A transposed one is some ordinary ones, or goes channel by channel, too ([`transposed`]). Where that is allowed, what is multiplied is rounded to bf16
//! ([`bf16_rounding`]), and products with constant matrices are then computed as convolutions ([`product`]). Convolutions of narrow
//! floats whose channels are first are brought here and back ([`narrow`]).
//! Bias, residual and activation are applied while the results are in registers or in the nearest cache ([`epilogue`]).
//!
//! No sum is shared between threads, so a result does not depend on how many there are.

mod algorithm;
mod bf16_matmul;
mod bf16_rounding;
mod conv;
mod dense;
pub(super) mod depthwise;
mod epilogue;
pub(super) mod geometry;
pub(super) mod indirection;
mod narrow_conv;
mod pool;
mod simd;
#[cfg(test)]
pub(super) mod tests;
pub(super) mod tile;
mod transposed;
mod weight_panels;
mod winograd;

use oarlock_sdk::{Kernel, Result, ensure};

pub(super) use bf16_matmul::{Bf16Matmul, Bf16Matrix};
pub(super) use narrow_conv::NarrowConvolution;

use crate::device::Cpu;

pub(crate) fn channels_last_kernels() -> Vec<Kernel<Cpu>> {
    let mut kernels = vec![conv::nhwc_conv_kernel(), transposed::nhwc_conv_transpose_kernel()];
    kernels.extend(pool::nhwc_pool_kernels());
    kernels
}

/// Everything is decided when a call is prepared, for the shapes it has then.
pub(super) fn expect_prepared(is_prepared: bool) -> Result<()> {
    ensure!(
        is_prepared,
        invalid_argument,
        "expected the operands that the call was prepared for, found others"
    );
    Ok(())
}
