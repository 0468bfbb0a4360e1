//! Products of matrices: one way of computing them, under `MatMul`, `Gemm`, `Conv` and whatever else multiplies.
//!
//! Operands are copied into panels in the order in which the micro-kernels in [`tile`] read them, or read where they lie when
//! that is faster. [`plan`] decides which, and cuts the output into tasks; [`drive`] runs them. An operand can be anything
//! that fills a panel ([`Operand`]): a matrix with strides, a window sliding over an image, eight bits with a zero point.
//! What happens to a finished tile, such as adding a bias, happens while it is in the cache.
//!
//! No sum is ever shared between threads, so a result does not depend on how many there are.

mod buffer;
mod drive;
mod operand;
mod packed;
mod plan;
mod rows;
mod stored;
mod tasks;
#[cfg(test)]
mod tests;
mod tile;
#[cfg(x86_vectors)]
mod turn;
mod vector;

pub(crate) use buffer::{Aligned, Parts, Scratch};
pub(crate) use drive::Finished;
pub(crate) use operand::{Convert, Elements, Matrix, Operand, View};
pub(crate) use packed::Packed;
pub(crate) use rows::{Rows, few_rows, multiply_rows, pack_panel, tile_size};
pub(crate) use stored::{Stored, add_bias, compute_stored, same_numbers};
pub(crate) use tasks::Tasks;
pub(crate) use tile::Number;
pub(crate) use vector::FEW;

use crate::device::Cpu;
use crate::isa::Isa;

/// Who computes: the instruction set and the threads.
pub(crate) trait Team: Sync {
    /// The instruction sets that may be used.
    fn isa(&self) -> Isa;

    /// How many threads there are.
    fn worker_count(&self) -> usize;

    /// Runs `body(0)` to `body(count - 1)`, on several threads where there are.
    fn each(&self, count: usize, body: &(dyn Fn(usize) + Sync));
}

impl Team for Cpu {
    fn isa(&self) -> Isa {
        Cpu::isa(self)
    }

    fn worker_count(&self) -> usize {
        Cpu::worker_count(self)
    }

    fn each(&self, count: usize, body: &(dyn Fn(usize) + Sync)) {
        self.parallel_for(count, 1, |begin, end| (begin..end).for_each(body));
    }
}

/// One operand of a product.
pub(crate) enum Side<'a, T> {
    /// Read or packed anew in each call.
    Operand(&'a dyn Operand<T>),
    /// Packed once before.
    Packed(&'a Packed<T>),
}

/// The sizes of a product, or of several that are computed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// How many products there are.
    pub(crate) items: usize,
    /// Rows of the left operand and of the output.
    pub(crate) rows: usize,
    /// Columns of the right operand and of the output.
    pub(crate) columns: usize,
    /// Columns of the left operand and rows of the right one.
    pub(crate) depth: usize,
}

impl Sizes {
    /// Whether there is nothing to compute.
    fn is_empty(&self) -> bool {
        self.items == 0 || self.rows == 0 || self.columns == 0
    }
}

/// Products to compute: `output = left × right`, each of them row after row, one product after the other.
pub(crate) struct Product<'a, T> {
    pub(crate) sizes: Sizes,
    pub(crate) left: Side<'a, T>,
    pub(crate) right: Side<'a, T>,
    /// Where the elements go. Without it they exist only for `finish`, which puts them where they belong.
    pub(crate) output: Option<&'a mut [T]>,
    /// What is done to each part of the output once its sums are complete.
    pub(crate) finish: Option<&'a Finish<'a, T>>,
}

/// What is done to each part of an output once its sums are complete.
pub(crate) type Finish<'a, T> = dyn Fn(Finished<'_, T>) + Sync + 'a;

/// What is known of an operand before there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// It was packed before.
    Packed,
    /// It can be read where it lies; its lanes may lie side by side.
    InPlace { items: usize, side_by_side: bool },
    /// It must be packed.
    Anew { items: usize },
}

impl<T> Side<'_, T> {
    pub(crate) fn form(&self) -> Form {
        match self {
            Self::Packed(_) => Form::Packed,
            Self::Operand(operand) => match operand.elements(0) {
                Some(elements) => Form::InPlace { items: operand.items(), side_by_side: elements.lane == 1 },
                None => Form::Anew { items: operand.items() },
            },
        }
    }
}

/// How many bytes of scratch memory [`Product::compute`] wants for products of these sizes, whose elements are kept in an
/// output or, `buffered`, only until they are finished.
pub(crate) fn scratch_size<T: Number>(
    team: &dyn Team,
    sizes: Sizes,
    sides: (Form, Form),
    buffered: bool,
) -> u64 {
    if sizes.is_empty() { 0 } else { plan::Plan::new::<T>(team, sizes, sides, buffered).scratch_size::<T>() }
}

impl<T: Number> Product<'_, T> {
    /// Computes the products.
    pub(crate) fn compute(mut self, team: &dyn Team, scratch: &mut Scratch) {
        let Sizes { items, rows, columns, depth } = self.sizes;
        if self.sizes.is_empty() {
            return;
        }
        let fits = |side: &Side<'_, T>, lanes| match side {
            Side::Packed(packed) => (packed.lanes(), packed.depth()) == (lanes, depth),
            Side::Operand(_) => true,
        };
        let output_fits = self.output.as_ref().is_none_or(|output| output.len() == items * rows * columns);
        assert!(
            output_fits && fits(&self.left, rows) && fits(&self.right, columns),
            "operands and outputs of the sizes of the product"
        );
        if !vector::compute(&mut self, team) {
            drive::compute(self, team, scratch);
        }
    }
}
