//! Kernel sources and the variants that they are generated from.
//!
//! A `ProgramVariant` holds everything that is compiled into a source: formula, dtypes, access patterns. Calls that differ only
//! in shape share one program.

mod element;
mod indexed;
mod map;
mod matmul;
mod reduce;
mod template;

pub(crate) use element::{ArithmeticKind, arithmetic_kind, element_size};
pub(crate) use indexed::{IndexedProgram, IndexedSource, PaddingSource};
pub(crate) use map::{ElementFormula, INPUT_NAMES, MapProgram};
pub(crate) use matmul::MatmulProgram;
pub(crate) use reduce::{ReduceProgram, ReductionKind};

use crate::gpu::KernelLanguage;

/// Cache key of a compiled program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ProgramVariant {
    Map(MapProgram),
    Matmul(MatmulProgram),
    Reduce(ReduceProgram),
    /// Programs that do their own indexing.
    Shaped(IndexedProgram),
}

impl ProgramVariant {
    pub(crate) fn generate_source(&self, language: KernelLanguage, has_f64: bool) -> String {
        let body = match self {
            Self::Map(map) => map.source_body(),
            Self::Matmul(matmul) => matmul.source_body(),
            Self::Reduce(reduce) => reduce.source_body(),
            Self::Shaped(shaped) => shaped.source_body(),
        };
        source_header(language, self.work_group_shape(), self.needs_wide_indices(), has_f64) + &body
    }

    /// Work-items per group in each of two dimensions.
    pub(crate) fn work_group_shape(&self) -> [u32; 2] {
        match self {
            // A square: each element of a slice serves 16 work-items, whichever factor it is from. The same as `SIDE` in matmul.c.
            Self::Matmul(_) => [16, 16],
            // A line: neighbors have adjacent indices, and their reads of adjacent elements join.
            _ => [crate::gpu::MAX_WORK_GROUP_SIZE, 1],
        }
    }

    /// True if the program may report a fault. Its last argument is then the stream's fault word.
    pub(crate) fn can_fail(&self) -> bool {
        match self {
            Self::Map(map) => map.can_fail(),
            Self::Shaped(shaped) => shaped.source == IndexedSource::Gather,
            Self::Matmul(_) | Self::Reduce(_) => false,
        }
    }

    /// True if indices need 64 bits.
    fn needs_wide_indices(&self) -> bool {
        match self {
            Self::Map(map) => map.is_wide,
            Self::Matmul(matmul) => matmul.is_wide,
            Self::Reduce(reduce) => reduce.is_wide,
            Self::Shaped(shaped) => shaped.is_wide,
        }
    }
}

/// Preamble of every source: macros that hide the differences between languages, and the dtypes.
pub(crate) fn source_header(
    language: KernelLanguage,
    [x, y]: [u32; 2],
    is_wide: bool,
    has_f64: bool,
) -> String {
    let prelude = match language {
        KernelLanguage::OpenCl => include_str!("../../kernels/prelude_opencl.c"),
        KernelLanguage::Cuda => include_str!("../../kernels/prelude_cuda.c"),
        KernelLanguage::Hip => include_str!("../../kernels/prelude_hip.c"),
    };
    // GPUs compute with 32-bit integers. In 64 bits each step of an index takes several instructions and twice the registers.
    let index = if is_wide { "i64" } else { "i32" };
    // All CUDA and HIP devices have `f64`. In OpenCL it is an extension, which must not be named where it is missing.
    let f64 = if has_f64 || language != KernelLanguage::OpenCl { "#define HAS_F64\n" } else { "" };
    let types = include_str!("../../kernels/types.c");
    // The prelude tests `HAS_F64`, so it comes after it; `types.c` needs both the prelude and `INDEX`.
    format!("#define BLOCK_X {x}\n#define BLOCK_Y {y}\n{f64}{prelude}#define INDEX {index}\n{types}")
}

/// True if indices up to `last` need 64 bits. Leaves headroom, since work-items past the end compute indices too.
pub(crate) fn needs_wide_indices(last: impl IntoIterator<Item = i64>) -> bool {
    // The last group goes up to 255 items past the end, and a tile of a product up to 63 rows. An overflow there would turn an index
    // negative, and the test against the end would let it pass.
    last.into_iter().any(|last| last > i64::from(i32::MAX - (1 << 16)))
}
