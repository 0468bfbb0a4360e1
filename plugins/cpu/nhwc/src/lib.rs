//! Kernels of layers on NHWC images, in floats and in 8 bits, and of products that share their micro-kernels.

#![expect(missing_docs, reason = "for the other crates of this plugin; names say what most of it is")]

pub mod channels_last;
pub mod quantized;

use oarlock_cpu_base::device::Cpu;
use oarlock_sdk::Kernel;

/// All kernels of this crate.
pub fn nhwc_kernels() -> Vec<Kernel<Cpu>> {
    let mut kernels = channels_last::channels_last_kernels();
    kernels.extend(quantized::quantized_kernels());
    kernels
}

/// Includes the general kernels, with which tests compare the kernels of this crate.
#[cfg(test)]
const KERNELS: oarlock_cpu_testing::runner::KernelRunner = oarlock_cpu_testing::kernel_runner!(
    oarlock_cpu_elementwise::elementwise_kernels,
    oarlock_cpu_nn::nn_kernels,
    crate::nhwc_kernels
);
