//! How far a result may be from the reference, in units of the last place (ulp) of its dtype.
//!
//! The error is measured against the larger of the expected value and the magnitude of the numbers that it was computed from: a sum
//! that cancels cannot be more accurate than its terms. A result below the smallest normal float may be flushed to 0.

use oarlock_abi::Dtype;

use crate::elements::{epsilon, is_float, round_to_dtype, smallest_normal};

/// The classes of ops with one tolerance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToleranceClass {
    /// Elements are moved, compared or computed without rounding.
    Exact,
    /// One operation that a device may round up or down.
    Rounded,
    /// A mathematical function.
    Function,
    /// Several functions, or a sum of them.
    Composed,
    /// A sum of many terms.
    Sum,
}

impl ToleranceClass {
    pub(crate) const ALL: [Self; 5] = [Self::Exact, Self::Rounded, Self::Function, Self::Composed, Self::Sum];

    /// The tolerance in ulps. Narrow floats are often computed in `f32`, but need not be.
    pub(crate) fn ulps(self, dtype: Dtype) -> f64 {
        let is_narrow = [Dtype::F16, Dtype::BF16].contains(&dtype);
        match (self, is_narrow) {
            (Self::Exact, _) => 0.0,
            (Self::Rounded, false) => 2.5,
            (Self::Rounded, true) => 1.0,
            (Self::Function, false) => 16.0,
            (Self::Function, true) => 4.0,
            (Self::Composed, false) => 32.0,
            (Self::Composed, true) => 8.0,
            (Self::Sum, false) => 64.0,
            (Self::Sum, true) => 16.0,
        }
    }
}

/// The error of a result in ulps; infinite where nothing but the expected value is right.
pub(crate) fn error_in_ulps(dtype: Dtype, expected: f64, magnitude: f64, found: f64) -> f64 {
    let rounded = round_to_dtype(dtype, expected);
    if rounded.is_nan() || found.is_nan() {
        return if rounded.is_nan() && found.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if rounded == found {
        return 0.0;
    }
    if !is_float(dtype) || rounded.is_infinite() || found.is_infinite() {
        return f64::INFINITY;
    }
    let slack = smallest_normal(dtype);
    let distance = (expected - found).abs();
    if distance <= slack {
        return 0.0;
    }
    distance / (epsilon(dtype) * expected.abs().max(magnitude).max(slack))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_counts_in_the_last_place_of_the_dtype() {
        let above = f64::from(1.0f32.next_up());
        assert_eq!(error_in_ulps(Dtype::F32, 1.0, 0.0, above), 1.0);
        assert_eq!(error_in_ulps(Dtype::F32, 1.0, 4.0, above), 0.25);
        assert_eq!(error_in_ulps(Dtype::F16, 1.0, 0.0, 1.0 + 2.0f64.powi(-10)), 1.0);
        // What the dtype cannot represent any better is right.
        assert_eq!(error_in_ulps(Dtype::BF16, 1.001, 0.0, 1.0), 0.0);
    }

    #[test]
    fn nan_infinity_and_integers_have_no_neighbors() {
        for (dtype, expected, found) in [
            (Dtype::F32, f64::NAN, 1.0),
            (Dtype::F32, 1.0, f64::NAN),
            (Dtype::F32, f64::INFINITY, f64::MAX),
            (Dtype::I32, 1.0, 2.0),
            (Dtype::BOOL, 1.0, 0.0),
        ] {
            assert_eq!(error_in_ulps(dtype, expected, 0.0, found), f64::INFINITY);
        }
        assert_eq!(error_in_ulps(Dtype::F32, f64::NAN, 0.0, f64::NAN), 0.0);
        assert_eq!(error_in_ulps(Dtype::F16, 1e9, 0.0, f64::INFINITY), 0.0);
    }

    #[test]
    fn what_is_below_the_smallest_normal_float_may_be_flushed() {
        assert_eq!(error_in_ulps(Dtype::F32, 1e-40, 0.0, 0.0), 0.0);
        assert!(error_in_ulps(Dtype::F32, 1e-30, 0.0, 0.0) > 1e6);
    }
}
