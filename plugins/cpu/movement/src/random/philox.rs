//! Philox-4x32-10: ten rounds of multiplication that turn a counter and a key into random words.

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const KEY_STEPS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// The counters of a block.
pub(super) const LANES: usize = 16;

/// The words of a block: the first ones of all its counters, then the second ones, the third and the fourth.
pub(super) type WordBlock = [[u32; LANES]; 4];

/// Random numbers by index.
#[derive(Clone, Copy)]
pub(super) struct PhiloxSource {
    key: [u32; 2],
    offset: u64,
}

impl PhiloxSource {
    pub(super) fn new(seed: u64, offset: u64) -> Self {
        Self { key: [seed as u32, (seed >> 32) as u32], offset }
    }

    #[inline(always)]
    pub(super) fn words_at(self, index: u64) -> [u32; 4] {
        // 64 of the 128 bits of a counter are enough; the others stay 0.
        let counter = self.offset.wrapping_add(index);
        philox_rounds([counter as u32, (counter >> 32) as u32, 0, 0], self.key)
    }

    /// The words of a counter that is `trial` beyond the first ones of an index: as many as its number needs.
    #[inline(always)]
    pub(super) fn words_of_trial(self, index: u64, trial: u32) -> [u32; 4] {
        let counter = self.offset.wrapping_add(index);
        philox_rounds([counter as u32, (counter >> 32) as u32, trial, 0], self.key)
    }

    /// The words of the counters of a block.
    #[inline(always)]
    pub(super) fn block(self, block: u64) -> WordBlock {
        self.block_of_trial(block, 0)
    }

    /// The words of [`Self::words_of_trial`] for the indices of a block.
    #[inline(always)]
    pub(super) fn block_of_trial(self, block: u64, trial: u32) -> WordBlock {
        let first = self.offset.wrapping_add(block * LANES as u64);
        let [mut a, mut b, mut c, mut d] = [[0; LANES], [0; LANES], [trial; LANES], [0; LANES]];
        for (lane, (a, b)) in a.iter_mut().zip(&mut b).enumerate() {
            let counter = first.wrapping_add(lane as u64);
            (*a, *b) = (counter as u32, (counter >> 32) as u32);
        }
        let mut key = self.key;
        for _ in 0..ROUNDS {
            for ((a, b), (c, d)) in a.iter_mut().zip(&mut b).zip(c.iter_mut().zip(&mut d)) {
                let first = u64::from(MULTIPLIERS[0]) * u64::from(*a);
                let second = u64::from(MULTIPLIERS[1]) * u64::from(*c);
                *a = (second >> 32) as u32 ^ *b ^ key[0];
                *b = second as u32;
                *c = (first >> 32) as u32 ^ *d ^ key[1];
                *d = first as u32;
            }
            key = next_key(key);
        }
        [a, b, c, d]
    }

    /// Number `index` in [0, 1), with 24 random bits.
    #[inline(always)]
    pub(super) fn f32_at(self, index: usize) -> f32 {
        f32_from_word(self.words_at(index as u64 / 4)[index % 4])
    }

    /// Number `index` in [0, 1), with 53 random bits.
    #[inline(always)]
    pub(super) fn f64_at(self, index: usize) -> f64 {
        let words = self.words_at(index as u64 / 2);
        f64_from_words(words[index % 2 * 2], words[index % 2 * 2 + 1])
    }
}

/// A number in [0, 1) with as many random bits as an `f32` holds, so that none rounds up to 1.
#[inline(always)]
pub(super) fn f32_from_word(word: u32) -> f32 {
    (word >> 8).cast_signed() as f32 * (1.0 / 16_777_216.0)
}

/// A number in [0, 1) with as many random bits as an `f64` holds.
#[inline(always)]
pub(super) fn f64_from_words(low: u32, high: u32) -> f64 {
    (word_pair(low, high) >> 11).cast_signed() as f64 * (1.0 / 9_007_199_254_740_992.0)
}

#[inline(always)]
pub(super) fn word_pair(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

#[inline(always)]
fn philox_rounds(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..ROUNDS {
        let first = u64::from(MULTIPLIERS[0]) * u64::from(counter[0]);
        let second = u64::from(MULTIPLIERS[1]) * u64::from(counter[2]);
        counter = [
            (second >> 32) as u32 ^ counter[1] ^ key[0],
            second as u32,
            (first >> 32) as u32 ^ counter[3] ^ key[1],
            first as u32,
        ];
        key = next_key(key);
    }
    counter
}

#[inline(always)]
fn next_key(key: [u32; 2]) -> [u32; 2] {
    [key[0].wrapping_add(KEY_STEPS[0]), key[1].wrapping_add(KEY_STEPS[1])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_that_the_authors_published() {
        assert_eq!(philox_rounds([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox_rounds([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        let (counter, key) =
            ([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]);
        assert_eq!(philox_rounds(counter, key), [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }

    #[test]
    fn a_block_has_the_words_of_its_counters() {
        let source = PhiloxSource::new(7, u64::MAX - 20);
        for block in [0, 1, 2, 1 << 40] {
            let words = source.block(block);
            for lane in 0..LANES {
                let index = block * LANES as u64 + lane as u64;
                assert_eq!(words.map(|row| row[lane]), source.words_at(index));
                assert_eq!(
                    source.block_of_trial(block, 7).map(|row| row[lane]),
                    source.words_of_trial(index, 7)
                );
            }
        }
    }

    #[test]
    fn numbers_are_never_one() {
        assert!(f32_from_word(u32::MAX) < 1.0 && f64_from_words(u32::MAX, u32::MAX) < 1.0);
    }
}
