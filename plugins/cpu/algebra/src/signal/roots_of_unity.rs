//! Powers of complex roots of unity, the factors of Fourier transforms.

use std::f64::consts::PI;

use oarlock_cpu_base::rows::scratch::try_reserve_vec;
use oarlock_sdk::{Complex, Result};

pub(super) type ComplexF64 = Complex<f64>;

/// Swaps the components of a number. The transform of such numbers, with its components swapped, is the inverse of the transform,
/// times the length.
#[inline(always)]
pub(super) fn swap_components(number: ComplexF64) -> ComplexF64 {
    Complex::new(number.im, number.re)
}

/// The powers of a root of unity, as products of two, so that about 2 · √length are stored instead of all.
pub(super) struct RootsOfUnity {
    length: usize,
    low_bits: u32,
    /// The powers below a power of two.
    low: Vec<ComplexF64>,
    /// The powers that are multiples of that.
    high: Vec<ComplexF64>,
}

impl RootsOfUnity {
    pub(super) fn new(length: usize) -> Result<Self> {
        let low_bits = (usize::BITS - length.leading_zeros()).div_ceil(2);
        let low = 1usize << low_bits;
        let mut roots =
            Self { length, low_bits, low: try_reserve_vec(low)?, high: try_reserve_vec(length / low + 1)? };
        roots.low.extend((0..low).map(|turn| root_of_unity(turn, length)));
        roots.high.extend((0..=length / low).map(|turn| root_of_unity(turn * low, length)));
        Ok(roots)
    }

    /// The power `turn`, which is below the length.
    #[inline(always)]
    pub(super) fn root_power(&self, turn: usize) -> ComplexF64 {
        debug_assert!(turn < self.length.max(1), "a turn below a whole one");
        // The number of low powers is a power of two.
        self.high[turn >> self.low_bits] * self.low[turn & (self.low.len() - 1)]
    }
}

/// exp(-2πi · `turn` / `parts`).
pub(super) fn root_of_unity(turn: usize, parts: usize) -> ComplexF64 {
    // Relative to the nearest quarter turn, where the angle is small and quarters are exact.
    let eighths = (8 * (turn as u128 % parts as u128) / parts as u128) as usize;
    let quarters = eighths.div_ceil(2);
    // The difference is taken in integers, which do not round.
    let rest = (4 * (turn % parts) as i128 - (quarters * parts) as i128) as f64;
    let angle = PI / 2.0 * (rest / parts as f64);
    let (sine, cosine) = angle.sin_cos();
    match quarters % 4 {
        0 => Complex::new(cosine, -sine),
        1 => Complex::new(-sine, -cosine),
        2 => Complex::new(-cosine, sine),
        _ => Complex::new(sine, cosine),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_at_quarters_are_exact() {
        let quarters = [(1.0, 0.0), (0.0, -1.0), (-1.0, 0.0), (0.0, 1.0)];
        for (quarter, (re, im)) in quarters.into_iter().enumerate() {
            let found = root_of_unity(3 * quarter, 12);
            assert_eq!((found.re, found.im), (re, im), "{quarter}");
        }
    }
}
