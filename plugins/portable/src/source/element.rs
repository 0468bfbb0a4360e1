//! What dtypes are called in sources.

use oarlock_sdk::Dtype;

/// What kind of arithmetic a dtype has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Truth,
    Signed,
    Unsigned,
    Float,
}

/// A dtype that kernels of this crate know.
struct Element {
    dtype: Dtype,
    /// Its name, as functions for reading and writing carry it.
    name: &'static str,
    size: u64,
    stored: &'static str,
    computed: &'static str,
    /// The unsigned type of the same size, in which integers wrap around.
    unsigned: &'static str,
    kind: Kind,
}

macro_rules! elements {
    ($($dtype:ident $name:literal $size:literal $stored:literal $computed:literal $unsigned:literal $kind:ident;)*) => {
        const ELEMENTS: &[Element] = &[$(Element {
            dtype: Dtype::$dtype,
            name: $name,
            size: $size,
            stored: $stored,
            computed: $computed,
            unsigned: $unsigned,
            kind: Kind::$kind,
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
    F16 "f16" 2 "u16" "f32" "f32" Float;
    BF16 "bf16" 2 "u16" "f32" "f32" Float;
    F32 "f32" 4 "f32" "f32" "f32" Float;
    F64 "f64" 8 "f64" "f64" "f64" Float;
}

/// The facts about a dtype. Registrations admit no dtype that is not in the table; one that is not is taken for bytes.
fn element(dtype: Dtype) -> &'static Element {
    ELEMENTS.iter().find(|element| element.dtype == dtype).unwrap_or(&ELEMENTS[0])
}

pub(crate) fn size_of_element(dtype: Dtype) -> u64 {
    element(dtype).size
}

pub(crate) fn kind(dtype: Dtype) -> Kind {
    element(dtype).kind
}

/// The dtype's name, as functions for reading and writing carry it.
pub(crate) fn name(dtype: Dtype) -> &'static str {
    element(dtype).name
}

pub(crate) fn stored(dtype: Dtype) -> &'static str {
    element(dtype).stored
}

pub(crate) fn computed(dtype: Dtype) -> &'static str {
    element(dtype).computed
}

pub(crate) fn unsigned(dtype: Dtype) -> &'static str {
    element(dtype).unsigned
}

/// The floating-point type that attributes have and means are computed in beside a dtype.
pub(crate) fn float(dtype: Dtype) -> &'static str {
    if dtype == Dtype::F64 { "f64" } else { "f32" }
}

/// `T`, `U`, `F` and, for integers, `INTEGER`, and the formulas' words.
pub(crate) fn arithmetic(dtype: Dtype) -> String {
    let integer = if kind(dtype) == Kind::Float { "" } else { "#define INTEGER\n" };
    let math = include_str!("../../kernels/math.c");
    let (t, u, f) = (computed(dtype), unsigned(dtype), float(dtype));
    let wide = if f == "f64" { "#define COMPUTES_F64\n" } else { "" };
    format!("#define T {t}\n#define U {u}\n#define F {f}\n{wide}{integer}{math}")
}
