//! The Mersenne Twister, MT19937, as NumPy seeds and reads it. ONNX's reference uses it for seeded ops, and a seed means that the
//! numbers should be the same everywhere.

const STATE_LENGTH: usize = 624;
const STATE_MIDDLE: usize = 397;

pub(super) struct MersenneTwister {
    words: [u32; STATE_LENGTH],
    next: usize,
}

impl MersenneTwister {
    /// The numbers of `numpy.random.RandomState(seed)`.
    pub(super) fn new(seed: u32) -> Self {
        let mut words = [seed; STATE_LENGTH];
        for at in 1..STATE_LENGTH {
            let last = words[at - 1];
            words[at] = (last ^ last >> 30).wrapping_mul(1_812_433_253).wrapping_add(at as u32);
        }
        Self { words, next: STATE_LENGTH }
    }

    /// A number in [0, 1), with 53 random bits.
    pub(super) fn next_f64(&mut self) -> f64 {
        // 27 and 26 bits, joined as in the original `genrand_res53`.
        let (high, low) = (self.next_word() >> 5, self.next_word() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
    }

    fn next_word(&mut self) -> u32 {
        if self.next == STATE_LENGTH {
            self.regenerate_state();
        }
        let word = self.words[self.next];
        self.next += 1;
        let word = word ^ word >> 11;
        let word = word ^ word << 7 & 0x9D2C_5680;
        let word = word ^ word << 15 & 0xEFC6_0000;
        word ^ word >> 18
    }

    fn regenerate_state(&mut self) {
        // In place: words further on are still the old ones, and those that wrap around are new, as the
        // recurrence asks.
        for at in 0..STATE_LENGTH {
            let joined = self.words[at] & 0x8000_0000 | self.words[(at + 1) % STATE_LENGTH] & 0x7FFF_FFFF;
            let odd = if joined & 1 == 1 { 0x9908_B0DF } else { 0 };
            self.words[at] = self.words[(at + STATE_MIDDLE) % STATE_LENGTH] ^ joined >> 1 ^ odd;
        }
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_numpy() {
        let mut twister = MersenneTwister::new(0);
        let first = [twister.next_f64(), twister.next_f64(), twister.next_f64()];
        assert_eq!(first, [0.548_813_503_927_324_8, 0.715_189_366_372_419_5, 0.602_763_376_071_643_9]);
        let thousandth = (3..1000).map(|_| twister.next_f64()).last();
        assert_eq!(thousandth, Some(0.677_141_144_111_424_1));
    }
}
