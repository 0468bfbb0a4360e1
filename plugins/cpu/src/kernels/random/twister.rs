//! The Mersenne Twister, MT19937, as NumPy seeds and reads it. ONNX's reference takes its numbers from there where a seed is
//! given, and a seed is given by those who want the same numbers everywhere.

const LENGTH: usize = 624;
const MIDDLE: usize = 397;

/// Random numbers in their order.
pub(super) struct Twister {
    words: [u32; LENGTH],
    next: usize,
}

impl Twister {
    /// The numbers of `numpy.random.RandomState(seed)`.
    pub(super) fn new(seed: u32) -> Self {
        let mut words = [seed; LENGTH];
        for at in 1..LENGTH {
            let last = words[at - 1];
            words[at] = (last ^ last >> 30).wrapping_mul(1_812_433_253).wrapping_add(at as u32);
        }
        Self { words, next: LENGTH }
    }

    /// A number from 0 up to but not including 1, with 53 random bits.
    pub(super) fn double(&mut self) -> f64 {
        let (high, low) = (self.word() >> 5, self.word() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
    }

    fn word(&mut self) -> u32 {
        if self.next == LENGTH {
            self.twist();
        }
        let word = self.words[self.next];
        self.next += 1;
        let word = word ^ word >> 11;
        let word = word ^ word << 7 & 0x9D2C_5680;
        let word = word ^ word << 15 & 0xEFC6_0000;
        word ^ word >> 18
    }

    fn twist(&mut self) {
        for at in 0..LENGTH {
            let joined = self.words[at] & 0x8000_0000 | self.words[(at + 1) % LENGTH] & 0x7FFF_FFFF;
            let odd = if joined & 1 == 1 { 0x9908_B0DF } else { 0 };
            self.words[at] = self.words[(at + MIDDLE) % LENGTH] ^ joined >> 1 ^ odd;
        }
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_numpy() {
        let mut twister = Twister::new(0);
        let first = [twister.double(), twister.double(), twister.double()];
        assert_eq!(first, [0.548_813_503_927_324_8, 0.715_189_366_372_419_5, 0.602_763_376_071_643_9]);
        let thousandth = (3..1000).map(|_| twister.double()).last();
        assert_eq!(thousandth, Some(0.677_141_144_111_424_1));
    }
}
