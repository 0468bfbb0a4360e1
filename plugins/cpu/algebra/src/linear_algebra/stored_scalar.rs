//! The scalars of matrices as operands store them, in 32 or 64 bits.

use oarlock_sdk::{Complex, Element};

use super::product::MatrixScalar;

/// A scalar as it is stored in operands.
pub(super) trait StoredScalar: Element {
    type Field: MatrixScalar;
    /// The type of its magnitude.
    type Component: Element;

    fn widen(self) -> Self::Field;
    fn from_field(value: Self::Field) -> Self;
    fn component_from_f64(value: f64) -> Self::Component;
}

macro_rules! stored {
    ($($float:ident)*) => {
        $(
            impl StoredScalar for $float {
                type Field = f64;
                type Component = Self;

                fn widen(self) -> f64 {
                    self.into()
                }

                fn from_field(value: f64) -> Self {
                    value as Self
                }

                fn component_from_f64(value: f64) -> Self {
                    value as Self
                }
            }

            impl StoredScalar for Complex<$float> {
                type Field = Complex<f64>;
                type Component = $float;

                fn widen(self) -> Complex<f64> {
                    Complex { re: self.re.into(), im: self.im.into() }
                }

                fn from_field(value: Complex<f64>) -> Self {
                    Complex { re: value.re as $float, im: value.im as $float }
                }

                fn component_from_f64(value: f64) -> $float {
                    value as $float
                }
            }
        )*
    };
}

stored!(f32 f64);
