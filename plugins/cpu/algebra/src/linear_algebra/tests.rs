//! Matrices that are factored and multiplied again.

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_testing::runner::{TestArray, TestAttribute};
use oarlock_cpu_testing::test_team::TestTeam;
use oarlock_sdk::{Complex, Dtype, Element};

use super::field::ScalarField as _;
use super::matrix::DenseMatrix;
use super::product::MatrixScalar;
use super::singular_values::SingularVectors;
use super::{eigen, eigenvectors, householder, singular_values, triangular};
use crate::KERNELS;

type ComplexF64 = Complex<f64>;

const TEAMS: [fn() -> TestTeam; 2] =
    [|| single_thread(Isa::Scalar), || single_thread(oarlock_cpu_testing::isa_levels::best_isa())];

fn single_thread(isa: Isa) -> TestTeam {
    TestTeam { isa, count: 1 }
}

/// Sizes around those of the blocks.
const SIZES: [usize; 8] = [0, 1, 2, 3, 17, 32, 33, 70];

/// A matrix of pseudo-random numbers.
fn sample_matrix<F: MatrixScalar>(rows: usize, columns: usize) -> DenseMatrix<F> {
    let mut state = 88172645463325252u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    let elements = (0..rows * columns).map(|_| F::from_components([next(), next()])).collect();
    DenseMatrix { rows, columns, elements }
}

fn multiply_naive<F: MatrixScalar>(a: &DenseMatrix<F>, b: &DenseMatrix<F>) -> DenseMatrix<F> {
    let mut result = DenseMatrix::filled_with(F::ZERO, a.rows, b.columns).unwrap();
    for row in 0..a.rows {
        for column in 0..b.columns {
            *result.element_at_mut(row, column) = (0..a.columns)
                .fold(F::ZERO, |sum, at| sum + a.element_at(row, at) * b.element_at(at, column));
        }
    }
    result
}

/// Checks that two matrices are equal but for rounding.
#[track_caller]
fn assert_near<F: MatrixScalar>(found: &DenseMatrix<F>, expected: &DenseMatrix<F>) {
    assert_eq!((found.rows, found.columns), (expected.rows, expected.columns));
    let most = expected.max_component();
    for (found, expected) in found.elements.iter().zip(&expected.elements) {
        let (is, should) = (found.components(), expected.components());
        assert!((*found - *expected).max_component() <= 1e-13 * most, "{is:?} {should:?}");
    }
}

#[track_caller]
fn assert_unitary<F: MatrixScalar>(matrix: &DenseMatrix<F>) {
    let result = multiply_naive(&matrix.adjoint().unwrap(), matrix);
    assert_near(&result, &DenseMatrix::identity(matrix.columns, matrix.columns).unwrap());
}

fn diagonal_matrix<F: MatrixScalar>(values: &[f64], rows: usize, columns: usize) -> DenseMatrix<F> {
    let mut result = DenseMatrix::filled_with(F::ZERO, rows, columns).unwrap();
    values.iter().enumerate().for_each(|(at, value)| *result.element_at_mut(at, at) = F::from_real(*value));
    result
}

fn copy_matrix<F: MatrixScalar>(matrix: &DenseMatrix<F>) -> DenseMatrix<F> {
    DenseMatrix { elements: matrix.elements.clone(), ..*matrix }
}

/// Difficult matrices: flat, very large and very small ones, and some with gaps.
fn awkward_matrices<F: MatrixScalar>(rows: usize, columns: usize) -> Vec<DenseMatrix<F>> {
    let plain = sample_matrix::<F>(rows, columns);
    let changed = |change: &dyn Fn(usize, usize, F) -> F| {
        let mut result = copy_matrix(&plain);
        for row in 0..rows {
            for column in 0..columns {
                *result.element_at_mut(row, column) = change(row, column, plain.element_at(row, column));
            }
        }
        result
    };
    vec![
        changed(&|_, _, element| element),
        changed(&|_, _, _| F::ZERO),
        changed(&|_, _, _| F::ONE),
        changed(&|row, _, _| F::from_components([row as f64, 1.0])),
        changed(&|row, column, element| if row <= column { element } else { F::ZERO }),
        changed(&|row, column, _| if row == column { F::from_real(-1.0) } else { F::ZERO }),
        changed(&|row, column, element| if (row + column) % 3 == 0 { element } else { F::ZERO }),
        changed(&|row, column, element| element.scaled_by(0.1f64.powi((row + column) as i32))),
        changed(&|_, _, element| element.scaled_by(1e300)),
        changed(&|_, _, element| element.scaled_by(1e-300)),
        changed(&|_, column, element| element.scaled_by(if column % 2 == 0 { 1e150 } else { 1e-150 })),
    ]
}

fn check_decompositions<F: MatrixScalar>(team: &dyn ThreadTeam, matrix: &DenseMatrix<F>) {
    let (rows, columns) = (matrix.rows, matrix.columns);
    for inner in [rows.min(columns), rows] {
        let (unitary, upper) = householder::qr_decompose(team, copy_matrix(matrix), inner).unwrap();
        assert_unitary(&unitary);
        assert_near(&multiply_naive(&unitary, &upper), matrix);
        assert!(
            (0..inner)
                .all(|row| (0..row.min(columns)).all(|at| upper.element_at(row, at).max_component() == 0.0))
        );
    }
    let (none, alone, _) = singular_values::svd(team, copy_matrix(matrix), SingularVectors::None).unwrap();
    assert!(none.elements.is_empty());
    for vectors in [SingularVectors::Reduced, SingularVectors::Complete] {
        let (left, values, right) = singular_values::svd(team, copy_matrix(matrix), vectors).unwrap();
        assert_unitary(&left);
        assert_unitary(&right.adjoint().unwrap());
        assert!(values.is_sorted_by(|one, other| one >= other) && values.iter().all(|value| *value >= 0.0));
        // With and without vectors, the same steps are taken, so the bits are the same.
        assert_eq!(values, alone);
        let result = multiply_naive(
            &multiply_naive(&left, &diagonal_matrix(&values, left.columns, right.rows)),
            &right,
        );
        assert_near(&result, matrix);
    }
}

#[test]
fn triangles_singular_values_and_unitary_matrices_make_the_matrix() {
    for team in TEAMS {
        for (rows, columns) in [(5, 3), (3, 5), (4, 4), (1, 1), (2, 1), (6, 0), (0, 2), (9, 9)] {
            awkward_matrices::<f64>(rows, columns)
                .iter()
                .for_each(|matrix| check_decompositions(&team(), matrix));
            awkward_matrices::<ComplexF64>(rows, columns)
                .iter()
                .for_each(|matrix| check_decompositions(&team(), matrix));
        }
        for (rows, columns) in [(70, 33), (33, 70), (40, 40), (64, 64)] {
            check_decompositions(&team(), &sample_matrix::<f64>(rows, columns));
            check_decompositions(&team(), &sample_matrix::<ComplexF64>(rows, columns));
        }
    }
}

fn self_adjoint_matrix<F: MatrixScalar>(matrix: &DenseMatrix<F>) -> DenseMatrix<F> {
    let mut result = copy_matrix(matrix);
    for row in 0..matrix.rows {
        for column in 0..matrix.columns {
            *result.element_at_mut(row, column) =
                (matrix.element_at(row, column) + matrix.element_at(column, row).conjugate()).scaled_by(0.5);
        }
    }
    result
}

fn check_eigenvalues<F: MatrixScalar>(team: &dyn ThreadTeam, matrix: &DenseMatrix<F>) {
    let size = matrix.rows;
    let matrix = self_adjoint_matrix(matrix);
    let mut lower = copy_matrix(&matrix);
    for row in 0..size {
        // Only the lower triangle may be read.
        lower.row_mut(row)[row + 1..].fill(F::from_real(7.0));
    }
    let (values, vectors) = eigen::eigh(team, copy_matrix(&lower), true).unwrap();
    assert_eq!(eigen::eigh(team, lower, false).unwrap().0, values);
    assert_unitary(&vectors);
    assert!(values.is_sorted());
    let back = vectors.adjoint().unwrap();
    assert_near(
        &multiply_naive(&multiply_naive(&vectors, &diagonal_matrix(&values, size, size)), &back),
        &matrix,
    );
}

#[test]
fn eigenvalues_and_vectors_make_the_matrix() {
    for team in TEAMS {
        for size in [1, 2, 3, 8] {
            awkward_matrices::<f64>(size, size).iter().for_each(|matrix| check_eigenvalues(&team(), matrix));
            awkward_matrices::<ComplexF64>(size, size)
                .iter()
                .for_each(|matrix| check_eigenvalues(&team(), matrix));
        }
        for size in SIZES {
            check_eigenvalues(&team(), &sample_matrix::<f64>(size, size));
            check_eigenvalues(&team(), &sample_matrix::<ComplexF64>(size, size));
        }
    }
}

fn check_solve_and_cholesky<F: MatrixScalar>(team: &dyn ThreadTeam, size: usize) {
    let (matrix, right) = (sample_matrix::<F>(size, size), sample_matrix::<F>(size, 3));
    let solved = triangular::solve_system(team, copy_matrix(&matrix), &right).unwrap().unwrap();
    let found = multiply_naive(&matrix, &solved);
    for (found, expected) in found.elements.iter().zip(&right.elements) {
        assert!((*found - *expected).max_component() < 1e-11);
    }
    let mut positive = multiply_naive(&matrix, &matrix.adjoint().unwrap());
    // Well above 0, so that no rounding error makes it indefinite.
    (0..size).for_each(|at| *positive.element_at_mut(at, at) = positive.element_at(at, at) + F::ONE);
    let mut lower = copy_matrix(&positive);
    // If the upper triangle were read, all of the result would be NaN.
    (0..size).for_each(|row| lower.row_mut(row)[row + 1..].fill(F::from_real(f64::NAN)));
    let root = triangular::cholesky(team, lower).unwrap().unwrap();
    assert_near(&multiply_naive(&root, &root.adjoint().unwrap()), &positive);
    if size > 0 {
        let last = size - 1;
        *positive.element_at_mut(last, last) = F::from_real(-1.0);
        assert!(triangular::cholesky(team, positive).unwrap().is_none());
        let mut flat = matrix;
        (0..size).for_each(|row| *flat.element_at_mut(row, last / 2) = F::ZERO);
        assert!(triangular::solve_system(team, flat, &right).unwrap().is_none());
    }
}

#[test]
fn a_solution_multiplied_by_the_matrix_is_the_right_side_and_a_root_by_its_adjoint_the_matrix() {
    for team in TEAMS {
        for size in SIZES {
            check_solve_and_cholesky::<f64>(&team(), size);
            check_solve_and_cholesky::<ComplexF64>(&team(), size);
        }
    }
}

#[test]
fn what_is_not_finite_ends_at_once_and_as_no_number() {
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for at in [0, 3, 24] {
            let mut matrix = sample_matrix::<ComplexF64>(5, 5);
            matrix.elements[at] = Complex::new(1.0, odd);
            let is_nothing = |values: &[f64]| values.len() == 5 && values.iter().all(|value| value.is_nan());
            let is_no_matrix =
                |matrix: &DenseMatrix<ComplexF64>| matrix.elements.iter().all(|element| element.re.is_nan());
            let team = single_thread(oarlock_cpu_testing::isa_levels::best_isa());
            let (left, values, right) =
                singular_values::svd(&team, copy_matrix(&matrix), SingularVectors::Complete).unwrap();
            assert!(is_nothing(&values) && is_no_matrix(&left) && is_no_matrix(&right));
            // Element 3 is in the upper triangle, which is not read.
            if at != 3 {
                let (values, vectors) = eigen::eigh(&team, copy_matrix(&matrix), true).unwrap();
                assert!(is_nothing(&values) && is_no_matrix(&vectors));
            }
            assert!(triangular::cholesky(&team, copy_matrix(&matrix)).unwrap().is_none() || at == 3);
        }
    }
}

#[test]
fn one_thread_and_several_give_the_same_bits() {
    let bits = |count| {
        let team = TestTeam { isa: oarlock_cpu_testing::isa_levels::best_isa(), count };
        let (matrix, right) = (sample_matrix::<f64>(150, 150), sample_matrix::<f64>(150, 40));
        let (left, values, _) =
            singular_values::svd(&team, copy_matrix(&matrix), SingularVectors::Complete).unwrap();
        let (unitary, _) = householder::qr_decompose(&team, copy_matrix(&matrix), 150).unwrap();
        let solved = triangular::solve_system(&team, matrix, &right).unwrap().unwrap();
        let all = [left.elements, values, unitary.elements, solved.elements].concat();
        all.iter().map(|number| number.to_bits()).collect::<Vec<_>>()
    };
    assert!(bits(1) == bits(3));
}

#[test]
fn every_dtype_has_kernels_for_stacks_of_matrices() {
    fn check_elements<T: Element>(elements: &[T], dtypes: (Dtype, Dtype)) {
        let x = TestArray::from_values(&[2, 2, 2], elements);
        let (dtype, part) = dtypes;
        let run = |op: &str, outputs: &[Option<(Dtype, &[i64])>]| {
            let attributes: &[(&str, TestAttribute<'_>)] = &[];
            KERNELS
                .run_with_isa("scalar", &format!("oarlock:{op}"), 1, attributes, &[Some(&x)], outputs)
                .unwrap()
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
    check_elements::<f64>(&numbers, (Dtype::F64, Dtype::F64));
    check_elements::<f32>(&numbers.map(|x| x as f32), (Dtype::F32, Dtype::F32));
    check_elements::<Complex<f64>>(&numbers.map(|x| Complex::new(x, 0.0)), (Dtype::C128, Dtype::F64));
    check_elements::<Complex<f32>>(&numbers.map(|x| Complex::new(x as f32, 0.0)), (Dtype::C64, Dtype::F32));
}

#[test]
fn a_tiny_determinant_has_a_sign() {
    // 1 / 1e-310 is infinite.
    let x = TestArray::from_values(&[1, 1], &[-1e-310f64]);
    let (sign, logarithm) =
        (TestArray::from_values(&[], &[-1.0f64]), TestArray::from_values(&[], &[1e-310f64.ln()]));
    KERNELS.check_kernel("oarlock:SlogDet", 1, &[], &[Some(&x)], &[sign, logarithm]);
}

/// Checks that a matrix times each vector is the vector times a number, and returns these numbers.
#[track_caller]
fn check_eigenvectors(matrix: &DenseMatrix<ComplexF64>, tolerance: f64) -> Vec<ComplexF64> {
    let copy = DenseMatrix { rows: matrix.rows, columns: matrix.columns, elements: matrix.elements.clone() };
    let vectors = eigenvectors::eigenvectors(copy).unwrap();
    let turned = multiply_naive(matrix, &vectors);
    let most = matrix.max_component();
    let column = |of: &DenseMatrix<ComplexF64>, at: usize| -> Vec<ComplexF64> {
        (0..of.rows).map(|row| of.element_at(row, at)).collect()
    };
    let value = |at: usize| {
        let (vector, turned) = (column(&vectors, at), column(&turned, at));
        let length: f64 = vector.iter().map(|element| element.norm_sqr()).sum();
        assert!((length - 1.0).abs() < 1e-12, "{length}");
        let value: ComplexF64 = vector.iter().zip(&turned).map(|(left, right)| left.conj() * right).sum();
        for (element, turned) in vector.iter().zip(&turned) {
            assert!(
                (turned - element * value).magnitude() <= tolerance * most,
                "{turned} {}",
                element * value
            );
        }
        value
    };
    (0..matrix.rows).map(value).collect()
}

#[test]
fn eigenvectors_keep_their_direction() {
    for size in SIZES {
        let matrix = sample_matrix::<ComplexF64>(size, size);
        let values = check_eigenvectors(&matrix, 1e-12);
        let (sum, trace): (ComplexF64, ComplexF64) =
            (values.iter().sum(), (0..size).map(|at| matrix.element_at(at, at)).sum());
        assert!((sum - trace).magnitude() < 1e-11, "{sum} {trace}");
    }
}

#[test]
fn eigenvectors_of_special_matrices() {
    let of = |rows: &[&[f64]]| DenseMatrix {
        rows: rows.len(),
        columns: rows.len(),
        elements: rows.iter().flat_map(|row| row.iter().map(|real| ComplexF64::new(*real, 0.0))).collect(),
    };
    // A rotation, whose eigenvalues are not real; a cycle, which shifts by itself would never leave; equal eigenvalues with and
    // without as many vectors; zeros; and numbers of very different sizes.
    let near = |values: &[ComplexF64], expected: ComplexF64| {
        values.iter().any(|value| (value - expected).magnitude() < 1e-7)
    };
    let values = check_eigenvectors(&of(&[&[0.0, -1.0], &[1.0, 0.0]]), 1e-14);
    assert!(near(&values, ComplexF64::I) && near(&values, -ComplexF64::I), "{values:?}");
    let values = check_eigenvectors(&of(&[&[0.0, 0.0, 1.0], &[1.0, 0.0, 0.0], &[0.0, 1.0, 0.0]]), 1e-14);
    assert!(
        near(&values, ComplexF64::new(1.0, 0.0)) && near(&values, ComplexF64::new(-0.5, 0.75f64.sqrt())),
        "{values:?}"
    );
    check_eigenvectors(&of(&[&[2.0, 1.0, 0.0], &[0.0, 2.0, 1.0], &[0.0, 0.0, 2.0]]), 1e-10);
    let mut chain = DenseMatrix::filled_with(ComplexF64::ZERO, 40, 40).unwrap();
    (0..39).for_each(|at| *chain.element_at_mut(at, at + 1) = ComplexF64::ONE);
    check_eigenvectors(&chain, 1e-10);
    check_eigenvectors(&of(&[&[3.0, 0.0], &[0.0, 3.0]]), 1e-14);
    check_eigenvectors(&of(&[&[0.0, 0.0], &[0.0, 0.0]]), 1e-14);
    check_eigenvectors(&of(&[&[1e200, 1e190], &[1e180, -1e200]]), 1e-13);
    check_eigenvectors(&of(&[&[1e-300, 2e-300], &[3e-300, 4e-300]]), 1e-13);
    let broken = eigenvectors::eigenvectors(of(&[&[1.0, f64::NAN], &[0.0, 1.0]])).unwrap();
    assert!(broken.elements.iter().all(|element| element.re.is_nan()));
}
