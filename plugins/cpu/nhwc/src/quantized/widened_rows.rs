//! Rows of inputs widened to 16 bits, for instruction sets that cannot multiply bytes exactly.
//!
//! The rows of some tiles are widened at a time, so that they stay in L2 while the panels of weights pass by. Each panel is read
//! from memory once for all of them.

#![expect(unsafe_code, reason = "rows are read and written through pointers")]

use std::slice;

use oarlock_cpu_base::isa::{Isa, SimdTarget, SimdTask};
use oarlock_cpu_base::simd::QUAD;
use oarlock_cpu_base::tile_block::TILE_ROW_BYTES;

use super::tile::QuantizedMicroKernels;

/// Bytes of the widened rows. The smallest L2 of processors with AVX2 has 256 KiB; the rest is for panels and results.
const WIDENED_ROWS_BYTES: usize = 128 * 1024;

/// The layout of widened rows.
pub(super) struct WidenedRows {
    taps: usize,
    /// The inputs of a tap, in whole groups of four.
    depth: usize,
    /// The number of rows that are widened at a time, in whole tiles.
    rows: usize,
    /// The distance of rows in bytes: a cache line more than a row has, because rows that are a multiple of the page size apart would
    /// compete for the same sets of L1.
    stride: usize,
}

impl WidenedRows {
    /// `None` if the micro-kernels multiply bytes, or if rows are empty.
    pub(super) fn for_tiles(
        kernels: &QuantizedMicroKernels,
        (taps, depth): (usize, usize),
        tile: usize,
    ) -> Option<Self> {
        if kernels.panel_format.factor_bytes == 1 || taps * depth == 0 {
            return None;
        }
        let depth = depth.next_multiple_of(QUAD);
        let stride = (taps * depth * size_of::<u16>()).next_multiple_of(TILE_ROW_BYTES) + TILE_ROW_BYTES;
        let tiles = (WIDENED_ROWS_BYTES / stride / tile).max(1);
        Some(Self { taps, depth, rows: tiles * tile, stride })
    }

    /// The number of rows that are widened at a time.
    pub(super) fn row_count(&self) -> usize {
        self.rows
    }

    /// The bytes of all rows.
    pub(super) fn size(&self) -> usize {
        self.rows * self.stride
    }

    /// The steps of a row.
    pub(super) fn steps(&self) -> usize {
        self.taps * self.depth * size_of::<u16>() / QUAD
    }

    /// The bytes between rows.
    pub(super) fn row_distance(&self) -> usize {
        self.stride
    }

    /// The address of a row.
    pub(super) fn row_pointer(&self, rows: *mut u8, row: usize) -> *mut u8 {
        rows.wrapping_add(row * self.stride)
    }

    /// Widens some rows. `sources` points to the inputs of each of them at the first tap, then at the second tap, and so on; the
    /// inputs begin `skip` bytes after that. `sign_flip` makes signed bytes unsigned.
    ///
    /// # Safety
    ///
    /// All inputs are readable in whole groups of four, and from the address of the first row there is room for `count` rows.
    pub(super) unsafe fn widen_rows(
        &self,
        isa: Isa,
        (sources, skip, sign_flip): (*const *const u8, usize, u8),
        count: usize,
        rows: *mut u8,
    ) {
        let rows = RowWidening { layout: self, sources, skip, sign_flip, count, rows };
        // One task for all rows: selecting the instruction set takes as long as widening a short row.
        isa.vectorize(rows);
    }
}

/// The operands of [`WidenedRows::widen_rows`], whose conditions they meet.
struct RowWidening<'a> {
    layout: &'a WidenedRows,
    sources: *const *const u8,
    skip: usize,
    sign_flip: u8,
    count: usize,
    rows: *mut u8,
}

impl SimdTask for RowWidening<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let Self { layout, sources, skip, sign_flip, count, rows } = self;
        let depth = layout.depth;
        for row in 0..count {
            let target = layout.row_pointer(rows, row).cast::<u16>();
            for tap in 0..layout.taps {
                // SAFETY: the caller of `widen_rows` guarantees the inputs and the room; nobody else knows the memory of the row.
                let (bytes, target) = unsafe {
                    (
                        slice::from_raw_parts((*sources.add(tap * count + row)).add(skip), depth),
                        slice::from_raw_parts_mut(target.add(tap * depth), depth),
                    )
                };
                for (target, byte) in target.iter_mut().zip(bytes) {
                    *target = u16::from(byte ^ sign_flip);
                }
            }
        }
    }
}
