//! Products of rows with weights.

use oarlock_sdk::{Error, Result};

use super::Computed;
use crate::device::Cpu;
use crate::gemm::{
    Matrix, Packed, Product, Rows, Scratch, Side, Sizes, multiply_rows, scratch_size, tile_size,
};

/// More weights than these are worth a second thread, even for one row.
const OF_ONE_THREAD: usize = 1 << 18;
/// Where vectors of weights begin.
const LINE: usize = 64;

/// Constant weights in the order in which products read them.
pub(super) enum Ready<C> {
    /// For products of many rows, or of more than one thread.
    Packed(Packed<C>),
    /// For those of a few rows, of which there is one for each step, so that little may be done before and after.
    Panels(Panels<C>),
    /// For those that are rounded.
    Rounding(Box<dyn Rounding<C>>),
}

/// Weights of fewer bits, with products that are rounded.
pub(super) trait Rounding<C>: Send + Sync {
    /// Elements that a product gives, and steps of each.
    fn sizes(&self) -> (usize, usize);

    /// Multiplies rows, one after the other.
    fn multiply(&self, cpu: &Cpu, left: &[C], output: &mut [C]);
}

impl<C: Computed> Ready<C> {
    /// Makes weights ready for products of so many lines.
    pub(super) fn new(
        cpu: &Cpu,
        elements: &[C],
        (rows, depth): (usize, usize),
        lines: usize,
    ) -> Result<Self> {
        if Self::is_small(cpu, (rows, depth), lines) {
            return Ok(Self::Panels(Panels::new(cpu, elements, (rows, depth))));
        }
        Ok(Self::Packed(Packed::right(cpu, &Weights::matrix(elements, rows, depth)?, rows, depth)))
    }

    /// Whether products of so many lines are done at once.
    pub(super) fn is_small(cpu: &Cpu, (rows, depth): (usize, usize), lines: usize) -> bool {
        let is_alone = cpu.worker_count() == 1 || rows.saturating_mul(depth) <= OF_ONE_THREAD;
        depth > 0 && is_alone && lines <= tile_size::<C>(cpu.isa()).0
    }
}

/// Weights of as many elements of a product as a micro-kernel makes at once, step after step, and then those of the next.
pub(super) struct Panels<C> {
    elements: Vec<C>,
    /// Where the first panel begins.
    start: usize,
    rows: usize,
    depth: usize,
    width: usize,
}

impl<C: Computed> Panels<C> {
    fn new(cpu: &Cpu, elements: &[C], (rows, depth): (usize, usize)) -> Self {
        let width = tile_size::<C>(cpu.isa()).1;
        let size = rows.next_multiple_of(width) * depth;
        let mut panels = vec![C::default(); size + LINE / size_of::<C>()];
        let start = panels.as_ptr().align_offset(LINE).min(panels.len() - size);
        for (row, weights) in elements.chunks_exact(depth).enumerate() {
            let first = start + row / width * width * depth + row % width;
            weights.iter().enumerate().for_each(|(step, weight)| panels[first + step * width] = *weight);
        }
        Self { elements: panels, start, rows, depth, width }
    }

    /// Multiplies a few rows, one after the other.
    fn multiply(&self, cpu: &Cpu, left: &[C], output: &mut [C]) {
        let &Self { rows, depth, width, .. } = self;
        let count = output.len() / rows;
        let left = Rows { elements: left, count, stride: depth };
        let panels = (&self.elements[self.start..], depth * width);
        let output = Rows { elements: output, count, stride: rows };
        multiply_rows(cpu.isa(), left, panels, depth, output, rows, false);
    }
}

/// Weights of some gates: a row for each element that a product gives.
pub(super) struct Weights<'a, C> {
    elements: &'a [C],
    rows: usize,
    depth: usize,
    ready: Option<&'a Ready<C>>,
}

impl<'a, C: Computed> Weights<'a, C> {
    pub(super) fn new(elements: &'a [C], rows: usize, depth: usize, ready: Option<&'a Ready<C>>) -> Self {
        let fits = |ready: &&Ready<C>| match ready {
            Ready::Packed(packed) => (packed.lanes(), packed.depth()) == (rows, depth),
            Ready::Panels(panels) => (panels.rows, panels.depth) == (rows, depth),
            Ready::Rounding(weights) => weights.sizes() == (rows, depth),
        };
        Self { elements, rows, depth, ready: ready.filter(fits) }
    }

    /// Weights as the right operand of a product.
    fn matrix(elements: &[C], rows: usize, depth: usize) -> Result<Matrix<'_, C>> {
        Matrix::new(elements, vec![0], (rows, depth), (depth, 1)).ok_or_else(too_small)
    }

    /// Multiplies rows, one after the other, with the weights.
    pub(super) fn multiply(&self, cpu: &Cpu, left: &[C], output: &mut [C], room: &mut Room) -> Result<()> {
        if output.is_empty() {
            return Ok(());
        }
        let rows = output.len() / self.rows;
        if let Some(Ready::Rounding(weights)) = self.ready {
            weights.multiply(cpu, left, output);
            return Ok(());
        }
        if let Some(Ready::Panels(panels)) = self.ready
            && rows <= tile_size::<C>(cpu.isa()).0
        {
            panels.multiply(cpu, left, output);
            return Ok(());
        }
        let left = Matrix::new(left, vec![0], (rows, self.depth), (self.depth, 1)).ok_or_else(too_small)?;
        let right = Self::matrix(self.elements, self.rows, self.depth)?;
        let (left, right) = match self.ready {
            Some(Ready::Packed(packed)) => (Side::Operand(&left), Side::Packed(packed)),
            _ => (Side::Operand(&left), Side::Operand(&right)),
        };
        let sizes = Sizes { items: 1, rows, columns: self.rows, depth: self.depth };
        let needed = scratch_size::<C>(cpu, sizes, (left.form(), right.form()), false);
        let mut scratch = room.of_at_least(needed);
        Product { sizes, left, right, output: Some(output), finish: None }.compute(cpu, &mut scratch);
        Ok(())
    }
}

fn too_small() -> Error {
    Error::out_of_range("expected weights and states as large as their shapes say, found smaller ones")
}

/// Scratch memory that is kept from one product to the next.
#[derive(Default)]
pub(super) struct Room(Vec<u8>);

impl Room {
    /// The most that is lost to alignment.
    const SLACK: usize = 64;

    fn of_at_least(&mut self, size: u64) -> Scratch<'_> {
        let size = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(Self::SLACK);
        if self.0.len() < size {
            self.0.resize(size, 0);
        }
        Scratch::new(&mut self.0)
    }
}
