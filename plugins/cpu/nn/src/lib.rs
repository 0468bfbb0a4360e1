//! Kernels of neural networks: products, convolutions, pooling, attention, recurrent layers, and image sampling.

mod attention;
mod conv;
mod matmul;
mod pool;
mod recurrent;
mod spatial;

use oarlock_cpu_base::device::Cpu;
use oarlock_sdk::Kernel;

/// All kernels of this crate.
pub fn nn_kernels() -> Vec<Kernel<Cpu>> {
    let families: [fn() -> Vec<Kernel<Cpu>>; 6] = [
        recurrent::recurrent_kernels,
        spatial::spatial_kernels,
        matmul::matmul_kernels,
        attention::attention_kernels,
        conv::conv_kernels,
        pool::pool_kernels,
    ];
    families.iter().flat_map(|family| family()).collect()
}

#[cfg(test)]
const KERNELS: oarlock_cpu_testing::runner::KernelRunner =
    oarlock_cpu_testing::kernel_runner!(crate::nn_kernels, oarlock_cpu_elementwise::elementwise_kernels);
