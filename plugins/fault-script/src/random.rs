//! The seeded generator behind every choice of the scheduler.
//!
//! SplitMix64: a few lines, the same numbers on every machine, and good enough to shuffle a schedule. It is implemented here
//! because a library may change its sequence between versions, and then a seed from a bug report means nothing.

/// A SplitMix64 generator.
#[derive(Clone, Debug)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// Starts from a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn next_bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; zero if `bound` is zero.
    pub fn next_below(&mut self, bound: usize) -> usize {
        // The modulo bias is below one in 2^40 for every bound used here, which a schedule does not notice.
        if bound == 0 { 0 } else { (self.next_bits() % bound as u64) as usize }
    }

    /// A fair coin flip.
    pub fn flip_coin(&mut self) -> bool {
        self.next_bits() >> 63 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        let mut random = SplitMix64::new(1234567);
        let found: Vec<u64> = (0..3).map(|_| random.next_bits()).collect();
        assert_eq!(found, [6457827717110365317, 3203168211198807973, 9817491932198370423]);
    }

    #[test]
    fn a_bound_holds_and_zero_is_harmless() {
        let mut random = SplitMix64::new(1);
        assert!((0..1000).all(|_| random.next_below(7) < 7));
        assert_eq!(random.next_below(0), 0);
    }
}
