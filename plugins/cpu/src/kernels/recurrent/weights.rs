//! Products of rows with weights.

use oarlock_sdk::{Error, Result};

use super::Computed;
use crate::device::Cpu;
use crate::gemm::{Matrix, Packed, Product, Scratch, Side, Sizes, scratch_size};

/// Weights of some gates: a row for each element that a product gives.
pub(super) struct Weights<'a, C> {
    elements: &'a [C],
    rows: usize,
    depth: usize,
    packed: Option<&'a Packed<C>>,
}

impl<'a, C: Computed> Weights<'a, C> {
    pub(super) fn new(elements: &'a [C], rows: usize, depth: usize, packed: Option<&'a Packed<C>>) -> Self {
        let fits = |packed: &&Packed<C>| (packed.lanes(), packed.depth()) == (rows, depth);
        Self { elements, rows, depth, packed: packed.filter(fits) }
    }

    /// Weights as the right operand of a product.
    pub(super) fn matrix(elements: &[C], rows: usize, depth: usize) -> Result<Matrix<'_, C>> {
        Matrix::new(elements, vec![0], (rows, depth), (depth, 1)).ok_or_else(too_small)
    }

    /// Multiplies rows, one after the other, with the weights.
    pub(super) fn multiply(&self, cpu: &Cpu, left: &[C], output: &mut [C], room: &mut Room) -> Result<()> {
        if output.is_empty() {
            return Ok(());
        }
        let rows = output.len() / self.rows;
        let left = Matrix::new(left, vec![0], (rows, self.depth), (self.depth, 1)).ok_or_else(too_small)?;
        let right = Self::matrix(self.elements, self.rows, self.depth)?;
        let (left, right) = match self.packed {
            Some(packed) if rows > 1 => (Side::Operand(&left), Side::Packed(packed)),
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
