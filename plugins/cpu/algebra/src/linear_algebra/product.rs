//! Products of matrices within an algorithm: small ones in place, others by the GEMM kernels.

use oarlock_cpu_base::rows::scratch::{try_filled_vec, try_reserve_vec};
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_gemm::{BatchedGemm, GemmOperand, GemmShape, ScratchBuffer, StridedMatrix};
use oarlock_sdk::{Complex, PluginError, Result};

use super::field::ScalarField;
use super::row_operations::{MatrixRows, SubtractMatrix};

/// Up to this many multiplications, packing takes longer than computing.
const SMALL_PRODUCT: usize = 2048;

/// About this many elements of a product are computed before they are subtracted: 512 KiB of `f64`, which an L2 cache of 1 MiB
/// holds until then.
const PRODUCT_CHUNK: usize = 1 << 16;

/// A part of a matrix, as an operand of a product.
#[derive(Clone, Copy)]
pub(super) struct MatrixView<'a, F> {
    pub(super) elements: &'a [F],
    /// The distance between rows, and the distance between columns.
    pub(super) strides: [usize; 2],
    pub(super) is_conjugate: bool,
}

impl<'a, F: Copy> MatrixView<'a, F> {
    /// Elements in row-major order.
    pub(super) fn new(elements: &'a [F], row: usize) -> Self {
        Self { elements, strides: [row, 1], is_conjugate: false }
    }

    pub(super) fn transposed(self) -> Self {
        let [row, column] = self.strides;
        Self { strides: [column, row], ..self }
    }

    pub(super) fn conjugated(self) -> Self {
        Self { is_conjugate: !self.is_conjugate, ..self }
    }

    pub(super) fn adjoint(self) -> Self {
        self.transposed().conjugated()
    }

    pub(super) fn skip_rows(self, rows: usize) -> Self {
        Self { elements: self.elements.get(rows * self.strides[0]..).unwrap_or(&[]), ..self }
    }

    pub(super) fn skip_columns(self, columns: usize) -> Self {
        Self { elements: self.elements.get(columns * self.strides[1]..).unwrap_or(&[]), ..self }
    }
}

impl<F: ScalarField> MatrixView<'_, F> {
    fn element_at(&self, row: usize, column: usize) -> F {
        // For real numbers the test below is a constant, so their loop has no branch.
        let element = self.elements[row * self.strides[0] + column * self.strides[1]];
        if F::IS_COMPLEX && self.is_conjugate { element.conjugate() } else { element }
    }

    /// The real or the imaginary parts, in row-major order.
    fn component_plane(&self, part: usize, rows: usize, columns: usize) -> Result<Vec<f64>> {
        // The GEMM kernels multiply real numbers alone.
        let mut plane = try_reserve_vec(rows * columns)?;
        for row in 0..rows {
            plane.extend((0..columns).map(|column| self.element_at(row, column).components()[part]));
        }
        Ok(plane)
    }
}

/// The product of two matrices, in row-major order. The sizes are the rows of the left one, the columns of the right one, and the
/// dimension that they share.
pub(super) fn multiply_matrices<F: MatrixScalar>(
    team: &dyn ThreadTeam,
    sizes: [usize; 3],
    left: MatrixView<'_, F>,
    right: MatrixView<'_, F>,
) -> Result<Vec<F>> {
    let [rows, columns, depth] = sizes;
    let mut made = try_filled_vec(F::ZERO, rows * columns)?;
    if rows.saturating_mul(columns).saturating_mul(depth) <= SMALL_PRODUCT {
        for (row, made) in made.chunks_mut(columns.max(1)).enumerate() {
            for step in 0..depth {
                let factor = left.element_at(row, step);
                for (column, made) in made.iter_mut().enumerate() {
                    *made = *made + factor * right.element_at(step, column);
                }
            }
        }
        return Ok(made);
    }
    F::multiply_with_gemm(team, sizes, left, right, &mut made)?;
    Ok(made)
}

/// A scalar whose matrices the GEMM kernels multiply.
pub(super) trait MatrixScalar: ScalarField {
    /// Writes the product of two matrices into one that is filled with 0.
    fn multiply_with_gemm(
        team: &dyn ThreadTeam,
        sizes: [usize; 3],
        left: MatrixView<'_, Self>,
        right: MatrixView<'_, Self>,
        made: &mut [Self],
    ) -> Result<()>;
}

impl<'a> MatrixView<'a, f64> {
    /// The same as an operand of the GEMM kernels.
    fn to_gemm_operand(self, lanes: usize, depth: usize) -> Result<StridedMatrix<'a, f64>> {
        let [lane, step] = self.strides;
        StridedMatrix::new(self.elements, vec![0], (lanes, lane), (depth, step)).ok_or_else(|| {
            PluginError::out_of_range("expected matrices as large as a product reads, found smaller ones")
        })
    }
}

impl MatrixScalar for f64 {
    fn multiply_with_gemm(
        team: &dyn ThreadTeam,
        [rows, columns, depth]: [usize; 3],
        left: MatrixView<'_, f64>,
        right: MatrixView<'_, f64>,
        made: &mut [f64],
    ) -> Result<()> {
        // Both operands are given as lanes by depth, so the right one is transposed.
        let (left, right) =
            (left.to_gemm_operand(rows, depth)?, right.transposed().to_gemm_operand(columns, depth)?);
        let (left, right) = (GemmOperand::Operand(&left), GemmOperand::Operand(&right));
        let sizes = GemmShape { items: 1, rows, columns, depth };
        BatchedGemm { sizes, left, right, output: Some(made), epilogue: None }
            .compute(team, &mut ScratchBuffer::without_workspace());
        Ok(())
    }
}

impl MatrixScalar for Complex<f64> {
    /// Four real products, of each part with each.
    fn multiply_with_gemm(
        team: &dyn ThreadTeam,
        sizes: [usize; 3],
        left: MatrixView<'_, Self>,
        right: MatrixView<'_, Self>,
        made: &mut [Self],
    ) -> Result<()> {
        let [rows, columns, depth] = sizes;
        // Each of the four products is written over the one before.
        let mut product = try_filled_vec(0.0, made.len())?;
        let lefts = [left.component_plane(0, rows, depth)?, left.component_plane(1, rows, depth)?];
        let rights = [right.component_plane(0, depth, columns)?, right.component_plane(1, depth, columns)?];
        for (one, left) in lefts.iter().enumerate() {
            for (other, right) in rights.iter().enumerate() {
                let (left, right) = (MatrixView::new(left, depth), MatrixView::new(right, columns));
                f64::multiply_with_gemm(team, sizes, left, right, &mut product)?;
                for (made, product) in made.iter_mut().zip(&product) {
                    // By the square of i: both real parts add to the real part, both imaginary ones subtract.
                    match one + other {
                        0 => made.re += product,
                        1 => made.im += product,
                        _ => made.re -= product,
                    }
                }
            }
        }
        Ok(())
    }
}

/// Subtracts a product from rows in place. The sizes are those of [`multiply_matrices`], without the columns.
pub(super) fn subtract_product<F: MatrixScalar>(
    team: &dyn ThreadTeam,
    [rows, depth]: [usize; 2],
    from: MatrixRows<'_, F>,
    left: MatrixView<'_, F>,
    right: MatrixView<'_, F>,
) -> Result<()> {
    let (width, stride) = (from.columns.len(), from.stride);
    // There is nothing to subtract, and the width divides below.
    if width == 0 || depth == 0 {
        return Ok(());
    }
    let at_once = (PRODUCT_CHUNK / width).max(1);
    // Whole rows, so that each piece is a product of its own.
    let pieces = from.elements.chunks_mut(at_once.saturating_mul(stride).max(1));
    for (index, elements) in pieces.enumerate().take(rows.div_ceil(at_once)) {
        let first = index * at_once;
        let sizes = [at_once.min(rows - first), width, depth];
        let product = multiply_matrices(team, sizes, left.skip_rows(first), right)?;
        let columns = from.columns.clone();
        team.isa()
            .vectorize(SubtractMatrix { from: MatrixRows { elements, stride, columns }, other: &product });
    }
    Ok(())
}
