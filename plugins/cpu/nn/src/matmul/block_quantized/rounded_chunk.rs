//! Rows that are rounded to 8 bits.

use oarlock_cpu_base::rows::fold::join_lanes;

/// The weights of a word.
pub(super) const WORD_ELEMENTS: usize = 8;
/// The largest integer of a rounded row. -128 is left out, so that both signs have the same range.
const MAX_INTEGER: f32 = 127.0;

/// What makes the last bits of a float those of the nearest integer, ties to even.
const ROUNDING: f32 = 12_582_912.0;

/// A chunk of a rounded row.
#[repr(C, align(64))]
pub(super) struct RoundedChunk<const WORDS: usize> {
    /// For each byte of weights, the integer for its low half, and that for its high half.
    pub low: [[i8; 4]; WORDS],
    pub high: [[i8; 4]; WORDS],
    /// What the integers of each word are multiplied by.
    pub scales: [f32; WORDS],
    /// The sum of the integers of a block, at its first word. At the other words it is 0.
    pub sums: [f32; WORDS],
}

impl<const WORDS: usize> RoundedChunk<WORDS> {
    /// Rounds elements, with a scale for each block, or one for all of them if the block is larger.
    #[inline(always)]
    pub(super) fn round_elements(&mut self, elements: &[f32], block: usize) {
        let block_words = (block / WORD_ELEMENTS).min(WORDS);
        *self =
            Self { low: [[0; 4]; WORDS], high: [[0; 4]; WORDS], scales: [0.0; WORDS], sums: [0.0; WORDS] };
        let words = elements.as_chunks::<WORD_ELEMENTS>().0;
        for (block, words) in words.chunks(block_words).enumerate() {
            let first = block * block_words;
            let scale = scale_of(words);
            let mut sum = 0;
            for (word, elements) in words.iter().enumerate() {
                let mut integers = [0i32; WORD_ELEMENTS];
                for place in 0..WORD_ELEMENTS {
                    // With a scale of 0 the quotient is NaN, whose last byte is 0.
                    let rounded = elements[place] / scale + ROUNDING;
                    integers[place] = i32::from(rounded.to_bits() as i8);
                }
                for place in 0..4 {
                    self.low[first + word][place] = integers[2 * place] as i8;
                    self.high[first + word][place] = integers[2 * place + 1] as i8;
                }
                for integer in integers {
                    sum += integer;
                }
                self.scales[first + word] = scale;
            }
            self.sums[first] = sum as f32;
        }
    }
}

/// The scale with which the largest of some elements becomes [`MAX_INTEGER`]. It is NaN if one of them is infinite or NaN, and so are
/// the results then.
#[inline(always)]
fn scale_of(words: &[[f32; WORD_ELEMENTS]]) -> f32 {
    let mut most = [0f32; WORD_ELEMENTS];
    // Multiples of 0 add up to 0, but those of infinities and NaN to NaN.
    let mut zeros = [0f32; WORD_ELEMENTS];
    for elements in words {
        for place in 0..WORD_ELEMENTS {
            most[place] = most[place].max(elements[place].abs());
            zeros[place] += elements[place] * 0.0;
        }
    }
    let scale = join_lanes(most, f32::max) / MAX_INTEGER + join_lanes(zeros, |one, other| one + other);
    // A subnormal scale is so coarse that quotients could exceed a byte. Such elements become 0.
    if scale < f32::MIN_POSITIVE { 0.0 } else { scale }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_has_rounded_halves_scales_and_sums() {
        // Of 64 elements, 32 are there: one block of two, whose largest element becomes 127.
        let elements: Vec<f32> = (0..32).map(|at| (at - 16) as f32 / 4.0).collect();
        let mut chunk =
            RoundedChunk::<8> { low: [[9; 4]; 8], high: [[9; 4]; 8], scales: [9.0; 8], sums: [9.0; 8] };
        chunk.round_elements(&elements, 32);
        // Steps of 127 / 16: -127, -119.06, -111.1, -103.2, ...
        assert_eq!((chunk.low[0], chunk.high[0]), ([-127, -111, -95, -79], [-119, -103, -87, -71]));
        assert_eq!((chunk.scales[3], chunk.sums[..4].to_vec()), (4.0 / 127.0, vec![-127.0, 0.0, 0.0, 0.0]));
        assert_eq!(chunk.low[4], [0; 4]);
        assert_eq!(chunk.scales[4..], [0.0; 4]);
        assert_eq!(chunk.sums[4..], [0.0; 4]);
    }
}
