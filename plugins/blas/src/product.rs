//! Matrix products, cut into parts for the host's thread pool.

#![expect(unsafe_code, reason = "parts of one output are written by several threads, through pointers")]

use std::ops::Range;

use oarlock_products::{GemmSize, MatrixBatch};
use oarlock_sdk::{HostServices, Result, ensure};

use crate::cblas::{BlasElement, CblasFunctions, MatrixOperand, multiply_matrices};
use crate::operand_out_of_bounds;

/// The least work of a task, in multiply-adds: 65,536 cycles at the AVX2 peak of 16 `f32` per cycle.
const MULTIPLY_ADDS_PER_TASK: usize = 1 << 20;

/// Size limit of a dimension for a library with 32-bit integers.
pub(crate) const MAX_DIMENSION: usize = i32::MAX as usize;

fn multiply_add_count(extent: &GemmSize) -> usize {
    // An estimate of work, so a size that saturates does no harm.
    extent.rows.saturating_mul(extent.columns).saturating_mul(extent.depth)
}

/// Refuses sizes and strides that do not fit the library's 32-bit integers.
pub(crate) fn check_dimensions(extent: &GemmSize) -> Result<()> {
    let largest = extent.rows.max(extent.columns).max(extent.depth);
    ensure!(
        largest <= MAX_DIMENSION,
        unimplemented,
        "expected dimensions of at most {MAX_DIMENSION}, found {largest}"
    );
    Ok(())
}

/// One of the two factors: matrices stored row by row, or column by column if transposed.
#[derive(Clone, Copy)]
pub(crate) struct ProductOperand<'a, T> {
    pub(crate) elements: &'a [T],
    pub(crate) transposed: bool,
}

impl<T> ProductOperand<'_, T> {
    /// The part of a matrix from one row (of the left factor) or column (of the right factor) on. Either each of these is
    /// contiguous, or each step along the depth is.
    fn slice_operand(
        &self,
        start: usize,
        line: usize,
        (lines, depth): (usize, usize),
        lie_together: bool,
    ) -> MatrixOperand<*const T> {
        // A part differs from the whole by its address alone. The step stays that of the whole matrix, so nothing is copied.
        let (to_next, step) = if lie_together { (depth, depth) } else { (1, lines) };
        let address = self.elements[start + line * to_next..].as_ptr();
        MatrixOperand { address, step, transposed: self.transposed }
    }
}

/// An addend scaled by `beta`; it broadcasts along dimensions whose step is 0.
#[derive(Clone, Copy)]
pub(crate) struct BroadcastAddend<'a, T> {
    pub(crate) elements: &'a [T],
    pub(crate) row_step: usize,
    pub(crate) column_step: usize,
    pub(crate) beta: T,
}

/// Products of equal sizes.
pub(crate) struct BatchedProduct<'a, T> {
    pub(crate) extent: GemmSize,
    pub(crate) left: ProductOperand<'a, T>,
    pub(crate) right: ProductOperand<'a, T>,
    pub(crate) batch: MatrixBatch,
    pub(crate) alpha: T,
    pub(crate) addend: Option<BroadcastAddend<'a, T>>,
}

/// The output, shared by threads that write disjoint parts.
struct SharedOutput<T>(*mut T);

// SAFETY: threads write parts that do not overlap.
unsafe impl<T: Send> Sync for SharedOutput<T> {}

impl<T: BlasElement> BatchedProduct<'_, T> {
    /// Computes all products; they follow each other in the output.
    pub(crate) fn compute_products(
        &self,
        cblas: &CblasFunctions,
        host: &HostServices,
        output: &mut [T],
    ) -> Result<()> {
        self.check_bounds(output.len())?;
        // CBLAS rejects steps of 0, so a product without elements must not get there.
        if output.is_empty() {
            return Ok(());
        }
        let cut = ProductPartition::new(&self.extent, self.batch.count, host.worker_count());
        // Small products share a task, so that starting it does not cost more than computing them.
        let grain = MULTIPLY_ADDS_PER_TASK.div_ceil(cut.multiply_adds_per_part(&self.extent));
        let address = SharedOutput(output.as_mut_ptr());
        host.parallel_for((self.batch.count * cut.parts) as u64, grain as u64, |begin, end| {
            // Capture the whole wrapper: a closure that captured only the pointer in it would not be `Sync`.
            let address = &address;
            for part in begin as usize..end as usize {
                let (item, part) = (part / cut.parts, part % cut.parts);
                let (rows, columns) = cut.part_ranges(&self.extent, part);
                // SAFETY: `check_bounds` verified the sizes, and no other part contains any of these elements of the output.
                unsafe { self.compute_block(cblas, item, rows, columns, address.0) };
            }
        });
        Ok(())
    }

    /// Checks that no product reaches outside its operands.
    fn check_bounds(&self, output: usize) -> Result<()> {
        check_dimensions(&self.extent)?;
        let GemmSize { rows, columns, depth } = self.extent;
        let products = self.batch.count;
        let expected = rows.checked_mul(columns).and_then(|matrix| matrix.checked_mul(products));
        ensure!(
            expected == Some(output),
            invalid_argument,
            "expected an output of {products} × {rows} × {columns} elements, found {output}"
        );
        if output == 0 {
            return Ok(());
        }
        let is_within = |start: usize, matrix: Option<usize>, elements: usize| {
            matrix.and_then(|matrix| start.checked_add(matrix)).is_some_and(|end| end <= elements)
        };
        // No step is negative, so the last product reaches furthest.
        let (last_left, last_right) = self.batch.matrix_starts(products - 1);
        let are_within = is_within(last_left, rows.checked_mul(depth), self.left.elements.len())
            && is_within(last_right, depth.checked_mul(columns), self.right.elements.len());
        let has_addend = self.addend.is_none_or(|addend| {
            let row = (rows - 1).checked_mul(addend.row_step);
            let column = (columns - 1).checked_mul(addend.column_step);
            let last = row.zip(column).and_then(|(row, column)| row.checked_add(column));
            last.is_some_and(|last| last < addend.elements.len())
        });
        if are_within && has_addend { Ok(()) } else { Err(operand_out_of_bounds()) }
    }

    /// Computes some rows and columns of one product.
    ///
    /// # Safety
    ///
    /// The operands are as large as `check_bounds` demands, the output starts at `output`, and nothing else touches this part.
    unsafe fn compute_block(
        &self,
        cblas: &CblasFunctions,
        item: usize,
        rows: Range<usize>,
        columns: Range<usize>,
        output: *mut T,
    ) {
        let extent = self.extent;
        let (left, right) = self.batch.matrix_starts(item);
        let start = item * extent.rows * extent.columns + rows.start * extent.columns + columns.start;
        // SAFETY: the part begins within the output.
        let address = unsafe { output.add(start) };
        if self.addend.is_some() || extent.depth == 0 {
            for (at, row) in rows.clone().enumerate() {
                // SAFETY: the row of the part lies within the output, and only this thread touches it.
                let row_of_part = unsafe {
                    std::slice::from_raw_parts_mut(address.add(at * extent.columns), columns.len())
                };
                self.fill_addend_row(row, columns.start, row_of_part);
            }
        }
        // Factors without elements have no step to pass, and nothing is left to add.
        if extent.depth == 0 {
            return;
        }
        let left =
            self.left.slice_operand(left, rows.start, (extent.rows, extent.depth), !self.left.transposed);
        let right = self.right.slice_operand(
            right,
            columns.start,
            (extent.columns, extent.depth),
            self.right.transposed,
        );
        let part = (rows.len(), columns.len(), extent.depth);
        let output = MatrixOperand { address, step: extent.columns, transposed: false };
        // SAFETY: the part lies within operands that `check_bounds` found large enough, with sizes and strides of at most
        // `i32::MAX`, and a part is not empty.
        unsafe { multiply_matrices(cblas, part, left, right, (self.alpha, self.addend.is_some()), output) };
    }

    /// Initializes part of an output row with the scaled addend, since the library accumulates into the output.
    fn fill_addend_row(&self, row: usize, first_column: usize, output: &mut [T]) {
        let Some(addend) = &self.addend else { return output.fill(T::ZERO) };
        for (column, number) in (first_column..).zip(output) {
            let at = row * addend.row_step + column * addend.column_step;
            // Multiplied even if `beta` is 0, so that NaN and infinity in the addend stay visible.
            *number = addend.elements[at].scaled_by(addend.beta);
        }
    }
}

/// How to cut each product: along its longer side, into as many parts as keep all threads busy.
struct ProductPartition {
    parts: usize,
    by_rows: bool,
}

impl ProductPartition {
    fn new(extent: &GemmSize, items: usize, workers: usize) -> Self {
        // The depth is never cut: the parts of a sum would need memory of their own and a pass that adds them up.
        let by_rows = extent.rows >= extent.columns;
        let longer = extent.rows.max(extent.columns);
        // At least 1 part, and no more than lines, so that none is empty.
        let worth = (multiply_add_count(extent) / MULTIPLY_ADDS_PER_TASK).clamp(1, longer.max(1));
        // The products of a batch already keep threads busy; only what is missing comes from cutting.
        Self { parts: workers.div_ceil(items.max(1)).min(worth), by_rows }
    }

    /// Never 0, since it is a divisor.
    fn multiply_adds_per_part(&self, extent: &GemmSize) -> usize {
        (multiply_add_count(extent) / self.parts).max(1)
    }

    fn part_ranges(&self, extent: &GemmSize, part: usize) -> (Range<usize>, Range<usize>) {
        let of = |size: usize| {
            // The first parts take one line of the remainder each, so sizes differ by 1 at most.
            let border = |part: usize| size / self.parts * part + (size % self.parts).min(part);
            border(part)..border(part + 1)
        };
        if self.by_rows { (of(extent.rows), 0..extent.columns) } else { (0..extent.rows, of(extent.columns)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_the_longer_side_without_a_gap_and_none_is_empty() {
        for (rows, columns) in [(1001, 999), (3, 1000), (1000, 1), (7, 7)] {
            let extent = GemmSize { rows, columns, depth: 1 << 20 };
            for workers in 1..=8 {
                let cut = ProductPartition::new(&extent, 1, workers);
                let parts: Vec<_> = (0..cut.parts).map(|part| cut.part_ranges(&extent, part)).collect();
                let along = |part: &(Range<usize>, Range<usize>)| {
                    if cut.by_rows { part.0.clone() } else { part.1.clone() }
                };
                assert!(parts.iter().all(|part| !along(part).is_empty()), "{rows} {columns} {workers}");
                let ends: Vec<_> = parts.iter().map(|part| along(part).end).collect();
                let begins: Vec<_> = parts.iter().map(|part| along(part).start).collect();
                assert_eq!((begins[0], begins[1..].to_vec()), (0, ends[..ends.len() - 1].to_vec()));
                assert_eq!(*ends.last().unwrap(), rows.max(columns));
            }
        }
    }

    #[test]
    fn many_products_and_small_ones_are_not_cut() {
        let extent = GemmSize { rows: 512, columns: 512, depth: 512 };
        assert_eq!(
            (ProductPartition::new(&extent, 8, 8).parts, ProductPartition::new(&extent, 3, 8).parts),
            (1, 3)
        );
        assert_eq!(ProductPartition::new(&GemmSize { rows: 4, columns: 4, depth: 4 }, 1, 8).parts, 1);
    }

    #[test]
    fn sizes_beyond_32_bits_are_refused() {
        let error = check_dimensions(&GemmSize { rows: 1, columns: 1 << 31, depth: 1 }).unwrap_err();
        assert_eq!(error.message(), "expected dimensions of at most 2147483647, found 2147483648");
        assert!(check_dimensions(&GemmSize { rows: 0, columns: MAX_DIMENSION, depth: 1 }).is_ok());
    }
}
