//! Subnormal weights. Weight decay leaves many weights of some published models below 2⁻¹²⁶, and processors multiply such numbers in
//! microcode.

use crate::isa::{Isa, SimdTarget, SimdTask};

/// The bits of 2⁻⁶⁰. Beside a weight of this size, the largest subnormal number is below 2⁻⁶⁶ of it, far less than rounding loses.
const SIGNIFICANT_BITS: u32 = (127 - 60) << (f32::MANTISSA_DIGITS - 1);
const MAGNITUDE_MASK: u32 = !(1 << 31);
const SMALLEST_NORMAL_BITS: u32 = f32::MIN_POSITIVE.to_bits();

/// Replaces subnormal weights by zero if any of the weights is at least 2⁻⁶⁰.
pub fn flush_subnormal_weights(isa: Isa, weights: &mut [f32]) {
    isa.vectorize(FlushSubnormals(weights));
}

struct FlushSubnormals<'a>(&'a mut [f32]);

impl SimdTask for FlushSubnormals<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let magnitude = |weight: f32| weight.to_bits() & MAGNITUDE_MASK;
        let (mut largest, mut is_found) = (0, 0);
        for weight in &*self.0 {
            let bits = magnitude(*weight);
            largest = bits.max(largest);
            // Zero wraps around, so it is not found.
            is_found |= u32::from(bits.wrapping_sub(1) < SMALLEST_NORMAL_BITS - 1);
        }
        if is_found == 0 || largest < SIGNIFICANT_BITS {
            return;
        }
        for weight in self.0 {
            if magnitude(*weight) < SMALLEST_NORMAL_BITS {
                *weight = 0.0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flushed(weights: &[f32]) -> Vec<f32> {
        let mut results = Isa::ALL.into_iter().filter(|isa| isa.is_available()).map(|isa| {
            let mut weights = weights.to_vec();
            flush_subnormal_weights(isa, &mut weights);
            weights
        });
        let first = results.next().unwrap();
        let bits = |weights: &[f32]| weights.iter().map(|weight| weight.to_bits()).collect::<Vec<_>>();
        assert!(results.all(|other| bits(&other) == bits(&first)));
        first
    }

    #[test]
    fn subnormal_weights_become_zero_beside_others() {
        let largest = f32::from_bits(SMALLEST_NORMAL_BITS - 1);
        let mut weights = vec![1.0; 40];
        weights[..5].copy_from_slice(&[1e-45, -1e-40, largest, f32::MIN_POSITIVE, -f32::MIN_POSITIVE]);
        let mut expected = weights.clone();
        expected[..3].fill(0.0);
        assert_eq!(flushed(&weights), expected);
    }

    #[test]
    fn weights_that_are_all_tiny_stay() {
        let tiny = [1e-45, -1e-40, 1e-30, 8e-19];
        assert_eq!(flushed(&tiny), tiny);
        assert_eq!(flushed(&[1e-45, 9e-19]), [0.0, 9e-19]);
    }

    #[test]
    fn special_weights_stay() {
        let found = flushed(&[f32::NAN, f32::NEG_INFINITY, -0.0, 1e-45]);
        assert!(found[0].is_nan() && found[1] == f32::NEG_INFINITY && found[2..] == [0.0, 0.0], "{found:?}");
    }
}
