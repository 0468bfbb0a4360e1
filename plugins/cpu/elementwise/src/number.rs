//! Numbers that loops compute with: integers that wrap around, and floats of 32 and 64 bits.

use oarlock_sdk::{Dtype, Element};

/// True for dtypes that models use often enough to compile their loops for each instruction set.
pub(super) const fn is_common_dtype(dtype: Dtype) -> bool {
    !matches!(dtype, Dtype::U16 | Dtype::U32 | Dtype::U64)
}

/// An integer or a float, with NumPy's arithmetic.
pub(super) trait ArithmeticElement: Element + PartialOrd + Default {
    /// True if a division by 0 has no result.
    const IS_INTEGER: bool;
    const ONE: Self;

    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    /// The quotient, which integers round towards 0; of an integer and 0 any value.
    fn divided_by(self, other: Self) -> Self;
    /// The remainder of the quotient that is rounded towards 0.
    fn truncated_remainder(self, other: Self) -> Self;
    /// The remainder of the quotient that is rounded down.
    fn floored_remainder(self, other: Self) -> Self;
    fn magnitude(self) -> Self;
    fn negate(self) -> Self;

    #[inline(always)]
    #[expect(clippy::eq_op, reason = "what is no number is not equal to itself")]
    fn is_nan(self) -> bool {
        self != self
    }

    /// The larger value; NaN if either is NaN.
    #[inline(always)]
    fn larger_or_nan(self, other: Self) -> Self {
        // If only the other is NaN, the comparison is false and selects it.
        if self > other || self.is_nan() { self } else { other }
    }

    /// The smaller value; NaN if either is NaN.
    #[inline(always)]
    fn smaller_or_nan(self, other: Self) -> Self {
        if self < other || self.is_nan() { self } else { other }
    }

    /// 1 or -1 of the same sign; 0 and NaN stay.
    #[inline(always)]
    fn sign(self) -> Self {
        let zero = Self::default();
        if self > zero {
            Self::ONE
        } else if self < zero {
            Self::ONE.negate()
        } else {
            self
        }
    }
}

macro_rules! integer {
    ($kind:ident: $($integer:ty)*) => {
        $(
            impl ArithmeticElement for $integer {
                const IS_INTEGER: bool = true;
                const ONE: Self = 1;

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
                    let differs = rest != 0 && integer!(@$kind rest, other);
                    if differs { rest.wrapping_add(other) } else { rest }
                }

                #[inline(always)]
                fn magnitude(self) -> Self {
                    integer!(@$kind self)
                }

                #[inline(always)]
                fn negate(self) -> Self {
                    self.wrapping_neg()
                }
            }
        )*
    };
    (@signed $value:expr) => { $value.wrapping_abs() };
    (@unsigned $value:expr) => { $value };
    // The highest bit of the XOR is set if the signs differ.
    (@signed $rest:expr, $divisor:expr) => { ($rest ^ $divisor) < 0 };
    (@unsigned $rest:expr, $divisor:expr) => { false };
}

macro_rules! float {
    ($($float:ty)*) => {
        $(
            impl ArithmeticElement for $float {
                const IS_INTEGER: bool = false;
                const ONE: Self = 1.0;

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
                fn magnitude(self) -> Self {
                    self.abs()
                }

                #[inline(always)]
                fn negate(self) -> Self {
                    -self
                }
            }
        )*
    };
}

integer!(signed: i8 i16 i32 i64);
integer!(unsigned: u8 u16 u32 u64);
float!(f32 f64);

/// Runs an expression with `$number` as the [`ArithmeticElement`] in which a dtype is computed, and the dtype of that number.
macro_rules! with_number {
    ($dtype:expr, [$($name:ident $ty:ty),*], $number:ident => $body:expr) => {
        match $crate::port::compute_dtype($dtype) {
            $(oarlock_sdk::Dtype::$name => {
                use oarlock_sdk::Element as _;
                type $number = $ty;
                $body
            })*
            other => Err($crate::number::unexpected_dtype(other)),
        }
    };
    ($dtype:expr, floats, $number:ident => $body:expr) => {
        $crate::number::with_number!($dtype, [F32 f32, F64 f64], $number => $body)
    };
    ($dtype:expr, integers, $number:ident => $body:expr) => {
        $crate::number::with_number!(
            $dtype,
            [I8 i8, U8 u8, I16 i16, U16 u16, I32 i32, U32 u32, I64 i64, U64 u64],
            $number => $body
        )
    };
    ($dtype:expr, all, $number:ident => $body:expr) => {
        $crate::number::with_number!(
            $dtype,
            [F32 f32, F64 f64, I8 i8, U8 u8, I16 i16, U16 u16, I32 i32, U32 u32, I64 i64, U64 u64],
            $number => $body
        )
    };
}

pub(super) use with_number;

/// The error for a dtype that the kernel's row does not list.
#[cold]
pub(super) fn unexpected_dtype(dtype: Dtype) -> oarlock_sdk::PluginError {
    let found = dtype.name().unwrap_or("an unknown dtype");
    oarlock_sdk::PluginError::unimplemented(format!("expected a dtype that the kernel lists, found {found}"))
}
