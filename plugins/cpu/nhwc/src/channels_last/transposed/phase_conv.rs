//! A phase of a transposed convolution as an ordinary convolution, and the tasks that it is divided into.

use std::ops::Range;

use super::super::tile::even_tile_size;
use super::phase::OutputPhase;
use super::transposed_shape::NhwcTransposedShape;

/// An ordinary convolution that computes the outputs of one phase. Its columns are all output channels of a group, for each
/// remainder down and along.
pub(super) struct PhaseConv {
    pub(super) vertical: OutputPhase,
    pub(super) horizontal: OutputPhase,
    /// Columns that are contiguous in the output, and all columns.
    pub(super) run: usize,
    pub(super) columns: usize,
    pub(super) taps: usize,
    /// The pixels of a tile, and the tiles of a row.
    pub(super) tile: usize,
    pub(super) tiles: usize,
}

impl PhaseConv {
    pub(super) fn new(
        sizes: &NhwcTransposedShape,
        most: usize,
        vertical: OutputPhase,
        horizontal: OutputPhase,
    ) -> Self {
        // Outputs whose places have the same remainder by the stride use the same taps; neighbors along a row are contiguous in
        // memory.
        let run = horizontal.remainders.len() * sizes.outputs_per_group();
        let tile = even_tile_size(horizontal.quotients.len(), most);
        Self {
            run,
            columns: vertical.remainders.len() * run,
            taps: vertical.backs.len() * horizontal.backs.len(),
            tile,
            tiles: horizontal.quotients.len().div_ceil(tile),
            vertical,
            horizontal,
        }
    }

    pub(super) fn pixel_count(&self, images: usize) -> usize {
        images * self.vertical.quotients.len() * self.horizontal.quotients.len()
    }
}

/// Some tiles and columns of a group of a phase.
pub(super) struct PhaseTask {
    pub(super) product: usize,
    pub(super) group: usize,
    pub(super) tiles: Range<usize>,
    pub(super) columns: Range<usize>,
}
