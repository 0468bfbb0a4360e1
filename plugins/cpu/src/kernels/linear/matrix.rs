//! A matrix in 64 bits.

use super::field::{Field, Stored};

/// A matrix, row after row.
#[derive(Clone)]
pub(super) struct Matrix<F> {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) elements: Vec<F>,
}

impl<F: Field> Matrix<F> {
    pub(super) fn zeros(rows: usize, columns: usize) -> Self {
        Self { rows, columns, elements: vec![F::ZERO; rows * columns] }
    }

    pub(super) fn identity(rows: usize, columns: usize) -> Self {
        let mut made = Self::zeros(rows, columns);
        (0..rows.min(columns)).for_each(|at| *made.at_mut(at, at) = F::ONE);
        made
    }

    pub(super) fn read<T: Stored<Field = F>>(rows: usize, columns: usize, from: &[T]) -> Self {
        Self { rows, columns, elements: from.iter().map(|element| element.wide()).collect() }
    }

    pub(super) fn at(&self, row: usize, column: usize) -> F {
        self.elements[row * self.columns + column]
    }

    pub(super) fn at_mut(&mut self, row: usize, column: usize) -> &mut F {
        &mut self.elements[row * self.columns + column]
    }

    pub(super) fn swap_rows(&mut self, one: usize, other: usize) {
        for column in 0..self.columns {
            self.elements.swap(one * self.columns + column, other * self.columns + column);
        }
    }

    /// Its transpose with every element conjugated.
    pub(super) fn adjoint(&self) -> Self {
        let mut made = Self::zeros(self.columns, self.rows);
        for row in 0..self.rows {
            for column in 0..self.columns {
                *made.at_mut(column, row) = self.at(row, column).conjugate();
            }
        }
        made
    }

    /// The sum of products of a column, conjugated, and another.
    pub(super) fn inner(&self, one: usize, other: usize) -> F {
        (0..self.rows).fold(F::ZERO, |sum, row| sum + self.at(row, one).conjugate() * self.at(row, other))
    }

    /// The length of a column.
    pub(super) fn length(&self, column: usize) -> f64 {
        (0..self.rows).fold(0.0, |length, row| f64::hypot(length, self.at(row, column).magnitude()))
    }

    /// Turns two columns in the plane that they span: by an angle, with the phase of what is between them.
    pub(super) fn rotate(&mut self, one: usize, other: usize, (cosine, sine, phase): (f64, f64, F)) {
        for row in 0..self.rows {
            let (a, b) = (self.at(row, one), self.at(row, other));
            *self.at_mut(row, one) = a.scaled(cosine) - (phase.conjugate() * b).scaled(sine);
            *self.at_mut(row, other) = (phase * a).scaled(sine) + b.scaled(cosine);
        }
    }

    /// Its columns in another order.
    pub(super) fn ordered(&self, order: &[usize]) -> Self {
        let mut made = Self::zeros(self.rows, order.len());
        for row in 0..self.rows {
            for (to, from) in order.iter().enumerate() {
                *made.at_mut(row, to) = self.at(row, *from);
            }
        }
        made
    }
}
