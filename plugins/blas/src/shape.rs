//! Which matrices of two operands `MatMul` multiplies, as in NumPy: the last two dimensions are the matrix, the ones before
//! count matrices and are broadcast, and an operand of one dimension is a row on the left and a column on the right.

use oarlock_sdk::{Error, Result};

use crate::product::Sizes;
use crate::size;

/// The products of two operands.
#[derive(Debug, PartialEq)]
pub(crate) struct Shape {
    pub(crate) sizes: Sizes,
    pub(crate) batch: Batch,
    /// The shape of the output.
    pub(crate) output: Vec<i64>,
}

/// Which matrices are multiplied with which.
#[derive(Debug, PartialEq)]
pub(crate) struct Batch {
    /// How many products there are.
    pub(crate) count: usize,
    axes: Vec<Axis>,
}

/// A dimension that counts matrices, and the elements from one to the next on the left and on the right.
#[derive(Debug, PartialEq)]
struct Axis {
    size: usize,
    left: usize,
    right: usize,
}

impl Batch {
    /// One matrix on each side.
    pub(crate) const ONE: Self = Self { count: 1, axes: Vec::new() };
    const NONE: Self = Self { count: 0, axes: Vec::new() };

    /// Where the matrices of a product start.
    pub(crate) fn starts(&self, product: usize) -> (usize, usize) {
        let (mut rest, mut left, mut right) = (product, 0, 0);
        for axis in self.axes.iter().rev() {
            let index = rest % axis.size;
            rest /= axis.size;
            left += index * axis.left;
            right += index * axis.right;
        }
        (left, right)
    }
}

impl Shape {
    pub(crate) fn new(a: &[i64], b: &[i64]) -> Result<Self> {
        let unfit = || {
            Error::invalid_argument(format!(
                "expected shapes that can be multiplied, such as [2, 3] and [3, 4], found {a:?} and {b:?}"
            ))
        };
        let (a_batch, rows, depth) = match a {
            [depth] => (&[][..], None, *depth),
            [batch @ .., rows, depth] => (batch, Some(*rows), *depth),
            [] => return Err(unfit()),
        };
        let (b_batch, b_depth, columns) = match b {
            [depth] => (&[][..], *depth, None),
            [batch @ .., depth, columns] => (batch, *depth, Some(*columns)),
            [] => return Err(unfit()),
        };
        if depth != b_depth {
            return Err(unfit());
        }
        let batch = broadcast(a_batch, b_batch).ok_or_else(unfit)?;
        let output: Vec<i64> = batch.iter().copied().chain(rows).chain(columns).collect();
        count(a).and(count(b))?;
        let mut sizes = Sizes {
            rows: size(rows.unwrap_or(1))?,
            columns: size(columns.unwrap_or(1))?,
            depth: size(depth)?,
        };
        // The matrices of an empty output need not be told apart, however many there are.
        if count(&output)? == 0 {
            return Ok(Self { sizes, batch: Batch::NONE, output });
        }
        // Many left matrices that share a right one are the rows of one.
        let joined = sizes.rows.checked_mul(count(a_batch)?).filter(|rows| i32::try_from(*rows).is_ok());
        if let (Some(rows), 1) = (joined, count(b_batch)?) {
            sizes.rows = rows;
            return Ok(Self { sizes, batch: Batch::ONE, output });
        }
        let left = steps(a_batch, batch.len(), count(&[rows.unwrap_or(1), depth])?);
        let right = steps(b_batch, batch.len(), count(&[depth, columns.unwrap_or(1)])?);
        let axes = batch.iter().zip(left.into_iter().zip(right));
        let axes = axes.map(|(size, (left, right))| Axis { size: *size as usize, left, right }).collect();
        Ok(Self { sizes, batch: Batch { count: count(&batch)?, axes }, output })
    }
}

/// The product of dimensions, where it fits into memory.
pub(crate) fn count(dims: &[i64]) -> Result<usize> {
    dims.iter().try_fold(1usize, |count, dim| {
        count.checked_mul(size(*dim)?).ok_or_else(|| {
            Error::out_of_range(format!("expected dimensions that fit into memory, found {dims:?}"))
        })
    })
}

fn broadcast(a: &[i64], b: &[i64]) -> Option<Vec<i64>> {
    let rank = a.len().max(b.len());
    let dim = |dims: &[i64], axis: usize| (axis + dims.len()).checked_sub(rank).map_or(1, |at| dims[at]);
    (0..rank)
        .map(|axis| match (dim(a, axis), dim(b, axis)) {
            (x, y) if x == y => Some(x),
            (1, y) => Some(y),
            (x, 1) => Some(x),
            _ => None,
        })
        .collect()
}

/// The elements from one matrix to the next in each dimension of a batch; 0 where the same one is used again.
fn steps(dims: &[i64], rank: usize, matrix: usize) -> Vec<usize> {
    let mut steps = vec![0; rank];
    let mut step = matrix;
    for (place, size) in steps.iter_mut().rev().zip(dims.iter().rev()) {
        if *size != 1 {
            *place = step;
        }
        step *= *size as usize;
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_are_broadcast() {
        let shape = Shape::new(&[2, 1, 3, 4], &[5, 4, 6]).unwrap();
        assert_eq!(shape.sizes, Sizes { rows: 3, columns: 6, depth: 4 });
        let starts: Vec<_> = (0..6).map(|product| shape.batch.starts(product)).collect();
        assert_eq!(starts, [(0, 0), (0, 24), (0, 48), (0, 72), (0, 96), (12, 0)]);
        assert_eq!((shape.batch.count, shape.output), (10, vec![2, 5, 3, 6]));
    }

    #[test]
    fn products_with_one_right_matrix_are_one_as_long_as_they_can_be_counted() {
        let shape = Shape::new(&[2, 3, 4], &[1, 4, 5]).unwrap();
        assert_eq!((shape.sizes, shape.batch), (Sizes { rows: 6, columns: 5, depth: 4 }, Batch::ONE));
        let shape = Shape::new(&[2, i64::from(i32::MAX), 1], &[1, 1]).unwrap();
        assert_eq!((shape.sizes.rows, shape.batch.count), (i32::MAX as usize, 2));
    }

    #[test]
    fn vectors_are_rows_on_the_left_and_columns_on_the_right() {
        assert_eq!(Shape::new(&[3], &[3]).unwrap().output, [0i64; 0]);
        assert_eq!(Shape::new(&[3], &[2, 3, 4]).unwrap().output, [2, 4]);
        assert_eq!(Shape::new(&[2, 4, 3], &[3]).unwrap().output, [2, 4]);
    }

    #[test]
    fn matrices_are_not_listed_however_many_there_are() {
        let shape = Shape::new(&[1 << 40, 2, 1], &[1 << 40, 1, 1]).unwrap();
        assert_eq!(shape.batch.starts((1 << 40) - 1), ((2 << 40) - 2, (1 << 40) - 1));
    }

    #[test]
    fn an_empty_output_has_no_products_however_many_matrices_there_are() {
        let shape = Shape::new(&[1 << 40, 0, 3], &[1 << 40, 3, 2]).unwrap();
        assert_eq!((shape.batch.count, shape.output), (0, vec![1 << 40, 0, 2]));
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        for (a, b) in [(&[2, 3][..], &[2, 3][..]), (&[], &[1]), (&[1], &[]), (&[2, 3, 3], &[4, 3, 3])] {
            let error = Shape::new(a, b).unwrap_err();
            assert!(error.message().contains(&format!("{a:?} and {b:?}")), "{error}");
        }
        assert!(Shape::new(&[i64::MAX, i64::MAX], &[i64::MAX, 0]).is_err());
        assert!(Shape::new(&[-1, 2], &[2, 1]).is_err());
    }
}
