//! The products of `MatMul` in the form that [`oarlock_cpu_gemm`] needs: with lists of matrix offsets.

use oarlock_cpu_gemm::GemmShape;
use oarlock_products::{GemmSize, MatMulProblem, MatrixBatch};
use oarlock_sdk::{Result, ensure};

pub(super) use oarlock_sdk::shape::element_count;

/// The products of two operands.
#[derive(Debug, PartialEq)]
pub(super) struct BatchedMatmulShape {
    pub(super) sizes: GemmShape,
    /// The offset of each product's matrix; a single offset if all products share one matrix.
    pub(super) left: Vec<usize>,
    pub(super) right: Vec<usize>,
    pub(super) output: Vec<i64>,
}

impl BatchedMatmulShape {
    pub(super) fn new(a: &[i64], b: &[i64]) -> Result<Self> {
        let MatMulProblem { extent, batch, output } = MatMulProblem::new(a, b, usize::MAX)?;
        let (left, right) = matrix_starts(&batch)?;
        Ok(Self { sizes: gemm_shape(extent, batch.count), left, right, output })
    }
}

/// The maximum number of products in a call. Their offsets are listed, and broadcasting small operands could make that list
/// arbitrarily long.
const MAX_PRODUCTS: usize = 1 << 27;

/// The offset of each product's left and right matrix; a single offset on the right if all products share that matrix.
pub(super) fn matrix_starts(batch: &MatrixBatch) -> Result<(Vec<usize>, Vec<usize>)> {
    let found = batch.count;
    ensure!(
        found <= MAX_PRODUCTS,
        resource_exhausted,
        "expected at most {MAX_PRODUCTS} products of matrices in a call, found {found}"
    );
    // An empty output has no products, but the lists need at least one offset.
    let starts = (0..batch.count.max(1)).map(|product| batch.matrix_starts(product));
    let (left, mut right): (_, Vec<usize>) = starts.unzip();
    if right.iter().all(|start| *start == 0) {
        right.truncate(1);
    }
    Ok((left, right))
}

pub(super) fn gemm_shape(GemmSize { rows, columns, depth }: GemmSize, items: usize) -> GemmShape {
    GemmShape { items, rows, columns, depth }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_are_listed_but_for_a_right_one_that_all_share() {
        let shape = BatchedMatmulShape::new(&[2, 1, 3, 4], &[5, 4, 6]).unwrap();
        assert_eq!(shape.sizes, GemmShape { items: 10, rows: 3, columns: 6, depth: 4 });
        assert_eq!(shape.left, [0, 0, 0, 0, 0, 12, 12, 12, 12, 12]);
        assert_eq!(shape.right[..6], [0, 24, 48, 72, 96, 0]);
        let shape = BatchedMatmulShape::new(&[2, 3, 4], &[4, 5]).unwrap();
        assert_eq!(shape.sizes, GemmShape { items: 1, rows: 6, columns: 5, depth: 4 });
        assert_eq!((shape.left, shape.right), (vec![0], vec![0]));
    }

    #[test]
    fn more_products_than_could_be_listed_are_refused() {
        let error = BatchedMatmulShape::new(&[1 << 31, 3, 0], &[1 << 31, 0, 5]).unwrap_err();
        assert!(error.message().contains("found 2147483648"), "{error}");
    }

    #[test]
    fn an_empty_output_has_no_products() {
        let shape = BatchedMatmulShape::new(&[1 << 40, 0, 3], &[1 << 40, 3, 2]).unwrap();
        assert_eq!((shape.sizes.items, shape.left, shape.right), (0, vec![0], vec![0]));
    }
}
