//! Matrices as products of triangular and unitary ones.

use super::field::Field;
use super::matrix::Matrix;

/// The lower triangle whose product with its adjoint the matrix is; nothing where there is none. The upper triangle of the
/// matrix is not looked at.
pub(super) fn cholesky<F: Field>(matrix: &Matrix<F>) -> Option<Matrix<F>> {
    let size = matrix.rows;
    let mut lower: Matrix<F> = Matrix::zeros(size, size);
    for column in 0..size {
        let known = (0..column).map(|at| lower.at(column, at).magnitude().powi(2)).sum::<f64>();
        let square = matrix.at(column, column).real() - known;
        if square.is_nan() || square <= 0.0 {
            return None;
        }
        let pivot = square.sqrt();
        *lower.at_mut(column, column) = F::ONE.scaled(pivot);
        for row in column + 1..size {
            let sum = (0..column)
                .fold(F::ZERO, |sum, at| sum + lower.at(row, at) * lower.at(column, at).conjugate());
            *lower.at_mut(row, column) = (matrix.at(row, column) - sum).scaled(1.0 / pivot);
        }
    }
    Some(lower)
}

/// Eliminates what is below the diagonal, column after column, each with the largest element left. The factors stay below the
/// diagonal. Gives the order that the rows are in now, and its sign.
pub(super) fn eliminate<F: Field>(matrix: &mut Matrix<F>) -> (Vec<usize>, F) {
    let size = matrix.rows;
    let (mut order, mut sign): (Vec<usize>, F) = ((0..size).collect(), F::ONE);
    for column in 0..size {
        let larger = |best: usize, row: usize| {
            if matrix.at(row, column).magnitude() > matrix.at(best, column).magnitude() { row } else { best }
        };
        let pivot = (column + 1..size).fold(column, larger);
        if pivot != column {
            matrix.swap_rows(pivot, column);
            order.swap(pivot, column);
            sign = -sign;
        }
        let own = matrix.at(column, column);
        if own.magnitude() == 0.0 {
            continue;
        }
        for row in column + 1..size {
            let factor = matrix.at(row, column) / own;
            *matrix.at_mut(row, column) = factor;
            for at in column + 1..size {
                let change = factor * matrix.at(column, at);
                *matrix.at_mut(row, at) = matrix.at(row, at) - change;
            }
        }
    }
    (order, sign)
}

/// What a matrix has to be multiplied by to be the right side; nothing where the matrix has no inverse.
pub(super) fn solve<F: Field>(mut matrix: Matrix<F>, right: Matrix<F>) -> Option<Matrix<F>> {
    let size = matrix.rows;
    let (order, _) = eliminate(&mut matrix);
    if (0..size).any(|at| matrix.at(at, at).magnitude() == 0.0) {
        return None;
    }
    let mut solved: Matrix<F> = Matrix::zeros(size, right.columns);
    for column in 0..right.columns {
        for (row, from) in order.iter().enumerate() {
            let known = (0..row).fold(F::ZERO, |sum, at| sum + matrix.at(row, at) * solved.at(at, column));
            *solved.at_mut(row, column) = right.at(*from, column) - known;
        }
        for row in (0..size).rev() {
            let known =
                (row + 1..size).fold(F::ZERO, |sum, at| sum + matrix.at(row, at) * solved.at(at, column));
            *solved.at_mut(row, column) = (solved.at(row, column) - known) / matrix.at(row, row);
        }
    }
    Some(solved)
}

/// A unitary matrix of so many columns and an upper triangle, by Householder's reflections.
pub(super) fn qr<F: Field>(mut matrix: Matrix<F>, inner: usize) -> (Matrix<F>, Matrix<F>) {
    let (rows, columns) = (matrix.rows, matrix.columns);
    let mut mirrors: Vec<Vec<F>> = Vec::new();
    for column in 0..rows.min(columns) {
        let length =
            (column..rows).fold(0.0, |length, row| f64::hypot(length, matrix.at(row, column).magnitude()));
        let first = matrix.at(column, column);
        let phase = if first.magnitude() == 0.0 { F::ONE } else { first.scaled(1.0 / first.magnitude()) };
        let mut mirror: Vec<F> = (column..rows).map(|row| matrix.at(row, column)).collect();
        mirror[0] = mirror[0] + phase.scaled(length);
        let size = mirror.iter().fold(0.0, |length, element| f64::hypot(length, element.magnitude()));
        if size > 0.0 {
            mirror.iter_mut().for_each(|element| *element = element.scaled(1.0 / size));
            reflect(&mut matrix, &mirror, column, column);
        }
        mirrors.push(mirror);
    }
    let mut unitary = Matrix::identity(rows, inner);
    for (column, mirror) in mirrors.iter().enumerate().rev() {
        reflect(&mut unitary, mirror, column, 0);
    }
    let mut upper = Matrix::zeros(inner, columns);
    for row in 0..inner.min(columns) {
        for column in row..columns {
            *upper.at_mut(row, column) = matrix.at(row, column);
        }
    }
    (unitary, upper)
}

/// Mirrors the columns from one on, in the rows from one on, at the plane that a unit vector is upright on.
fn reflect<F: Field>(matrix: &mut Matrix<F>, mirror: &[F], first_row: usize, first_column: usize) {
    for column in first_column..matrix.columns {
        let along = mirror.iter().enumerate().fold(F::ZERO, |sum, (at, element)| {
            sum + element.conjugate() * matrix.at(first_row + at, column)
        });
        for (at, element) in mirror.iter().enumerate() {
            let change = (*element * along).scaled(2.0);
            *matrix.at_mut(first_row + at, column) = matrix.at(first_row + at, column) - change;
        }
    }
}
