//! The numbers that matrices are made of: real and complex ones, in 64 bits.

use std::ops::{Add, Div, Mul, Neg, Sub};

use oarlock_sdk::{Complex, Element};

use super::product::Multiply;
use crate::isa::Target;

/// A number as it is computed.
pub(super) trait Field:
    Copy
    + Multiply
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    const ZERO: Self;
    const ONE: Self;
    /// Whether it has a second part.
    const IS_COMPLEX: bool;

    /// Its parts, of which a real number has one.
    fn parts(self) -> [f64; 2];
    fn of_parts(parts: [f64; 2]) -> Self;
    fn scaled(self, by: f64) -> Self;

    /// `self + left * right`, rounded as the instruction set does it quickest.
    fn plus_product<T: Target>(self, left: Self, right: Self) -> Self;

    #[inline(always)]
    fn real(self) -> f64 {
        self.parts()[0]
    }

    #[inline(always)]
    fn of_real(real: f64) -> Self {
        Self::of_parts([real, 0.0])
    }

    #[inline(always)]
    fn conjugate(self) -> Self {
        let [real, imaginary] = self.parts();
        Self::of_parts([real, -imaginary])
    }

    #[inline(always)]
    fn magnitude(self) -> f64 {
        let [real, imaginary] = self.parts();
        if Self::IS_COMPLEX { real.hypot(imaginary) } else { real.abs() }
    }

    /// The square of the magnitude.
    #[inline(always)]
    fn square(self) -> f64 {
        let [real, imaginary] = self.parts();
        real * real + imaginary * imaginary
    }

    /// The larger of the magnitudes of its parts; an infinity where one is no number.
    #[inline(always)]
    fn size(self) -> f64 {
        let [real, imaginary] = self.parts().map(f64::abs);
        if real.is_nan() || imaginary.is_nan() { f64::INFINITY } else { real.max(imaginary) }
    }
}

#[inline(always)]
fn plus_product<T: Target>(sum: f64, left: f64, right: f64) -> f64 {
    if T::HAS_FMA { left.mul_add(right, sum) } else { sum + left * right }
}

impl Field for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const IS_COMPLEX: bool = false;

    #[inline(always)]
    fn parts(self) -> [f64; 2] {
        [self, 0.0]
    }

    #[inline(always)]
    fn of_parts([real, _]: [f64; 2]) -> Self {
        real
    }

    #[inline(always)]
    fn scaled(self, by: f64) -> Self {
        self * by
    }

    #[inline(always)]
    fn plus_product<T: Target>(self, left: Self, right: Self) -> Self {
        plus_product::<T>(self, left, right)
    }
}

impl Field for Complex<f64> {
    const ZERO: Self = Self { re: 0.0, im: 0.0 };
    const ONE: Self = Self { re: 1.0, im: 0.0 };
    const IS_COMPLEX: bool = true;

    #[inline(always)]
    fn parts(self) -> [f64; 2] {
        [self.re, self.im]
    }

    #[inline(always)]
    fn of_parts([re, im]: [f64; 2]) -> Self {
        Self { re, im }
    }

    #[inline(always)]
    fn scaled(self, by: f64) -> Self {
        self.scale(by)
    }

    #[inline(always)]
    fn plus_product<T: Target>(self, left: Self, right: Self) -> Self {
        Self {
            re: plus_product::<T>(plus_product::<T>(self.re, left.re, right.re), -left.im, right.im),
            im: plus_product::<T>(plus_product::<T>(self.im, left.re, right.im), left.im, right.re),
        }
    }
}

/// A number as it lies in memory.
pub(super) trait Stored: Element {
    type Field: Field;
    /// What magnitudes of it are.
    type Part: Element;

    fn wide(self) -> Self::Field;
    fn of(value: Self::Field) -> Self;
    fn part(value: f64) -> Self::Part;
}

macro_rules! stored {
    ($($float:ident)*) => {
        $(
            impl Stored for $float {
                type Field = f64;
                type Part = Self;

                fn wide(self) -> f64 {
                    self.into()
                }

                fn of(value: f64) -> Self {
                    value as Self
                }

                fn part(value: f64) -> Self {
                    value as Self
                }
            }

            impl Stored for Complex<$float> {
                type Field = Complex<f64>;
                type Part = $float;

                fn wide(self) -> Complex<f64> {
                    Complex { re: self.re.into(), im: self.im.into() }
                }

                fn of(value: Complex<f64>) -> Self {
                    Complex { re: value.re as $float, im: value.im as $float }
                }

                fn part(value: f64) -> $float {
                    value as $float
                }
            }
        )*
    };
}

stored!(f32 f64);
