//! NCHW convolutions. `Conv`, its integer forms and `ConvTranspose` are matrix products whose right operand is im2col, or are
//! computed directly if a group has few outputs; `CausalConvWithState` needs neither.

mod causal;
pub(crate) mod col2im;
mod conv_shape;
mod direct;
mod float_conv;
mod im2col;
mod integer;
#[cfg(test)]
mod tests;
mod transposed;

use oarlock_cpu_base::device::Cpu;
use oarlock_sdk::Kernel;

pub(crate) fn conv_kernels() -> Vec<Kernel<Cpu>> {
    let mut kernels =
        vec![float_conv::conv_kernel(), transposed::conv_transpose_kernel(), causal::causal_conv_kernel()];
    kernels.extend(integer::integer_conv_kernels());
    kernels
}
