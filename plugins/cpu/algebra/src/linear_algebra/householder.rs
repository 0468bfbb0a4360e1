//! Householder reflections, which make all elements of a vector but one vanish, and products of them.

use std::ops::Range;

use oarlock_cpu_base::rows::scratch::try_filled_vec;
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_sdk::{Result, end_if_stopped};

use super::matrix::{DenseMatrix, normalizing_power};
use super::product::MatrixScalar;
use super::product::{MatrixView, multiply_matrices, subtract_product};
use super::row_operations::{MatrixRows, ReflectRows};

/// Reflections that are applied at a time. A block of them is applied by products of matrices (the compact WY form), so the
/// matrix is read per block and not per reflection.
const REFLECTOR_BLOCK: usize = 32;

/// Sizes whose squares neither overflow nor vanish beside each other.
const SAFE_RANGE: Range<f64> = 1e-140..1e140;

/// Makes a vector the normal of the reflection `1 - factor * normal * normal.adjoint()`, whose adjoint leaves of the vector
/// nothing but a real number at `place`. The normal is 1 there. Returns that number and the factor.
pub(super) fn make_reflector<F: MatrixScalar>(vector: &mut [F], place: usize) -> (f64, F) {
    let most = vector.iter().fold(0.0, |most, element| f64::max(most, element.max_component()));
    let mut back = 1.0;
    // Scaling by a power of two does not round.
    if most > 0.0 && most.is_finite() && !SAFE_RANGE.contains(&most) {
        let power = normalizing_power(most);
        vector.iter_mut().for_each(|element| *element = element.scaled_by(power));
        back = 1.0 / power;
    }
    let first = std::mem::replace(&mut vector[place], F::ZERO);
    let others: f64 = vector.iter().map(|element| element.squared_magnitude()).sum();
    vector[place] = F::ONE;
    // Elements whose squares vanish beside the largest one count as 0.
    if others == 0.0 && first.components()[1] == 0.0 {
        vector[..place].fill(F::ZERO);
        vector[place + 1..].fill(F::ZERO);
        return (first.real_part() * back, F::ZERO);
    }
    let length = (others + first.squared_magnitude()).sqrt();
    // The sign opposite to the first element, so that their difference below does not cancel.
    let left = if first.real_part() > 0.0 { -length } else { length };
    let scale = F::ONE / (first - F::from_real(left));
    for (at, element) in vector.iter_mut().enumerate() {
        if at != place {
            *element = *element * scale;
        }
    }
    (left * back, (F::from_real(left) - first).scaled_by(1.0 / left))
}

/// A product of reflections, the first one leftmost.
pub(super) struct HouseholderProduct<F> {
    /// One normal per row.
    pub(super) normals: DenseMatrix<F>,
    pub(super) factors: Vec<F>,
    /// The columns outside of which the first normal, and all after it, are 0. For the last one it is the other way around, so
    /// the columns of a few neighbors are those between the first and the last.
    pub(super) reach: fn(index: usize, size: usize) -> Range<usize>,
}

impl<F: MatrixScalar> HouseholderProduct<F> {
    /// `count` reflections, each of them still the identity.
    pub(super) fn new(
        count: usize,
        size: usize,
        reach: fn(index: usize, size: usize) -> Range<usize>,
    ) -> Result<Self> {
        Ok(Self {
            normals: DenseMatrix::filled_with(F::ZERO, count, size)?,
            factors: try_filled_vec(F::ZERO, count)?,
            reach,
        })
    }

    /// Makes a reflection of a vector that fills the reach of a normal, as [`make_reflector`] does.
    pub(super) fn set_reflector(
        &mut self,
        index: usize,
        place: usize,
        vector: impl Iterator<Item = F>,
    ) -> f64 {
        let reach = (self.reach)(index, self.normals.columns);
        let place = place - reach.start;
        let normal = &mut self.normals.row_mut(index)[reach];
        normal.iter_mut().zip(vector).for_each(|(to, from)| *to = from);
        let (left, factor) = make_reflector(normal, place);
        self.factors[index] = factor;
        left
    }

    pub(super) fn normal_vector(&self, index: usize) -> &[F] {
        &self.normals.row(index)[(self.reach)(index, self.normals.columns)]
    }

    /// Applies all of them to a matrix.
    pub(super) fn apply_to_matrix(&self, team: &dyn ThreadTeam, matrix: &mut DenseMatrix<F>) -> Result<()> {
        let (count, columns) = (self.factors.len(), 0..matrix.columns);
        // The rightmost reflections act first.
        for first in (0..count).step_by(REFLECTOR_BLOCK).rev() {
            self.apply_range(
                team,
                first..count.min(first + REFLECTOR_BLOCK),
                false,
                matrix,
                columns.clone(),
            )?;
        }
        Ok(())
    }

    /// Applies the product of some, or its adjoint, to some columns of a matrix.
    fn apply_range(
        &self,
        team: &dyn ThreadTeam,
        which: Range<usize>,
        is_adjoint: bool,
        matrix: &mut DenseMatrix<F>,
        columns: Range<usize>,
    ) -> Result<()> {
        let (size, count, width) = (self.normals.columns, which.len(), columns.len());
        let ends = [(self.reach)(which.start, size), (self.reach)(which.end - 1, size)];
        let rows = ends[0].start.min(ends[1].start)..ends[0].end.max(ends[1].end);
        if width == 0 || rows.is_empty() {
            return Ok(());
        }
        let normals =
            MatrixView::new(&self.normals.elements[which.start * size..], size).skip_columns(rows.start);
        let triangle = self.triangular_factor(team, which, normals, rows.len())?;
        let triangle = MatrixView::new(&triangle, count);
        let triangle = if is_adjoint { triangle.adjoint() } else { triangle };
        let stride = matrix.columns;
        let below = &mut matrix.elements[rows.start * stride..rows.end * stride];
        let own = MatrixView::new(below, stride).skip_columns(columns.start);
        // `1 - V T V*` from the right to the left: the two products in between have no more rows than there are reflections.
        let along = multiply_matrices(team, [count, width, rows.len()], normals.conjugated(), own)?;
        let along = multiply_matrices(team, [count, width, count], triangle, MatrixView::new(&along, width))?;
        let from = MatrixRows { elements: below, stride, columns };
        subtract_product(
            team,
            [rows.len(), count],
            from,
            normals.transposed(),
            MatrixView::new(&along, width),
        )
    }

    /// The upper triangle of the compact WY form, between the normals and their adjoint.
    fn triangular_factor(
        &self,
        team: &dyn ThreadTeam,
        which: Range<usize>,
        normals: MatrixView<'_, F>,
        size: usize,
    ) -> Result<Vec<F>> {
        let count = which.len();
        // The products of the normals with each other, which become the triangle in place.
        let mut result =
            multiply_matrices(team, [count, count, size], normals.conjugated(), normals.transposed())?;
        for (at, factor) in self.factors[which].iter().enumerate() {
            for row in 0..at {
                // The part right of the row's own column is needed here; the part left of it is 0.
                let sum = (row..at)
                    .fold(F::ZERO, |sum, step| sum + result[row * count + step] * result[step * count + at]);
                result[row * count + at] = -(*factor * sum);
            }
            result[at * count..][..at].fill(F::ZERO);
            result[at * count + at] = *factor;
        }
        Ok(result)
    }
}

/// Makes a matrix an upper triangle, and returns the product that has to be multiplied with it to restore the matrix.
pub(super) fn triangularize<F: MatrixScalar>(
    team: &dyn ThreadTeam,
    matrix: &mut DenseMatrix<F>,
) -> Result<HouseholderProduct<F>> {
    let (rows, columns) = (matrix.rows, matrix.columns);
    let count = rows.min(columns);
    let mut mirrors = HouseholderProduct::new(count, rows, |index, size| index..size)?;
    let mut along = try_filled_vec(F::ZERO, REFLECTOR_BLOCK.min(columns))?;
    for first in (0..count).step_by(REFLECTOR_BLOCK) {
        let last = count.min(first + REFLECTOR_BLOCK);
        for column in first..last {
            end_if_stopped();
            let vector = (column..rows).map(|row| matrix.element_at(row, column));
            let left = mirrors.set_reflector(column, column, vector);
            // The adjoint of the reflection makes the column vanish.
            let factor = mirrors.factors[column].conjugate();
            let (normal, stride) = (mirrors.normal_vector(column), columns);
            let (_, elements) = matrix.split_at_row(column);
            // What vanishes becomes an exact 0 instead of the rounding errors that a product would leave.
            elements.iter_mut().skip(column).step_by(stride).for_each(|element| *element = F::ZERO);
            elements[column] = F::from_real(left);
            // Only the columns of this block; those to the right are updated once per block, by products of matrices.
            let lines = MatrixRows { elements, stride, columns: column + 1..last };
            team.isa().vectorize(ReflectRows { normal, factor, rows: lines, along: &mut along });
        }
        mirrors.apply_range(team, first..last, true, matrix, last..columns)?;
    }
    Ok(mirrors)
}

/// A unitary matrix of the given number of columns, and an upper triangle.
pub(super) fn qr_decompose<F: MatrixScalar>(
    team: &dyn ThreadTeam,
    mut matrix: DenseMatrix<F>,
    inner: usize,
) -> Result<(DenseMatrix<F>, DenseMatrix<F>)> {
    let mut unitary = DenseMatrix::identity(matrix.rows, inner)?;
    triangularize(team, &mut matrix)?.apply_to_matrix(team, &mut unitary)?;
    matrix.elements.truncate(inner * matrix.columns);
    matrix.rows = inner;
    Ok((unitary, matrix))
}
