//! Matrix products: the one implementation under `MatMul`, `Gemm`, `Conv` and everything else that multiplies.
//!
//! Operands are packed into panels in the order in which the micro-kernels in [`tile`] read them, or read in place when that is
//! faster. [`plan`] decides which, and cuts the output into tasks; [`macro_kernel`] runs them. An operand can be anything that
//! fills a panel ([`PanelSource`]): a strided matrix, a window sliding over an image, 8-bit numbers with a zero point. The
//! epilogue of a tile, such as adding a bias, runs while the tile is in cache.
//!
//! No sum is ever split between threads, so results do not depend on the number of threads.

mod buffer;
mod gemv;
mod macro_kernel;
mod operand;
mod packed;
#[cfg(x86_vectors)]
mod panel_transpose;
mod plan;
mod small_gemm;
mod stored_element;
mod task_queue;
#[cfg(test)]
mod tests;
mod tile;

pub(crate) use buffer::{AlignedBuffer, DisjointSlice, ScratchBuffer};
pub(crate) use gemv::FEW_ROWS;
pub(crate) use macro_kernel::OutputBlock;
pub(crate) use operand::{ConvertTo, LaneView, OperandPointer, PanelSource, StridedMatrix};
pub(crate) use packed::PackedOperand;
pub(crate) use small_gemm::{GemmRows, multiply_few_rows, multiply_rows, pack_panel, row_tile_size};
pub(crate) use stored_element::{StoredElement, add_bias, as_computed, compute_stored_gemm};
pub(crate) use task_queue::TaskQueue;
pub(crate) use tile::GemmElement;

use crate::device::Cpu;
use crate::isa::Isa;

/// What computes a product: an instruction set and a number of threads. Tests replace it.
pub(crate) trait ThreadTeam: Sync {
    fn isa(&self) -> Isa;

    fn worker_count(&self) -> usize;

    /// Runs `body(0)` to `body(count - 1)`, possibly in parallel.
    fn parallel_for_each(&self, count: usize, body: &(dyn Fn(usize) + Sync));
}

impl ThreadTeam for Cpu {
    fn isa(&self) -> Isa {
        Cpu::isa(self)
    }

    fn worker_count(&self) -> usize {
        Cpu::worker_count(self)
    }

    fn parallel_for_each(&self, count: usize, body: &(dyn Fn(usize) + Sync)) {
        self.parallel_for(count, 1, |begin, end| (begin..end).for_each(body));
    }
}

pub(crate) enum GemmOperand<'a, T> {
    /// Read in place or packed, in each call.
    Operand(&'a dyn PanelSource<T>),
    /// Packed once, before the first call.
    Packed(&'a PackedOperand<T>),
}

/// The sizes of one product, or of a batch of equal ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GemmShape {
    /// Number of products in the batch.
    pub(crate) items: usize,
    /// Rows of the left operand and of the output.
    pub(crate) rows: usize,
    /// Columns of the right operand and of the output.
    pub(crate) columns: usize,
    /// Columns of the left operand and rows of the right one.
    pub(crate) depth: usize,
}

impl GemmShape {
    fn is_empty(&self) -> bool {
        self.items == 0 || self.rows == 0 || self.columns == 0
    }
}

/// Products to compute: `output = left × right`, each row-major, one product after the other.
pub(crate) struct BatchedGemm<'a, T> {
    pub(crate) sizes: GemmShape,
    pub(crate) left: GemmOperand<'a, T>,
    pub(crate) right: GemmOperand<'a, T>,
    /// Without an output, elements exist only in scratch memory until `finish` stores them elsewhere.
    pub(crate) output: Option<&'a mut [T]>,
    pub(crate) finish: Option<&'a GemmEpilogue<'a, T>>,
}

/// Runs on each part of an output once its sums are complete.
pub(crate) type GemmEpilogue<'a, T> = dyn Fn(OutputBlock<'_, T>) + Sync + 'a;

/// What the plan needs to know of an operand; known before there is data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperandForm {
    /// Packed before.
    Packed,
    /// Can be read in place; `side_by_side` if its lanes are contiguous.
    InPlace { items: usize, side_by_side: bool },
    /// Must be packed in each call.
    Anew { items: usize },
}

impl<T> GemmOperand<'_, T> {
    pub(crate) fn operand_form(&self) -> OperandForm {
        match self {
            Self::Packed(_) => OperandForm::Packed,
            Self::Operand(operand) => match operand.aligned_elements(0) {
                Some(elements) => {
                    OperandForm::InPlace { items: operand.item_count(), side_by_side: elements.lane == 1 }
                }
                None => OperandForm::Anew { items: operand.item_count() },
            },
        }
    }
}

/// Bytes of scratch memory that [`BatchedGemm::compute`] wants for products of these sizes. With `buffered`, elements are not
/// kept in an output, only until the epilogue has seen them.
pub(crate) fn gemm_scratch_size<T: GemmElement>(
    team: &dyn ThreadTeam,
    sizes: GemmShape,
    sides: (OperandForm, OperandForm),
    buffered: bool,
) -> u64 {
    if sizes.is_empty() {
        0
    } else {
        plan::GemmPlan::new::<T>(team, sizes, sides, buffered).scratch_size::<T>()
    }
}

impl<T: GemmElement> BatchedGemm<'_, T> {
    pub(crate) fn compute(mut self, team: &dyn ThreadTeam, scratch: &mut ScratchBuffer) {
        let GemmShape { items, rows, columns, depth } = self.sizes;
        if self.sizes.is_empty() {
            return;
        }
        let fits = |side: &GemmOperand<'_, T>, lanes| match side {
            GemmOperand::Packed(packed) => (packed.lane_count(), packed.depth()) == (lanes, depth),
            GemmOperand::Operand(_) => true,
        };
        let output_fits = self.output.as_ref().is_none_or(|output| output.len() == items * rows * columns);
        assert!(
            output_fits && fits(&self.left, rows) && fits(&self.right, columns),
            "operands and outputs of the sizes of the product"
        );
        if !gemv::compute_gemv(&mut self, team) {
            macro_kernel::compute_gemm(self, team, scratch);
        }
    }
}
