//! What kernels share that walk over rows of a tensor: operands, axes, and disjoint pieces of an
//! output for several threads.

pub mod axis;
pub mod fold;
pub mod isa_dispatch;
pub mod line_bundle;
pub mod operands;
pub mod output_parts;
pub mod plane_transpose;
pub mod scratch;

/// Processing fewer elements than this is faster than waking another thread. Pieces of work have at least about this size.
pub const GRAIN: usize = 16 * 1024;

/// The number of items that make a piece worth a thread, given the elements per item.
pub fn grain_for(elements_per_item: usize) -> usize {
    (GRAIN / elements_per_item.max(1)).max(1)
}
