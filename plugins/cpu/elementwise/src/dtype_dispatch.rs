//! From a dtype to the type in which loops compute it.

use oarlock_sdk::Dtype;

/// True for dtypes that models use often enough to compile their loops for each instruction set.
pub(super) const fn is_common_dtype(dtype: Dtype) -> bool {
    !matches!(dtype, Dtype::U16 | Dtype::U32 | Dtype::U64)
}

/// Runs an expression with `$number` as the [`ArithmeticElement`] in which a dtype is computed, and the dtype of that number.
macro_rules! with_number {
    ($dtype:expr, [$($name:ident $ty:ty),*], $number:ident => $body:expr) => {
        match $crate::operand_conversion::compute_dtype($dtype) {
            $(oarlock_sdk::Dtype::$name => {
                use oarlock_sdk::Element as _;
                type $number = $ty;
                $body
            })*
            other => Err($crate::dtype_dispatch::unexpected_dtype(other)),
        }
    };
    ($dtype:expr, floats, $number:ident => $body:expr) => {
        $crate::dtype_dispatch::with_number!($dtype, [F32 f32, F64 f64], $number => $body)
    };
    ($dtype:expr, integers, $number:ident => $body:expr) => {
        $crate::dtype_dispatch::with_number!(
            $dtype,
            [I8 i8, U8 u8, I16 i16, U16 u16, I32 i32, U32 u32, I64 i64, U64 u64],
            $number => $body
        )
    };
    ($dtype:expr, all, $number:ident => $body:expr) => {
        $crate::dtype_dispatch::with_number!(
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
