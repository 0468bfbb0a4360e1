//! Element types, and dispatch from the dtype of a call to a generic function.

#[cfg(feature = "numbers")]
use half::{bf16, f16};
#[cfg(feature = "numbers")]
use num_complex::Complex;
pub use oarlock_abi::{Dtype, DtypeSet};

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that tensor elements can have. Every bit pattern is a valid value, except for `bool`, where the
/// host guarantees 0 or 1.
pub trait Element: sealed::Sealed + Copy + Send + Sync + 'static {
    /// The dtype of tensors with these elements.
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
    bool => BOOL, i8 => I8, u8 => U8, i16 => I16, u16 => U16, i32 => I32, u32 => U32, i64 => I64, u64 => U64,
    f32 => F32, f64 => F64,
}

#[cfg(feature = "numbers")]
elements! { f16 => F16, bf16 => BF16, Complex<f32> => C64, Complex<f64> => C128 }

/// Builds a [`DtypeSet`] in a constant expression, for the operand specs of kernels.
pub const fn dtype_set(dtypes: &[Dtype]) -> DtypeSet {
    let mut bits = 0;
    let mut index = 0;
    while index < dtypes.len() {
        bits |= 1 << dtypes[index].0;
        index += 1;
    }
    DtypeSet(bits)
}

/// The families of [`dispatch!`](crate::dispatch) as sets, so that the operand specs of a kernel can match its dispatch.
pub mod family {
    use super::{Dtype, DtypeSet, dtype_set};

    /// `f32`, `f64`.
    pub const FLOATING: DtypeSet = dtype_set(&[Dtype::F32, Dtype::F64]);
    /// `f16`, `f32`, `f64`.
    pub const FLOATING_AND_HALF: DtypeSet = FLOATING.union(DtypeSet::F16);
    /// `i8`, `u8`, `i16`, `i32`, `i64`.
    pub const INTEGRAL: DtypeSet = dtype_set(&[Dtype::I8, Dtype::U8, Dtype::I16, Dtype::I32, Dtype::I64]);
    /// `c64`, `c128`.
    pub const COMPLEX: DtypeSet = dtype_set(&[Dtype::C64, Dtype::C128]);
    /// [`FLOATING`] and [`INTEGRAL`].
    pub const FLOATING_AND_INTEGRAL: DtypeSet = FLOATING.union(INTEGRAL);
    /// [`FLOATING`] and [`COMPLEX`].
    pub const FLOATING_AND_COMPLEX: DtypeSet = FLOATING.union(COMPLEX);
    /// [`FLOATING`], [`INTEGRAL`] and [`COMPLEX`].
    pub const FLOATING_AND_INTEGRAL_AND_COMPLEX: DtypeSet = FLOATING_AND_INTEGRAL.union(COMPLEX);
}

/// Evaluates an expression with a type alias bound to the element type of a dtype that is known at run time only.
///
/// The families are `floating`, `floating_and_half`, `integral`, `complex`, `floating_and_integral`, `floating_and_complex` and
/// `floating_and_integral_and_complex`; `+` adds single dtypes. Any other dtype is an error that lists the accepted ones.
///
/// ```
/// use oarlock_sdk::{Dtype, Result, dispatch};
///
/// fn width(dtype: Dtype) -> Result<usize> {
///     dispatch!(dtype, floating_and_half + bf16 + bool, T => Ok(size_of::<T>()))
/// }
///
/// assert_eq!(width(Dtype::BF16).unwrap(), 2);
/// assert_eq!(width(Dtype::I8).unwrap_err().message(), "expected f16, f32, f64, bf16 or bool, found i8");
/// ```
#[macro_export]
macro_rules! dispatch {
    ($dtype:expr, floating $($rest:tt)*) => { $crate::dispatch!(@more [f32 f64] $dtype, $($rest)*) };
    ($dtype:expr, floating_and_half $($rest:tt)*) => { $crate::dispatch!(@more [f16 f32 f64] $dtype, $($rest)*) };
    ($dtype:expr, integral $($rest:tt)*) => { $crate::dispatch!(@more [i8 u8 i16 i32 i64] $dtype, $($rest)*) };
    ($dtype:expr, complex $($rest:tt)*) => { $crate::dispatch!(@more [c64 c128] $dtype, $($rest)*) };
    ($dtype:expr, floating_and_integral $($rest:tt)*) => {
        $crate::dispatch!(@more [f32 f64 i8 u8 i16 i32 i64] $dtype, $($rest)*)
    };
    ($dtype:expr, floating_and_complex $($rest:tt)*) => {
        $crate::dispatch!(@more [f32 f64 c64 c128] $dtype, $($rest)*)
    };
    ($dtype:expr, floating_and_integral_and_complex $($rest:tt)*) => {
        $crate::dispatch!(@more [f32 f64 i8 u8 i16 i32 i64 c64 c128] $dtype, $($rest)*)
    };
    (@more [$($name:ident)*] $dtype:expr, + $more:ident $($rest:tt)*) => {
        $crate::dispatch!(@more [$($name)* $more] $dtype, $($rest)*)
    };
    (@more [$($name:ident)*] $dtype:expr, , $alias:ident => $body:expr) => {
        match $dtype {
            $(
                dtype if dtype == <$crate::element_of!($name) as $crate::Element>::DTYPE => {
                    type $alias = $crate::element_of!($name);
                    $body
                }
            )*
            other => ::core::result::Result::Err($crate::unexpected_dtype(&[$(stringify!($name)),*], other)),
        }
    };
}

/// Maps the name of a dtype to its Rust type.
#[doc(hidden)]
#[macro_export]
macro_rules! element_of {
    (f16) => { $crate::f16 };
    (bf16) => { $crate::bf16 };
    (c64) => { $crate::Complex<f32> };
    (c128) => { $crate::Complex<f64> };
    ($primitive:ident) => { $primitive };
}

/// The error of [`dispatch!`](crate::dispatch) for a dtype that it does not list.
#[doc(hidden)]
#[track_caller]
pub fn unexpected_dtype(taken: &[&str], found: Dtype) -> crate::PluginError {
    let expected = match taken {
        [all @ .., last] if !all.is_empty() => format!("{} or {last}", all.join(", ")),
        all => all.concat(),
    };
    let found = found.name().map_or_else(|| format!("the unknown dtype {}", found.0), str::to_owned);
    crate::PluginError::unimplemented(format!("expected {expected}, found {found}"))
}
