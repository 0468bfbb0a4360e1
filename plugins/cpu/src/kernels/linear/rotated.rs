//! Eigenvalues and singular values, by Jacobi's rotations: pair after pair of columns is turned until all are upright on each
//! other, which is slower than other ways for large matrices, and as exact as any.

use super::field::Field;
use super::matrix::Matrix;

/// How often all pairs are gone through, at most. Some ten rounds are enough for any matrix.
const MOST_ROUNDS: usize = 60;

/// The cosine, the sine and the phase of the rotation that makes what is between two columns vanish.
fn rotation<F: Field>(one: f64, other: f64, between: F) -> (f64, f64, F) {
    let size = between.magnitude();
    let ratio = (other - one) / (2.0 * size);
    let tangent = ratio.signum() / (ratio.abs() + ratio.hypot(1.0));
    let cosine = 1.0 / tangent.hypot(1.0);
    (cosine, tangent * cosine, between.scaled(1.0 / size))
}

/// The eigenvalues of a matrix that is its own adjoint, the least first, and the vectors as columns. Only the lower triangle
/// is looked at.
pub(super) fn eigh<F: Field>(mut matrix: Matrix<F>) -> (Vec<f64>, Matrix<F>) {
    let size = matrix.rows;
    for row in 0..size {
        for column in row + 1..size {
            *matrix.at_mut(row, column) = matrix.at(column, row).conjugate();
        }
        *matrix.at_mut(row, row) = F::ONE.scaled(matrix.at(row, row).real());
    }
    let mut vectors = Matrix::identity(size, size);
    let scale = matrix.elements.iter().fold(0.0, |most, element| f64::max(most, element.magnitude()));
    for _ in 0..MOST_ROUNDS {
        let mut is_done = true;
        for one in 0..size {
            for other in one + 1..size {
                let between = matrix.at(one, other);
                if between.magnitude() <= f64::EPSILON * 1e-3 * scale {
                    continue;
                }
                is_done = false;
                let turn = rotation(matrix.at(one, one).real(), matrix.at(other, other).real(), between);
                matrix.rotate(one, other, turn);
                // From the other side it is the same turn of the adjoint.
                matrix = matrix.adjoint();
                matrix.rotate(one, other, turn);
                vectors.rotate(one, other, turn);
                *matrix.at_mut(one, other) = F::ZERO;
                *matrix.at_mut(other, one) = F::ZERO;
            }
        }
        if is_done {
            break;
        }
    }
    let values: Vec<f64> = (0..size).map(|at| matrix.at(at, at).real()).collect();
    let mut order: Vec<usize> = (0..size).collect();
    order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
    (order.iter().map(|at| values[*at]).collect(), vectors.ordered(&order))
}

/// A unitary matrix, the singular values, the largest first, and the adjoint of another unitary matrix.
pub(super) fn svd<F: Field>(matrix: &Matrix<F>, is_complete: bool) -> (Matrix<F>, Vec<f64>, Matrix<F>) {
    if matrix.rows < matrix.columns {
        let (left, values, right) = svd(&matrix.adjoint(), is_complete);
        return (right.adjoint(), values, left.adjoint());
    }
    let (mut turned, mut right) = (matrix.clone(), Matrix::identity(matrix.columns, matrix.columns));
    for _ in 0..MOST_ROUNDS {
        let mut is_done = true;
        for one in 0..turned.columns {
            for other in one + 1..turned.columns {
                let (between, lengths) =
                    (turned.inner(one, other), [turned.length(one), turned.length(other)]);
                if between.magnitude() <= f64::EPSILON * lengths[0] * lengths[1] {
                    continue;
                }
                is_done = false;
                let turn = rotation(lengths[0].powi(2), lengths[1].powi(2), between);
                turned.rotate(one, other, turn);
                right.rotate(one, other, turn);
            }
        }
        if is_done {
            break;
        }
    }
    let lengths: Vec<f64> = (0..turned.columns).map(|column| turned.length(column)).collect();
    let mut order: Vec<usize> = (0..turned.columns).collect();
    order.sort_by(|one, other| lengths[*other].total_cmp(&lengths[*one]));
    let values: Vec<f64> = order.iter().map(|at| lengths[*at]).collect();
    let most = values.first().copied().unwrap_or(0.0);
    let left = completed(
        &turned.ordered(&order),
        &values,
        most,
        if is_complete { matrix.rows } else { matrix.columns },
    );
    (left, values, right.ordered(&order).adjoint())
}

/// The columns at length 1, with others that are upright on all where there is no length, and more until there are so many.
fn completed<F: Field>(columns: &Matrix<F>, lengths: &[f64], most: f64, wanted: usize) -> Matrix<F> {
    let rows = columns.rows;
    let mut made = Matrix::zeros(rows, wanted);
    let is_long =
        |column: usize| lengths.get(column).is_some_and(|length| *length > f64::EPSILON * most * rows as f64);
    for column in (0..wanted).filter(|column| is_long(*column)) {
        for row in 0..rows {
            *made.at_mut(row, column) = columns.at(row, column).scaled(1.0 / lengths[column]);
        }
    }
    let mut next = 0;
    for column in (0..wanted).filter(|column| !is_long(*column)) {
        while next < rows {
            for row in 0..rows {
                *made.at_mut(row, column) = if row == next { F::ONE } else { F::ZERO };
            }
            next += 1;
            // Twice, as what is left of the first time is rounded.
            for _ in 0..2 {
                for other in (0..wanted).filter(|other| *other != column) {
                    let along = made.inner(other, column);
                    for row in 0..rows {
                        let change = made.at(row, other) * along;
                        *made.at_mut(row, column) = made.at(row, column) - change;
                    }
                }
            }
            let length = made.length(column);
            if length > 1e-3 / (rows as f64).sqrt() {
                (0..rows)
                    .for_each(|row| *made.at_mut(row, column) = made.at(row, column).scaled(1.0 / length));
                break;
            }
        }
    }
    made
}
