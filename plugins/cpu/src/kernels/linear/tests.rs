//! Matrices that are taken apart and put together again.

use oarlock_sdk::{Complex, Dtype, Element};

use super::field::Field as _;
use super::matrix::Matrix;
use super::{decomposed, rotated};
use crate::testing::{Array, Attribute, run_with_isa};

type Number = Complex<f64>;

/// A matrix of numbers that look random.
fn some(rows: usize, columns: usize) -> Matrix<Number> {
    let mut state = 88172645463325252u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    let elements = (0..rows * columns).map(|_| Complex::new(next(), next())).collect();
    Matrix { rows, columns, elements }
}

fn product(a: &Matrix<Number>, b: &Matrix<Number>) -> Matrix<Number> {
    let mut made = Matrix::zeros(a.rows, b.columns);
    for row in 0..a.rows {
        for column in 0..b.columns {
            let sum = (0..a.columns).map(|at| a.at(row, at) * b.at(at, column)).sum();
            *made.at_mut(row, column) = sum;
        }
    }
    made
}

#[track_caller]
fn assert_near(found: &Matrix<Number>, expected: &Matrix<Number>) {
    assert_eq!((found.rows, found.columns), (expected.rows, expected.columns));
    for (found, expected) in found.elements.iter().zip(&expected.elements) {
        assert!((*found - *expected).magnitude() < 1e-12, "{found} {expected}");
    }
}

#[track_caller]
fn assert_unitary(matrix: &Matrix<Number>) {
    assert_near(&product(&matrix.adjoint(), matrix), &Matrix::identity(matrix.columns, matrix.columns));
}

fn diagonal(values: &[f64], rows: usize, columns: usize) -> Matrix<Number> {
    let mut made = Matrix::zeros(rows, columns);
    values.iter().enumerate().for_each(|(at, value)| *made.at_mut(at, at) = Complex::new(*value, 0.0));
    made
}

#[test]
fn a_unitary_matrix_and_a_triangle_make_the_matrix() {
    for (rows, columns) in [(5, 3), (3, 5), (4, 4), (1, 1)] {
        let matrix = some(rows, columns);
        for inner in [rows.min(columns), rows] {
            let (unitary, upper) = decomposed::qr(matrix.clone(), inner);
            assert_unitary(&unitary);
            assert_near(&product(&unitary, &upper), &matrix);
            assert!(
                (0..inner)
                    .all(|row| (0..row.min(columns)).all(|column| upper.at(row, column).magnitude() == 0.0))
            );
        }
    }
}

#[test]
fn singular_values_and_unitary_matrices_make_the_matrix() {
    let mut flat = some(6, 4);
    // Two columns that are the same, and one of zeros: two singular values are 0.
    for row in 0..6 {
        *flat.at_mut(row, 1) = flat.at(row, 0);
        *flat.at_mut(row, 3) = Complex::new(0.0, 0.0);
    }
    for matrix in [some(5, 3), some(3, 5), some(4, 4), flat, Matrix::zeros(3, 2)] {
        for is_complete in [false, true] {
            let (left, values, right) = rotated::svd(&matrix, is_complete);
            assert_unitary(&left);
            assert_unitary(&right.adjoint());
            assert!(
                values.is_sorted_by(|one, other| one >= other) && values.iter().all(|value| *value >= 0.0)
            );
            let made = product(&product(&left, &diagonal(&values, left.columns, right.rows)), &right);
            assert_near(&made, &matrix);
        }
    }
}

#[test]
fn eigenvalues_and_vectors_make_the_matrix() {
    let half = some(6, 6);
    let matrix = product(&half, &half.adjoint());
    let (values, vectors) = rotated::eigh(matrix.clone());
    assert_unitary(&vectors);
    assert!(values.is_sorted());
    assert_near(&product(&product(&vectors, &diagonal(&values, 6, 6)), &vectors.adjoint()), &matrix);
    let lower = decomposed::cholesky(&matrix).unwrap();
    assert_near(&product(&lower, &lower.adjoint()), &matrix);
    assert!(decomposed::cholesky(&diagonal(&[1.0, -1.0], 2, 2)).is_none());
}

#[test]
fn a_solution_multiplied_by_the_matrix_is_the_right_side() {
    let (matrix, right) = (some(5, 5), some(5, 2));
    let solved = decomposed::solve(matrix.clone(), right.clone()).unwrap();
    assert_near(&product(&matrix, &solved), &right);
    assert!(decomposed::solve(Matrix::<f64>::zeros(2, 2), Matrix::zeros(2, 1)).is_none());
}

#[test]
fn every_dtype_has_kernels_for_stacks_of_matrices() {
    fn check<T: Element>(elements: &[T], dtypes: (Dtype, Dtype)) {
        let x = Array::of(&[2, 2, 2], elements);
        let (dtype, part) = dtypes;
        let run = |op: &str, outputs: &[Option<(Dtype, &[i64])>]| {
            let attributes: &[(&str, Attribute<'_>)] = &[];
            run_with_isa("scalar", &format!("oarlock:{op}"), 1, attributes, &[Some(&x)], outputs).unwrap()
        };
        run("Cholesky", &[Some((dtype, &[2, 2, 2]))]);
        run("Eigh", &[Some((part, &[2, 2])), Some((dtype, &[2, 2, 2]))]);
        run("Qr", &[Some((dtype, &[2, 2, 2])), Some((dtype, &[2, 2, 2]))]);
        run("SlogDet", &[Some((dtype, &[2])), Some((part, &[2]))]);
        run("Svd", &[Some((dtype, &[2, 2, 2])), Some((part, &[2, 2])), Some((dtype, &[2, 2, 2]))]);
    }
    let numbers = [2.0f64, 1.0, 1.0, 3.0, 4.0, 0.5, 0.5, 1.0];
    check::<f64>(&numbers, (Dtype::F64, Dtype::F64));
    check::<f32>(&numbers.map(|x| x as f32), (Dtype::F32, Dtype::F32));
    check::<Complex<f64>>(&numbers.map(|x| Complex::new(x, 0.0)), (Dtype::C128, Dtype::F64));
    check::<Complex<f32>>(&numbers.map(|x| Complex::new(x as f32, 0.0)), (Dtype::C64, Dtype::F32));
}
