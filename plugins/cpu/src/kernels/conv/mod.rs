//! Convolutions: `Conv`, its integer forms and `ConvTranspose`, as products of matrices whose right operand is what lies under
//! each window, or directly where a group has few outputs; and `CausalConvWithState`, which needs neither.

mod causal;
mod direct;
pub(crate) mod fold;
mod integer;
mod layer;
mod patches;
mod plain;
#[cfg(test)]
mod tests;
mod transposed;
pub(crate) mod window;

use oarlock_sdk::Kernel;

use crate::device::Cpu;

pub(crate) fn kernels() -> Vec<Kernel<Cpu>> {
    let mut kernels = vec![plain::kernel(), transposed::transposed_convolution(), causal::kernel()];
    kernels.extend(integer::kernels());
    kernels
}
