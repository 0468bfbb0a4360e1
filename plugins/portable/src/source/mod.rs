//! Sources: what one compiled program is generated from.
//!
//! A `Variant` says everything that is written into a source: the formula, the dtypes, how operands are read. Calls that
//! differ in shape alone share one.

mod element;
mod indexed;
mod map;
mod matmul;
mod reduce;
mod template;

pub(crate) use element::{Kind, kind, size_of_element};
pub(crate) use indexed::{Indexed, Outside, Shaped};
pub(crate) use map::{Formula, Map, NAMES};
pub(crate) use matmul::Matmul;
pub(crate) use reduce::{Reduce, Reduction};

use crate::gpu::Language;

/// One program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Variant {
    /// Element-wise.
    Map(Map),
    /// Matrix products.
    Matmul(Matmul),
    /// Reductions.
    Reduce(Reduce),
    /// What counts through its operands by itself.
    Shaped(Shaped),
}

impl Variant {
    /// The source of the program.
    pub(crate) fn source(&self, language: Language, has_f64: bool) -> String {
        let body = match self {
            Self::Map(map) => map.body(),
            Self::Matmul(matmul) => matmul.body(),
            Self::Reduce(reduce) => reduce.body(),
            Self::Shaped(shaped) => shaped.body(),
        };
        head(language, self.block(), self.is_wide(), has_f64) + &body
    }

    /// How many work-items a work-group has in each of two dimensions.
    pub(crate) fn block(&self) -> [u32; 2] {
        match self {
            Self::Matmul(_) => [16, 16],
            _ => [crate::gpu::WORK_GROUP, 1],
        }
    }

    /// Whether the program may find its operands' values wrong. It tells so in a word that is its last argument.
    pub(crate) fn can_fail(&self) -> bool {
        match self {
            Self::Map(map) => map.can_fail(),
            Self::Shaped(shaped) => shaped.source == Indexed::Gather,
            Self::Matmul(_) | Self::Reduce(_) => false,
        }
    }

    /// Whether indices need 64 bits.
    fn is_wide(&self) -> bool {
        match self {
            Self::Map(map) => map.is_wide,
            Self::Matmul(matmul) => matmul.is_wide,
            Self::Reduce(reduce) => reduce.is_wide,
            Self::Shaped(shaped) => shaped.is_wide,
        }
    }
}

/// What every source starts with: the words that a language has for what the others call differently, and the dtypes.
pub(crate) fn head(language: Language, [x, y]: [u32; 2], is_wide: bool, has_f64: bool) -> String {
    let prelude = match language {
        Language::OpenCl => include_str!("../../kernels/prelude_opencl.c"),
        Language::Cuda => include_str!("../../kernels/prelude_cuda.c"),
        Language::Hip => include_str!("../../kernels/prelude_hip.c"),
    };
    let index = if is_wide { "i64" } else { "i32" };
    let f64 = if has_f64 || language != Language::OpenCl { "#define HAS_F64\n" } else { "" };
    let types = include_str!("../../kernels/types.c");
    format!("#define BLOCK_X {x}\n#define BLOCK_Y {y}\n{f64}{prelude}#define INDEX {index}\n{types}")
}

/// Whether indices up to `last` need 64 bits. Work-items behind the end have indices too, so there is room for a few more.
pub(crate) fn is_wide(last: impl IntoIterator<Item = i64>) -> bool {
    last.into_iter().any(|last| last > i64::from(i32::MAX - (1 << 16)))
}
