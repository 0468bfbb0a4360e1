//! Matrices that are taken apart and put together again.

use oarlock_sdk::{Complex, Dtype, Element};

use super::field::Field;
use super::matrix::Matrix;
use super::singular::Vectors;
use super::{eigen, mirrors, singular, triangular};
use crate::gemm::Team;
use crate::isa::Isa;
use crate::kernels::channels_last::tests::reference::Threads;
use crate::testing::{Array, Attribute, run_with_isa};

type Number = Complex<f64>;

const TEAMS: [fn() -> Threads; 2] = [|| alone(Isa::Scalar), || alone(Isa::best())];

fn alone(isa: Isa) -> Threads {
    Threads { isa, count: 1 }
}

/// Sizes around those of the blocks that are computed at a time.
const SIZES: [usize; 8] = [0, 1, 2, 3, 17, 32, 33, 70];

/// A matrix of numbers that look random.
fn some<F: Field>(rows: usize, columns: usize) -> Matrix<F> {
    let mut state = 88172645463325252u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    let elements = (0..rows * columns).map(|_| F::of_parts([next(), next()])).collect();
    Matrix { rows, columns, elements }
}

fn product<F: Field>(a: &Matrix<F>, b: &Matrix<F>) -> Matrix<F> {
    let mut made = Matrix::of(F::ZERO, a.rows, b.columns).unwrap();
    for row in 0..a.rows {
        for column in 0..b.columns {
            *made.at_mut(row, column) =
                (0..a.columns).fold(F::ZERO, |sum, at| sum + a.at(row, at) * b.at(at, column));
        }
    }
    made
}

/// Whether two matrices are the same but for rounding.
#[track_caller]
fn assert_near<F: Field>(found: &Matrix<F>, expected: &Matrix<F>) {
    assert_eq!((found.rows, found.columns), (expected.rows, expected.columns));
    let most = expected.size();
    for (found, expected) in found.elements.iter().zip(&expected.elements) {
        let (is, should) = (found.parts(), expected.parts());
        assert!((*found - *expected).size() <= 1e-13 * most, "{is:?} {should:?}");
    }
}

#[track_caller]
fn assert_unitary<F: Field>(matrix: &Matrix<F>) {
    let made = product(&matrix.adjoint().unwrap(), matrix);
    assert_near(&made, &Matrix::identity(matrix.columns, matrix.columns).unwrap());
}

fn diagonal<F: Field>(values: &[f64], rows: usize, columns: usize) -> Matrix<F> {
    let mut made = Matrix::of(F::ZERO, rows, columns).unwrap();
    values.iter().enumerate().for_each(|(at, value)| *made.at_mut(at, at) = F::of_real(*value));
    made
}

fn copy<F: Field>(matrix: &Matrix<F>) -> Matrix<F> {
    Matrix { elements: matrix.elements.clone(), ..*matrix }
}

/// Matrices that are not just any: flat ones, large and small ones, with gaps.
fn awkward<F: Field>(rows: usize, columns: usize) -> Vec<Matrix<F>> {
    let plain = some::<F>(rows, columns);
    let changed = |change: &dyn Fn(usize, usize, F) -> F| {
        let mut made = copy(&plain);
        for row in 0..rows {
            for column in 0..columns {
                *made.at_mut(row, column) = change(row, column, plain.at(row, column));
            }
        }
        made
    };
    vec![
        changed(&|_, _, element| element),
        changed(&|_, _, _| F::ZERO),
        changed(&|_, _, _| F::ONE),
        changed(&|row, _, _| F::of_parts([row as f64, 1.0])),
        changed(&|row, column, element| if row <= column { element } else { F::ZERO }),
        changed(&|row, column, _| if row == column { F::of_real(-1.0) } else { F::ZERO }),
        changed(&|row, column, element| if (row + column) % 3 == 0 { element } else { F::ZERO }),
        changed(&|row, column, element| element.scaled(0.1f64.powi((row + column) as i32))),
        changed(&|_, _, element| element.scaled(1e300)),
        changed(&|_, _, element| element.scaled(1e-300)),
        changed(&|_, column, element| element.scaled(if column % 2 == 0 { 1e150 } else { 1e-150 })),
    ]
}

fn taken_apart_and_together<F: Field>(team: &dyn Team, matrix: &Matrix<F>) {
    let (rows, columns) = (matrix.rows, matrix.columns);
    for inner in [rows.min(columns), rows] {
        let (unitary, upper) = mirrors::qr(team, copy(matrix), inner).unwrap();
        assert_unitary(&unitary);
        assert_near(&product(&unitary, &upper), matrix);
        assert!((0..inner).all(|row| (0..row.min(columns)).all(|at| upper.at(row, at).size() == 0.0)));
    }
    let (none, alone, _) = singular::svd(team, copy(matrix), Vectors::None).unwrap();
    assert!(none.elements.is_empty());
    for vectors in [Vectors::Reduced, Vectors::Complete] {
        let (left, values, right) = singular::svd(team, copy(matrix), vectors).unwrap();
        assert_unitary(&left);
        assert_unitary(&right.adjoint().unwrap());
        assert!(values.is_sorted_by(|one, other| one >= other) && values.iter().all(|value| *value >= 0.0));
        assert_eq!(values, alone);
        let made = product(&product(&left, &diagonal(&values, left.columns, right.rows)), &right);
        assert_near(&made, matrix);
    }
}

#[test]
fn triangles_singular_values_and_unitary_matrices_make_the_matrix() {
    for team in TEAMS {
        for (rows, columns) in [(5, 3), (3, 5), (4, 4), (1, 1), (2, 1), (6, 0), (0, 2), (9, 9)] {
            awkward::<f64>(rows, columns).iter().for_each(|matrix| taken_apart_and_together(&team(), matrix));
            awkward::<Number>(rows, columns)
                .iter()
                .for_each(|matrix| taken_apart_and_together(&team(), matrix));
        }
        for (rows, columns) in [(70, 33), (33, 70), (40, 40), (64, 64)] {
            taken_apart_and_together(&team(), &some::<f64>(rows, columns));
            taken_apart_and_together(&team(), &some::<Number>(rows, columns));
        }
    }
}

fn own_adjoint<F: Field>(matrix: &Matrix<F>) -> Matrix<F> {
    let mut made = copy(matrix);
    for row in 0..matrix.rows {
        for column in 0..matrix.columns {
            *made.at_mut(row, column) =
                (matrix.at(row, column) + matrix.at(column, row).conjugate()).scaled(0.5);
        }
    }
    made
}

fn turned_to_a_diagonal<F: Field>(team: &dyn Team, matrix: &Matrix<F>) {
    let size = matrix.rows;
    let matrix = own_adjoint(matrix);
    let mut lower = copy(&matrix);
    for row in 0..size {
        lower.row_mut(row)[row + 1..].fill(F::of_real(7.0));
    }
    let (values, vectors) = eigen::eigh(team, copy(&lower), true).unwrap();
    assert_eq!(eigen::eigh(team, lower, false).unwrap().0, values);
    assert_unitary(&vectors);
    assert!(values.is_sorted());
    let back = vectors.adjoint().unwrap();
    assert_near(&product(&product(&vectors, &diagonal(&values, size, size)), &back), &matrix);
}

#[test]
fn eigenvalues_and_vectors_make_the_matrix() {
    for team in TEAMS {
        for size in [1, 2, 3, 8] {
            awkward::<f64>(size, size).iter().for_each(|matrix| turned_to_a_diagonal(&team(), matrix));
            awkward::<Number>(size, size).iter().for_each(|matrix| turned_to_a_diagonal(&team(), matrix));
        }
        for size in SIZES {
            turned_to_a_diagonal(&team(), &some::<f64>(size, size));
            turned_to_a_diagonal(&team(), &some::<Number>(size, size));
        }
    }
}

fn solved_and_rooted<F: Field>(team: &dyn Team, size: usize) {
    let (matrix, right) = (some::<F>(size, size), some::<F>(size, 3));
    let solved = triangular::solve(team, copy(&matrix), &right).unwrap().unwrap();
    let found = product(&matrix, &solved);
    for (found, expected) in found.elements.iter().zip(&right.elements) {
        assert!((*found - *expected).size() < 1e-11);
    }
    let mut positive = product(&matrix, &matrix.adjoint().unwrap());
    (0..size).for_each(|at| *positive.at_mut(at, at) = positive.at(at, at) + F::ONE);
    let mut lower = copy(&positive);
    (0..size).for_each(|row| lower.row_mut(row)[row + 1..].fill(F::of_real(f64::NAN)));
    let root = triangular::cholesky(team, lower).unwrap().unwrap();
    assert_near(&product(&root, &root.adjoint().unwrap()), &positive);
    if size > 0 {
        let last = size - 1;
        *positive.at_mut(last, last) = F::of_real(-1.0);
        assert!(triangular::cholesky(team, positive).unwrap().is_none());
        let mut flat = matrix;
        (0..size).for_each(|row| *flat.at_mut(row, last / 2) = F::ZERO);
        assert!(triangular::solve(team, flat, &right).unwrap().is_none());
    }
}

#[test]
fn a_solution_multiplied_by_the_matrix_is_the_right_side_and_a_root_by_its_adjoint_the_matrix() {
    for team in TEAMS {
        for size in SIZES {
            solved_and_rooted::<f64>(&team(), size);
            solved_and_rooted::<Number>(&team(), size);
        }
    }
}

#[test]
fn what_is_not_finite_ends_at_once_and_as_no_number() {
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for at in [0, 3, 24] {
            let mut matrix = some::<Number>(5, 5);
            matrix.elements[at] = Complex::new(1.0, odd);
            let is_nothing = |values: &[f64]| values.len() == 5 && values.iter().all(|value| value.is_nan());
            let is_no_matrix =
                |matrix: &Matrix<Number>| matrix.elements.iter().all(|element| element.re.is_nan());
            let team = alone(Isa::best());
            let (left, values, right) = singular::svd(&team, copy(&matrix), Vectors::Complete).unwrap();
            assert!(is_nothing(&values) && is_no_matrix(&left) && is_no_matrix(&right));
            if at != 3 {
                let (values, vectors) = eigen::eigh(&team, copy(&matrix), true).unwrap();
                assert!(is_nothing(&values) && is_no_matrix(&vectors));
            }
            assert!(triangular::cholesky(&team, copy(&matrix)).unwrap().is_none() || at == 3);
        }
    }
}

#[test]
fn one_thread_and_several_give_the_same_bits() {
    let bits = |count| {
        let team = Threads { isa: Isa::best(), count };
        let (matrix, right) = (some::<f64>(150, 150), some::<f64>(150, 40));
        let (left, values, _) = singular::svd(&team, copy(&matrix), Vectors::Complete).unwrap();
        let (unitary, _) = mirrors::qr(&team, copy(&matrix), 150).unwrap();
        let solved = triangular::solve(&team, matrix, &right).unwrap().unwrap();
        let all = [left.elements, values, unitary.elements, solved.elements].concat();
        all.iter().map(|number| number.to_bits()).collect::<Vec<_>>()
    };
    assert!(bits(1) == bits(3));
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
        run("Eigvalsh", &[Some((part, &[2, 2]))]);
        run("Qr", &[Some((dtype, &[2, 2, 2])), Some((dtype, &[2, 2, 2]))]);
        run("SlogDet", &[Some((dtype, &[2])), Some((part, &[2]))]);
        run("Svd", &[Some((dtype, &[2, 2, 2])), Some((part, &[2, 2])), Some((dtype, &[2, 2, 2]))]);
        run("Svdvals", &[Some((part, &[2, 2]))]);
    }
    let numbers = [2.0f64, 1.0, 1.0, 3.0, 4.0, 0.5, 0.5, 1.0];
    check::<f64>(&numbers, (Dtype::F64, Dtype::F64));
    check::<f32>(&numbers.map(|x| x as f32), (Dtype::F32, Dtype::F32));
    check::<Complex<f64>>(&numbers.map(|x| Complex::new(x, 0.0)), (Dtype::C128, Dtype::F64));
    check::<Complex<f32>>(&numbers.map(|x| Complex::new(x as f32, 0.0)), (Dtype::C64, Dtype::F32));
}
