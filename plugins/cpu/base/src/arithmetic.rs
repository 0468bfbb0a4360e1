//! Arithmetic on the elements of a tensor in their own type: integers that wrap around, and floats of 32 and 64 bits.

use oarlock_sdk::Element;

/// An integer or a float, with NumPy's arithmetic.
pub trait ArithmeticElement: Element + PartialOrd + Default {
    /// True if a division by 0 has no result.
    const IS_INTEGER: bool;
    const ZERO: Self;
    const ONE: Self;
    const LOWEST: Self;
    const GREATEST: Self;

    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    /// `self + left * right`, rounded once if `FUSED`; a fused multiply-add without hardware support would be a slow library
    /// call.
    fn add_product<const FUSED: bool>(self, left: Self, right: Self) -> Self;
    /// The quotient, which integers round towards 0; of an integer and 0 any value.
    fn divided_by(self, other: Self) -> Self;
    /// The remainder of the quotient that is rounded towards 0.
    fn truncated_remainder(self, other: Self) -> Self;
    /// The remainder of the quotient that is rounded down.
    fn floored_remainder(self, other: Self) -> Self;
    fn magnitude(self) -> Self;
    fn negate(self) -> Self;

    #[inline(always)]
    #[expect(clippy::eq_op, reason = "only NaN differs from itself")]
    fn is_nan(self) -> bool {
        self != self
    }

    /// The larger value; NaN if either is NaN.
    #[inline(always)]
    fn maximum(self, other: Self) -> Self {
        if self > other { self } else { other }
    }

    /// The smaller value; NaN if either is NaN.
    #[inline(always)]
    fn minimum(self, other: Self) -> Self {
        if self < other { self } else { other }
    }

    /// The larger of two numbers. A NaN on the right is skipped.
    #[inline(always)]
    fn max_ignoring_nan(self, other: Self) -> Self {
        if other > self { other } else { self }
    }

    /// 1 or -1 of the same sign; 0 for zeros of either sign, and NaN stays.
    #[inline(always)]
    fn sign(self) -> Self {
        if self > Self::ZERO {
            Self::ONE
        } else if self < Self::ZERO {
            Self::ONE.negate()
        } else if self == Self::ZERO {
            Self::ZERO
        } else {
            self
        }
    }

    /// A rank that grows with the number. Zeros are equal, and so are all NaNs, which rank above all numbers.
    fn order_rank(self) -> u64;
}

macro_rules! integers {
    ($kind:ident: $($integer:ty)*) => {
        $(
            impl ArithmeticElement for $integer {
                const IS_INTEGER: bool = true;
                const ZERO: Self = 0;
                const ONE: Self = 1;
                const LOWEST: Self = Self::MIN;
                const GREATEST: Self = Self::MAX;

                #[inline(always)]
                fn plus(self, other: Self) -> Self {
                    // NumPy wraps around, and so does ONNX's reference, which is written in it.
                    self.wrapping_add(other)
                }

                #[inline(always)]
                fn minus(self, other: Self) -> Self {
                    self.wrapping_sub(other)
                }

                #[inline(always)]
                fn times(self, other: Self) -> Self {
                    self.wrapping_mul(other)
                }

                #[inline(always)]
                fn add_product<const FUSED: bool>(self, left: Self, right: Self) -> Self {
                    self.wrapping_add(left.wrapping_mul(right))
                }

                #[inline(always)]
                fn divided_by(self, other: Self) -> Self {
                    // The lowest number by -1 wraps around. Of a division by 0 nobody uses the result, but it must not panic.
                    self.wrapping_div(if other == 0 { 1 } else { other })
                }

                #[inline(always)]
                fn truncated_remainder(self, other: Self) -> Self {
                    self.wrapping_rem(if other == 0 { 1 } else { other })
                }

                #[inline(always)]
                fn floored_remainder(self, other: Self) -> Self {
                    let rest = self.truncated_remainder(other);
                    let differs = rest != 0 && integers!(@$kind rest, other);
                    if differs { rest.wrapping_add(other) } else { rest }
                }

                #[inline(always)]
                fn magnitude(self) -> Self {
                    integers!(@$kind self)
                }

                #[inline(always)]
                fn negate(self) -> Self {
                    self.wrapping_neg()
                }

                #[inline(always)]
                fn order_rank(self) -> u64 {
                    integers!(@$kind rank self)
                }
            }
        )*
    };
    (@signed $value:expr) => { $value.wrapping_abs() };
    (@unsigned $value:expr) => { $value };
    // The highest bit of the XOR is set if the signs differ.
    (@signed $rest:expr, $divisor:expr) => { ($rest ^ $divisor) < 0 };
    (@unsigned $rest:expr, $divisor:expr) => { false };
    // The lowest value has rank 0.
    (@signed rank $value:expr) => { i64::from($value).wrapping_sub(i64::MIN) as u64 };
    (@unsigned rank $value:expr) => { u64::from($value) };
}

macro_rules! floats {
    ($($float:ty)*) => {
        $(
            impl ArithmeticElement for $float {
                const IS_INTEGER: bool = false;
                const ZERO: Self = 0.0;
                const ONE: Self = 1.0;
                const LOWEST: Self = Self::NEG_INFINITY;
                const GREATEST: Self = Self::INFINITY;

                #[inline(always)]
                fn plus(self, other: Self) -> Self {
                    self + other
                }

                #[inline(always)]
                fn minus(self, other: Self) -> Self {
                    self - other
                }

                #[inline(always)]
                fn times(self, other: Self) -> Self {
                    self * other
                }

                #[inline(always)]
                fn add_product<const FUSED: bool>(self, left: Self, right: Self) -> Self {
                    if FUSED { left.mul_add(right, self) } else { self + left * right }
                }

                #[inline(always)]
                fn divided_by(self, other: Self) -> Self {
                    self / other
                }

                #[inline(always)]
                fn truncated_remainder(self, other: Self) -> Self {
                    self % other
                }

                #[inline(always)]
                fn floored_remainder(self, other: Self) -> Self {
                    // NumPy's remainder: one of 0 has the sign of the divisor.
                    let rest = self % other;
                    let moved = if (rest < 0.0) == (other < 0.0) { rest } else { rest + other };
                    if rest == 0.0 { rest.copysign(other) } else { moved }
                }

                #[inline(always)]
                fn maximum(self, other: Self) -> Self {
                    let larger = if self > other { self } else { other };
                    // A sum, which is NaN if either operand is, and not that operand: a loop that keeps the larger value in memory
                    // would get a masked store, which is slow.
                    if self.is_nan() | other.is_nan() { self + other } else { larger }
                }

                #[inline(always)]
                fn minimum(self, other: Self) -> Self {
                    let smaller = if self < other { self } else { other };
                    if self.is_nan() | other.is_nan() { self + other } else { smaller }
                }

                #[inline(always)]
                fn max_ignoring_nan(self, other: Self) -> Self {
                    // Not a comparison: of those of several lines, the compiler makes masks in scalar code.
                    self.max(other)
                }

                #[inline(always)]
                fn magnitude(self) -> Self {
                    self.abs()
                }

                #[inline(always)]
                fn negate(self) -> Self {
                    -self
                }

                #[inline(always)]
                fn order_rank(self) -> u64 {
                    float_order_rank(f64::from(self))
                }
            }
        )*
    };
}

integers!(signed: i8 i16 i32 i64);
integers!(unsigned: u8 u16 u32 u64);
floats!(f32 f64);

/// The bits of floats are in the order of the numbers, except that negative ones are in the opposite order.
#[inline(always)]
fn float_order_rank(value: f64) -> u64 {
    // Turns -0 into 0.
    let bits = (value + 0.0).to_bits() as i64;
    let rank = (bits ^ (bits >> 63) & i64::MAX).wrapping_sub(i64::MIN) as u64;
    if value.is_nan() { u64::MAX } else { rank }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_number_wins_every_comparison() {
        assert!(
            ArithmeticElement::maximum(1.0, f32::NAN).is_nan()
                && ArithmeticElement::maximum(f32::NAN, 1.0).is_nan()
        );
        assert!(
            ArithmeticElement::minimum(1.0, f64::NAN).is_nan()
                && ArithmeticElement::minimum(f64::NAN, 1.0).is_nan()
        );
    }

    #[test]
    fn integers_wrap_around() {
        assert_eq!(i32::MAX.plus(1), i32::MIN);
        assert_eq!(i8::MIN.divided_by(-1), i8::MIN);
        assert_eq!(5u8.add_product::<true>(16, 16), 5);
    }

    #[test]
    fn ranks_are_in_the_order_of_what_has_them() {
        let floats =
            [f64::NEG_INFINITY, -1e300, -1.5, -5e-324, 0.0, 5e-324, 1.5, 1e300, f64::INFINITY, f64::NAN];
        assert!(floats.windows(2).all(|pair| pair[0].order_rank() < pair[1].order_rank()));
        assert_eq!((-0f32).order_rank(), 0f32.order_rank());
        assert_eq!((-f32::NAN).order_rank(), f32::NAN.order_rank());
        assert!(
            f32::from_bits(1).order_rank() > 0f32.order_rank()
                && f32::from_bits(1).order_rank() < f32::MIN_POSITIVE.order_rank()
        );
        assert!(
            [i64::MIN, -1, 0, 1, i64::MAX].windows(2).all(|pair| pair[0].order_rank() < pair[1].order_rank())
        );
        assert!((-128i8).order_rank() < 127i8.order_rank() && 0u64.order_rank() < u64::MAX.order_rank());
    }
}
