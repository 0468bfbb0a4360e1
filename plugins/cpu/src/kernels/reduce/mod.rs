//! Reductions: sums, means, extremes and norms over axes, the places of extremes, and running sums and products.

mod cumulative;
mod extreme_index;
mod finish;
mod over_axes;
mod range;
mod reduction;
mod shape;
mod walk;

pub(crate) use self::shape::Shape;

use oarlock_sdk::Kernel;

use crate::device::Cpu;

pub(crate) fn kernels() -> Vec<Kernel<Cpu>> {
    [over_axes::kernels(), extreme_index::kernels(), cumulative::kernels()].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests;
