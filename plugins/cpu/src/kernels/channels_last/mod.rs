//! Convolutions and poolings of images whose channels are last, which is how the engine lays them out: the channels of
//! a pixel lie side by side, so that vectors of them are loaded, multiplied and stored as they lie, whatever the window.
//!
//! A convolution is computed in one of several ways ([`convolution`] decides): as a product of matrices whose left rows are
//! read through pointers ([`dense`]), as products of transformed tiles ([`winograd`]), or channel by channel ([`depthwise`]).
//! A transposed one is some ordinary ones, or goes channel by channel, too ([`transposed`]). Where that is allowed, what is multiplied is rounded to bf16
//! ([`rounded`]), and products with constant matrices are then computed as convolutions ([`product`]). Convolutions of narrow
//! floats whose channels are first are brought here and back ([`narrow`]).
//! Bias, residual and activation are applied while the results are in registers or in the nearest cache ([`finish`]).
//!
//! No sum is shared between threads, so a result does not depend on how many there are.

mod conv;
mod convolution;
mod dense;
pub(super) mod depthwise;
mod finish;
pub(super) mod geometry;
mod lanes;
mod narrow;
mod pool;
mod product;
mod rounded;
#[cfg(test)]
pub(super) mod tests;
pub(super) mod tile;
mod transposed;
mod weights;
pub(super) mod windows;
mod winograd;

use oarlock_sdk::{Kernel, Result, ensure};

pub(super) use narrow::NarrowConvolution;
pub(super) use product::{RoundedMatrix, RoundedProduct};

use crate::device::Cpu;

pub(crate) fn kernels() -> Vec<Kernel<Cpu>> {
    let mut kernels = vec![conv::kernel(), transposed::kernel()];
    kernels.extend(pool::kernels());
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
