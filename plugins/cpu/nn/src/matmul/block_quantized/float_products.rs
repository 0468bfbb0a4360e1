//! Products of floats with the integers of a chunk, which become floats in registers. A shift and a mask extract one integer of each
//! word, so no integer changes its lane.

use oarlock_cpu_base::isa::SimdTarget;

use super::columns::{ChunkProducts, multiply_add};

/// The words of a chunk: one zmm or two ymm.
pub(super) const FLOAT_WORDS: usize = 16;

/// Multiplies words of `PLACES` integers.
pub(super) struct FloatProducts<const PLACES: usize>;

/// For each place in a word, the elements of a row at that place of all words; and their sums.
#[repr(C, align(64))]
pub(super) struct FloatChunk<const PLACES: usize> {
    places: [[f32; FLOAT_WORDS]; PLACES],
    sums: [f32; FLOAT_WORDS],
}

impl<const PLACES: usize> ChunkProducts<FLOAT_WORDS> for FloatProducts<PLACES> {
    const WORD_ELEMENTS: usize = PLACES;

    type RowChunk = FloatChunk<PLACES>;

    #[inline(always)]
    fn fill_chunk(chunk: &mut FloatChunk<PLACES>, elements: &[f32], _block: usize) {
        *chunk = FloatChunk { places: [[0.0; FLOAT_WORDS]; PLACES], sums: [0.0; FLOAT_WORDS] };
        for (word, elements) in elements.chunks(PLACES).enumerate() {
            for (place, element) in elements.iter().enumerate() {
                chunk.places[place][word] = *element;
            }
            chunk.sums[word] = elements.iter().sum();
        }
    }

    #[inline(always)]
    fn multiply_words<T: SimdTarget, const ROWS: usize>(
        words: [u32; FLOAT_WORDS],
        rows: [&FloatChunk<PLACES>; ROWS],
    ) -> [[f32; FLOAT_WORDS]; ROWS] {
        let bits = u32::BITS as usize / PLACES;
        let mut sums = [[0f32; FLOAT_WORDS]; ROWS];
        for place in 0..PLACES {
            let mut integers = [0f32; FLOAT_WORDS];
            for lane in 0..FLOAT_WORDS {
                let integer = words[lane] >> (place * bits) & ((1 << bits) - 1);
                // Signed: AVX2 has no conversion of unsigned integers.
                integers[lane] = integer.cast_signed() as f32;
            }
            for row in 0..ROWS {
                for lane in 0..FLOAT_WORDS {
                    sums[row][lane] =
                        multiply_add::<T>(integers[lane], rows[row].places[place][lane], sums[row][lane]);
                }
            }
        }
        sums
    }

    #[inline(always)]
    fn word_sums(chunk: &FloatChunk<PLACES>) -> &[f32; FLOAT_WORDS] {
        &chunk.sums
    }

    #[inline(always)]
    fn word_scales(_chunk: &FloatChunk<PLACES>) -> Option<&[f32; FLOAT_WORDS]> {
        None
    }
}
