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
pub(crate) use indexed::{Indexed, Shaped};
pub(crate) use map::{Formula, Map, NAMES};
pub(crate) use matmul::Matmul;
pub(crate) use reduce::{Reduce, Reduction};

use crate::gpu::{Language, Limits};

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
    pub(crate) fn source(&self, language: Language, limits: Limits) -> String {
        let prelude = match language {
            Language::OpenCl => include_str!("../../kernels/prelude_opencl.c"),
            Language::Cuda => include_str!("../../kernels/prelude_cuda.c"),
            Language::Hip => include_str!("../../kernels/prelude_hip.c"),
        };
        let [x, y] = self.block();
        let index = if self.is_wide() { "i64" } else { "i32" };
        let f64 = if limits.has_f64 || language != Language::OpenCl { "#define HAS_F64\n" } else { "" };
        let types = include_str!("../../kernels/types.c");
        let body = match self {
            Self::Map(map) => map.body(),
            Self::Matmul(matmul) => matmul.body(),
            Self::Reduce(reduce) => reduce.body(),
            Self::Shaped(shaped) => shaped.body(),
        };
        format!(
            "#define BLOCK_X {x}\n#define BLOCK_Y {y}\n{f64}{prelude}#define INDEX {index}\n{types}{body}"
        )
    }

    /// How many work-items a work-group has in each of two dimensions.
    pub(crate) fn block(&self) -> [u32; 2] {
        match self {
            Self::Matmul(_) => [16, 16],
            _ => [crate::gpu::WORK_GROUP, 1],
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

/// Whether indices up to `last` need 64 bits. Work-items behind the end have indices too, so there is room for a few more.
pub(crate) fn is_wide(last: impl IntoIterator<Item = i64>) -> bool {
    last.into_iter().any(|last| last > i64::from(i32::MAX - (1 << 16)))
}
