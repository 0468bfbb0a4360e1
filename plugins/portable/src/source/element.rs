//! Names of dtypes in kernel sources.

use oarlock_sdk::Dtype;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArithmeticKind {
    Truth,
    Signed,
    Unsigned,
    Float,
}

/// Source-level names of one dtype.
struct ElementType {
    dtype: Dtype,
    /// Suffix of the `load_` and `store_` functions.
    name: &'static str,
    size: u64,
    stored: &'static str,
    computed: &'static str,
    /// The unsigned type of the same size, in which integer overflow wraps and is not undefined behavior.
    unsigned: &'static str,
    kind: ArithmeticKind,
}

macro_rules! elements {
    ($($dtype:ident $name:literal $size:literal $stored:literal $computed:literal $unsigned:literal $kind:ident;)*) => {
        const ELEMENTS: &[ElementType] = &[$(ElementType {
            dtype: Dtype::$dtype,
            name: $name,
            size: $size,
            stored: $stored,
            computed: $computed,
            unsigned: $unsigned,
            kind: ArithmeticKind::$kind,
        }),*];
    };
}

elements! {
    BOOL "bool" 1 "u8" "u8" "u8" Truth;
    I8 "i8" 1 "i8" "i8" "u8" Signed;
    U8 "u8" 1 "u8" "u8" "u8" Unsigned;
    I16 "i16" 2 "i16" "i16" "u16" Signed;
    U16 "u16" 2 "u16" "u16" "u16" Unsigned;
    I32 "i32" 4 "i32" "i32" "u32" Signed;
    U32 "u32" 4 "u32" "u32" "u32" Unsigned;
    I64 "i64" 8 "i64" "i64" "u64" Signed;
    U64 "u64" 8 "u64" "u64" "u64" Unsigned;
    // Narrow floats are stored as bits and computed in `f32`: not every device computes in them, and a formula rounds only once, when it
    // stores.
    F16 "f16" 2 "u16" "f32" "f32" Float;
    BF16 "bf16" 2 "u16" "f32" "f32" Float;
    F32 "f32" 4 "f32" "f32" "f32" Float;
    F64 "f64" 8 "f64" "f64" "f64" Float;
}

/// Looks up a dtype. Registrations admit only dtypes in the table; any other is treated as bytes.
fn element_type(dtype: Dtype) -> &'static ElementType {
    // The table is short, and it is searched once per call and operand, not per element.
    ELEMENTS.iter().find(|element| element.dtype == dtype).unwrap_or(&ELEMENTS[0])
}

pub(crate) fn element_size(dtype: Dtype) -> u64 {
    element_type(dtype).size
}

pub(crate) fn arithmetic_kind(dtype: Dtype) -> ArithmeticKind {
    element_type(dtype).kind
}

/// Suffix of the `load_` and `store_` functions.
pub(crate) fn dtype_name(dtype: Dtype) -> &'static str {
    element_type(dtype).name
}

pub(crate) fn stored_type(dtype: Dtype) -> &'static str {
    element_type(dtype).stored
}

pub(crate) fn computed_type(dtype: Dtype) -> &'static str {
    element_type(dtype).computed
}

pub(crate) fn unsigned_type(dtype: Dtype) -> &'static str {
    element_type(dtype).unsigned
}

/// The floating-point type of attributes and means next to a dtype.
pub(crate) fn float_type(dtype: Dtype) -> &'static str {
    // A source must not name `f64` unless its elements are `f64`: some devices do not know the type.
    if dtype == Dtype::F64 { "f64" } else { "f32" }
}

/// Defines `T`, `U`, `F`, `INTEGER` for integer dtypes, and the functions that formulas use.
pub(crate) fn arithmetic_definitions(dtype: Dtype) -> String {
    // `%` and `>>` do not compile for floats, nor `fmod` for integers in OpenCL, so a program gets one set of functions.
    let integer = if arithmetic_kind(dtype) == ArithmeticKind::Float { "" } else { "#define INTEGER\n" };
    let math = include_str!("../../kernels/math.c");
    let (t, u, f) = (computed_type(dtype), unsigned_type(dtype), float_type(dtype));
    // In an `f64` program a literal with the suffix `f` would lose about half of its digits.
    let wide = if f == "f64" { "#define COMPUTES_F64\n" } else { "" };
    format!("#define T {t}\n#define U {u}\n#define F {f}\n{wide}{integer}{math}")
}
