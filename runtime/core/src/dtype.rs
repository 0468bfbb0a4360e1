//! Dtypes: the types of elements.

use std::fmt;
use std::str::FromStr;

use half::{bf16, f16};
use num_complex::Complex;
use oarlock_abi as abi;
pub use oarlock_abi::DtypeSet;

use crate::{Error, Result};

macro_rules! dtypes {
    ($($(#[$doc:meta])* $variant:ident = $number:literal, $name:literal, $numpy:literal, $onnx:literal, $bits:literal;)*) => {
        /// The type of the elements of a tensor. The contract defines the numbers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u32)]
        pub enum Dtype {
            $($(#[$doc])* $variant = $number,)*
        }

        impl Dtype {
            /// All dtypes.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The short name, such as `f32`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The name in NumPy and libraries based on it, such as `float32`.
            pub const fn numpy_name(self) -> &'static str {
                match self { $(Self::$variant => $numpy,)* }
            }

            /// The number of the dtype in ONNX.
            pub const fn onnx_number(self) -> i64 {
                match self { $(Self::$variant => $onnx,)* }
            }

            /// Bits per element. For a string, this is the size of the contract's `str`, which points to the text.
            pub const fn bits(self) -> u32 {
                match self { $(Self::$variant => $bits,)* }
            }
        }
    };
}

dtypes! {
    /// `true` or `false`, one byte each.
    Bool = 1, "bool", "bool", 9, 8;
    /// Signed, two elements per byte, the first in the low half.
    I4 = 2, "i4", "int4", 22, 4;
    /// Unsigned, two elements per byte, the first in the low half.
    U4 = 3, "u4", "uint4", 21, 4;
    /// Signed, 8 bits.
    I8 = 4, "i8", "int8", 3, 8;
    /// Unsigned, 8 bits.
    U8 = 5, "u8", "uint8", 2, 8;
    /// Signed, 16 bits.
    I16 = 6, "i16", "int16", 5, 16;
    /// Unsigned, 16 bits.
    U16 = 7, "u16", "uint16", 4, 16;
    /// Signed, 32 bits.
    I32 = 8, "i32", "int32", 6, 32;
    /// Unsigned, 32 bits.
    U32 = 9, "u32", "uint32", 12, 32;
    /// Signed, 64 bits.
    I64 = 10, "i64", "int64", 7, 64;
    /// Unsigned, 64 bits.
    U64 = 11, "u64", "uint64", 13, 64;
    /// 4 exponent bits, 3 mantissa bits, no infinities.
    F8E4M3 = 12, "f8e4m3", "float8_e4m3fn", 17, 8;
    /// 5 exponent bits, 2 mantissa bits.
    F8E5M2 = 13, "f8e5m2", "float8_e5m2", 19, 8;
    /// IEEE half precision.
    F16 = 14, "f16", "float16", 10, 16;
    /// The upper half of an `f32`.
    BF16 = 15, "bf16", "bfloat16", 16, 16;
    /// IEEE single precision.
    F32 = 16, "f32", "float32", 1, 32;
    /// IEEE double precision.
    F64 = 17, "f64", "float64", 11, 64;
    /// Two `f32`.
    C64 = 18, "c64", "complex64", 14, 64;
    /// Two `f64`.
    C128 = 19, "c128", "complex128", 15, 128;
    /// Text of any length, in UTF-8.
    String = 20, "string", "str", 8, 128;
    /// 4 exponent bits, 3 mantissa bits, no infinities and no negative zero.
    F8E4M3Fnuz = 21, "f8e4m3fnuz", "float8_e4m3fnuz", 18, 8;
    /// 5 exponent bits, 2 mantissa bits, no infinities and no negative zero.
    F8E5M2Fnuz = 22, "f8e5m2fnuz", "float8_e5m2fnuz", 20, 8;
    /// 8 exponent bits and nothing else: powers of 2.
    F8E8M0 = 23, "f8e8m0", "float8_e8m0fnu", 24, 8;
    /// 2 exponent bits, 1 mantissa bit, no infinities and no NaN; two elements per byte, the first in the low half.
    F4E2M1 = 24, "f4e2m1", "float4_e2m1fn", 23, 4;
    /// Signed, four elements per byte, the first in the lowest bits.
    I2 = 25, "i2", "int2", 26, 2;
    /// Unsigned, four elements per byte, the first in the lowest bits.
    U2 = 26, "u2", "uint2", 25, 2;
}

impl Dtype {
    /// The dtype as a number of the contract.
    pub const fn to_abi(self) -> abi::Dtype {
        abi::Dtype(self as u32)
    }

    /// The dtype for a number of the contract, if there is one.
    pub fn from_abi(dtype: abi::Dtype) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| *known as u32 == dtype.0)
    }

    /// The dtype for a number of ONNX, if tensors here support it.
    pub fn from_onnx(number: i64) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.onnx_number() == number)
    }

    /// The set that contains only this dtype.
    pub const fn to_set(self) -> DtypeSet {
        DtypeSet(1 << self as u32)
    }

    /// True if the set contains this dtype.
    pub const fn is_in(self, set: DtypeSet) -> bool {
        set.0 & self.to_set().0 != 0
    }

    /// True for floating-point types of any width.
    pub const fn is_float(self) -> bool {
        matches!(
            self,
            Self::F4E2M1
                | Self::F8E4M3
                | Self::F8E4M3Fnuz
                | Self::F8E5M2
                | Self::F8E5M2Fnuz
                | Self::F8E8M0
                | Self::F16
                | Self::BF16
                | Self::F32
                | Self::F64
        )
    }

    /// True if several elements share a byte.
    pub const fn is_packed(self) -> bool {
        self.bits() < 8
    }

    /// Bytes per element; `None` if several elements share a byte.
    pub const fn byte_size(self) -> Option<u64> {
        if self.is_packed() { None } else { Some(self.bits() as u64 / 8) }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Dtype {
    type Err = Error;

    /// Accepts both the short name and NumPy's name.
    fn from_str(name: &str) -> Result<Self> {
        let known = Self::ALL.iter().find(|dtype| dtype.name() == name || dtype.numpy_name() == name);
        known.copied().ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|dtype| dtype.name()).collect();
            Error::invalid_argument(format!("expected a dtype ({}), found `{name}`", names.join(", ")))
        })
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that can be the element of a tensor. Every bit pattern is a valid value of it, except for `bool`.
pub trait Element: sealed::Sealed + Copy + Send + Sync + fmt::Debug + 'static {
    /// The dtype of tensors with such elements.
    const DTYPE: Dtype;
}

macro_rules! elements {
    ($($ty:ty => $dtype:ident),* $(,)?) => {
        $(
            impl sealed::Sealed for $ty {}
            impl Element for $ty {
                const DTYPE: Dtype = Dtype::$dtype;
            }
        )*
    };
}

elements! {
    bool => Bool, i8 => I8, u8 => U8, i16 => I16, u16 => U16, i32 => I32, u32 => U32, i64 => I64, u64 => U64,
    f16 => F16, bf16 => BF16, f32 => F32, f64 => F64, Complex<f32> => C64, Complex<f64> => C128,
}
