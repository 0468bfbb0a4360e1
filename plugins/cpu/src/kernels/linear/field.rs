//! The numbers that matrices are made of: real and complex ones, in 64 bits.

use std::ops::{Add, Div, Mul, Neg, Sub};

use oarlock_sdk::{Complex, Element};

/// A number as it is computed.
pub(super) trait Field:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    const ZERO: Self;
    const ONE: Self;

    fn conjugate(self) -> Self;
    fn magnitude(self) -> f64;
    fn real(self) -> f64;
    fn scaled(self, by: f64) -> Self;
}

impl Field for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;

    fn conjugate(self) -> Self {
        self
    }

    fn magnitude(self) -> f64 {
        self.abs()
    }

    fn real(self) -> f64 {
        self
    }

    fn scaled(self, by: f64) -> Self {
        self * by
    }
}

impl Field for Complex<f64> {
    const ZERO: Self = Self { re: 0.0, im: 0.0 };
    const ONE: Self = Self { re: 1.0, im: 0.0 };

    fn conjugate(self) -> Self {
        self.conj()
    }

    fn magnitude(self) -> f64 {
        self.re.hypot(self.im)
    }

    fn real(self) -> f64 {
        self.re
    }

    fn scaled(self, by: f64) -> Self {
        self.scale(by)
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
