//! Reductions: sums, means, extremes and norms over axes, the positions of extremes, and running sums and products.

mod cumulative;
mod extreme_index;
mod finalize;
mod over_axes;
mod overflow;
mod reduction;
mod shape;
mod traversal;

use oarlock_cpu_base::device::Cpu;
use oarlock_sdk::Kernel;

pub(crate) use self::shape::ReduceShape;

pub(crate) fn reduce_kernels() -> Vec<Kernel<Cpu>> {
    [
        over_axes::axis_reduction_kernels(),
        extreme_index::arg_extreme_kernels(),
        cumulative::cumulative_kernels(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests;
