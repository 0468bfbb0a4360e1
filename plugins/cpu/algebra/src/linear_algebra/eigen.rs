//! Eigenvalues of self-adjoint matrices: Householder reflections leave three diagonals, and rotations of neighboring rows leave
//! one (implicit QL).

use oarlock_cpu_base::isa::{SimdTarget, SimdTask};
use oarlock_cpu_base::rows::scratch::{try_filled_vec, try_reserve_vec};
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_sdk::{PluginError, Result, end_if_stopped};

use super::householder::HouseholderProduct;
use super::matrix::{DenseMatrix, normalizing_power};
use super::product::MatrixScalar;
use super::row_operations::{GivensRotation, MatrixRows, RotateRows, add_scaled, dot_product};

/// The maximum number of iterations per value. Two or three are usual.
pub(super) const MAX_ITERATIONS: usize = 100;

/// As good as 0 beside numbers near 1, however small its neighbors are.
pub(super) const NEGLIGIBLE: f64 = 1e-290;

/// The eigenvalues of a self-adjoint matrix in ascending order and, if wanted, the eigenvectors as columns. Only the lower
/// triangle is read. All are NaN if an element of the matrix is not finite.
pub(super) fn eigh<F: MatrixScalar>(
    team: &dyn ThreadTeam,
    mut matrix: DenseMatrix<F>,
    has_vectors: bool,
) -> Result<(Vec<f64>, DenseMatrix<F>)> {
    let size = matrix.rows;
    let side = if has_vectors { size } else { 0 };
    // What lies above the diagonal may be anything, NaN included, and must not count in the maximum.
    for row in 0..size {
        matrix.row_mut(row)[row + 1..].fill(F::ZERO);
    }
    let most = matrix.max_component();
    if !most.is_finite() {
        return Ok((
            try_filled_vec(f64::NAN, size)?,
            DenseMatrix::filled_with(F::from_components([f64::NAN; 2]), side, side)?,
        ));
    }
    // A power of two scales without rounding, and squares of numbers near 1 neither overflow nor vanish.
    let power = normalizing_power(most);
    matrix.scale(power);
    let (mut diagonal, mut beside, mirrors) = tridiagonalize(team, matrix)?;
    // Eigenvectors are rows until the end, because rotations of rows work on contiguous memory.
    let mut turned = DenseMatrix::identity(side, side)?;
    diagonalize(team, &mut diagonal, &mut beside, &mut turned)?;
    // Values come out in no particular order.
    let mut order: Vec<usize> = (0..size).collect();
    order.sort_by(|one, other| diagonal[*one].total_cmp(&diagonal[*other]));
    let values = order.iter().map(|at| diagonal[*at] / power).collect();
    let mut vectors = rows_to_columns(&turned, &order[..side], side)?;
    if has_vectors {
        // These are the vectors of the three diagonals; the reflections turn them into those of the matrix.
        mirrors.apply_to_matrix(team, &mut vectors)?;
    }
    Ok((values, vectors))
}

/// Transposes some rows to columns, and pads with rows of zeros up to the given number.
pub(super) fn rows_to_columns<F: MatrixScalar>(
    turned: &DenseMatrix<f64>,
    order: &[usize],
    rows: usize,
) -> Result<DenseMatrix<F>> {
    let mut result = DenseMatrix::filled_with(F::ZERO, rows, order.len())?;
    for row in 0..turned.columns {
        for (to, from) in result.row_mut(row).iter_mut().zip(order) {
            *to = F::from_real(turned.element_at(*from, row));
        }
    }
    Ok(result)
}

/// The diagonal, the one beside it, and the reflections that lead to them. From the last row upwards, a reflection leaves of each
/// row its element on the diagonal and the one before. Its update of the rows above, `left * right' + right * left'`, waits until
/// they are next gone through: one pass over memory instead of two.
fn tridiagonalize<F: MatrixScalar>(
    team: &dyn ThreadTeam,
    mut matrix: DenseMatrix<F>,
) -> Result<(Vec<f64>, Vec<f64>, HouseholderProduct<F>)> {
    let size = matrix.rows;
    let (mut diagonal, mut beside) = (try_filled_vec(0.0, size)?, try_filled_vec(0.0, size)?);
    let mut mirrors =
        HouseholderProduct::new(size.saturating_sub(1), size, |index, size| 0..size - 1 - index)?;
    let (mut left, mut right) = (try_filled_vec(F::ZERO, size)?, try_filled_vec(F::ZERO, size)?);
    let (mut left_back, mut right_back) = (try_filled_vec(F::ZERO, size)?, try_filled_vec(F::ZERO, size)?);
    for row in (0..size).rev() {
        end_if_stopped();
        let (above, own) = matrix.split_at_row(row);
        for (column, element) in own[..=row].iter_mut().enumerate() {
            *element = *element - left[row] * right_back[column] - right[row] * left_back[column];
        }
        // The diagonal of a self-adjoint matrix is real, so an imaginary part does not count.
        diagonal[row] = own[row].real_part();
        if row == 0 {
            break;
        }
        let index = size - 1 - row;
        // The conjugated row is the column above the diagonal, of which only the mirror image is stored.
        let vector = own[..row].iter().map(|element| element.conjugate());
        beside[row - 1] = mirrors.set_reflector(index, row - 1, vector);
        let (normal, factor) = (mirrors.normal_vector(index), mirrors.factors[index]);
        let mut sums = try_filled_vec(F::ZERO, row)?;
        team.isa().vectorize(TridiagonalSweep {
            rows: MatrixRows { elements: above, stride: size, columns: 0..row },
            sides: [&left, &right],
            backs: [&left_back, &right_back],
            normal,
            sums: &mut sums,
        });
        sums.iter_mut().for_each(|sum| *sum = *sum * factor);
        let along =
            sums.iter().zip(normal).fold(F::ZERO, |along, (sum, normal)| along + sum.conjugate() * *normal);
        // The product with the matrix is corrected by half of its part along the normal, so that two products of vectors are the
        // whole update.
        let along = (factor * along).scaled_by(0.5);
        for (at, (sum, normal)) in sums.iter().zip(normal).enumerate() {
            left[at] = *normal;
            right[at] = *sum - along * *normal;
            // Conjugated once, instead of in each row of the next sweep.
            left_back[at] = left[at].conjugate();
            right_back[at] = right[at].conjugate();
        }
    }
    Ok((diagonal, beside, mirrors))
}

/// Applies the update of the last reflection to the lower triangle of a self-adjoint matrix, and multiplies the result with the
/// next normal.
struct TridiagonalSweep<'a, F> {
    rows: MatrixRows<'a, F>,
    sides: [&'a [F]; 2],
    backs: [&'a [F]; 2],
    normal: &'a [F],
    sums: &'a mut [F],
}

impl<F: MatrixScalar> SimdTask for TridiagonalSweep<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(mut self) {
        for (at, row) in self.rows.iter_rows().enumerate() {
            let row = &mut row[..=at];
            add_scaled::<T, F>(row, -self.sides[0][at], self.backs[1]);
            add_scaled::<T, F>(row, -self.sides[1][at], self.backs[0]);
            let own = dot_product::<T, F>(row, &self.normal[..=at]);
            let normal = self.normal[at];
            // An element below the diagonal also stands for its mirror image, so one read serves both.
            for (sum, element) in self.sums.iter_mut().zip(&row[..at]) {
                *sum = sum.add_product::<T>(element.conjugate(), normal);
            }
            self.sums[at] = self.sums[at] + own;
        }
    }
}

/// Makes the elements beside the diagonal vanish, and rotates the rows of a matrix, if it has any, as the columns of the three
/// diagonals are rotated.
fn diagonalize(
    team: &dyn ThreadTeam,
    diagonal: &mut [f64],
    beside: &mut [f64],
    turned: &mut DenseMatrix<f64>,
) -> Result<()> {
    let size = diagonal.len();
    let mut turns = try_reserve_vec(size)?;
    for first in 0..size {
        for step in 0.. {
            end_if_stopped();
            // A negligible element splits the matrix in two, of which only the first part is worked on.
            let last = (first..size - 1).find(|at| is_negligible(diagonal, beside, *at)).unwrap_or(size - 1);
            if last == first {
                break;
            }
            if step == MAX_ITERATIONS {
                return Err(convergence_error("eigenvalues"));
            }
            turns.clear();
            chase_bulge(diagonal, beside, first, last, &mut turns);
            // Rotations of the vectors wait for the whole step, so that one dispatch runs all of them.
            apply_rotations(team, turned, &turns);
        }
    }
    Ok(())
}

/// True if an element beside the diagonal is negligible.
pub(super) fn is_negligible(diagonal: &[f64], beside: &[f64], at: usize) -> bool {
    let around = diagonal[at].abs() + diagonal[at + 1].abs();
    beside[at].abs() <= f64::EPSILON * around + NEGLIGIBLE
}

/// One QL step: brings the first of some values closer to an eigenvalue, by one rotation after the other from the last row on.
fn chase_bulge(
    diagonal: &mut [f64],
    beside: &mut [f64],
    first: usize,
    last: usize,
    turns: &mut Vec<GivensRotation>,
) {
    // Wilkinson's shift: of the eigenvalues of the first two rows, the one nearer to the first element. `length` takes the sign of
    // `ratio` so that their sum does not cancel.
    let ratio = (diagonal[first + 1] - diagonal[first]) / (2.0 * beside[first]);
    let length = ratio.hypot(1.0).copysign(ratio);
    let mut ahead = diagonal[last] - diagonal[first] + beside[first] / (ratio + length);
    let (mut sine, mut cosine, mut change) = (1.0, 1.0, 0.0);
    for at in (first..last).rev() {
        let (across, along) = (sine * beside[at], cosine * beside[at]);
        let length = across.hypot(ahead);
        beside[at + 1] = length;
        // Both sides are 0, so no rotation is defined: the matrix splits here, and the caller goes on with the parts.
        if length == 0.0 {
            diagonal[at + 1] -= change;
            beside[last] = 0.0;
            return;
        }
        (sine, cosine) = (across / length, ahead / length);
        let own = diagonal[at + 1] - change;
        let both = (diagonal[at] - own) * sine + 2.0 * cosine * along;
        change = sine * both;
        diagonal[at + 1] = own + change;
        ahead = cosine * both - along;
        turns.push(GivensRotation { rows: [at + 1, at], cosine, sine });
    }
    diagonal[first] -= change;
    beside[first] = ahead;
    beside[last] = 0.0;
}

/// Rotates rows of a matrix, if it has any.
pub(super) fn apply_rotations(
    team: &dyn ThreadTeam,
    turned: &mut DenseMatrix<f64>,
    turns: &[GivensRotation],
) {
    if !turned.elements.is_empty() {
        team.isa().vectorize(RotateRows { stride: turned.columns, elements: &mut turned.elements, turns });
    }
}

pub(super) fn convergence_error(what: &str) -> PluginError {
    PluginError::out_of_range(format!(
        "expected {what} after {MAX_ITERATIONS} steps each, found some that are not settled"
    ))
}
