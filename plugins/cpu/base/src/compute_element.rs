//! The types in which elements are computed. Each trait has all that the one above it has:
//!
//! ```text
//! Element                 an element of a tensor (SDK)
//!   ArithmeticElement     integers, f32, f64: + - * /, comparisons
//!     MathFloat           f32, f64: roots, powers of two, the constants of exp, log and erf
//!       ComputeFloat      a MathFloat that is computed in itself
//!     GemmElement         a type in which products of matrices are summed
//!   ComputeElement        any real element: its Accumulator is an ArithmeticElement, its Float a ComputeFloat
//!     FloatElement        f16, bf16, f32, f64
//! ```

use std::borrow::Cow;

use oarlock_sdk::{Element, bf16, f16};

use crate::arithmetic::ArithmeticElement;
use crate::f16_conversion::{round_to_f16, widen_f16};
use crate::isa::{BaselineTarget, Isa, SimdTarget};
use crate::math::MathFloat;
use crate::with_isa;
use crate::{float_bits, math};

/// An element type, and the types in which it is computed.
pub trait ComputeElement: Element {
    /// The type of sums, products and extremes: the type itself, or `f32` for narrow floats.
    type Accumulator: ArithmeticElement;
    /// The type of roots, logarithms and means: a float, `f64` for integers.
    type Float: ComputeFloat;

    fn to_accumulator(self) -> Self::Accumulator;
    fn from_accumulator(exact: Self::Accumulator) -> Self;
    fn to_float(self) -> Self::Float;
    /// Rounds to a float; to an integer, truncates and saturates.
    fn from_float(float: Self::Float) -> Self;
}

/// A float to compute in.
pub trait ComputeFloat: MathFloat + ComputeElement<Accumulator = Self, Float = Self> {
    /// eˣ.
    #[inline(always)]
    fn exponential<T: SimdTarget>(self) -> Self {
        math::exp::<T, _>(self)
    }

    /// eˣ for x ≤ 0; 0 in place of a subnormal result.
    #[inline(always)]
    fn exp_of_negative<T: SimdTarget>(self) -> Self {
        math::exp_of_negative::<T, _>(self)
    }

    #[inline(always)]
    fn logarithm(self) -> Self {
        math::log::<BaselineTarget, _>(self)
    }

    /// 0 in place of infinities and NaN.
    #[inline(always)]
    fn finite_or_zero(self) -> Self {
        // False for NaN as well, so one comparison covers both.
        if self.magnitude() < Self::GREATEST { self } else { Self::ZERO }
    }
}

impl<F: MathFloat + ComputeElement<Accumulator = Self, Float = Self>> ComputeFloat for F {}

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

wide_reals!(f32, f64);

impl FloatElement for f16 {
    fn to_floats(isa: Isa, elements: &[Self]) -> Cow<'_, [f32]> {
        let mut floats = vec![0.0; elements.len()];
        widen_f16(isa, elements, &mut floats);
        Cow::Owned(floats)
    }
    fn write_floats(isa: Isa, elements: &mut [Self], write: impl FnOnce(&mut [f32])) {
        let mut floats = vec![0.0; elements.len()];
        write(&mut floats);
        round_to_f16(isa, &floats, elements);
    }
}

impl FloatElement for bf16 {
    fn to_floats(isa: Isa, elements: &[Self]) -> Cow<'_, [f32]> {
        Cow::Owned(with_isa!(isa, || elements.iter().map(|element| element.to_float()).collect()))
    }
    fn write_floats(isa: Isa, elements: &mut [Self], write: impl FnOnce(&mut [f32])) {
        let mut floats = vec![0.0; elements.len()];
        write(&mut floats);
        with_isa!(isa, || {
            for (element, float) in elements.iter_mut().zip(&floats) {
                *element = Self::from_float(*float);
            }
        });
    }
}

macro_rules! integers {
    ($($integer:ty)*) => {
        $(
            impl ComputeElement for $integer {
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
        )*
    };
}

integers!(i8 i16 i32 i64 u8 u16 u32 u64);

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
        )*
    };
}

floats!(f32, f64);

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
    fn floats_saturate_to_integers() {
        assert_eq!(u8::from_float(-3.5), 0);
        assert_eq!(i32::from_float(f64::NEG_INFINITY), i32::MIN);
    }
}
