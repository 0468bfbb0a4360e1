//! Products of matrices within an algorithm: small ones where they stand, others by the kernels of all products.

use oarlock_sdk::{Complex, Error, Result};

use super::field::Field;
use super::rows::{Lines, Take};
use crate::gemm::{self, Product, Scratch, Sizes, Team};
use crate::kernels::rows::room::{filled, room_for};

/// Up to so many products of elements, readying anything takes longer than computing them.
const FEW: usize = 2048;

/// About how many elements of a product are made at a time, before they are taken from what is there.
const AT_ONCE: usize = 1 << 16;

/// A part of a matrix, as a product reads it.
#[derive(Clone, Copy)]
pub(super) struct Part<'a, F> {
    pub(super) elements: &'a [F],
    /// From one row to the next, and from one column to the next.
    pub(super) strides: [usize; 2],
    pub(super) is_conjugate: bool,
}

impl<'a, F: Copy> Part<'a, F> {
    /// Elements that lie row after row.
    pub(super) fn new(elements: &'a [F], row: usize) -> Self {
        Self { elements, strides: [row, 1], is_conjugate: false }
    }

    pub(super) fn transposed(self) -> Self {
        let [row, column] = self.strides;
        Self { strides: [column, row], ..self }
    }

    pub(super) fn conjugated(self) -> Self {
        Self { is_conjugate: !self.is_conjugate, ..self }
    }

    pub(super) fn adjoint(self) -> Self {
        self.transposed().conjugated()
    }

    /// The same without some first rows.
    pub(super) fn after_rows(self, rows: usize) -> Self {
        Self { elements: self.elements.get(rows * self.strides[0]..).unwrap_or(&[]), ..self }
    }

    /// The same without some first columns.
    pub(super) fn after_columns(self, columns: usize) -> Self {
        Self { elements: self.elements.get(columns * self.strides[1]..).unwrap_or(&[]), ..self }
    }
}

impl<F: Field> Part<'_, F> {
    fn at(&self, row: usize, column: usize) -> F {
        let element = self.elements[row * self.strides[0] + column * self.strides[1]];
        if F::IS_COMPLEX && self.is_conjugate { element.conjugate() } else { element }
    }

    /// One part of each number, row after row.
    fn plane(&self, part: usize, rows: usize, columns: usize) -> Result<Vec<f64>> {
        let mut plane = room_for(rows * columns)?;
        for row in 0..rows {
            plane.extend((0..columns).map(|column| self.at(row, column).parts()[part]));
        }
        Ok(plane)
    }
}

/// The product of two matrices, row after row. The sizes are the rows of the left one, the columns of the right one, and what
/// they have in common.
pub(super) fn multiply<F: Field>(
    team: &dyn Team,
    sizes: [usize; 3],
    left: Part<'_, F>,
    right: Part<'_, F>,
) -> Result<Vec<F>> {
    let [rows, columns, depth] = sizes;
    let mut made = filled(F::ZERO, rows * columns)?;
    if rows.saturating_mul(columns).saturating_mul(depth) <= FEW {
        for (row, made) in made.chunks_mut(columns.max(1)).enumerate() {
            for step in 0..depth {
                let factor = left.at(row, step);
                for (column, made) in made.iter_mut().enumerate() {
                    *made = *made + factor * right.at(step, column);
                }
            }
        }
        return Ok(made);
    }
    F::multiply_many(team, sizes, left, right, &mut made)?;
    Ok(made)
}

/// Numbers whose matrices the kernels of all products multiply.
pub(super) trait Multiply: Sized {
    /// Puts the product of two matrices into one that is filled with 0.
    fn multiply_many(
        team: &dyn Team,
        sizes: [usize; 3],
        left: Part<'_, Self>,
        right: Part<'_, Self>,
        made: &mut [Self],
    ) -> Result<()>;
}

impl<'a> Part<'a, f64> {
    /// The same as the kernels of all products read it.
    fn operand(self, lanes: usize, depth: usize) -> Result<gemm::Matrix<'a, f64>> {
        let [lane, step] = self.strides;
        gemm::Matrix::new(self.elements, vec![0], (lanes, lane), (depth, step)).ok_or_else(|| {
            Error::out_of_range("expected matrices as large as a product reads, found smaller ones")
        })
    }
}

impl Multiply for f64 {
    fn multiply_many(
        team: &dyn Team,
        [rows, columns, depth]: [usize; 3],
        left: Part<'_, f64>,
        right: Part<'_, f64>,
        made: &mut [f64],
    ) -> Result<()> {
        let (left, right) = (left.operand(rows, depth)?, right.transposed().operand(columns, depth)?);
        let (left, right) = (gemm::Side::Operand(&left), gemm::Side::Operand(&right));
        let sizes = Sizes { items: 1, rows, columns, depth };
        Product { sizes, left, right, output: Some(made), finish: None }.compute(team, &mut Scratch::none());
        Ok(())
    }
}

impl Multiply for Complex<f64> {
    /// By the four products of their parts.
    fn multiply_many(
        team: &dyn Team,
        sizes: [usize; 3],
        left: Part<'_, Self>,
        right: Part<'_, Self>,
        made: &mut [Self],
    ) -> Result<()> {
        let [rows, columns, depth] = sizes;
        let mut product = filled(0.0, made.len())?;
        let lefts = [left.plane(0, rows, depth)?, left.plane(1, rows, depth)?];
        let rights = [right.plane(0, depth, columns)?, right.plane(1, depth, columns)?];
        for (one, left) in lefts.iter().enumerate() {
            for (other, right) in rights.iter().enumerate() {
                let (left, right) = (Part::new(left, depth), Part::new(right, columns));
                f64::multiply_many(team, sizes, left, right, &mut product)?;
                for (made, product) in made.iter_mut().zip(&product) {
                    match one + other {
                        0 => made.re += product,
                        1 => made.im += product,
                        _ => made.re -= product,
                    }
                }
            }
        }
        Ok(())
    }
}

/// Takes a product from rows that are there. The sizes are what [`multiply`] wants, without the columns.
pub(super) fn take_product<F: Field>(
    team: &dyn Team,
    [rows, depth]: [usize; 2],
    from: Lines<'_, F>,
    left: Part<'_, F>,
    right: Part<'_, F>,
) -> Result<()> {
    let (width, stride) = (from.columns.len(), from.stride);
    if width == 0 || depth == 0 {
        return Ok(());
    }
    let at_once = (AT_ONCE / width).max(1);
    let pieces = from.elements.chunks_mut(at_once.saturating_mul(stride).max(1));
    for (index, elements) in pieces.enumerate().take(rows.div_ceil(at_once)) {
        let first = index * at_once;
        let sizes = [at_once.min(rows - first), width, depth];
        let product = multiply(team, sizes, left.after_rows(first), right)?;
        let columns = from.columns.clone();
        team.isa().vectorize(Take { from: Lines { elements, stride, columns }, other: &product });
    }
    Ok(())
}
