//! A dense matrix in 64 bits.

use oarlock_cpu_base::rows::scratch::{try_filled_vec, try_reserve_vec};
use oarlock_sdk::Result;

use super::product::MatrixScalar;
use super::stored_scalar::StoredScalar;

/// A matrix in row-major order.
pub(super) struct DenseMatrix<F> {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) elements: Vec<F>,
}

impl<F: MatrixScalar> DenseMatrix<F> {
    /// A matrix filled with one number. No matrix has more elements than an operand or an output of the call.
    pub(super) fn filled_with(number: F, rows: usize, columns: usize) -> Result<Self> {
        Ok(Self { rows, columns, elements: try_filled_vec(number, rows * columns)? })
    }

    pub(super) fn identity(rows: usize, columns: usize) -> Result<Self> {
        let mut result = Self::filled_with(F::ZERO, rows, columns)?;
        (0..rows.min(columns)).for_each(|at| *result.element_at_mut(at, at) = F::ONE);
        Ok(result)
    }

    pub(super) fn from_elements<T: StoredScalar<Field = F>>(
        rows: usize,
        columns: usize,
        from: &[T],
    ) -> Result<Self> {
        let mut elements = try_reserve_vec(from.len())?;
        elements.extend(from.iter().map(|element| element.widen()));
        Ok(Self { rows, columns, elements })
    }

    pub(super) fn element_at(&self, row: usize, column: usize) -> F {
        self.elements[row * self.columns + column]
    }

    pub(super) fn element_at_mut(&mut self, row: usize, column: usize) -> &mut F {
        &mut self.elements[row * self.columns + column]
    }

    pub(super) fn row(&self, row: usize) -> &[F] {
        &self.elements[row * self.columns..][..self.columns]
    }

    pub(super) fn row_mut(&mut self, row: usize) -> &mut [F] {
        &mut self.elements[row * self.columns..][..self.columns]
    }

    pub(super) fn split_at_row(&mut self, row: usize) -> (&mut [F], &mut [F]) {
        self.elements.split_at_mut(row * self.columns)
    }

    pub(super) fn swap_rows(&mut self, one: usize, other: usize) {
        let (first, last) = (one.min(other), one.max(other));
        if first < last {
            let columns = self.columns;
            let (before, from) = self.split_at_row(last);
            before[first * columns..][..columns].swap_with_slice(&mut from[..columns]);
        }
    }

    /// The conjugate transpose.
    pub(super) fn adjoint(&self) -> Result<Self> {
        /// The side of tiles that are transposed at once. A row of 16 `f64` is two cache lines; the tile that is read and the one
        /// that is written take 4 KiB of L1.
        const TRANSPOSE_TILE: usize = 16;
        let mut result = Self::filled_with(F::ZERO, self.columns, self.rows)?;
        for first in (0..self.rows).step_by(TRANSPOSE_TILE) {
            for column in 0..self.columns {
                for row in first..(first + TRANSPOSE_TILE).min(self.rows) {
                    *result.element_at_mut(column, row) = self.element_at(row, column).conjugate();
                }
            }
        }
        Ok(result)
    }

    /// The largest part of an element: infinity if an element is infinite or NaN.
    pub(super) fn max_component(&self) -> f64 {
        // `f64::max` skips NaN, but here NaN has become infinity.
        self.elements.iter().fold(0.0, |most, element| f64::max(most, element.max_component()))
    }

    pub(super) fn scale(&mut self, by: f64) {
        self.elements.iter_mut().for_each(|element| *element = element.scaled_by(by));
    }
}

/// The power of two that scales a finite number to near 1. Neither it nor its inverse overflows.
pub(super) fn normalizing_power(number: f64) -> f64 {
    // Biased exponents of a power of two and of its inverse add up to 2046. From 1 to 2045 both are normal numbers.
    let exponent = (number.to_bits() >> 52) & 0x7ff;
    f64::from_bits(2046u64.saturating_sub(exponent).clamp(1, 2045) << 52)
}
