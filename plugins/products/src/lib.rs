//! Shapes of `MatMul` and `Gemm`, for plugins with kernels for host memory. It is a crate of its own so that a plugin with two
//! kernels does not link those of the CPU.

use oarlock_sdk::shape::{broadcast_dims, element_count};
use oarlock_sdk::{KernelCall, PluginError, Result, ensure};

/// Sizes of one matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GemmSize {
    /// Rows of the left matrix and of the output.
    pub rows: usize,
    /// Columns of the right matrix and of the output.
    pub columns: usize,
    /// Columns of the left matrix and rows of the right one.
    pub depth: usize,
}

/// A call of `MatMul`, with NumPy's rules: the last two dimensions are the matrix, the ones before are batch dimensions that
/// broadcast, and a 1-D operand is a row on the left and a column on the right.
#[derive(Debug, PartialEq)]
pub struct MatMulProblem {
    /// Sizes of each product.
    pub extent: GemmSize,
    /// Pairing of the matrices.
    pub batch: MatrixBatch,
    /// The output shape.
    pub output: Vec<i64>,
}

/// Pairs left matrices with right matrices.
#[derive(Debug, PartialEq)]
pub struct MatrixBatch {
    /// Number of products.
    pub count: usize,
    axes: Vec<BatchAxis>,
}

/// A batch dimension, with the strides of the left and right operand along it, in elements.
#[derive(Debug, PartialEq)]
struct BatchAxis {
    size: usize,
    left: usize,
    right: usize,
}

impl MatrixBatch {
    /// A batch of one product.
    pub const SINGLE_MATRIX: Self = Self { count: 1, axes: Vec::new() };
    const NO_MATRICES: Self = Self { count: 0, axes: Vec::new() };

    /// Offsets of the left and right matrix of a product, in elements.
    pub fn matrix_starts(&self, product: usize) -> (usize, usize) {
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

impl MatMulProblem {
    /// Analyzes two shapes. Left matrices that share one right matrix are merged into a single taller matrix of at most
    /// `most_rows` rows.
    pub fn new(a: &[i64], b: &[i64], most_rows: usize) -> Result<Self> {
        let unfit = || {
            PluginError::invalid_argument(format!(
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
        let batch = broadcast_dims([a_batch, b_batch]).map_err(|_| unfit())?;
        let output: Vec<i64> = batch.iter().copied().chain(rows).chain(columns).collect();
        element_count(a).and(element_count(b))?;
        let mut extent = GemmSize {
            rows: dimension_size(rows.unwrap_or(1))?,
            columns: dimension_size(columns.unwrap_or(1))?,
            depth: dimension_size(depth)?,
        };
        // An empty output has no matrices to tell apart, and its dimensions may be huge.
        if element_count(&output)? == 0 {
            return Ok(Self { extent, batch: MatrixBatch::NO_MATRICES, output });
        }
        let joined = extent.rows.checked_mul(element_count(a_batch)?).filter(|rows| *rows <= most_rows);
        if let (Some(rows), 1) = (joined, element_count(b_batch)?) {
            extent.rows = rows;
            return Ok(Self { extent, batch: MatrixBatch::SINGLE_MATRIX, output });
        }
        let left = batch_strides(a_batch, batch.len(), element_count(&[rows.unwrap_or(1), depth])?);
        let right = batch_strides(b_batch, batch.len(), element_count(&[depth, columns.unwrap_or(1)])?);
        let axes = batch.iter().zip(left.into_iter().zip(right));
        let axes =
            axes.map(|(size, (left, right))| BatchAxis { size: *size as usize, left, right }).collect();
        Ok(Self { extent, batch: MatrixBatch { count: element_count(&batch)?, axes }, output })
    }
}

/// Attributes of a call of `Gemm`.
#[derive(Clone, Copy, Debug)]
pub struct GemmProblem {
    /// Scale of the product.
    pub alpha: f64,
    /// Scale of the third matrix.
    pub beta: f64,
    /// True if the left matrix is transposed.
    pub a_transposed: bool,
    /// True if the right matrix is transposed.
    pub b_transposed: bool,
}

impl GemmProblem {
    /// Reads the attributes of a call.
    pub fn new(call: &KernelCall<'_>) -> Result<Self> {
        let is_set = |name| Ok::<_, PluginError>(call.int_attribute(name)?.unwrap_or(0) != 0);
        Ok(Self {
            alpha: call.float_attribute("alpha")?.unwrap_or(1.0),
            beta: call.float_attribute("beta")?.unwrap_or(1.0),
            a_transposed: is_set("transA")?,
            b_transposed: is_set("transB")?,
        })
    }

    /// Sizes of the product, after transposing.
    pub fn gemm_size(&self, a: &[i64], b: &[i64]) -> Result<GemmSize> {
        let ([a_rows, a_columns], [b_rows, b_columns]) = (a, b) else {
            return Err(PluginError::invalid_argument(format!(
                "expected two matrices, found shapes {a:?} and {b:?}"
            )));
        };
        let (rows, depth) = if self.a_transposed { (a_columns, a_rows) } else { (a_rows, a_columns) };
        let (b_depth, columns) = if self.b_transposed { (b_columns, b_rows) } else { (b_rows, b_columns) };
        ensure!(
            depth == b_depth,
            invalid_argument,
            "expected as many steps in A as in B, found {depth} and {b_depth} in shapes {a:?} and {b:?}"
        );
        Ok(GemmSize {
            rows: dimension_size(*rows)?,
            columns: dimension_size(*columns)?,
            depth: dimension_size(*depth)?,
        })
    }
}

impl GemmSize {
    /// Checks the output shape.
    pub fn check_output(&self, y: &[i64]) -> Result<()> {
        let expected = [self.rows as i64, self.columns as i64];
        ensure!(y == expected, invalid_argument, "expected an output of shape {expected:?}, found {y:?}");
        Ok(())
    }

    /// Row and column strides of a third matrix that broadcasts; 0 along dimensions of 1.
    pub fn addend_strides(&self, c: &[i64]) -> Result<[usize; 2]> {
        let (rows, columns) = match c {
            [] => (1, 1),
            [columns] => (1, *columns),
            [rows, columns] => (*rows, *columns),
            _ => {
                return Err(PluginError::invalid_argument(format!(
                    "expected C as a matrix, found shape {c:?}"
                )));
            }
        };
        let fits = |found: i64, size: usize| found == 1 || usize::try_from(found) == Ok(size);
        ensure!(
            fits(rows, self.rows) && fits(columns, self.columns),
            invalid_argument,
            "expected C to be repeatable to [{}, {}], found shape {c:?}",
            self.rows,
            self.columns
        );
        let step = |dim: i64, step: i64| if dim == 1 { 0 } else { step as usize };
        Ok([step(rows, columns), step(columns, 1)])
    }
}

/// Converts a dimension to `usize`; refuses negative ones.
pub fn dimension_size(dim: i64) -> Result<usize> {
    usize::try_from(dim).map_err(|_| {
        PluginError::invalid_argument(format!("expected a dimension of at least 0, found {dim}"))
    })
}

/// Batch strides in elements; 0 where the matrix broadcasts.
fn batch_strides(dims: &[i64], rank: usize, matrix: usize) -> Vec<usize> {
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

    const MAX_ROWS: usize = i32::MAX as usize;

    fn test_products(a: &[i64], b: &[i64]) -> Result<MatMulProblem> {
        MatMulProblem::new(a, b, MAX_ROWS)
    }

    #[test]
    fn matrices_are_broadcast() {
        let shape = test_products(&[2, 1, 3, 4], &[5, 4, 6]).unwrap();
        assert_eq!(shape.extent, GemmSize { rows: 3, columns: 6, depth: 4 });
        let starts: Vec<_> = (0..6).map(|product| shape.batch.matrix_starts(product)).collect();
        assert_eq!(starts, [(0, 0), (0, 24), (0, 48), (0, 72), (0, 96), (12, 0)]);
        assert_eq!((shape.batch.count, shape.output), (10, vec![2, 5, 3, 6]));
    }

    #[test]
    fn products_with_one_right_matrix_are_one_as_long_as_they_can_be_counted() {
        let shape = test_products(&[2, 3, 4], &[1, 4, 5]).unwrap();
        assert_eq!(
            (shape.extent, shape.batch),
            (GemmSize { rows: 6, columns: 5, depth: 4 }, MatrixBatch::SINGLE_MATRIX)
        );
        let shape = test_products(&[2, MAX_ROWS as i64, 1], &[1, 1]).unwrap();
        assert_eq!((shape.extent.rows, shape.batch.count), (MAX_ROWS, 2));
    }

    #[test]
    fn vectors_are_rows_on_the_left_and_columns_on_the_right() {
        assert_eq!(test_products(&[3], &[3]).unwrap().output, [0i64; 0]);
        assert_eq!(test_products(&[3], &[2, 3, 4]).unwrap().output, [2, 4]);
        assert_eq!(test_products(&[2, 4, 3], &[3]).unwrap().output, [2, 4]);
    }

    #[test]
    fn matrices_are_not_listed_however_many_there_are() {
        let shape = test_products(&[1 << 40, 2, 1], &[1 << 40, 1, 1]).unwrap();
        assert_eq!(shape.batch.matrix_starts((1 << 40) - 1), ((2 << 40) - 2, (1 << 40) - 1));
    }

    #[test]
    fn an_empty_output_has_no_products_however_many_matrices_there_are() {
        let shape = test_products(&[1 << 40, 0, 3], &[1 << 40, 3, 2]).unwrap();
        assert_eq!((shape.batch.count, shape.output), (0, vec![1 << 40, 0, 2]));
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        for (a, b) in [(&[2, 3][..], &[2, 3][..]), (&[], &[1]), (&[1], &[]), (&[2, 3, 3], &[4, 3, 3])] {
            let error = test_products(a, b).unwrap_err();
            assert!(error.message().contains(&format!("{a:?} and {b:?}")), "{error}");
        }
        assert!(test_products(&[i64::MAX, i64::MAX], &[i64::MAX, 0]).is_err());
        assert!(test_products(&[-1, 2], &[2, 1]).is_err());
    }
}
