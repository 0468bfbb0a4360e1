//! Kernels that compute each element of the output from the elements at the same place in the inputs.
//!
//! All of them are a `PreparedLoop`: a loop over contiguous elements (`element_loop`), and for
//! each operand a conversion into that loop and back (`operand_conversion`). A prepared loop merges the operands of a call to as few
//! dimensions as possible (`iteration_space`) and walks over them in tiles (`tiling`), which copies and converts only what
//! the loop cannot take in place. So an op is written once, for the types it is computed in, and need not care about strides,
//! broadcasting, floats of 8 and 16 bits, and instruction sets.

mod activation;
mod array_api;
mod binary;
mod bitwise;
mod cast;
mod complex;
mod conversion;
mod dtype_dispatch;
mod element_loop;
mod fused;
mod iteration_space;
mod legacy_broadcast;
mod operand_conversion;
mod power;
mod prepared_loop;
mod quantize;
mod registration;
mod select;
mod small_floats;
mod tiling;
mod unary;
mod variadic;

use oarlock_cpu_base::device::Cpu;
use oarlock_sdk::Kernel;

/// All kernels of this crate.
pub fn elementwise_kernels() -> Vec<Kernel<Cpu>> {
    let mut kernels = unary::unary_kernels();
    kernels.extend(activation::activation_kernels());
    kernels.extend(array_api::array_api_kernels());
    kernels.extend(binary::binary_kernels());
    kernels.extend(complex::complex_kernels());
    kernels.extend(bitwise::bitwise_kernels());
    kernels.extend(power::power_kernels());
    kernels.extend(variadic::variadic_kernels());
    kernels.extend(select::where_and_clip_kernels());
    kernels.extend(cast::cast_kernels());
    kernels.push(fused::fused_elementwise_kernel());
    kernels.extend(quantize::quantize_kernels());
    kernels
}

#[cfg(test)]
mod tests;
#[cfg(test)]
const KERNELS: oarlock_cpu_testing::runner::KernelRunner =
    oarlock_cpu_testing::kernel_runner!(crate::elementwise_kernels);
