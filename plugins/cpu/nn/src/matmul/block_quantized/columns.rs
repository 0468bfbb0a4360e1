//! The loops of `BlockMatMul` over columns, for every way to multiply a chunk.
//!
//! A chunk of a column is a vector of 32-bit words, each of which holds the integers of a few neighboring elements: eight of 4 bits or
//! four of 8. Rows are brought into the order in which the integers of a chunk are extracted, once for all columns.

use oarlock_cpu_base::isa::{Isa, SimdTarget, SimdTask};
use oarlock_cpu_base::prefetch::prefetch_l1;
use oarlock_cpu_base::rows::fold::join_lanes;
use oarlock_cpu_base::rows::output_parts::AxisLinesPart;

/// The distance at which weights are prefetched at least, beyond the end of a page, where hardware stops.
const PREFETCH_BYTES: usize = 4096;
/// The rows that are multiplied at a time with one column, or the columns with one row.
const TILE_SIDE: usize = 4;

/// A way to multiply chunks of rows with chunks of columns.
pub(super) trait ChunkProducts<const WORDS: usize> {
    /// The integers of a word.
    const WORD_ELEMENTS: usize;

    /// A chunk of a row.
    type RowChunk: Send + Sync;

    /// Fills a chunk with some elements, at most as many as it has. The others become 0. Must be `#[inline(always)]`.
    fn fill_chunk(chunk: &mut Self::RowChunk, elements: &[f32], block: usize);

    /// For each row and each word, the sum of the products.
    fn multiply_words<T: SimdTarget, const ROWS: usize>(
        words: [u32; WORDS],
        rows: [&Self::RowChunk; ROWS],
    ) -> [[f32; WORDS]; ROWS];

    /// The sums of the elements at each word.
    fn word_sums(chunk: &Self::RowChunk) -> &[f32; WORDS];

    /// What the elements at each word have to be multiplied by, unless by 1.
    fn word_scales(chunk: &Self::RowChunk) -> Option<&[f32; WORDS]>;

    /// Runs a task with the instructions of these products.
    fn run_task(isa: Isa, task: impl SimdTask<Output = ()>) {
        isa.vectorize(task);
    }
}

/// A matrix whose columns are integers, with a scale for each block of a column.
#[derive(Clone, Copy)]
pub(super) struct BlockQuantizedMatrix<'a> {
    /// Bytes of a column.
    pub column_bytes: usize,
    /// Blocks of a column, and elements of a block.
    pub blocks: usize,
    pub block: usize,
    pub weights: &'a [u8],
    pub scales: &'a [f32],
    pub zeros: ZeroPoints<'a>,
    /// What makes the bytes of signed integers unsigned: their sign bits. The zero points grow with them.
    pub sign_bits: u8,
}

impl BlockQuantizedMatrix<'_> {
    /// The chunks of a row that is multiplied with this matrix, if they have so many words.
    pub(super) fn row_chunks(&self, words: usize) -> usize {
        self.column_bytes.div_ceil(words * size_of::<u32>())
    }

    #[inline(always)]
    fn column<const WORDS: usize>(&self, column: usize) -> QuantizedColumn<'_, WORDS> {
        let bytes = &self.weights[column * self.column_bytes..][..self.column_bytes];
        let (words, rest) = bytes.as_chunks::<4>();
        debug_assert!(rest.is_empty(), "a block has whole words");
        let (chunks, rest) = words.as_chunks();
        QuantizedColumn { chunks, rest, scales: &self.scales[column * self.blocks..][..self.blocks] }
    }

    /// The zero point of a block of the matrix, if a word has so many integers.
    #[inline(always)]
    pub(super) fn unpack_zero(&self, zeros: &[u8], block: usize, word_elements: usize) -> f32 {
        f32::from(if word_elements == 8 {
            (zeros[block / 2] ^ self.sign_bits) >> (block % 2 * 4) & 15
        } else {
            zeros[block] ^ self.sign_bits
        })
    }
}

/// The chunks of a column, the words after the last whole one, and the scales of its blocks.
#[derive(Clone, Copy)]
struct QuantizedColumn<'a, const WORDS: usize> {
    chunks: &'a [[[u8; 4]; WORDS]],
    rest: &'a [[u8; 4]],
    scales: &'a [f32],
}

#[derive(Clone, Copy)]
pub(super) enum ZeroPoints<'a> {
    /// The same for all blocks.
    Uniform(f32),
    /// Integers like the weights, one for each block.
    Packed(&'a [u8]),
}

/// Multiplies rows with the columns of some results. A chunk has `BLOCKS` blocks, or is a part of one.
struct ColumnProducts<'a, P: ChunkProducts<WORDS>, const WORDS: usize, const BLOCKS: usize> {
    matrix: BlockQuantizedMatrix<'a>,
    /// The chunks of all rows.
    rows: &'a [P::RowChunk],
    results: AxisLinesPart<'a, f32>,
}

/// Multiplies the chunks of some rows with the columns of some results, one after another.
pub(super) fn run_columns<P: ChunkProducts<WORDS>, const WORDS: usize, const BLOCKS: usize>(
    isa: Isa,
    matrix: BlockQuantizedMatrix<'_>,
    rows: &[P::RowChunk],
    results: AxisLinesPart<'_, f32>,
) {
    P::run_task(isa, ColumnProducts::<P, WORDS, BLOCKS> { matrix, rows, results });
}

impl<P: ChunkProducts<WORDS>, const WORDS: usize, const BLOCKS: usize> SimdTask
    for ColumnProducts<'_, P, WORDS, BLOCKS>
{
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        // Chosen once, so that the loops over chunks have no branch on it.
        match self.matrix.zeros {
            ZeroPoints::Uniform(_) => self.multiply_all::<T, true>(),
            ZeroPoints::Packed(_) => self.multiply_all::<T, false>(),
        }
    }
}

impl<P: ChunkProducts<WORDS>, const WORDS: usize, const BLOCKS: usize> ColumnProducts<'_, P, WORDS, BLOCKS> {
    #[inline(always)]
    fn multiply_all<T: SimdTarget, const IS_UNIFORM: bool>(mut self) {
        let row_chunks = self.matrix.row_chunks(WORDS);
        let count = self.rows.len() / row_chunks;
        for (column, columns) in self.results.line_groups(TILE_SIDE) {
            // While columns are in L1, all rows are multiplied with them: a tile is as large as there are registers for.
            let mut row = 0;
            while count - row >= TILE_SIDE {
                for column in column..column + columns {
                    self.multiply_tile::<T, IS_UNIFORM, TILE_SIDE, 1>(row, column);
                }
                row += TILE_SIDE;
            }
            for row in row..count {
                if columns == TILE_SIDE {
                    self.multiply_tile::<T, IS_UNIFORM, 1, TILE_SIDE>(row, column);
                } else {
                    for column in column..column + columns {
                        self.multiply_tile::<T, IS_UNIFORM, 1, 1>(row, column);
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn multiply_tile<T: SimdTarget, const IS_UNIFORM: bool, const ROWS: usize, const COLUMNS: usize>(
        &mut self,
        first_row: usize,
        first_column: usize,
    ) {
        let matrix = self.matrix;
        let row_chunks = matrix.row_chunks(WORDS);
        let mut rows: [&[P::RowChunk]; ROWS] = [&[]; ROWS];
        for (row, chunks) in (first_row..).zip(&mut rows) {
            *chunks = &self.rows[row * row_chunks..][..row_chunks];
        }
        let mut columns = [QuantizedColumn { chunks: &[][..], rest: &[], scales: &[] }; COLUMNS];
        for (index, column) in (first_column..).zip(&mut columns) {
            *column = matrix.column(index);
        }
        let chunks = columns[0].chunks.len();
        // Columns follow one another, and so do tiles of them.
        let ahead = COLUMNS * PREFETCH_BYTES.div_ceil(COLUMNS * matrix.column_bytes);
        let (bytes_ahead, scales_ahead) = (ahead * matrix.column_bytes, ahead * matrix.blocks);
        // One sum for each word over all chunks, added up only at the end of the columns.
        let mut sums = [[[0f32; WORDS]; ROWS]; COLUMNS];
        for chunk in 0..chunks {
            let at = scales_ahead + COLUMNS * self.first_block(chunk);
            prefetch_l1(columns[0].scales.as_ptr().wrapping_add(at));
            for column in 0..COLUMNS {
                let QuantizedColumn { chunks, scales, .. } = columns[column];
                prefetch_l1(chunks[chunk].as_ptr().cast::<u8>().wrapping_add(bytes_ahead));
                let at = if BLOCKS > 1 { chunk } else { self.first_block(chunk) };
                let scales = scales.as_chunks().0[at];
                let zeros = self.zero_points::<IS_UNIFORM>(first_column + column, chunk, BLOCKS);
                self.add_chunk::<T, ROWS>(chunk, &chunks[chunk], (scales, zeros), rows, &mut sums[column]);
            }
        }
        for column in 0..COLUMNS {
            let QuantizedColumn { rest, scales, .. } = columns[column];
            if !rest.is_empty() {
                let mut words = [[0; 4]; WORDS];
                words[..rest.len()].copy_from_slice(rest);
                let first = self.first_block(chunks);
                let (count, mut last) = (BLOCKS.min(matrix.blocks - first), [0.0; BLOCKS]);
                last[..count].copy_from_slice(&scales[first..][..count]);
                let zeros = self.zero_points::<IS_UNIFORM>(first_column + column, chunks, count);
                self.add_chunk::<T, ROWS>(chunks, &words, (last, zeros), rows, &mut sums[column]);
            }
        }
        for row in 0..ROWS {
            let results = self.results.lines_at(first_column, COLUMNS, first_row + row);
            for (result, sums) in results.iter_mut().zip(&sums) {
                *result = join_lanes(sums[row], |left, right| left + right);
            }
        }
    }

    /// The first block of a chunk, counted from the beginning of the column.
    #[inline(always)]
    fn first_block(&self, chunk: usize) -> usize {
        if BLOCKS > 1 { chunk * BLOCKS } else { chunk * (WORDS * P::WORD_ELEMENTS) / self.matrix.block }
    }

    /// For each word of a chunk the zero point of its block, of which so many are there.
    #[inline(always)]
    fn zero_points<const IS_UNIFORM: bool>(&self, column: usize, chunk: usize, count: usize) -> [f32; WORDS] {
        let zeros = match self.matrix.zeros {
            ZeroPoints::Uniform(zero) if IS_UNIFORM => return [zero; WORDS],
            ZeroPoints::Packed(zeros) if !IS_UNIFORM => zeros,
            _ => unreachable!("the kind for which this was called"),
        };
        let first = column * self.matrix.blocks + self.first_block(chunk);
        let mut found = [0.0; BLOCKS];
        for (index, zero) in found.iter_mut().enumerate().take(count) {
            *zero = self.matrix.unpack_zero(zeros, first + index, P::WORD_ELEMENTS);
        }
        spread_blocks(found)
    }

    /// Adds the products of a chunk, whose blocks have scales and zero points.
    #[inline(always)]
    fn add_chunk<T: SimdTarget, const ROWS: usize>(
        &self,
        chunk: usize,
        bytes: &[[u8; 4]; WORDS],
        (scales, zeros): ([f32; BLOCKS], [f32; WORDS]),
        rows: [&[P::RowChunk]; ROWS],
        sums: &mut [[f32; WORDS]; ROWS],
    ) {
        let scales = spread_blocks::<BLOCKS, WORDS>(scales);
        let flip = u32::from_ne_bytes([self.matrix.sign_bits; 4]);
        let mut words = [0u32; WORDS];
        for lane in 0..WORDS {
            words[lane] = u32::from_le_bytes(bytes[lane]) ^ flip;
        }
        let mut chunks = [&rows[0][chunk]; ROWS];
        for row in 1..ROWS {
            chunks[row] = &rows[row][chunk];
        }
        let products = P::multiply_words::<T, ROWS>(words, chunks);
        for row in 0..ROWS {
            let (elements, own_scales) = (P::word_sums(chunks[row]), P::word_scales(chunks[row]));
            for lane in 0..WORDS {
                // Zero points and scales apply to the sum of a word, not to each integer.
                let sum = multiply_add::<T>(-zeros[lane], elements[lane], products[row][lane]);
                let scale = own_scales.map_or(scales[lane], |own| own[lane] * scales[lane]);
                sums[row][lane] = multiply_add::<T>(sum, scale, sums[row][lane]);
            }
        }
    }
}

/// For each word of a chunk, the factor of its block.
#[inline(always)]
fn spread_blocks<const BLOCKS: usize, const WORDS: usize>(factors: [f32; BLOCKS]) -> [f32; WORDS] {
    let mut words = [0.0; WORDS];
    for lane in 0..WORDS {
        words[lane] = factors[lane * BLOCKS / WORDS];
    }
    words
}

#[inline(always)]
pub(super) fn multiply_add<T: SimdTarget>(one: f32, other: f32, sum: f32) -> f32 {
    if T::HAS_FMA { one.mul_add(other, sum) } else { one * other + sum }
}
