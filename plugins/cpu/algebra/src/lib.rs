//! Kernels of reductions, normalizations, linear algebra, signals and traditional machine learning.

mod linear_algebra;
mod normalize;
mod reduce;
mod signal;
mod traditional_ml;
mod training;

use oarlock_cpu_base::device::Cpu;
use oarlock_sdk::Kernel;

/// All kernels of this crate.
pub fn algebra_kernels() -> Vec<Kernel<Cpu>> {
    let families: [fn() -> Vec<Kernel<Cpu>>; 6] = [
        reduce::reduce_kernels,
        normalize::normalize_kernels,
        signal::signal_kernels,
        traditional_ml::traditional_ml_kernels,
        training::training_kernels,
        linear_algebra::linear_algebra_kernels,
    ];
    families.iter().flat_map(|family| family()).collect()
}

#[cfg(test)]
const KERNELS: oarlock_cpu_testing::runner::KernelRunner =
    oarlock_cpu_testing::kernel_runner!(crate::algebra_kernels);
