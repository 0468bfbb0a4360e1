//! What kernels share that walk over rows of a tensor: operands, axes, arithmetic per element type, and disjoint pieces of an
//! output for several threads.

pub(crate) mod axis;
pub(crate) mod fold;
pub(crate) mod isa_dispatch;
#[cfg(test)]
pub(crate) mod kernel_checks;
pub(crate) mod line_bundle;
pub(crate) mod number;
pub(crate) mod operands;
pub(crate) mod output_parts;
pub(crate) mod scratch;

/// Fewer elements are not worth another thread. Work is handed to threads in pieces of at least about this size.
pub(crate) const GRAIN: usize = 16 * 1024;

/// The number of items in a piece that is worth a thread, if each handles this many elements.
pub(crate) fn grain_for(elements_per_item: usize) -> usize {
    (GRAIN / elements_per_item.max(1)).max(1)
}
