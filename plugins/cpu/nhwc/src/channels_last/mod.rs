//! NHWC convolutions and poolings. The engine converts images to NHWC: the channels of a pixel are contiguous, so kernels load,
//! multiply and store vectors of channels in place, whatever the window.
//!
//! A convolution has several algorithms, among which `algorithm` chooses: a matrix product whose left rows are read through
//! pointers (`dense`), products of transformed tiles (`winograd`), separate sums for each channel (`depthwise`), or sums in vectors of
//! pixels where there are few output channels (`pixel_vectors`). A transposed convolution becomes several ordinary ones, or is
//! depthwise as well (`transposed`). If the session permits it, factors are rounded to bf16 (`bf16_rounding`), and products with
//! constant matrices are then computed as convolutions (`bf16_matmul`). NCHW convolutions of narrow floats are converted to NHWC and
//! back (`narrow_conv`). Bias, residual and activation are applied while results are in registers or in L1 (`epilogue`).
//!
//! No sum is split between threads, so results do not depend on the number of threads.

mod algorithm;
mod bf16_images;
mod bf16_matmul;
mod bf16_rounding;
mod conv;
mod dense;
pub(crate) mod depthwise;
mod epilogue;
pub mod geometry;
pub(crate) mod indirection;
mod narrow_conv;
mod pixel_vectors;
mod pool;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod tile;
mod transposed;
mod weight_panels;
pub(crate) mod winograd;

use oarlock_cpu_base::device::Cpu;
use oarlock_sdk::{Kernel, Result, ensure};

pub use bf16_matmul::{Bf16Matmul, Bf16Matrix};
pub use narrow_conv::HalfFloatConv;

pub(crate) fn channels_last_kernels() -> Vec<Kernel<Cpu>> {
    let mut kernels = vec![conv::nhwc_conv_kernel(), transposed::nhwc_conv_transpose_kernel()];
    kernels.extend(pool::nhwc_pool_kernels());
    kernels
}

/// Fails for a call whose shapes differ from those that it was prepared for, since all decisions are made when a call is prepared.
pub fn expect_prepared(is_prepared: bool) -> Result<()> {
    ensure!(
        is_prepared,
        invalid_argument,
        "expected the operands that the call was prepared for, found others"
    );
    Ok(())
}
