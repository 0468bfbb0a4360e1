//! Which matrices of two operands are multiplied, as in NumPy: the last two dimensions are the matrix, the ones before count
//! matrices and are broadcast, and an operand of one dimension is a row on the left and a column on the right.

use oarlock_sdk::{Error, Result};

use super::size;
use crate::gemm::Sizes;

/// The products of two operands.
#[derive(Debug, PartialEq)]
pub(super) struct Shape {
    pub(super) sizes: Sizes,
    /// Where the matrices of each product start; one place when all share it.
    pub(super) left: Vec<usize>,
    pub(super) right: Vec<usize>,
    /// The shape of the output.
    pub(super) output: Vec<i64>,
}

impl Shape {
    pub(super) fn new(a: &[i64], b: &[i64]) -> Result<Self> {
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
        // The matrices of an empty output need not be told apart, however many there are.
        let is_empty = count(&output)? == 0;
        let batch = if is_empty { vec![0] } else { batch };
        let sizes = Sizes {
            items: count(&batch)?,
            rows: size(rows.unwrap_or(1))?,
            columns: size(columns.unwrap_or(1))?,
            depth: size(depth)?,
        };
        let of_a = count(&[rows.unwrap_or(1), depth])?;
        let of_b = count(&[depth, columns.unwrap_or(1)])?;
        if is_empty {
            return Ok(Self { sizes, left: vec![0], right: vec![0], output });
        }
        let (left, right) = (starts(a_batch, &batch, of_a), starts(b_batch, &batch, of_b));
        let mut shape = Self { sizes, left, right, output };
        shape.join_rows(count(a_batch)?);
        Ok(shape)
    }

    /// Makes one product out of many that share their right matrix: their left ones are its rows.
    fn join_rows(&mut self, left_matrices: usize) {
        let shared = self.right.iter().all(|start| *start == 0);
        if shared && self.sizes.items == left_matrices && self.sizes.items > 1 {
            self.sizes.rows *= self.sizes.items;
            self.sizes.items = 1;
            self.left.truncate(1);
        }
        if shared {
            self.right.truncate(1);
        }
    }
}

/// The product of dimensions, where it fits into memory.
pub(super) fn count(dims: &[i64]) -> Result<usize> {
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

/// Where the matrix of each product starts, in elements.
fn starts(dims: &[i64], batch: &[i64], matrix: usize) -> Vec<usize> {
    let mut starts = vec![0];
    let mut step = matrix;
    for (axis, size) in batch.iter().enumerate().rev() {
        let own = (axis + dims.len()).checked_sub(batch.len()).map_or(1, |axis| dims[axis]);
        let stride = if own == 1 { 0 } else { step };
        starts = (0..*size as usize)
            .flat_map(|index| starts.iter().map(move |start| start + index * stride))
            .collect();
        step *= own as usize;
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_are_broadcast() {
        let shape = Shape::new(&[2, 1, 3, 4], &[5, 4, 6]).unwrap();
        assert_eq!(shape.sizes, Sizes { items: 10, rows: 3, columns: 6, depth: 4 });
        assert_eq!(shape.left, [0, 0, 0, 0, 0, 12, 12, 12, 12, 12]);
        assert_eq!(shape.right[..6], [0, 24, 48, 72, 96, 0]);
        assert_eq!(shape.output, [2, 5, 3, 6]);
    }

    #[test]
    fn products_with_one_right_matrix_are_one() {
        let shape = Shape::new(&[2, 3, 4], &[4, 5]).unwrap();
        assert_eq!(shape.sizes, Sizes { items: 1, rows: 6, columns: 5, depth: 4 });
        assert_eq!((shape.left, shape.right), (vec![0], vec![0]));
    }

    #[test]
    fn vectors_are_rows_on_the_left_and_columns_on_the_right() {
        assert_eq!(Shape::new(&[3], &[3]).unwrap().output, [0i64; 0]);
        assert_eq!(Shape::new(&[3], &[2, 3, 4]).unwrap().output, [2, 4]);
        assert_eq!(Shape::new(&[2, 4, 3], &[3]).unwrap().output, [2, 4]);
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        for (a, b) in [(&[2, 3][..], &[2, 3][..]), (&[], &[1]), (&[1], &[]), (&[2, 3, 3], &[4, 3, 3])] {
            let error = Shape::new(a, b).unwrap_err();
            assert!(error.message().contains(&format!("{a:?} and {b:?}")), "{error}");
        }
        assert!(Shape::new(&[i64::MAX, i64::MAX], &[i64::MAX, 0]).is_err());
    }
}
