//! Products of rows with the columns of a matrix, block by block, for AMX.
//!
//! The rows of a block must have a fixed stride. Other rows are gathered first, as many at a time as stay in L2: a stripe. A stripe
//! is multiplied with all columns before the next stripe begins, 32 columns at a time: these are read from memory once, and the
//! other blocks of the stripe find them in L1. Meanwhile the next columns are prefetched.

#![cfg_attr(x86_vectors, expect(unsafe_code, reason = "registers are only there where a machine has them"))]

use std::ops::Range;

#[cfg(x86_vectors)]
use crate::amx::TileRegisters;
use crate::isa::Isa;
use crate::tile_block::{BLOCK_ROWS, BlockOperands, TILE_ROW_BYTES, TILE_ROWS};

/// Bytes of the rows of a stripe: half of the 2 MiB L2 per core of the first processors with AMX. The rest is for panels and
/// results.
const STRIPE_BYTES: usize = 1024 * 1024;
/// Columns are split among tasks if there are this many times as many as rows.
const COLUMN_SPLIT_RATIO: usize = 6;

/// Rows of one length, cut into stripes.
pub struct RowBlocks {
    /// Cache lines per row.
    lines: usize,
    /// Rows per stripe.
    rows: usize,
}

/// Rows that a block can read: at a fixed stride, each in whole cache lines.
#[derive(Clone, Copy)]
pub struct StridedRows {
    pub first: *const u8,
    pub stride: usize,
}

impl StridedRows {
    /// True if the tiles of a block read no rows beyond it.
    fn holds_block(block: &Range<usize>) -> bool {
        block.len() == BLOCK_ROWS
    }
}

/// A thread's buffer for the gathered rows of a stripe.
pub struct StripeBuffer {
    start: *mut u8,
    /// The matrix and the range of rows that the buffer contains.
    held: Option<(usize, Range<usize>)>,
}

impl StripeBuffer {
    /// A buffer in [`RowBlocks::stripe_size`] bytes of memory at an address.
    pub fn new(start: *mut u8) -> Self {
        Self { start, held: None }
    }

    pub fn start_pointer(&self) -> *mut u8 {
        self.start
    }
}

impl RowBlocks {
    /// Stripes for `rows` rows of `bytes` bytes each. `None` without AMX, and for few rows, where reading the columns takes most of
    /// the time and AMX gains nothing.
    pub fn for_rows(isa: Isa, rows: usize, bytes: usize) -> Option<Self> {
        const MIN_ROWS: usize = 4;
        (isa >= Isa::Amx && rows > MIN_ROWS && bytes > 0).then(|| Self::with_row_size(rows, bytes))
    }

    fn with_row_size(rows: usize, bytes: usize) -> Self {
        let lines = bytes.div_ceil(TILE_ROW_BYTES);
        let all = Self { lines, rows: 0 };
        let most = (STRIPE_BYTES / all.row_stride() / BLOCK_ROWS).max(1) * BLOCK_ROWS;
        // Computes the number of stripes first, so that all are about equally long and no short one is left over.
        let count = rows.div_ceil(most);
        Self { rows: rows.div_ceil(count).next_multiple_of(BLOCK_ROWS), ..all }
    }

    /// Configures the tile registers of this thread, until the result is dropped.
    #[cfg(x86_vectors)]
    pub fn configure_registers(&self) -> TileRegisters {
        // SAFETY: a `RowBlocks` exists only if the process may use the registers.
        unsafe { TileRegisters::new() }
    }

    #[cfg(not(x86_vectors))]
    pub fn configure_registers(&self) {}

    /// The stride of gathered rows in bytes: a cache line more than a row has, since rows that are a multiple of the page size
    /// apart would compete for the same sets of L1.
    pub fn row_stride(&self) -> usize {
        (self.lines + 1) * TILE_ROW_BYTES
    }

    pub fn stripe_size(&self) -> usize {
        self.rows * self.row_stride()
    }

    /// The rows and columns of a task, for about `wanted` tasks. Rows are split first, because the rows that a thread gathered are
    /// still in its cache for the next product. Columns are split if there are so many more that reading them once for each split
    /// of the rows would take longer. If there are several tasks, no task spans two stripes.
    pub fn task_size(&self, rows: usize, columns: usize, wanted: usize) -> (usize, usize) {
        let (blocks, panels) = (rows.div_ceil(BLOCK_ROWS).max(1), columns.div_ceil(BLOCK_ROWS).max(1));
        let stripes = rows.div_ceil(self.rows).max(1);
        let (down, across) = if wanted <= 1 {
            (1, 1)
        } else if COLUMN_SPLIT_RATIO * rows > columns {
            let down = stripes.max(wanted).min(blocks);
            (down, wanted.div_ceil(down).min(panels))
        } else {
            let across = wanted.div_ceil(stripes).min(panels);
            (stripes.max(wanted.div_ceil(across)).min(blocks), across)
        };
        (blocks.div_ceil(down) * BLOCK_ROWS, panels.div_ceil(across) * BLOCK_ROWS)
    }

    /// Multiplies some rows and columns of a matrix. If the rows cannot be read in place, `gather` copies them to an address;
    /// `right` returns the address of the panel that begins with a column. `compute` receives each block with its rows and columns.
    pub fn run_blocks(
        &self,
        matrix: usize,
        (rows, columns): (Range<usize>, Range<usize>),
        StripeBuffer { start: memory, held }: &mut StripeBuffer,
        (lying, mut gather): (Option<StridedRows>, impl FnMut(Range<usize>, *mut u8)),
        right: impl Fn(usize) -> *const u8,
        mut compute: impl FnMut(Range<usize>, Range<usize>, &BlockOperands),
    ) {
        let (stride, memory) = (self.row_stride(), *memory);
        for start in rows.clone().step_by(self.rows) {
            let stripe = start..rows.end.min(start + self.rows);
            let blocks =
                || stripe.clone().step_by(BLOCK_ROWS).map(|first| first..stripe.end.min(first + BLOCK_ROWS));
            let place = |row: usize| memory.wrapping_add((row - start) * stride);
            let lies = |block: &Range<usize>| lying.filter(|_| StridedRows::holds_block(block));
            let held = held.replace((matrix, stripe.clone()));
            if held != Some((matrix, stripe.clone())) {
                blocks()
                    .filter(|block| lies(block).is_none())
                    .for_each(|block| gather(block.clone(), place(block.start)));
            }
            for first in columns.clone().step_by(BLOCK_ROWS) {
                let panel = first..columns.end.min(first + BLOCK_ROWS);
                let tiles = panel.len().div_ceil(TILE_ROWS);
                // Each block prefetches its share of the next panel.
                let share = (tiles * TILE_ROWS * TILE_ROW_BYTES).div_ceil(blocks().len());
                let next = Some(panel.end).filter(|end| *end < columns.end);
                let next = next.map_or(std::ptr::null(), &right);
                for (index, block) in blocks().enumerate() {
                    let is_last = next.is_null();
                    let rows = lies(&block).map_or((place(block.start).cast_const(), stride), |lying| {
                        (lying.first.wrapping_add(block.start * lying.stride), lying.stride)
                    });
                    let described = BlockOperands {
                        left: rows.0,
                        rows: block.len(),
                        stride: rows.1,
                        right: right(first),
                        tiles,
                        lines: self.lines,
                        soon: next.wrapping_add(index * share * self.lines),
                        share: if is_last { 0 } else { share },
                    };
                    compute(block, panel.clone(), &described);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_meets_every_column_once() {
        for (rows, columns, bytes) in [(5, 1, 1), (33, 70, 64), (1000, 32, 5000), (64, 100, 100_000)] {
            let stripes = RowBlocks::with_row_size(rows, bytes);
            let (of_task, across) = stripes.task_size(rows, columns, 3);
            let mut met = vec![0; rows * columns];
            let mut memory = StripeBuffer::new(std::ptr::null_mut());
            let gathered =
                std::cell::RefCell::new(vec![usize::MAX; stripes.stripe_size() / stripes.row_stride()]);
            for first in (0..rows).step_by(of_task) {
                for column in (0..columns).step_by(across) {
                    let task = (first..rows.min(first + of_task), column..columns.min(column + across));
                    stripes.run_blocks(
                        0,
                        (task.0, task.1),
                        &mut memory,
                        (None, |rows: Range<usize>, place: *mut u8| {
                            assert!(
                                place.addr() + rows.len() * stripes.row_stride() <= stripes.stripe_size()
                            );
                            for (index, row) in rows.enumerate() {
                                gathered.borrow_mut()[place.addr() / stripes.row_stride() + index] = row;
                            }
                        }),
                        std::ptr::without_provenance,
                        |rows, columns_met, block| {
                            assert_eq!(block.right.addr(), columns_met.start);
                            assert_eq!(
                                (rows.len(), columns_met.len().div_ceil(16)),
                                (block.rows, block.tiles)
                            );
                            assert!(block.rows <= BLOCK_ROWS && block.lines * TILE_ROW_BYTES >= bytes);
                            for (index, row) in rows.enumerate() {
                                let place = block.left.addr() / block.stride + index;
                                assert_eq!(gathered.borrow()[place], row);
                                columns_met.clone().for_each(|column| met[row * columns + column] += 1);
                            }
                        },
                    );
                }
            }
            assert!(met.iter().all(|times| *times == 1), "{rows} rows, {columns} columns");
        }
    }

    #[test]
    fn few_rows_and_empty_rows_are_not_split_into_blocks() {
        let are_cut = |rows, bytes| RowBlocks::for_rows(Isa::Amx, rows, bytes).is_some();
        assert!(!are_cut(4, 100) && !are_cut(100, 0) && are_cut(5, 1));
        assert!(RowBlocks::for_rows(Isa::Avx512, 100, 100).is_none());
    }

    #[test]
    fn a_strip_that_is_there_is_not_put_together_again() {
        let stripes = RowBlocks::with_row_size(40, 64);
        let mut memory = StripeBuffer::new(std::ptr::null_mut());
        let mut gather =
            |lying: Option<StridedRows>, matrix: usize, rows: Range<usize>, columns: Range<usize>| {
                let mut count = 0;
                let counted = |rows: Range<usize>, _: *mut u8| count += rows.len();
                stripes.run_blocks(
                    matrix,
                    (rows, columns),
                    &mut memory,
                    (lying, counted),
                    |_| std::ptr::null(),
                    |_, _, _| (),
                );
                count
            };
        assert_eq!(gather(None, 0, 0..40, 0..32), 40);
        assert_eq!(gather(None, 0, 0..40, 32..64), 0);
        assert_eq!(gather(None, 1, 0..40, 32..64), 40);
        assert_eq!(gather(None, 1, 0..8, 0..32), 8);
        assert_eq!(gather(None, 1, 0..40, 0..32), 40);
        // If rows can be read in place, only the last partial block is gathered, since blocks are read as a whole.
        let lying = Some(StridedRows { first: std::ptr::null(), stride: 64 });
        assert_eq!(gather(lying, 2, 0..40, 0..32), 8);
        assert_eq!(gather(lying, 3, 0..32, 0..32), 0);
    }

    #[test]
    fn rows_are_split_first_unless_columns_are_many_more() {
        let task = |rows, bytes, columns, wanted| {
            RowBlocks::with_row_size(rows, bytes).task_size(rows, columns, wanted)
        };
        assert_eq!(task(3000, 1152, 64, 1), (3008, 64));
        assert_eq!(task(3000, 1152, 64, 8), (384, 64));
        assert_eq!(task(3000, 1152, 64, 3), (768, 64));
        assert_eq!(task(49, 9216, 512, 8), (64, 64));
        assert_eq!(task(128, 1536, 128, 8), (32, 64));
        assert_eq!(task(300, 9216, 3200, 4), (96, 3200));
        assert_eq!(task(128, 1536, 3072, 8), (128, 384));
    }
}
