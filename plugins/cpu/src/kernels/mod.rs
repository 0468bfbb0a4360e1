//! The kernels of the CPU device, by family. A family's `kernels` returns its rows; nothing else of it is seen outside.

mod conv;
mod elementwise;
mod matmul;
mod movement;
mod normalize;
mod order;
mod pool;
mod random;
mod reduce;
mod rows;
mod training;

use oarlock_sdk::Kernel;

use crate::device::Cpu;

/// Every kernel of the device.
pub(crate) fn all() -> Vec<Kernel<Cpu>> {
    let families: [fn() -> Vec<Kernel<Cpu>>; 10] = [
        movement::kernels,
        elementwise::kernels,
        reduce::kernels,
        normalize::kernels,
        order::kernels,
        random::kernels,
        training::kernels,
        matmul::kernels,
        conv::kernels,
        pool::kernels,
    ];
    families.into_iter().flat_map(|kernels| kernels()).collect()
}
