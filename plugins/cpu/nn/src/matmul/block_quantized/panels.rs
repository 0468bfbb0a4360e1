//! Products of several rows with 4-bit weights. The words of a panel of columns are brought side by side, a slab of them at a time, so
//! that each lane adds up a column of its own: a sum stays in its register for a whole block, and its scale applies once to all lanes.
//! This pays as soon as a few rows share the slab.

use std::ops::Range;

use oarlock_cpu_base::isa::{Isa, SimdTarget, SimdTask};
use oarlock_cpu_base::prefetch::prefetch_l2;
use oarlock_cpu_base::rows::output_parts::AxisLinesPart;
use oarlock_cpu_base::rows::plane_transpose::PlaneTranspose;

use super::columns::{BlockQuantizedMatrix, ChunkProducts, ZeroPoints};
use super::rounded_chunk::{RoundedChunk, WORD_ELEMENTS};

const CACHE_LINE: usize = 64;
/// The words of a column in a slab. All columns of a slab fit in L1.
const SLAB_WORDS: usize = 64;
/// The words that the smallest block has. Their products fit into any kind of sum.
pub(super) const UNIT_WORDS: usize = 4;
/// The most blocks of a column that a slab touches.
const SLAB_BLOCKS: usize = SLAB_WORDS / UNIT_WORDS;

/// A way to multiply rounded rows with a panel of as many columns as a chunk has words.
pub(super) trait PanelProducts<const WORDS: usize>:
    ChunkProducts<WORDS, RowChunk = RoundedChunk<WORDS>>
{
    /// True if there are registers for eight rows, and not only for four.
    const HAS_EIGHT_ROWS: bool;

    /// A vector with the sum of each column.
    type Sums: Copy;

    fn load_sums(sums: &[f32; WORDS]) -> Self::Sums;

    fn store_sums(sums: Self::Sums) -> [f32; WORDS];

    /// Adds the products with a block, which begins at the word `first` of the chunks, to the sums of each row.
    fn add_block<const ROWS: usize>(
        block: PanelBlock<'_, WORDS>,
        rows: [&RoundedChunk<WORDS>; ROWS],
        first: usize,
        sums: &mut [Self::Sums; ROWS],
    );
}

/// A block of each column of a panel, or the part of it that a chunk has: its words, scales and zero points.
pub(super) struct PanelBlock<'a, const WORDS: usize> {
    pub words: &'a [[[u8; 4]; WORDS]],
    pub scales: &'a [f32; WORDS],
    pub zeros: &'a [f32; WORDS],
}

/// Multiplies rows with the columns of some results. A chunk has `BLOCKS` blocks, or is a part of one.
struct PanelTask<'a, P: PanelProducts<WORDS>, const WORDS: usize, const BLOCKS: usize> {
    isa: Isa,
    matrix: BlockQuantizedMatrix<'a>,
    /// The chunks of all rows.
    rows: &'a [P::RowChunk],
    results: AxisLinesPart<'a, f32>,
}

/// Multiplies the chunks of some rows with the columns of some results, a panel at a time.
pub(super) fn run_panels<P: PanelProducts<WORDS>, const WORDS: usize, const BLOCKS: usize>(
    isa: Isa,
    matrix: BlockQuantizedMatrix<'_>,
    rows: &[P::RowChunk],
    results: AxisLinesPart<'_, f32>,
) {
    P::run_task(isa, PanelTask::<P, WORDS, BLOCKS> { isa, matrix, rows, results });
}

/// A slab of a panel: for each word the columns side by side, and for each block their scales and zero points.
#[repr(C, align(64))]
struct PanelSlab<const WORDS: usize> {
    words: [[[u8; 4]; WORDS]; SLAB_WORDS],
    scales: [[f32; WORDS]; SLAB_BLOCKS],
    zeros: [[f32; WORDS]; SLAB_BLOCKS],
}

impl<const WORDS: usize> PanelSlab<WORDS> {
    /// Brings some chunks of some columns side by side.
    fn fill_from_columns(
        &mut self,
        isa: Isa,
        matrix: &BlockQuantizedMatrix<'_>,
        (column, columns): (usize, usize),
        chunks: &Range<usize>,
    ) {
        let column_words = matrix.column_bytes / size_of::<u32>();
        let words = chunks.start * WORDS..(chunks.end * WORDS).min(column_words);
        PlaneTranspose {
            input: &matrix.weights.as_chunks().0[column * column_words + words.start..],
            stride: column_words,
            out: self.words.as_flattened_mut(),
            pitch: WORDS,
            rows: words.len(),
            columns,
        }
        .transpose_plane(isa);
        // The last chunk may not be full.
        self.words[words.len()..chunks.len() * WORDS].fill([[0; 4]; WORDS]);
        if matrix.sign_bits != 0 {
            for byte in self.words[..words.len()].as_flattened_mut().as_flattened_mut() {
                *byte ^= matrix.sign_bits;
            }
        }
        let first = words.start * WORD_ELEMENTS / matrix.block;
        let end = (words.end * WORD_ELEMENTS).div_ceil(matrix.block);
        PlaneTranspose {
            input: &matrix.scales[column * matrix.blocks + first..],
            stride: matrix.blocks,
            out: self.scales.as_flattened_mut(),
            pitch: WORDS,
            rows: end - first,
            columns,
        }
        .transpose_plane(isa);
        for (block, lanes) in (first..end).zip(&mut self.zeros) {
            match matrix.zeros {
                ZeroPoints::Uniform(zero) => *lanes = [zero; WORDS],
                ZeroPoints::Packed(zeros) => {
                    for (lane, zero) in lanes.iter_mut().enumerate().take(columns) {
                        let place = (column + lane) * matrix.blocks + block;
                        *zero = matrix.unpack_zero(zeros, place, WORD_ELEMENTS);
                    }
                }
            }
        }
    }
}

impl<P: PanelProducts<WORDS>, const WORDS: usize, const BLOCKS: usize> PanelTask<'_, P, WORDS, BLOCKS> {
    /// Multiplies some rows with a slab and adds to their results, or sets these with the first slab.
    #[inline(always)]
    fn multiply_rows<const ROWS: usize>(
        &mut self,
        slab: &PanelSlab<WORDS>,
        columns: (usize, usize),
        chunks: &Range<usize>,
        first_row: usize,
    ) {
        let row_chunks = self.matrix.row_chunks(WORDS);
        let mut rows: [&[P::RowChunk]; ROWS] = [&[]; ROWS];
        let mut sums = [P::load_sums(&[0.0; WORDS]); ROWS];
        for row in 0..ROWS {
            rows[row] = &self.rows[(first_row + row) * row_chunks..][chunks.clone()];
            if chunks.start > 0 {
                sums[row] = P::load_sums(&self.load_results(columns, first_row + row));
            }
        }
        let first_block = chunks.start * WORDS * WORD_ELEMENTS / self.matrix.block;
        for (chunk, words) in slab.words.as_chunks::<WORDS>().0.iter().enumerate().take(chunks.len()) {
            let mut row_chunks = [&rows[0][chunk]; ROWS];
            for row in 1..ROWS {
                row_chunks[row] = &rows[row][chunk];
            }
            for part in 0..BLOCKS {
                let (first, at) = (part * (WORDS / BLOCKS), chunks.start + chunk);
                let block = if BLOCKS > 1 {
                    at * BLOCKS + part
                } else {
                    at * (WORDS * WORD_ELEMENTS) / self.matrix.block
                };
                let operand = PanelBlock {
                    words: &words[first..][..WORDS / BLOCKS],
                    scales: &slab.scales[block - first_block],
                    zeros: &slab.zeros[block - first_block],
                };
                P::add_block(operand, row_chunks, first, &mut sums);
                if first_row == 0 {
                    self.prefetch_next_panel(columns, at * WORDS + first, WORDS / BLOCKS, block);
                }
            }
        }
        for (row, sums) in (first_row..).zip(sums) {
            self.store_results(columns, row, P::store_sums(sums));
        }
    }

    /// Fetches a part of the next panel, as large as some words of a block of this one. All columns follow one another, so its lines are
    /// read in their order, which is not that of the words.
    #[inline(always)]
    fn prefetch_next_panel(
        &self,
        (column, columns): (usize, usize),
        word: usize,
        words: usize,
        block: usize,
    ) {
        let matrix = &self.matrix;
        let weights = matrix.weights.as_ptr().wrapping_add((column + columns) * matrix.column_bytes);
        let part = columns * size_of::<u32>();
        for at in (word * part..(word + words) * part).step_by(CACHE_LINE) {
            prefetch_l2(weights.wrapping_add(at));
        }
        let scales = matrix.scales.as_ptr().wrapping_add((column + columns) * matrix.blocks);
        prefetch_l2(scales.wrapping_add(block * columns));
    }

    #[inline(always)]
    fn load_results(&mut self, (column, columns): (usize, usize), row: usize) -> [f32; WORDS] {
        let results = self.results.lines_at(column, columns, row);
        let mut sums = [0.0; WORDS];
        match results.first_chunk() {
            Some(results) => sums = *results,
            None => sums[..columns].copy_from_slice(results),
        }
        sums
    }

    #[inline(always)]
    fn store_results(&mut self, (column, columns): (usize, usize), row: usize, sums: [f32; WORDS]) {
        let results = self.results.lines_at(column, columns, row);
        match results.first_chunk_mut() {
            Some(results) => *results = sums,
            None => results.copy_from_slice(&sums[..columns]),
        }
    }
}

impl<P: PanelProducts<WORDS>, const WORDS: usize, const BLOCKS: usize> SimdTask
    for PanelTask<'_, P, WORDS, BLOCKS>
{
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(mut self) {
        assert!((WORDS / BLOCKS).is_multiple_of(UNIT_WORDS), "blocks of whole units");
        let row_chunks = self.matrix.row_chunks(WORDS);
        let count = self.rows.len() / row_chunks;
        let mut slab = PanelSlab {
            words: [[[0; 4]; WORDS]; SLAB_WORDS],
            scales: [[0.0; WORDS]; SLAB_BLOCKS],
            zeros: [[0.0; WORDS]; SLAB_BLOCKS],
        };
        for columns in self.results.line_groups(WORDS) {
            for first in (0..row_chunks).step_by(SLAB_WORDS / WORDS) {
                let chunks = first..(first + SLAB_WORDS / WORDS).min(row_chunks);
                slab.fill_from_columns(self.isa, &self.matrix, columns, &chunks);
                let mut row = 0;
                while P::HAS_EIGHT_ROWS && count - row >= 8 {
                    self.multiply_rows::<8>(&slab, columns, &chunks, row);
                    row += 8;
                }
                while count - row >= 4 {
                    self.multiply_rows::<4>(&slab, columns, &chunks, row);
                    row += 4;
                }
                if count - row >= 2 {
                    self.multiply_rows::<2>(&slab, columns, &chunks, row);
                    row += 2;
                }
                if count > row {
                    self.multiply_rows::<1>(&slab, columns, &chunks, row);
                }
            }
        }
    }
}
