//! What training needs beside gradients: losses and optimizers.

mod loss;
mod optimizer;

use oarlock_sdk::Kernel;

use crate::device::Cpu;

pub(crate) fn training_kernels() -> Vec<Kernel<Cpu>> {
    [loss::loss_kernels(), optimizer::optimizer_kernels()].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests;
