//! What training needs beside gradients: losses and optimizers.

mod loss;
mod optimizer;

use oarlock_cpu_base::device::Cpu;
use oarlock_sdk::Kernel;

pub(crate) fn training_kernels() -> Vec<Kernel<Cpu>> {
    [loss::loss_kernels(), optimizer::optimizer_kernels()].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests;
