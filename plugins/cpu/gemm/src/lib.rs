//! Matrix products, the common implementation of `MatMul`, `Gemm`, `Conv` and everything else that multiplies.
//!
//! Operands are packed into panels, in the order in which the micro-kernels in `tile` read them, or are read in place if that is
//! faster. `plan` decides which, and cuts the output into tasks; `macro_kernel` runs them. An operand can be anything that fills a
//! panel ([`PanelSource`]): a strided matrix, a window sliding over an image, 8-bit numbers with a zero point. The epilogue of a
//! tile, such as adding a bias, runs while the tile is in cache.
//!
//! No sum is ever split between threads, so results do not depend on the number of threads.

#![expect(missing_docs, reason = "for the other crates of this plugin; names say what most of it is")]

mod buffer;
mod convert;
mod gemv;
mod macro_kernel;
mod operand;
mod packed;
mod panel_layout;
#[cfg(x86_vectors)]
mod panel_transpose;
mod plan;
mod small_gemm;
mod stored_element;
mod task_queue;
#[cfg(test)]
mod tests;
mod tile;

use oarlock_cpu_base::thread_team::ThreadTeam;

pub use buffer::{AlignedBuffer, DisjointSlice, ScratchBuffer};
pub use convert::ConvertTo;
pub use gemv::FEW_ROWS;
pub use macro_kernel::OutputBlock;
pub use operand::{LaneView, OperandPointer, PanelSource, StridedMatrix};
pub use packed::PackedOperand;
pub use small_gemm::{GemmRows, multiply_few_rows, multiply_rows, pack_panel, row_tile_size};
pub use stored_element::{StoredElement, add_bias, as_computed, compute_stored_gemm};
pub use task_queue::TaskQueue;
pub use tile::GemmElement;

pub enum GemmOperand<'a, T> {
    /// Read in place or packed in each call.
    Operand(&'a dyn PanelSource<T>),
    /// Packed once, before the first call.
    Packed(&'a PackedOperand<T>),
}

/// The sizes of a product, or of a batch of products of equal sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GemmShape {
    /// The number of products in the batch.
    pub items: usize,
    /// Rows of the left operand and of the output.
    pub rows: usize,
    /// Columns of the right operand and of the output.
    pub columns: usize,
    /// Columns of the left operand and rows of the right one.
    pub depth: usize,
}

impl GemmShape {
    /// True if a constant right operand is better packed: more rows share it than read it in place, and it is more than a vector.
    pub fn repays_packing(&self) -> bool {
        self.rows > FEW_ROWS && self.columns > 1
    }

    fn is_empty(&self) -> bool {
        self.items == 0 || self.rows == 0 || self.columns == 0
    }
}

/// Products to compute: `output = left × right`. Outputs are row-major and consecutive.
pub struct BatchedGemm<'a, T> {
    pub sizes: GemmShape,
    pub left: GemmOperand<'a, T>,
    pub right: GemmOperand<'a, T>,
    /// Without an output, elements exist only in scratch memory until the epilogue stores them elsewhere.
    pub output: Option<&'a mut [T]>,
    pub epilogue: Option<&'a GemmEpilogue<'a, T>>,
}

/// Runs on each part of an output once its sums are complete.
pub type GemmEpilogue<'a, T> = dyn Fn(OutputBlock<'_, T>) + Sync + 'a;

/// What the plan needs to know about an operand, before there is data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandForm {
    /// Packed before the first call.
    Packed,
    /// Can be read in place; `side_by_side` if its lanes are contiguous.
    InPlace { items: usize, side_by_side: bool },
    /// Must be packed in each call.
    Anew { items: usize },
}

impl<T> GemmOperand<'_, T> {
    pub fn operand_form(&self) -> OperandForm {
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

/// The bytes of scratch memory that [`BatchedGemm::compute`] needs for products of these sizes. With `buffered`, there is no
/// output: elements exist only until the epilogue has processed them.
pub fn gemm_scratch_size<T: GemmElement>(
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
    pub fn compute(mut self, team: &dyn ThreadTeam, scratch: &mut ScratchBuffer) {
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
