//! Selects the matrix products that cuBLASLt computes, and describes them in its terms.
//!
//! cuBLASLt is column-major and Oarlock row-major. A row-major matrix read as column-major is its transpose, and `A · B`
//! transposed is `B · A` of the transposed matrices, so swapping the factors is enough and nothing is moved.

use oarlock_sdk::shape::broadcast_dims;
use oarlock_sdk::{Dtype, PluginError, Result, dispatch};

/// A batched product of contiguous matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MatmulShape {
    pub(crate) dtype: Dtype,
    pub(crate) rows: u64,
    pub(crate) columns: u64,
    pub(crate) depth: u64,
    pub(crate) batch: i32,
    /// Batch strides of `A` and `B` in elements; 0 if one matrix serves the whole batch.
    pub(crate) steps: [i64; 2],
    /// Sizes of `A`, `B` and the result in bytes.
    pub(crate) bytes: [u64; 3],
}

impl MatmulShape {
    /// Describes the product of operands with these shapes, or refuses it.
    pub(crate) fn new(dtype: Dtype, a: &[i64], b: &[i64], y: &[i64]) -> Result<Self> {
        let refused = |what: &str| {
            Err(PluginError::unimplemented(format!("expected {what}, found {a:?} and {b:?} for {y:?}")))
        };
        let (Some((a_batch, &[rows, depth])), Some((b_batch, &[b_depth, columns]))) =
            (a.split_last_chunk::<2>(), b.split_last_chunk::<2>())
        else {
            return refused("two matrices");
        };
        let Some((y_batch, &[y_rows, y_columns])) = y.split_last_chunk::<2>() else {
            return refused("a result that is a matrix");
        };
        if depth != b_depth || rows != y_rows || columns != y_columns {
            return refused("matrices that can be multiplied");
        }
        if broadcast_dims([a_batch, b_batch]).ok().as_deref() != Some(y_batch) {
            return refused("batches that can be repeated to the result's");
        }
        let width = dispatch!(dtype, floating_and_half + bf16, T => Ok(size_of::<T>() as i64))?;
        let count = |dims: &[i64]| dims.iter().try_fold(1i64, |count, dim| count.checked_mul(*dim));
        let bytes = |dims: &[i64]| count(dims)?.checked_mul(width);
        let (Some(batch), Some(bytes)) = (count(y_batch), bytes(a).zip(bytes(b)).zip(bytes(y))) else {
            return refused("operands of fewer elements");
        };
        let ((a_bytes, b_bytes), y_bytes) = bytes;
        let bytes = [a_bytes, b_bytes, y_bytes];
        if bytes.iter().any(|bytes| *bytes <= 0) {
            return refused("operands with elements");
        }
        let step = |factor: &[i64], matrix: i64| match count(factor) {
            Some(1) => Some(0),
            Some(own) if own == batch => Some(matrix),
            _ => None,
        };
        let (Some(a_step), Some(b_step)) = (step(a_batch, rows * depth), step(b_batch, depth * columns))
        else {
            return refused("batches that are repeated as a whole or not at all");
        };
        let Ok(batch) = i32::try_from(batch) else { return refused("a smaller batch") };
        let ([rows, columns, depth], bytes) =
            ([rows, columns, depth].map(i64::cast_unsigned), bytes.map(i64::cast_unsigned));
        Ok(Self { dtype, rows, columns, depth, batch, steps: [a_step, b_step], bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_product(a: &[i64], b: &[i64], y: &[i64]) -> Option<(i32, [i64; 2])> {
        MatmulShape::new(Dtype::F32, a, b, y).ok().map(|product| (product.batch, product.steps))
    }

    #[test]
    fn matrices_and_batches_of_them_are_taken() {
        assert_eq!(test_product(&[2, 3], &[3, 4], &[2, 4]), Some((1, [0, 0])));
        assert_eq!(test_product(&[5, 2, 3], &[5, 3, 4], &[5, 2, 4]), Some((5, [6, 12])));
        assert_eq!(test_product(&[5, 2, 3], &[3, 4], &[5, 2, 4]), Some((5, [6, 0])));
        assert_eq!(test_product(&[1, 2, 3], &[7, 5, 3, 4], &[7, 5, 2, 4]), Some((35, [0, 12])));
    }

    #[test]
    fn the_room_that_operands_need_is_known() {
        let product = MatmulShape::new(Dtype::F16, &[1, 2, 3], &[5, 3, 4], &[5, 2, 4]).unwrap();
        assert_eq!(product.bytes, [2 * 6, 2 * 60, 2 * 40]);
    }

    #[test]
    fn what_cublaslt_cannot_compute_is_refused() {
        assert_eq!(test_product(&[3], &[3, 4], &[4]), None);
        assert_eq!(test_product(&[2, 3], &[4, 4], &[2, 4]), None);
        assert_eq!(test_product(&[2, 0], &[0, 4], &[2, 4]), None);
        assert_eq!(test_product(&[0, 3], &[3, 4], &[0, 4]), None);
        assert_eq!(test_product(&[2, 1, 2, 3], &[1, 5, 3, 4], &[2, 5, 2, 4]), None);
        assert_eq!(test_product(&[2, 2, 3], &[3, 3, 4], &[3, 2, 4]), None);
        assert_eq!(test_product(&[5, 2, 3], &[5, 3, 4], &[1, 2, 4]), None);
        assert_eq!(test_product(&[1, i64::MAX], &[i64::MAX, 1], &[1, 1]), None);
        assert!(MatmulShape::new(Dtype::I32, &[2, 3], &[3, 4], &[2, 4]).is_err());
    }
}
