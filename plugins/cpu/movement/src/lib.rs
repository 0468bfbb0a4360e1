//! Kernels that move, order, parse or generate elements.

mod movement;
mod order;
mod random;
mod text;

use oarlock_cpu_base::device::Cpu;
use oarlock_sdk::Kernel;

/// All kernels of this crate.
pub fn movement_kernels() -> Vec<Kernel<Cpu>> {
    let families: [fn() -> Vec<Kernel<Cpu>>; 4] =
        [movement::data_movement_kernels, order::order_kernels, random::random_kernels, text::text_kernels];
    families.iter().flat_map(|family| family()).collect()
}

#[cfg(test)]
const KERNELS: oarlock_cpu_testing::runner::KernelRunner =
    oarlock_cpu_testing::kernel_runner!(crate::movement_kernels);
