//! Order among elements: the largest of a line, and boxes that are better than those they overlap.

pub(crate) mod lines;
mod non_max_suppression;
mod sort;
mod top_k;

use oarlock_sdk::Kernel;

use crate::device::Cpu;

pub(crate) fn kernels() -> Vec<Kernel<Cpu>> {
    [top_k::kernels(), non_max_suppression::kernels()].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests;
