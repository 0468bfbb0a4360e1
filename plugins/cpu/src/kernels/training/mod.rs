//! What training needs beside gradients: losses and optimisers.

mod loss;
mod optimizer;

use oarlock_sdk::Kernel;

use crate::device::Cpu;

pub(crate) fn kernels() -> Vec<Kernel<Cpu>> {
    [loss::kernels(), optimizer::kernels()].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests;
