//! The loops of `BlockMatMul` over columns, for every way to multiply a chunk.
//!
//! A chunk of a column is a vector of 32-bit words, each of which holds the integers of a few neighboring elements: eight of 4 bits or
//! four of 8. Rows are brought into the order in which the integers of a chunk are extracted, once for all columns.

use oarlock_cpu_base::isa::{Isa, SimdTarget, SimdTask};
use oarlock_cpu_base::prefetch::prefetch_l1;
use oarlock_cpu_base::rows::fold::join_lanes;
use oarlock_cpu_base::rows::output_parts::AxisLinesPart;

/// The distance at which weights are prefetched, beyond the end of a page, where hardware stops.
const PREFETCH_BYTES: usize = 1024;

/// A way to multiply chunks of rows with chunks of columns.
pub(super) trait ChunkProducts<const WORDS: usize> {
    /// The integers of a word.
    const WORD_ELEMENTS: usize;

    /// A chunk of a row.
    type RowChunk: Sync;

    /// Fills a chunk with some elements, at most as many as it has. The others become 0.
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

#[derive(Clone, Copy)]
pub(super) enum ZeroPoints<'a> {
    /// The same for all blocks.
    Uniform(f32),
    /// Integers like the weights, one for each block.
    Packed(&'a [u8]),
}

/// Multiplies rows with the columns of some results. A chunk has `BLOCKS` blocks, or is a part of one.
pub(super) struct ColumnProducts<'a, P: ChunkProducts<WORDS>, const WORDS: usize, const BLOCKS: usize> {
    matrix: BlockQuantizedMatrix<'a>,
    /// The chunks of all rows.
    rows: &'a [P::RowChunk],
    results: AxisLinesPart<'a, f32>,
}

impl<'a, P: ChunkProducts<WORDS>, const WORDS: usize, const BLOCKS: usize>
    ColumnProducts<'a, P, WORDS, BLOCKS>
{
    pub(super) fn compute(
        isa: Isa,
        matrix: BlockQuantizedMatrix<'a>,
        rows: &'a [P::RowChunk],
        results: AxisLinesPart<'a, f32>,
    ) {
        P::run_task(isa, Self { matrix, rows, results });
    }
}

impl<P: ChunkProducts<WORDS>, const WORDS: usize, const BLOCKS: usize> SimdTask
    for ColumnProducts<'_, P, WORDS, BLOCKS>
{
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(mut self) {
        let row_chunks = self.matrix.column_bytes.div_ceil(size_of::<[u32; WORDS]>());
        let count = self.rows.len() / row_chunks;
        for (column, _) in self.results.line_groups(1) {
            // While a column is in L1, all rows are multiplied with it: as many at a time as there are registers for.
            let mut row = 0;
            while count - row >= 4 {
                self.multiply_rows::<T, 4>(column, row, row_chunks);
                row += 4;
            }
            if count - row >= 2 {
                self.multiply_rows::<T, 2>(column, row, row_chunks);
                row += 2;
            }
            if count > row {
                self.multiply_rows::<T, 1>(column, row, row_chunks);
            }
        }
    }
}

impl<P: ChunkProducts<WORDS>, const WORDS: usize, const BLOCKS: usize> ColumnProducts<'_, P, WORDS, BLOCKS> {
    #[inline(always)]
    fn multiply_rows<T: SimdTarget, const ROWS: usize>(
        &mut self,
        column: usize,
        first: usize,
        row_chunks: usize,
    ) {
        let mut rows: [&[P::RowChunk]; ROWS] = [&[]; ROWS];
        for (row, chunks) in rows.iter_mut().zip(self.rows[first * row_chunks..].chunks_exact(row_chunks)) {
            *row = chunks;
        }
        let sums = self.multiply_column::<T, ROWS>(column, rows);
        for (row, sum) in sums.into_iter().enumerate() {
            self.results.lines_at(column, 1, first + row)[0] = sum;
        }
    }

    #[inline(always)]
    fn multiply_column<T: SimdTarget, const ROWS: usize>(
        &self,
        column: usize,
        rows: [&[P::RowChunk]; ROWS],
    ) -> [f32; ROWS] {
        let matrix = self.matrix;
        let bytes = &matrix.weights[column * matrix.column_bytes..][..matrix.column_bytes];
        let scales = &matrix.scales[column * matrix.blocks..][..matrix.blocks];
        let (words, rest) = bytes.as_chunks::<4>();
        debug_assert!(rest.is_empty(), "a block has whole words");
        let (chunks, rest) = words.as_chunks::<WORDS>();
        // One sum for each word over all chunks, added up only at the end of the column.
        let mut sums = [[0f32; WORDS]; ROWS];
        for (chunk, bytes) in chunks.iter().enumerate() {
            prefetch_l1(bytes.as_ptr().cast::<u8>().wrapping_add(PREFETCH_BYTES));
            let first = self.first_block(chunk);
            let Some(scales) = scales[first..].first_chunk() else { break };
            let zeros = self.zero_points(column * matrix.blocks + first, BLOCKS);
            self.add_chunk::<T, ROWS>(chunk, bytes, (*scales, zeros), rows, &mut sums);
        }
        if !rest.is_empty() {
            let mut bytes = [[0; 4]; WORDS];
            bytes[..rest.len()].copy_from_slice(rest);
            let first = self.first_block(chunks.len());
            let (count, mut last) = (BLOCKS.min(matrix.blocks - first), [0.0; BLOCKS]);
            last[..count].copy_from_slice(&scales[first..][..count]);
            let factors = (last, self.zero_points(column * matrix.blocks + first, count));
            self.add_chunk::<T, ROWS>(chunks.len(), &bytes, factors, rows, &mut sums);
        }
        let mut results = [0.0; ROWS];
        for row in 0..ROWS {
            results[row] = join_lanes(sums[row], |left, right| left + right);
        }
        results
    }

    /// The first block of a chunk, counted from the beginning of the column.
    #[inline(always)]
    fn first_block(&self, chunk: usize) -> usize {
        if BLOCKS > 1 { chunk * BLOCKS } else { chunk * (WORDS * P::WORD_ELEMENTS) / self.matrix.block }
    }

    /// The zero points of so many blocks of a chunk.
    #[inline(always)]
    fn zero_points(&self, first: usize, count: usize) -> [f32; BLOCKS] {
        let sign_bits = self.matrix.sign_bits;
        let zeros = match self.matrix.zeros {
            ZeroPoints::Uniform(zero) => return [zero; BLOCKS],
            ZeroPoints::Packed(zeros) => zeros,
        };
        let mut found = [0.0; BLOCKS];
        for (index, zero) in found.iter_mut().enumerate().take(count) {
            let block = first + index;
            let integer = if P::WORD_ELEMENTS == 8 {
                (zeros[block / 2] ^ sign_bits) >> (block % 2 * 4) & 15
            } else {
                zeros[block] ^ sign_bits
            };
            *zero = f32::from(integer);
        }
        found
    }

    /// Adds the products of a chunk, whose blocks have scales and zero points.
    #[inline(always)]
    fn add_chunk<T: SimdTarget, const ROWS: usize>(
        &self,
        chunk: usize,
        bytes: &[[u8; 4]; WORDS],
        (scales, zeros): ([f32; BLOCKS], [f32; BLOCKS]),
        rows: [&[P::RowChunk]; ROWS],
        sums: &mut [[f32; WORDS]; ROWS],
    ) {
        let (scales, zeros) = (spread_blocks::<BLOCKS, WORDS>(scales), spread_blocks::<BLOCKS, WORDS>(zeros));
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
