//! Which matrices `MatMul` and `Gemm` multiply, for the plugins that bring kernels for host memory. They have it
//! from here and not from each other, so that a plugin of two kernels does not link those of the CPU.

use oarlock_sdk::{Call, Error, Result, ensure};

/// The sizes of one product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Rows of the left matrix and of the output.
    pub rows: usize,
    /// Columns of the right matrix and of the output.
    pub columns: usize,
    /// Columns of the left matrix and rows of the right one.
    pub depth: usize,
}

/// What a call of `MatMul` multiplies, as in NumPy: the last two dimensions are the matrix, the ones before count matrices
/// and are broadcast, and an operand of one dimension is a row on the left and a column on the right.
#[derive(Debug, PartialEq)]
pub struct MatMul {
    /// The sizes of each product.
    pub extent: Extent,
    /// Which matrices are multiplied.
    pub batch: Batch,
    /// The shape of the output.
    pub output: Vec<i64>,
}

/// Which matrices are multiplied with which.
#[derive(Debug, PartialEq)]
pub struct Batch {
    /// How many products there are.
    pub count: usize,
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
    pub const ONE: Self = Self { count: 1, axes: Vec::new() };
    const NONE: Self = Self { count: 0, axes: Vec::new() };

    /// Where the matrices of a product start, in elements.
    pub fn starts(&self, product: usize) -> (usize, usize) {
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

impl MatMul {
    /// The products of operands with these shapes. Many left matrices that share a right one are the rows of one, as long
    /// as it has no more rows than this.
    pub fn new(a: &[i64], b: &[i64], most_rows: usize) -> Result<Self> {
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
        let mut extent = Extent {
            rows: size(rows.unwrap_or(1))?,
            columns: size(columns.unwrap_or(1))?,
            depth: size(depth)?,
        };
        // The matrices of an empty output need not be told apart, however many there are.
        if count(&output)? == 0 {
            return Ok(Self { extent, batch: Batch::NONE, output });
        }
        let joined = extent.rows.checked_mul(count(a_batch)?).filter(|rows| *rows <= most_rows);
        if let (Some(rows), 1) = (joined, count(b_batch)?) {
            extent.rows = rows;
            return Ok(Self { extent, batch: Batch::ONE, output });
        }
        let left = steps(a_batch, batch.len(), count(&[rows.unwrap_or(1), depth])?);
        let right = steps(b_batch, batch.len(), count(&[depth, columns.unwrap_or(1)])?);
        let axes = batch.iter().zip(left.into_iter().zip(right));
        let axes = axes.map(|(size, (left, right))| Axis { size: *size as usize, left, right }).collect();
        Ok(Self { extent, batch: Batch { count: count(&batch)?, axes }, output })
    }
}

/// What a call of `Gemm` multiplies: its attributes.
#[derive(Clone, Copy, Debug)]
pub struct Gemm {
    /// What the product is scaled by.
    pub alpha: f64,
    /// What the third matrix is scaled by.
    pub beta: f64,
    /// Whether the left matrix is turned.
    pub a_turned: bool,
    /// Whether the right matrix is turned.
    pub b_turned: bool,
}

impl Gemm {
    /// The attributes of a call.
    pub fn new(call: &Call<'_>) -> Result<Self> {
        let is_set = |name| Ok::<_, Error>(call.int(name)?.unwrap_or(0) != 0);
        Ok(Self {
            alpha: call.float("alpha")?.unwrap_or(1.0),
            beta: call.float("beta")?.unwrap_or(1.0),
            a_turned: is_set("transA")?,
            b_turned: is_set("transB")?,
        })
    }

    /// The sizes of the product of matrices with these shapes.
    pub fn extent(&self, a: &[i64], b: &[i64]) -> Result<Extent> {
        let ([a_rows, a_columns], [b_rows, b_columns]) = (a, b) else {
            return Err(Error::invalid_argument(format!(
                "expected two matrices, found shapes {a:?} and {b:?}"
            )));
        };
        let (rows, depth) = if self.a_turned { (a_columns, a_rows) } else { (a_rows, a_columns) };
        let (b_depth, columns) = if self.b_turned { (b_columns, b_rows) } else { (b_rows, b_columns) };
        ensure!(
            depth == b_depth,
            invalid_argument,
            "expected as many steps in A as in B, found {depth} and {b_depth} in shapes {a:?} and {b:?}"
        );
        Ok(Extent { rows: size(*rows)?, columns: size(*columns)?, depth: size(*depth)? })
    }
}

impl Extent {
    /// Refuses an output of another shape.
    pub fn check_output(&self, y: &[i64]) -> Result<()> {
        let expected = [self.rows as i64, self.columns as i64];
        ensure!(y == expected, invalid_argument, "expected an output of shape {expected:?}, found {y:?}");
        Ok(())
    }

    /// The elements from row to row and from column to column of a third matrix, which is repeated along dimensions of 1.
    pub fn addend_steps(&self, c: &[i64]) -> Result<[usize; 2]> {
        let (rows, columns) = match c {
            [] => (1, 1),
            [columns] => (1, *columns),
            [rows, columns] => (*rows, *columns),
            _ => return Err(Error::invalid_argument(format!("expected C as a matrix, found shape {c:?}"))),
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

/// A dimension as a size.
pub fn size(dim: i64) -> Result<usize> {
    usize::try_from(dim)
        .map_err(|_| Error::invalid_argument(format!("expected a dimension of at least 0, found {dim}")))
}

/// The product of dimensions, where it fits into memory.
pub fn count(dims: &[i64]) -> Result<usize> {
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

    const MOST_ROWS: usize = i32::MAX as usize;

    fn products(a: &[i64], b: &[i64]) -> Result<MatMul> {
        MatMul::new(a, b, MOST_ROWS)
    }

    #[test]
    fn matrices_are_broadcast() {
        let shape = products(&[2, 1, 3, 4], &[5, 4, 6]).unwrap();
        assert_eq!(shape.extent, Extent { rows: 3, columns: 6, depth: 4 });
        let starts: Vec<_> = (0..6).map(|product| shape.batch.starts(product)).collect();
        assert_eq!(starts, [(0, 0), (0, 24), (0, 48), (0, 72), (0, 96), (12, 0)]);
        assert_eq!((shape.batch.count, shape.output), (10, vec![2, 5, 3, 6]));
    }

    #[test]
    fn products_with_one_right_matrix_are_one_as_long_as_they_can_be_counted() {
        let shape = products(&[2, 3, 4], &[1, 4, 5]).unwrap();
        assert_eq!((shape.extent, shape.batch), (Extent { rows: 6, columns: 5, depth: 4 }, Batch::ONE));
        let shape = products(&[2, MOST_ROWS as i64, 1], &[1, 1]).unwrap();
        assert_eq!((shape.extent.rows, shape.batch.count), (MOST_ROWS, 2));
    }

    #[test]
    fn vectors_are_rows_on_the_left_and_columns_on_the_right() {
        assert_eq!(products(&[3], &[3]).unwrap().output, [0i64; 0]);
        assert_eq!(products(&[3], &[2, 3, 4]).unwrap().output, [2, 4]);
        assert_eq!(products(&[2, 4, 3], &[3]).unwrap().output, [2, 4]);
    }

    #[test]
    fn matrices_are_not_listed_however_many_there_are() {
        let shape = products(&[1 << 40, 2, 1], &[1 << 40, 1, 1]).unwrap();
        assert_eq!(shape.batch.starts((1 << 40) - 1), ((2 << 40) - 2, (1 << 40) - 1));
    }

    #[test]
    fn an_empty_output_has_no_products_however_many_matrices_there_are() {
        let shape = products(&[1 << 40, 0, 3], &[1 << 40, 3, 2]).unwrap();
        assert_eq!((shape.batch.count, shape.output), (0, vec![1 << 40, 0, 2]));
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        for (a, b) in [(&[2, 3][..], &[2, 3][..]), (&[], &[1]), (&[1], &[]), (&[2, 3, 3], &[4, 3, 3])] {
            let error = products(a, b).unwrap_err();
            assert!(error.message().contains(&format!("{a:?} and {b:?}")), "{error}");
        }
        assert!(products(&[i64::MAX, i64::MAX], &[i64::MAX, 0]).is_err());
        assert!(products(&[-1, 2], &[2, 1]).is_err());
    }
}
