//! Order among elements: sorting, the largest of a line, and boxes that are better than those they overlap.

pub(crate) mod line_sort;
mod non_max_suppression;
mod quicksort;
pub(crate) mod rank_mapping;
mod sort;
mod sort_entry;
mod top_k;

use oarlock_cpu_base::device::Cpu;
use oarlock_sdk::Kernel;

pub(crate) fn order_kernels() -> Vec<Kernel<Cpu>> {
    [top_k::top_k_kernels(), non_max_suppression::non_max_suppression_kernels()]
        .into_iter()
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests;
