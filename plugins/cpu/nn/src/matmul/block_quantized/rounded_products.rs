//! Products of 4-bit integers with rows that are rounded to 8 bits, which a call permits with `accuracy_level` 4. They take a quarter of
//! the instructions of products of floats, so that reading the weights becomes the limit.
//!
//! The low and the high half of each byte of weights are each multiplied with a byte of the row. The sum of the eight products of a
//! word is exact.

#![expect(unsafe_code, reason = "instructions that multiply bytes are only there where a machine has them")]

use std::arch::x86_64::*;

use oarlock_cpu_base::isa::{FmaTarget, Isa, SimdTarget, SimdTask};

use super::columns::ChunkProducts;

/// The words of a zmm and of a ymm.
pub(super) const ZMM_WORDS: usize = 16;
pub(super) const YMM_WORDS: usize = 8;
/// The weights of a word.
const WORD_ELEMENTS: usize = 8;
/// The largest integer of a rounded row. -128 is left out, so that both signs have the same range.
const MAX_INTEGER: f32 = 127.0;

/// A chunk of a rounded row.
#[repr(C, align(64))]
pub(super) struct RoundedChunk<const WORDS: usize> {
    /// For each byte of weights, the integer for its low half, and that for its high half.
    low: [[i8; 4]; WORDS],
    high: [[i8; 4]; WORDS],
    /// What the integers of each word are multiplied by, and their sum.
    scales: [f32; WORDS],
    sums: [f32; WORDS],
}

impl<const WORDS: usize> RoundedChunk<WORDS> {
    /// Rounds elements, with a scale for each block, or one for all of them if the block is larger.
    fn round_elements(&mut self, elements: &[f32], block: usize) {
        *self =
            Self { low: [[0; 4]; WORDS], high: [[0; 4]; WORDS], scales: [0.0; WORDS], sums: [0.0; WORDS] };
        let block_words = (block / WORD_ELEMENTS).min(WORDS);
        for (block, elements) in elements.chunks(block_words * WORD_ELEMENTS).enumerate() {
            let scale = scale_of(elements);
            for (word, elements) in (block * block_words..).zip(elements.chunks_exact(WORD_ELEMENTS)) {
                for (byte, pair) in elements.as_chunks::<2>().0.iter().enumerate() {
                    let [low, high] = pair.map(|element| round_to_byte(element, scale));
                    (self.low[word][byte], self.high[word][byte]) = (low, high);
                    self.sums[word] += f32::from(low) + f32::from(high);
                }
                self.scales[word] = scale;
            }
        }
    }
}

/// The scale with which the largest of some elements becomes [`MAX_INTEGER`]. It is NaN if one of them is infinite or NaN, and so are
/// the results then.
fn scale_of(elements: &[f32]) -> f32 {
    let most = elements.iter().fold(0f32, |most, element| most.max(element.abs()));
    if elements.iter().all(|element| element.is_finite()) { most / MAX_INTEGER } else { f32::NAN }
}

fn round_to_byte(element: f32, scale: f32) -> i8 {
    // With a scale of 0 the quotient is NaN, which the cast makes 0.
    (element / scale).round_ties_even() as i8
}

/// Multiplies with VNNI of AVX-512. Its tasks run only where the machine has it.
pub(super) struct VnniProducts;

/// Multiplies with AVX2: four bits times eight cannot exceed the 16 bits of `vpmaddubsw`. Its tasks run only
/// where the machine has it.
pub(super) struct Avx2Products;

macro_rules! rounded_products {
    ($name:ident, $words:expr, $load:ident, $splat:ident, $and:ident, $shift:ident, $add_products:ident, $run_task:item) => {
        impl ChunkProducts<$words> for $name {
            const WORD_ELEMENTS: usize = WORD_ELEMENTS;

            type RowChunk = RoundedChunk<$words>;

            fn fill_chunk(chunk: &mut RoundedChunk<$words>, elements: &[f32], block: usize) {
                chunk.round_elements(elements, block);
            }

            #[inline(always)]
            fn multiply_words<T: SimdTarget, const ROWS: usize>(
                words: [u32; $words],
                rows: [&RoundedChunk<$words>; ROWS],
            ) -> [[f32; $words]; ROWS] {
                let mut sums = [[0f32; $words]; ROWS];
                // SAFETY: `run_task` runs this code only where the machine has the instructions. Arrays of so many words are read.
                unsafe {
                    let (words, mask) = ($load(words.as_ptr().cast()), $splat(15));
                    let halves = [$and(words, mask), $and($shift::<4>(words), mask)];
                    for row in 0..ROWS {
                        let bytes = [rows[row].low.as_ptr(), rows[row].high.as_ptr()];
                        let bytes = [$load(bytes[0].cast()), $load(bytes[1].cast())];
                        let products: [i32; $words] = std::mem::transmute($add_products(halves, bytes));
                        for lane in 0..$words {
                            sums[row][lane] = products[lane] as f32;
                        }
                    }
                }
                sums
            }

            #[inline(always)]
            fn word_sums(chunk: &RoundedChunk<$words>) -> &[f32; $words] {
                &chunk.sums
            }

            #[inline(always)]
            fn word_scales(chunk: &RoundedChunk<$words>) -> Option<&[f32; $words]> {
                Some(&chunk.scales)
            }

            $run_task
        }
    };
}

rounded_products!(
    VnniProducts,
    ZMM_WORDS,
    _mm512_loadu_si512,
    _mm512_set1_epi8,
    _mm512_and_si512,
    _mm512_srli_epi16,
    multiply_zmm,
    fn run_task(isa: Isa, task: impl SimdTask<Output = ()>) {
        assert!(has_vnni(isa), "a level for this code");
        // SAFETY: the machine has the instructions.
        unsafe { run_vnni(task) }
    }
);

rounded_products!(
    Avx2Products,
    YMM_WORDS,
    _mm256_loadu_si256,
    _mm256_set1_epi8,
    _mm256_and_si256,
    _mm256_srli_epi16,
    multiply_ymm,
    fn run_task(isa: Isa, task: impl SimdTask<Output = ()>) {
        assert!(isa >= Isa::Avx2, "a level for this code");
        isa.vectorize(task);
    }
);

/// # Safety
///
/// The machine has VNNI.
#[inline(always)]
unsafe fn multiply_zmm(halves: [__m512i; 2], bytes: [__m512i; 2]) -> __m512i {
    // SAFETY: the caller guarantees the instructions.
    unsafe {
        let low = _mm512_dpbusd_epi32(_mm512_setzero_si512(), halves[0], bytes[0]);
        _mm512_dpbusd_epi32(low, halves[1], bytes[1])
    }
}

/// # Safety
///
/// The machine has AVX2.
#[inline(always)]
unsafe fn multiply_ymm(halves: [__m256i; 2], bytes: [__m256i; 2]) -> __m256i {
    // SAFETY: the caller guarantees the instructions.
    unsafe {
        let [low, high] =
            [_mm256_maddubs_epi16(halves[0], bytes[0]), _mm256_maddubs_epi16(halves[1], bytes[1])];
        // The sum of four products is at most 4 · 15 · 127.
        _mm256_madd_epi16(_mm256_add_epi16(low, high), _mm256_set1_epi16(1))
    }
}

/// True if [`VnniProducts`] may be used.
pub(super) fn has_vnni(isa: Isa) -> bool {
    isa >= Isa::Avx512 && is_x86_feature_detected!("avx512vnni")
}

#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")]
fn run_vnni(task: impl SimdTask<Output = ()>) {
    task.run_on_target::<FmaTarget>();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_has_rounded_halves_scales_and_sums() {
        // Of 64 elements, 32 are there: one block of two, whose largest element becomes 127.
        let elements: Vec<f32> = (0..32).map(|at| (at - 16) as f32 / 4.0).collect();
        let mut chunk = RoundedChunk::<YMM_WORDS> {
            low: [[9; 4]; YMM_WORDS],
            high: [[9; 4]; YMM_WORDS],
            scales: [9.0; YMM_WORDS],
            sums: [9.0; YMM_WORDS],
        };
        chunk.round_elements(&elements, 32);
        // Steps of 127 / 16: -127, -119.06, -111.1, -103.2, ...
        assert_eq!((chunk.low[0], chunk.high[0]), ([-127, -111, -95, -79], [-119, -103, -87, -71]));
        assert_eq!((chunk.scales[0], chunk.sums[0]), (4.0 / 127.0, -792.0));
        assert_eq!(chunk.low[4], [0; 4]);
        assert_eq!(chunk.scales[4..], [0.0; 4]);
        assert_eq!(chunk.sums[4..], [0.0; 4]);
    }
}
