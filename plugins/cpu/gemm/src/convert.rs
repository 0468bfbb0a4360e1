//! Converts the elements of an operand to the type in which they are multiplied.

use oarlock_sdk::{bf16, f16};

/// An element that converts to `T`, the type to compute in.
pub trait ConvertTo<T>: Copy + Sync + 'static {
    /// True if a conversion keeps the bits, so that elements can be read in place.
    const IS_IDENTITY: bool = false;
    /// True if both have the same bits and differ only in alignment.
    const IS_UNALIGNED_IDENTITY: bool = Self::IS_IDENTITY;

    fn convert(self) -> T;
}

macro_rules! same {
    ($($number:ty)*) => {
        $(impl ConvertTo<$number> for $number {
            const IS_IDENTITY: bool = true;

            #[inline(always)]
            fn convert(self) -> $number {
                self
            }
        })*
    };
}

macro_rules! wider {
    ($($from:ty => $to:ty),*) => {
        $(impl ConvertTo<$to> for $from {
            #[inline(always)]
            fn convert(self) -> $to {
                self.into()
            }
        })*
    };
}

/// The bytes of an `f32` with any alignment.
impl ConvertTo<f32> for [u8; 4] {
    const IS_UNALIGNED_IDENTITY: bool = true;

    #[inline(always)]
    fn convert(self) -> f32 {
        f32::from_ne_bytes(self)
    }
}

macro_rules! same_bits {
    ($($unsigned:ty => $signed:ty),*) => {
        $(impl ConvertTo<$signed> for $unsigned {
            const IS_IDENTITY: bool = true;

            #[inline(always)]
            fn convert(self) -> $signed {
                self.cast_signed()
            }
        })*
    };
}

same!(f32 f64 i32 i64);
same_bits!(u32 => i32, u64 => i64);
wider!(f16 => f32, bf16 => f32, i8 => i32, u8 => i32, i16 => i32, u16 => i32);
