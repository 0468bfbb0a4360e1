//! Matrices as products of triangles. Some columns or rows are done at a time, and what follows of them for the rest is a
//! product of matrices.

use oarlock_sdk::Result;

use super::field::Field;
use super::matrix::Matrix;
use super::product::{Part, multiply, take_product};
use super::rows::{Eliminate, Lines, TakeRows, dot};
use crate::gemm::Team;
use crate::isa::{Target, Vectorized};
use crate::kernels::rows::room::room_for;

/// How many columns or rows are done at a time.
const BLOCK: usize = 32;

/// Blocks of so many rows or columns.
fn blocks(size: usize) -> impl DoubleEndedIterator<Item = (usize, usize)> {
    (0..size.div_ceil(BLOCK)).map(move |block| (block * BLOCK, size.min((block + 1) * BLOCK)))
}

/// The lower triangle whose product with its adjoint the matrix is; nothing where there is none. The upper triangle of the
/// matrix is not looked at.
pub(super) fn cholesky<F: Field>(team: &dyn Team, mut matrix: Matrix<F>) -> Result<Option<Matrix<F>>> {
    let size = matrix.rows;
    for (first, last) in blocks(size) {
        let part = Part::new(&matrix.elements[first * size..], size);
        if first > 0 {
            let sizes = [size - first, last - first, first];
            let known = multiply(team, sizes, part, part.adjoint())?;
            for (row, known) in known.chunks(last - first).enumerate() {
                let row = &mut matrix.row_mut(first + row)[first..last];
                row.iter_mut().zip(known).for_each(|(to, known)| *to = *to - *known);
            }
        }
        for row in first..size {
            let (above, own) = matrix.split_at_row(row);
            let above = &above[first * size..];
            let (own, columns) = (&mut own[..size], first..last.min(row + 1));
            if !team.isa().vectorize(TriangleRow { above, own, columns, is_diagonal: row < last }) {
                return Ok(None);
            }
        }
    }
    for row in 0..size {
        matrix.row_mut(row)[row + 1..].fill(F::ZERO);
    }
    Ok(Some(matrix))
}

/// Computes some columns of a row of the lower triangle. Says whether its element on the diagonal, where that is among the
/// columns, is the root of a number above 0.
struct TriangleRow<'a, F> {
    /// The rows of the block above it.
    above: &'a [F],
    own: &'a mut [F],
    columns: std::ops::Range<usize>,
    is_diagonal: bool,
}

impl<F: Field> Vectorized for TriangleRow<'_, F> {
    type Output = bool;

    #[inline(always)]
    fn run<T: Target>(self) -> bool {
        let Self { above, own, columns, is_diagonal } = self;
        let mut conjugated = [F::ZERO; BLOCK];
        let last = columns.end - usize::from(is_diagonal);
        for column in columns.start..last {
            let at = column - columns.start;
            let other = &above[at * own.len()..][..own.len()];
            let known = dot::<T, F>(&conjugated[..at], &other[columns.start..column]).conjugate();
            let element = (own[column] - known).scaled(1.0 / other[column].real());
            conjugated[at] = element.conjugate();
            own[column] = element;
        }
        if !is_diagonal {
            return true;
        }
        let known: f64 = own[columns.start..last].iter().map(|element| element.square()).sum();
        let square = own[last].real() - known;
        own[last] = F::of_real(square.sqrt());
        square > 0.0
    }
}

/// Eliminates what is below the diagonal, column after column, each with the largest element left. The factors stay below the
/// diagonal. Gives the order that the rows are in now, and its sign.
pub(super) fn eliminate<F: Field>(team: &dyn Team, matrix: &mut Matrix<F>) -> Result<(Vec<usize>, F)> {
    let size = matrix.rows;
    let (mut order, mut sign): (Vec<usize>, F) = ((0..size).collect(), F::ONE);
    for (first, last) in blocks(size) {
        for column in first..last {
            let pivot = largest(matrix, column);
            if pivot != column {
                matrix.swap_rows(pivot, column);
                order.swap(pivot, column);
                sign = -sign;
            }
            if matrix.at(column, column).size() == 0.0 {
                continue;
            }
            let (above, elements) = matrix.split_at_row(column + 1);
            let pivot = &above[column * size..][column..last];
            let below = Lines { elements, stride: size, columns: column..last };
            team.isa().vectorize(Eliminate { pivot, below });
        }
        if last == size {
            break;
        }
        let (width, count) = (last - first, size - last);
        let mut factors = room_for((size - first) * width)?;
        for row in first..size {
            factors.extend_from_slice(&matrix.row(row)[first..last]);
        }
        for row in first + 1..last {
            let (above, own) = matrix.split_at_row(row);
            let factors = &factors[(row - first) * width..][..row - first];
            let others = &above[first * size + last..];
            team.isa().vectorize(TakeRows { row: &mut own[last..size], factors, others, stride: size });
        }
        let (above, elements) = matrix.split_at_row(last);
        let right = Part::new(&above[first * size + last..], size);
        let from = Lines { elements, stride: size, columns: last..size };
        take_product(team, [count, width], from, Part::new(&factors[width * width..], width), right)?;
    }
    Ok((order, sign))
}

/// The row of the largest element of a column, on the diagonal or below.
fn largest<F: Field>(matrix: &Matrix<F>, column: usize) -> usize {
    let mut best = (column, matrix.at(column, column).magnitude());
    for row in column + 1..matrix.rows {
        let size = matrix.at(row, column).magnitude();
        if size > best.1 {
            best = (row, size);
        }
    }
    best.0
}

/// What a matrix has to be multiplied by to be the right side; nothing where the matrix has no inverse.
pub(super) fn solve<F: Field>(
    team: &dyn Team,
    mut matrix: Matrix<F>,
    right: &Matrix<F>,
) -> Result<Option<Matrix<F>>> {
    let (size, columns) = (matrix.rows, right.columns);
    let (order, _) = eliminate(team, &mut matrix)?;
    if (0..size).any(|at| matrix.at(at, at).size() == 0.0) {
        return Ok(None);
    }
    let mut solved = Matrix::of(F::ZERO, size, columns)?;
    for (row, from) in order.iter().enumerate() {
        solved.row_mut(row).copy_from_slice(right.row(*from));
    }
    let isa = team.isa();
    for (first, last) in blocks(size) {
        for row in first + 1..last {
            let (others, own) = solved.split_at_row(row);
            let (others, factors) = (&others[first * columns..], &matrix.row(row)[first..row]);
            isa.vectorize(TakeRows { row: &mut own[..columns], factors, others, stride: columns });
        }
        let (above, elements) = solved.split_at_row(last);
        let left = Part::new(&matrix.elements[last * size..], size).after_columns(first);
        let right = Part::new(&above[first * columns..], columns);
        let from = Lines { elements, stride: columns, columns: 0..columns };
        take_product(team, [size - last, last - first], from, left, right)?;
    }
    for (first, last) in blocks(size).rev() {
        for row in (first..last).rev() {
            let (own, others) = solved.split_at_row(row + 1);
            let (own, factors) = (&mut own[row * columns..], &matrix.row(row)[row + 1..last]);
            isa.vectorize(TakeRows { row: own, factors, others, stride: columns });
            let pivot = matrix.at(row, row);
            own.iter_mut().for_each(|element| *element = *element / pivot);
        }
        let (elements, below) = solved.split_at_row(first);
        let left = Part::new(&matrix.elements, size).after_columns(first);
        let from = Lines { elements, stride: columns, columns: 0..columns };
        take_product(team, [first, last - first], from, left, Part::new(below, columns))?;
    }
    Ok(Some(solved))
}
