//! Triangular factorizations. Some columns or rows are factored at a time, and the update of the rest is a product of matrices.

use oarlock_cpu_base::isa::{SimdTarget, SimdTask};
use oarlock_cpu_base::rows::scratch::try_reserve_vec;
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_sdk::{Result, end_if_stopped};

use super::matrix::DenseMatrix;
use super::product::MatrixScalar;
use super::product::{MatrixView, multiply_matrices, subtract_product};
use super::row_operations::{EliminateRows, MatrixRows, SubtractRows, dot_product};

/// Columns or rows that are factored at a time: the depth of the products that update the rest.
const COLUMN_BLOCK: usize = 32;

/// Blocks of [`COLUMN_BLOCK`] rows or columns.
fn block_ranges(size: usize) -> impl DoubleEndedIterator<Item = (usize, usize)> {
    (0..size.div_ceil(COLUMN_BLOCK))
        .map(move |block| (block * COLUMN_BLOCK, size.min((block + 1) * COLUMN_BLOCK)))
}

/// The lower triangle whose product with its adjoint is the matrix; `None` if there is none. The upper triangle of the matrix is
/// not read.
pub(super) fn cholesky<F: MatrixScalar>(
    team: &dyn ThreadTeam,
    mut matrix: DenseMatrix<F>,
) -> Result<Option<DenseMatrix<F>>> {
    let size = matrix.rows;
    for (first, last) in block_ranges(size) {
        let part = MatrixView::new(&matrix.elements[first * size..], size);
        // One product of matrices updates the block by all columns to its left.
        if first > 0 {
            let sizes = [size - first, last - first, first];
            let known = multiply_matrices(team, sizes, part, part.adjoint())?;
            for (row, known) in known.chunks(last - first).enumerate() {
                let row = &mut matrix.row_mut(first + row)[first..last];
                row.iter_mut().zip(known).for_each(|(to, known)| *to = *to - *known);
            }
        }
        for row in first..size {
            let (above, own) = matrix.split_at_row(row);
            let above = &above[first * size..];
            let (own, columns) = (&mut own[..size], first..last.min(row + 1));
            if !team.isa().vectorize(CholeskyRow { above, own, columns, is_diagonal: row < last }) {
                return Ok(None);
            }
        }
    }
    for row in 0..size {
        matrix.row_mut(row)[row + 1..].fill(F::ZERO);
    }
    Ok(Some(matrix))
}

/// Computes some columns of a row of the lower triangle. If its element on the diagonal is among them, returns whether that is
/// the root of a number above 0.
struct CholeskyRow<'a, F> {
    /// The rows of the block above it.
    above: &'a [F],
    own: &'a mut [F],
    columns: std::ops::Range<usize>,
    is_diagonal: bool,
}

impl<F: MatrixScalar> SimdTask for CholeskyRow<'_, F> {
    type Output = bool;

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) -> bool {
        let Self { above, own, columns, is_diagonal } = self;
        // The row's new elements, conjugated once for all dot products that need them.
        let mut conjugated = [F::ZERO; COLUMN_BLOCK];
        let last = columns.end - usize::from(is_diagonal);
        for column in columns.start..last {
            let at = column - columns.start;
            let other = &above[at * own.len()..][..own.len()];
            let known = dot_product::<T, F>(&conjugated[..at], &other[columns.start..column]).conjugate();
            let element = (own[column] - known).scaled_by(1.0 / other[column].real_part());
            conjugated[at] = element.conjugate();
            own[column] = element;
        }
        if !is_diagonal {
            return true;
        }
        let known: f64 = own[columns.start..last].iter().map(|element| element.squared_magnitude()).sum();
        let square = own[last].real_part() - known;
        own[last] = F::from_real(square.sqrt());
        // Also false for NaN.
        square > 0.0
    }
}

/// Eliminates the elements below the diagonal, column after column, each with the largest element left. The factors replace them.
/// Returns the new order of the rows, and its sign.
pub(super) fn lu_decompose<F: MatrixScalar>(
    team: &dyn ThreadTeam,
    matrix: &mut DenseMatrix<F>,
) -> Result<(Vec<usize>, F)> {
    let size = matrix.rows;
    let (mut order, mut sign): (Vec<usize>, F) = ((0..size).collect(), F::ONE);
    for (first, last) in block_ranges(size) {
        for column in first..last {
            end_if_stopped();
            let pivot = pivot_row(matrix, column);
            if pivot != column {
                matrix.swap_rows(pivot, column);
                order.swap(pivot, column);
                sign = -sign;
            }
            // The rest of the column is 0: nothing is left to eliminate, and the determinant is 0.
            if matrix.element_at(column, column).max_component() == 0.0 {
                continue;
            }
            let (above, elements) = matrix.split_at_row(column + 1);
            let pivot = &above[column * size..][column..last];
            // Only the columns of this block; those to the right are updated once per block by a product of matrices.
            let below = MatrixRows { elements, stride: size, columns: column..last };
            team.isa().vectorize(EliminateRows { pivot, below });
        }
        if last == size {
            break;
        }
        let (width, count) = (last - first, size - last);
        // A copy of the block's columns, which share their rows with the elements that are updated.
        let mut factors = try_reserve_vec((size - first) * width)?;
        for row in first..size {
            factors.extend_from_slice(&matrix.row(row)[first..last]);
        }
        // The block's own rows first, because the product below multiplies what they become.
        for row in first + 1..last {
            let (above, own) = matrix.split_at_row(row);
            let factors = &factors[(row - first) * width..][..row - first];
            let others = &above[first * size + last..];
            team.isa().vectorize(SubtractRows { row: &mut own[last..size], factors, others, stride: size });
        }
        let (above, elements) = matrix.split_at_row(last);
        let right = MatrixView::new(&above[first * size + last..], size);
        let from = MatrixRows { elements, stride: size, columns: last..size };
        subtract_product(
            team,
            [count, width],
            from,
            MatrixView::new(&factors[width * width..], width),
            right,
        )?;
    }
    Ok((order, sign))
}

/// The row of the largest element of a column, on the diagonal or below.
fn pivot_row<F: MatrixScalar>(matrix: &DenseMatrix<F>, column: usize) -> usize {
    let mut best = (column, matrix.element_at(column, column).magnitude());
    for row in column + 1..matrix.rows {
        let size = matrix.element_at(row, column).magnitude();
        if size > best.1 {
            best = (row, size);
        }
    }
    best.0
}

/// The solution of a linear system; `None` if the matrix has no inverse.
pub(super) fn solve_system<F: MatrixScalar>(
    team: &dyn ThreadTeam,
    mut matrix: DenseMatrix<F>,
    right: &DenseMatrix<F>,
) -> Result<Option<DenseMatrix<F>>> {
    let (size, columns) = (matrix.rows, right.columns);
    let (order, _) = lu_decompose(team, &mut matrix)?;
    // Only an exact 0 makes a matrix singular, as in LAPACK. However inaccurate, other solutions are returned.
    if (0..size).any(|at| matrix.element_at(at, at).max_component() == 0.0) {
        return Ok(None);
    }
    let mut solved = DenseMatrix::filled_with(F::ZERO, size, columns)?;
    for (row, from) in order.iter().enumerate() {
        solved.row_mut(row).copy_from_slice(right.row(*from));
    }
    let isa = team.isa();
    for (first, last) in block_ranges(size) {
        // The lower triangle has ones on its diagonal, so this direction has no division.
        for row in first + 1..last {
            let (others, own) = solved.split_at_row(row);
            let (others, factors) = (&others[first * columns..], &matrix.row(row)[first..row]);
            isa.vectorize(SubtractRows { row: &mut own[..columns], factors, others, stride: columns });
        }
        let (above, elements) = solved.split_at_row(last);
        let left = MatrixView::new(&matrix.elements[last * size..], size).skip_columns(first);
        let right = MatrixView::new(&above[first * columns..], columns);
        let from = MatrixRows { elements, stride: columns, columns: 0..columns };
        subtract_product(team, [size - last, last - first], from, left, right)?;
    }
    for (first, last) in block_ranges(size).rev() {
        end_if_stopped();
        for row in (first..last).rev() {
            let (own, others) = solved.split_at_row(row + 1);
            let (own, factors) = (&mut own[row * columns..], &matrix.row(row)[row + 1..last]);
            isa.vectorize(SubtractRows { row: own, factors, others, stride: columns });
            let pivot = matrix.element_at(row, row);
            own.iter_mut().for_each(|element| *element = *element / pivot);
        }
        let (elements, below) = solved.split_at_row(first);
        let left = MatrixView::new(&matrix.elements, size).skip_columns(first);
        let from = MatrixRows { elements, stride: columns, columns: 0..columns };
        subtract_product(team, [first, last - first], from, left, MatrixView::new(below, columns))?;
    }
    Ok(Some(solved))
}
