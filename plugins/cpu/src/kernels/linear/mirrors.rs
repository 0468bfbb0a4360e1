//! Householder's mirrors, which make all elements of a vector but one vanish, and products of them.

use std::ops::Range;

use oarlock_sdk::Result;

use super::field::Field;
use super::matrix::{Matrix, power_towards_one};
use super::product::{Part, multiply, take_product};
use super::rows::{Lines, Reflect};
use crate::gemm::Team;
use crate::kernels::rows::room::filled;

/// How many mirrors are multiplied with a matrix at a time.
const BLOCK: usize = 32;

/// The sizes between which squares neither overflow nor vanish beside each other.
const USUAL: Range<f64> = 1e-140..1e140;

/// Makes a vector the normal of the mirror `1 - factor * normal * normal.adjoint()`, whose adjoint leaves of the vector nothing
/// but a real number at one place. The normal is 1 there. Gives that number and the factor.
pub(super) fn mirror<F: Field>(vector: &mut [F], place: usize) -> (f64, F) {
    let most = vector.iter().fold(0.0, |most, element| f64::max(most, element.size()));
    let mut back = 1.0;
    if most > 0.0 && most.is_finite() && !USUAL.contains(&most) {
        let power = power_towards_one(most);
        vector.iter_mut().for_each(|element| *element = element.scaled(power));
        back = 1.0 / power;
    }
    let first = std::mem::replace(&mut vector[place], F::ZERO);
    let others: f64 = vector.iter().map(|element| element.square()).sum();
    vector[place] = F::ONE;
    if others == 0.0 && first.parts()[1] == 0.0 {
        vector[..place].fill(F::ZERO);
        vector[place + 1..].fill(F::ZERO);
        return (first.real() * back, F::ZERO);
    }
    let length = (others + first.square()).sqrt();
    let left = if first.real() > 0.0 { -length } else { length };
    let scale = F::ONE / (first - F::of_real(left));
    for (at, element) in vector.iter_mut().enumerate() {
        if at != place {
            *element = *element * scale;
        }
    }
    (left * back, (F::of_real(left) - first).scaled(1.0 / left))
}

/// Mirrors that are multiplied, the first one leftmost.
pub(super) struct Mirrors<F> {
    /// A normal in each row.
    pub(super) normals: Matrix<F>,
    pub(super) factors: Vec<F>,
    /// Outside of these columns the first normal, and all after it, are 0. It is the same for the last one, the other way
    /// around, so that the columns of a few neighbours are those between the two.
    pub(super) reach: fn(index: usize, size: usize) -> Range<usize>,
}

impl<F: Field> Mirrors<F> {
    /// As many mirrors, none of which turns anything yet.
    pub(super) fn new(
        count: usize,
        size: usize,
        reach: fn(index: usize, size: usize) -> Range<usize>,
    ) -> Result<Self> {
        Ok(Self { normals: Matrix::of(F::ZERO, count, size)?, factors: filled(F::ZERO, count)?, reach })
    }

    /// Makes a mirror of a vector that fills the reach of a normal, as [`mirror`] does.
    pub(super) fn set(&mut self, index: usize, place: usize, vector: impl Iterator<Item = F>) -> f64 {
        let reach = (self.reach)(index, self.normals.columns);
        let place = place - reach.start;
        let normal = &mut self.normals.row_mut(index)[reach];
        normal.iter_mut().zip(vector).for_each(|(to, from)| *to = from);
        let (left, factor) = mirror(normal, place);
        self.factors[index] = factor;
        left
    }

    pub(super) fn normal(&self, index: usize) -> &[F] {
        &self.normals.row(index)[(self.reach)(index, self.normals.columns)]
    }

    /// Multiplies all of them with a matrix.
    pub(super) fn apply(&self, team: &dyn Team, matrix: &mut Matrix<F>) -> Result<()> {
        let (count, columns) = (self.factors.len(), 0..matrix.columns);
        for first in (0..count).step_by(BLOCK).rev() {
            self.apply_some(team, first..count.min(first + BLOCK), false, matrix, columns.clone())?;
        }
        Ok(())
    }

    /// Multiplies the product of some, or its adjoint, with some columns of a matrix.
    fn apply_some(
        &self,
        team: &dyn Team,
        which: Range<usize>,
        is_adjoint: bool,
        matrix: &mut Matrix<F>,
        columns: Range<usize>,
    ) -> Result<()> {
        let (size, count, width) = (self.normals.columns, which.len(), columns.len());
        let ends = [(self.reach)(which.start, size), (self.reach)(which.end - 1, size)];
        let rows = ends[0].start.min(ends[1].start)..ends[0].end.max(ends[1].end);
        if width == 0 || rows.is_empty() {
            return Ok(());
        }
        let normals = Part::new(&self.normals.elements[which.start * size..], size).after_columns(rows.start);
        let triangle = self.triangle(team, which, normals, rows.len())?;
        let triangle = Part::new(&triangle, count);
        let triangle = if is_adjoint { triangle.adjoint() } else { triangle };
        let stride = matrix.columns;
        let below = &mut matrix.elements[rows.start * stride..rows.end * stride];
        let own = Part::new(below, stride).after_columns(columns.start);
        let along = multiply(team, [count, width, rows.len()], normals.conjugated(), own)?;
        let along = multiply(team, [count, width, count], triangle, Part::new(&along, width))?;
        let from = Lines { elements: below, stride, columns };
        take_product(team, [rows.len(), count], from, normals.transposed(), Part::new(&along, width))
    }

    /// The upper triangle between the normals and their adjoint, with which they make the product of the mirrors.
    fn triangle(
        &self,
        team: &dyn Team,
        which: Range<usize>,
        normals: Part<'_, F>,
        size: usize,
    ) -> Result<Vec<F>> {
        let count = which.len();
        let mut made = multiply(team, [count, count, size], normals.conjugated(), normals.transposed())?;
        for (at, factor) in self.factors[which].iter().enumerate() {
            for row in 0..at {
                // What is right of the row's own column is needed here, what is left of it is 0.
                let sum = (row..at)
                    .fold(F::ZERO, |sum, step| sum + made[row * count + step] * made[step * count + at]);
                made[row * count + at] = -(*factor * sum);
            }
            made[at * count..][..at].fill(F::ZERO);
            made[at * count + at] = *factor;
        }
        Ok(made)
    }
}

/// Makes a matrix an upper triangle, and gives what has to be multiplied by it to be the matrix again.
pub(super) fn triangulate<F: Field>(team: &dyn Team, matrix: &mut Matrix<F>) -> Result<Mirrors<F>> {
    let (rows, columns) = (matrix.rows, matrix.columns);
    let count = rows.min(columns);
    let mut mirrors = Mirrors::new(count, rows, |index, size| index..size)?;
    let mut along = filled(F::ZERO, BLOCK.min(columns))?;
    for first in (0..count).step_by(BLOCK) {
        let last = count.min(first + BLOCK);
        for column in first..last {
            let vector = (column..rows).map(|row| matrix.at(row, column));
            let left = mirrors.set(column, column, vector);
            let factor = mirrors.factors[column].conjugate();
            let (normal, stride) = (mirrors.normal(column), columns);
            let (_, elements) = matrix.split_at_row(column);
            elements.iter_mut().skip(column).step_by(stride).for_each(|element| *element = F::ZERO);
            elements[column] = F::of_real(left);
            let lines = Lines { elements, stride, columns: column + 1..last };
            team.isa().vectorize(Reflect { normal, factor, rows: lines, along: &mut along });
        }
        mirrors.apply_some(team, first..last, true, matrix, last..columns)?;
    }
    Ok(mirrors)
}

/// A unitary matrix of so many columns and an upper triangle.
pub(super) fn qr<F: Field>(
    team: &dyn Team,
    mut matrix: Matrix<F>,
    inner: usize,
) -> Result<(Matrix<F>, Matrix<F>)> {
    let mut unitary = Matrix::identity(matrix.rows, inner)?;
    triangulate(team, &mut matrix)?.apply(team, &mut unitary)?;
    matrix.elements.truncate(inner * matrix.columns);
    matrix.rows = inner;
    Ok((unitary, matrix))
}
