//! Convolutions, products and poolings of eight-bit numbers, of which each stands for a real one: `scale · (number − zero)`.
//!
//! Products are summed exactly in 32 bits, by instructions that multiply and add four pairs of bytes at once where the
//! machine has them ([`simd`]). A sum becomes eight bits again while it is in the nearest cache ([`requantize`]): times a
//! factor, plus what is to be added, rounded, within bounds, so that activations that only cut off cost nothing.
//!
//! Images have their channels last, as for [`super::channels_last`], and a convolution is computed as it is there: as a
//! product of matrices whose left rows are read through pointers ([`dense`]), or channel by channel ([`interleaved`], or
//! [`depthwise`] on machines without the instructions for it). A product of matrices is a convolution whose pixels are the
//! rows.
//!
//! No sum is shared between threads, so a result does not depend on how many there are.

mod conv;
mod dense;
mod depthwise;
pub(super) mod dequantized;
pub(super) mod integer_sums;
mod interleaved;
pub(super) mod layer;
mod matmul;
mod pool;
pub(super) mod quantize_linear;
pub(super) mod quantized_panels;
mod requantize;
mod simd;
#[cfg(test)]
mod tests;
mod tile;
mod window_rows;
mod window_sums;

use oarlock_sdk::Kernel;

use crate::device::Cpu;

pub(crate) fn quantized_kernels() -> Vec<Kernel<Cpu>> {
    let mut kernels = vec![
        conv::quantized_conv_kernel(),
        matmul::quantized_matmul_kernel(),
        pool::quantized_max_pool_kernel(),
        quantize_linear::quantize_bytes_kernel(),
    ];
    kernels.extend(dequantized::dequantized_kernels());
    kernels
}
