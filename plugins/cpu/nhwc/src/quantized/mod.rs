//! Convolutions, products and poolings of 8-bit numbers. A number represents the real number `scale · (number − zero)`.
//!
//! Products are summed exactly in 32 bits, if possible with instructions that multiply and add four pairs of bytes at once. A sum
//! is requantized to 8 bits while it is in registers or L1 (`requantize`): multiplied by a factor, added to a residual, rounded and
//! clamped, so activations that only clamp cost nothing.
//!
//! Images are NHWC, as in [`super::channels_last`], and the algorithms are the same: an indirect GEMM (`dense`), products of transformed
//! tiles (`winograd`), or depthwise (`interleaved`, or `depthwise` where that does not fit). A matrix product is a convolution whose
//! pixels are the rows of the left operand.
//!
//! No sum is split between threads, so results do not depend on the number of threads.

pub mod byte_operands;
mod conv;
mod dense;
mod depthwise;
pub mod dequantized;
pub mod dynamic_quantize;
pub mod few_rows;
pub mod integer_sums;
mod interleaved;
mod layer;
mod matmul;
mod pool;
mod quantize_linear;
pub mod quantized_panels;
mod requantize;
mod requantized_vector;
#[cfg(test)]
mod tests;
mod tile;
mod widened_rows;
mod window_rows;
mod window_sums;
mod winograd;

use oarlock_cpu_base::device::Cpu;
use oarlock_sdk::Kernel;

pub(crate) fn quantized_kernels() -> Vec<Kernel<Cpu>> {
    let mut kernels = vec![
        conv::quantized_conv_kernel(),
        matmul::quantized_matmul_kernel(),
        pool::quantized_max_pool_kernel(),
        quantize_linear::quantize_bytes_kernel(),
        dynamic_quantize::dynamic_quantize_kernel(),
    ];
    kernels.extend(dequantized::dequantized_kernels());
    kernels
}
