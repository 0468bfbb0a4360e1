//! Arithmetic of generic kernels, per element type: the types of sums, and those in which roots and logarithms are computed.

use std::borrow::Cow;
use std::ops::{Add, Div, Mul, Neg, Sub};

use oarlock_sdk::{Element, bf16, f16};

use crate::isa::{BaselineTarget, Isa, SimdTarget};
use crate::with_isa;
use crate::{float_bits, math};

/// An element type, and the types in which it is computed.
pub trait ComputeElement: Element {
    /// The type of sums, products and extremes: the type itself, or `f32` for narrow floats.
    type Accumulator: AccumulatorNumber;
    /// The type of roots, logarithms and means: a float, `f64` for integers.
    type Float: ComputeFloat;

    fn to_accumulator(self) -> Self::Accumulator;
    fn from_accumulator(exact: Self::Accumulator) -> Self;
    fn to_float(self) -> Self::Float;
    /// Rounds to a float; to an integer, truncates and saturates.
    fn from_float(float: Self::Float) -> Self;
}

/// Arithmetic of sums. Integers wrap around, and NaN stays NaN.
pub trait AccumulatorNumber: Copy + Send + Sync + PartialOrd + 'static {
    const ZERO: Self;
    const ONE: Self;
    const LOWEST: Self;
    const GREATEST: Self;

    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn magnitude(self) -> Self;

    #[inline(always)]
    #[expect(clippy::eq_op, reason = "only what is not a number differs from itself")]
    fn is_nan(self) -> bool {
        self != self
    }

    #[inline(always)]
    fn maximum(self, other: Self) -> Self {
        // `|` and not `||`, whose branch would keep loops from vectorizing.
        if (self > other) | self.is_nan() { self } else { other }
    }

    #[inline(always)]
    fn minimum(self, other: Self) -> Self {
        if (self < other) | self.is_nan() { self } else { other }
    }

    /// The larger of two numbers. A NaN on the right is skipped.
    #[inline(always)]
    fn max_ignoring_nan(self, other: Self) -> Self {
        // Exactly what x86 `max` instructions compute, so it needs no extra test for NaN.
        if other > self { other } else { self }
    }

    /// A rank that grows with the number. Zeros are equal, and so are all NaNs, which are above all others.
    fn order_rank(self) -> u64;
}

/// A float to compute in.
pub trait ComputeFloat:
    AccumulatorNumber
    + Default
    + ComputeElement<Accumulator = Self, Float = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
    fn square_root(self) -> Self;
    /// eˣ.
    fn exponential<T: SimdTarget>(self) -> Self;
    /// eˣ for x ≤ 0; 0 in place of a subnormal result.
    fn exp_of_negative<T: SimdTarget>(self) -> Self;
    fn logarithm(self) -> Self;

    /// 0 in place of infinities and NaN.
    #[inline(always)]
    fn finite_or_zero(self) -> Self {
        // False for NaN as well, so one comparison covers both.
        if self.magnitude() < Self::GREATEST { self } else { Self::ZERO }
    }
}

/// The floats of tensors. Narrow ones are computed in `f32`.
pub trait FloatElement: ComputeElement<Accumulator = <Self as ComputeElement>::Float> {
    /// The elements as the floats in which they are computed; wide ones are borrowed.
    fn to_floats(isa: Isa, elements: &[Self]) -> Cow<'_, [Self::Float]>;
    /// Calls `write` with the floats in which elements are computed, and rounds them to the elements.
    fn write_floats(isa: Isa, elements: &mut [Self], write: impl FnOnce(&mut [Self::Float]));
}

macro_rules! wide_reals {
    ($($ty:ty),*) => {
        $(
            impl FloatElement for $ty {
                #[inline(always)]
                fn to_floats(_: Isa, elements: &[Self]) -> Cow<'_, [Self]> {
                    Cow::Borrowed(elements)
                }
                #[inline(always)]
                fn write_floats(_: Isa, elements: &mut [Self], write: impl FnOnce(&mut [Self])) {
                    write(elements);
                }
            }
        )*
    };
}

macro_rules! narrow_reals {
    ($($ty:ty),*) => {
        $(
            impl FloatElement for $ty {
                fn to_floats(isa: Isa, elements: &[Self]) -> Cow<'_, [f32]> {
                    Cow::Owned(with_isa!(isa, || elements.iter().map(|element| element.to_float()).collect()))
                }
                fn write_floats(isa: Isa, elements: &mut [Self], write: impl FnOnce(&mut [f32])) {
                    let mut floats = vec![0.0; elements.len()];
                    write(&mut floats);
                    round_floats(isa, &floats, elements);
                }
            }
        )*
    };
}

wide_reals!(f32, f64);
narrow_reals!(f16, bf16);

fn round_floats<T: FloatElement>(isa: Isa, floats: &[T::Float], elements: &mut [T]) {
    with_isa!(isa, || {
        for (element, float) in elements.iter_mut().zip(floats) {
            *element = T::from_float(*float);
        }
    });
}

macro_rules! integers {
    ($($ty:ty: $magnitude:ident $rank:ident;)*) => {
        $(
            impl ComputeElement for $ty {
                type Accumulator = Self;
                type Float = f64;

                #[inline(always)]
                fn to_accumulator(self) -> Self { self }
                #[inline(always)]
                fn from_accumulator(exact: Self) -> Self { exact }
                #[inline(always)]
                fn to_float(self) -> f64 { self as f64 }
                #[inline(always)]
                fn from_float(float: f64) -> Self { float as Self }
            }

            impl AccumulatorNumber for $ty {
                const ZERO: Self = 0;
                const ONE: Self = 1;
                const LOWEST: Self = Self::MIN;
                const GREATEST: Self = Self::MAX;

                #[inline(always)]
                fn plus(self, other: Self) -> Self { self.wrapping_add(other) }
                #[inline(always)]
                fn times(self, other: Self) -> Self { self.wrapping_mul(other) }
                #[inline(always)]
                fn magnitude(self) -> Self { $magnitude!(self) }
                #[inline(always)]
                fn order_rank(self) -> u64 { $rank!(self) }
            }
        )*
    };
}

macro_rules! signed {
    ($value:expr) => {
        $value.wrapping_abs()
    };
}
macro_rules! unsigned {
    ($value:expr) => {
        $value
    };
}

/// Maps the lowest value to 0.
macro_rules! from_lowest {
    ($value:expr) => {
        i64::from($value).wrapping_sub(i64::MIN) as u64
    };
}
macro_rules! from_zero {
    ($value:expr) => {
        u64::from($value)
    };
}

integers! {
    i8: signed from_lowest; i16: signed from_lowest; i32: signed from_lowest; i64: signed from_lowest;
    u8: unsigned from_zero; u16: unsigned from_zero; u32: unsigned from_zero; u64: unsigned from_zero;
}

/// True is the larger value.
impl ComputeElement for bool {
    type Accumulator = u8;
    type Float = f64;

    #[inline(always)]
    fn to_accumulator(self) -> u8 {
        self.into()
    }
    #[inline(always)]
    fn from_accumulator(exact: u8) -> Self {
        exact != 0
    }
    #[inline(always)]
    fn to_float(self) -> f64 {
        f64::from(u8::from(self))
    }
    #[inline(always)]
    fn from_float(float: f64) -> Self {
        float != 0.0
    }
}

macro_rules! floats {
    ($($ty:ty),*) => {
        $(
            impl ComputeElement for $ty {
                type Accumulator = Self;
                type Float = Self;

                #[inline(always)]
                fn to_accumulator(self) -> Self { self }
                #[inline(always)]
                fn from_accumulator(exact: Self) -> Self { exact }
                #[inline(always)]
                fn to_float(self) -> Self { self }
                #[inline(always)]
                fn from_float(float: Self) -> Self { float }
            }

            impl AccumulatorNumber for $ty {
                const ZERO: Self = 0.0;
                const ONE: Self = 1.0;
                const LOWEST: Self = Self::NEG_INFINITY;
                const GREATEST: Self = Self::INFINITY;

                #[inline(always)]
                fn plus(self, other: Self) -> Self { self + other }
                #[inline(always)]
                fn times(self, other: Self) -> Self { self * other }
                #[inline(always)]
                fn magnitude(self) -> Self { self.abs() }
                #[inline(always)]
                fn order_rank(self) -> u64 { float_order_rank(f64::from(self)) }
            }

            impl ComputeFloat for $ty {
                #[inline(always)]
                fn from_f64(value: f64) -> Self { value as Self }
                #[inline(always)]
                fn to_f64(self) -> f64 { self as f64 }
                #[inline(always)]
                fn square_root(self) -> Self { self.sqrt() }
                #[inline(always)]
                fn exponential<T: SimdTarget>(self) -> Self {
                    math::exp::<T, _>(self)
                }
                #[inline(always)]
                fn exp_of_negative<T: SimdTarget>(self) -> Self {
                    math::exp_of_negative::<T, _>(self)
                }
                #[inline(always)]
                fn logarithm(self) -> Self { math::log::<BaselineTarget, _>(self) }
            }
        )*
    };
}

floats!(f32, f64);

/// The bits of floats are in the order of the numbers, except that negative ones are in the opposite order.
#[inline(always)]
fn float_order_rank(value: f64) -> u64 {
    // Turns -0 into 0.
    let bits = (value + 0.0).to_bits() as i64;
    let rank = (bits ^ (bits >> 63) & i64::MAX).wrapping_sub(i64::MIN) as u64;
    if value.is_nan() { u64::MAX } else { rank }
}

macro_rules! narrow_floats {
    ($($ty:ident: $widen:ident, $round:ident;)*) => {
        $(
            impl ComputeElement for $ty {
                type Accumulator = f32;
                type Float = f32;

                #[inline(always)]
                fn to_accumulator(self) -> f32 { float_bits::$widen(self.to_bits()) }
                #[inline(always)]
                fn from_accumulator(exact: f32) -> Self { Self::from_bits(float_bits::$round(exact)) }
                #[inline(always)]
                fn to_float(self) -> f32 { self.to_accumulator() }
                #[inline(always)]
                fn from_float(float: f32) -> Self { Self::from_accumulator(float) }
            }
        )*
    };
}

narrow_floats! {
    f16: f16_to_f32, f32_to_f16;
    bf16: bf16_to_f32, f32_to_bf16;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_number_wins_every_comparison() {
        assert!(
            AccumulatorNumber::maximum(1.0, f32::NAN).is_nan()
                && AccumulatorNumber::maximum(f32::NAN, 1.0).is_nan()
        );
        assert!(
            AccumulatorNumber::minimum(1.0, f64::NAN).is_nan()
                && AccumulatorNumber::minimum(f64::NAN, 1.0).is_nan()
        );
    }

    #[test]
    fn integers_wrap_and_stay_within_their_range() {
        assert_eq!(i32::MAX.plus(1), i32::MIN);
        assert_eq!(u8::from_float(-3.5), 0);
        assert_eq!(i32::from_float(f64::NEG_INFINITY), i32::MIN);
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
