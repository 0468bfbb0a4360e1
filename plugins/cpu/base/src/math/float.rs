//! The constants and bit operations of floats that [`math`](super) needs.

use std::fmt::Debug;
use std::ops::{Add, Div, Mul, Neg, Sub};

use super::coefficients as table;
use crate::arithmetic::ArithmeticElement;
use crate::isa::SimdTarget;

/// `f32` or `f64`, with range limits and polynomial coefficients.
pub trait MathFloat:
    ArithmeticElement
    + Debug
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// The signed integer of the same size.
    type Exponent: Copy;

    const HALF: Self;
    const TWO: Self;
    const INFINITY: Self;
    const NAN: Self;
    /// The smallest positive number that is not subnormal.
    const MIN_NORMAL: Self;
    /// log₂ e.
    const LOG2_E: Self;
    /// ln 2 in two parts; the product of the first with any exponent is exact.
    const LN_2: (Self, Self);
    /// `exp` is 0 below the first bound and infinite above the second.
    const EXP_BOUNDS: (Self, Self);
    /// At and below this argument, `exp` is subnormal or 0; at it, the biased exponent of 2ⁿ is exactly 0.
    const EXP_VANISHES: Self;
    /// At and below this argument, `exp_m1` rounds to -1.
    const EXP_M1_BOUND: Self;
    /// From here on, `erfc` is subnormal.
    const ERFC_BOUND: Self;
    /// The argument of `erfc` that maps to 0 when its domain is mapped to -1..1.
    const ERFC_MIDDLE: Self;
    /// From half of this on, `tanh` rounds to 1.
    const TANH_BOUND: Self;
    /// From here on, `erf` rounds to 1.
    const ERF_BOUND: Self;
    /// From here on, all floats are integers, and consecutive bit patterns are consecutive integers.
    const WHOLE: Self;
    /// (exp(x) - 1 - x) / x² for |x| ≤ ln(2) / 2.
    const EXP: &'static [Self];
    /// (2 artanh(√x) / √x - 2) / x, over the arguments that mantissas map to.
    const LOG: &'static [Self];
    /// erf(√x) / √x - 1 from 0 to 1, or empty if there is a quotient.
    const ERF: &'static [Self];
    /// Polynomials whose quotient is erf(√x) / √x up to the square of [`MathFloat::ERF_BOUND`], or empty if that is not accurate
    /// enough.
    const ERF_QUOTIENT: (&'static [Self], &'static [Self]);
    /// exp(x²) erfc(x) in the mapped argument.
    const ERFC: &'static [Self];

    fn from_f64(value: f64) -> Self;

    fn to_f64(self) -> f64;

    /// `self` · `factor` + `summand`, rounded once if the target has FMA.
    fn multiply_add<T: SimdTarget>(self, factor: Self, summand: Self) -> Self;

    fn copy_sign(self, sign: Self) -> Self;

    fn square_root(self) -> Self;

    fn round_down(self) -> Self;

    fn round_up(self) -> Self;

    /// The nearest integer, ties to even.
    fn round_to_even(self) -> Self;

    /// The nearest integer, as a float and as an integer. The value must be far within the range of exponents.
    fn nearest_integer(self) -> (Self, Self::Exponent);

    /// The integer n that is nearest to `self` / ln 2 for a value from [`MathFloat::EXP_VANISHES`] to 0, and 2ⁿ, which is 0 at that
    /// lower bound.
    fn split_exp2<T: SimdTarget>(self) -> (Self, Self);

    /// Like [`MathFloat::split_exp2`], for any value within [`MathFloat::EXP_BOUNDS`], with 2ⁿ as two factors, since one alone may
    /// be out of range.
    fn split_exp2_factors<T: SimdTarget>(self) -> (Self, [Self; 2]);

    /// `self` · 2^`exponent`; neither operand nor result is subnormal or out of range.
    fn scale_by_exponent(self, exponent: Self::Exponent) -> Self;

    /// The integer nearest to `self` · `factor`, in the forms of [`MathFloat::nearest_integer`].
    fn nearest_multiple<T: SimdTarget>(self, factor: Self) -> (Self, Self::Exponent);

    /// 2^`exponent` / 2.
    fn half_power_of_two(exponent: Self::Exponent) -> Self;

    /// Splits a positive value into a mantissa near 1 and an exponent.
    fn decompose(self) -> (Self, Self);

    /// Clears the lower half of the mantissa, so that the square of the result is exact.
    fn truncate_mantissa(self) -> Self;
}

/// 2^`exponent`, for exponents of normal numbers.
macro_rules! power_of_two {
    ($float:ident, $signed:ident, $exponent:expr) => {{
        const BIAS: $signed = $float::MAX_EXP as $signed - 1;
        $float::from_bits(($exponent.wrapping_add(BIAS) << ($float::MANTISSA_DIGITS - 1)).cast_unsigned())
    }};
}

macro_rules! float {
    (
        $float:ident, $signed:ident, $unsigned:ident,
        ln_2: $ln_2:expr, exp: $exp:expr, $exp_vanishes:expr, exp_m1: $exp_m1:expr,
        tanh: $tanh:expr, erf: $erf:expr, erfc: $erfc:expr, $erfc_middle:expr,
        tables: $exp_table:ident $log_table:ident $erf_table:ident $erfc_table:ident,
        erf_quotient: $erf_quotient:expr
    ) => {
        impl MathFloat for $float {
            type Exponent = $signed;

            const HALF: Self = 0.5;
            const TWO: Self = 2.0;
            const INFINITY: Self = $float::INFINITY;
            const NAN: Self = $float::NAN;
            const MIN_NORMAL: Self = $float::MIN_POSITIVE;
            const LOG2_E: Self = std::$float::consts::LOG2_E;
            const LN_2: (Self, Self) = $ln_2;
            const EXP_BOUNDS: (Self, Self) = $exp;
            const EXP_VANISHES: Self = $exp_vanishes;
            const EXP_M1_BOUND: Self = $exp_m1;
            const ERFC_BOUND: Self = $erfc;
            const ERFC_MIDDLE: Self = $erfc_middle;
            const TANH_BOUND: Self = $tanh;
            const ERF_BOUND: Self = $erf;
            const WHOLE: Self = 1.5 / $float::EPSILON;
            const EXP: &'static [Self] = &table::$exp_table;
            const LOG: &'static [Self] = &table::$log_table;
            const ERF: &'static [Self] = &table::$erf_table;
            const ERFC: &'static [Self] = &table::$erfc_table;
            const ERF_QUOTIENT: (&'static [Self], &'static [Self]) = $erf_quotient;

            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as Self
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }

            #[inline(always)]
            fn multiply_add<T: SimdTarget>(self, factor: Self, summand: Self) -> Self {
                if T::HAS_FMA { self.mul_add(factor, summand) } else { self * factor + summand }
            }

            #[inline(always)]
            fn copy_sign(self, sign: Self) -> Self {
                self.copysign(sign)
            }

            #[inline(always)]
            fn square_root(self) -> Self {
                self.sqrt()
            }

            #[inline(always)]
            fn round_down(self) -> Self {
                self.floor()
            }

            #[inline(always)]
            fn round_up(self) -> Self {
                self.ceil()
            }

            #[inline(always)]
            fn round_to_even(self) -> Self {
                self.round_ties_even()
            }

            #[inline(always)]
            fn nearest_integer(self) -> (Self, $signed) {
                // Adding a large constant rounds to an integer: AVX2 cannot convert between `f64` and 64-bit integers.
                let shifted = self + Self::WHOLE;
                (shifted - Self::WHOLE, shifted.to_bits().wrapping_sub(Self::WHOLE.to_bits()) as $signed)
            }

            #[inline(always)]
            fn split_exp2<T: SimdTarget>(self) -> (Self, Self) {
                // The start value adds the exponent bias, so the lowest bits of the sum are the exponent field of 2ⁿ, and one shift
                // yields the float.
                const START: $float = $float::WHOLE + ($float::MAX_EXP - 1) as $float;
                let shifted = self.multiply_add::<T>(Self::LOG2_E, START);
                (shifted - START, $float::from_bits(shifted.to_bits() << ($float::MANTISSA_DIGITS - 1)))
            }

            #[inline(always)]
            fn split_exp2_factors<T: SimdTarget>(self) -> (Self, [Self; 2]) {
                // Twice the bias: each half of the sum is the exponent field of one factor.
                const START: $float = $float::WHOLE + (2 * ($float::MAX_EXP - 1)) as $float;
                let shifted = self.multiply_add::<T>(Self::LOG2_E, START);
                let half = shifted.to_bits() >> 1;
                let halves = [half, shifted.to_bits().wrapping_sub(half)];
                (shifted - START, halves.map(|half| $float::from_bits(half << ($float::MANTISSA_DIGITS - 1))))
            }

            #[inline(always)]
            fn scale_by_exponent(self, exponent: $signed) -> Self {
                let bits =
                    self.to_bits().cast_signed().wrapping_add(exponent << ($float::MANTISSA_DIGITS - 1));
                $float::from_bits(bits.cast_unsigned())
            }

            #[inline(always)]
            fn nearest_multiple<T: SimdTarget>(self, factor: Self) -> (Self, $signed) {
                let shifted = self.multiply_add::<T>(factor, Self::WHOLE);
                (shifted - Self::WHOLE, shifted.to_bits().wrapping_sub(Self::WHOLE.to_bits()) as $signed)
            }

            #[inline(always)]
            fn half_power_of_two(exponent: $signed) -> Self {
                power_of_two!($float, $signed, exponent.wrapping_sub(1))
            }

            #[inline(always)]
            fn decompose(self) -> (Self, Self) {
                const MANTISSA: u32 = $float::MANTISSA_DIGITS - 1;
                const NORMALIZER: $float = 4.0 / $float::EPSILON;
                let is_subnormal = self < $float::MIN_POSITIVE;
                let normal = if is_subnormal { self * NORMALIZER } else { self };
                let correction = if is_subnormal { (MANTISSA + 2) as Self } else { 0.0 };
                let bits = normal.to_bits() as $signed;
                let root = std::$float::consts::FRAC_1_SQRT_2.to_bits() as $signed;
                // Mantissas from √½ to √2, not from 1 to 2: for a number just below 1 the exponent is 0, so the logarithm does
                // not cancel.
                let exponent = bits.wrapping_sub(root) >> MANTISSA;
                let mantissa = bits.wrapping_sub(exponent << MANTISSA);
                ($float::from_bits(mantissa as $unsigned), exponent as Self - correction)
            }

            #[inline(always)]
            fn truncate_mantissa(self) -> Self {
                $float::from_bits(self.to_bits() & ($unsigned::MAX << $float::MANTISSA_DIGITS.div_ceil(2)))
            }
        }
    };
}

float!(
    f32, i32, u32,
    ln_2: (355.0 / 512.0, -2.121_944_4e-4), exp: (-104.0, 89.0), -88.0, exp_m1: -18.0,
    tanh: 18.5, erf: 3.92, erfc: 9.19, 3.0,
    tables: EXP_F32 LOG_F32 ERF_F32 ERFC_F32,
    erf_quotient: (&table::ERF_NUMERATOR_F32, &table::ERF_DENOMINATOR_F32)
);
float!(
    f64, i64, u64,
    ln_2: (6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10), exp: (-746.0, 710.0), -709.0, exp_m1: -38.0,
    tanh: 38.5, erf: 6.0, erfc: 26.54, 4.0,
    tables: EXP_F64 LOG_F64 ERF_F64 ERFC_F64,
    erf_quotient: (&[], &[])
);
