//! Programs that do their own indexing over contiguous operands, from a struct with their shapes.

use oarlock_sdk::Dtype;

use super::element::{arithmetic_definitions, computed_type};
use super::template::{
    NamedOperand, SourceTemplate, operand_accessors, operand_declarations, operand_parameters,
};

/// Element source outside the operand, for the modes of `Pad` other than `constant`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PaddingSource {
    Edge,
    Reflect,
    Wrap,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum IndexedSource {
    Gather,
    Pad {
        outside: PaddingSource,
        rank: u8,
    },
    /// Index of the largest or smallest element of a row; `is_last` breaks ties in favor of the last one.
    Extreme {
        is_max: bool,
        is_last: bool,
    },
    Softmax {
        is_log: bool,
    },
    LayerNormalization,
    Convolution,
    /// Maximum or mean of a window.
    Pool {
        is_max: bool,
    },
}

/// A program over contiguous operands; the last one is the output.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct IndexedProgram {
    pub(crate) source: IndexedSource,
    /// Operands by name; optional ones that a call omits are missing.
    pub(crate) operands: Vec<(&'static str, Dtype)>,
    pub(crate) is_cooperative: bool,
    pub(crate) is_wide: bool,
}

impl IndexedProgram {
    pub(super) fn source_body(&self) -> String {
        let flag = u8::from;
        // Modes are macros and not arguments: the compiler drops the branches that a program never takes.
        let (text, defines) = match self.source {
            IndexedSource::Gather => (include_str!("../../kernels/gather.c"), String::new()),
            // The rank is compiled in, since arrays in a struct need a constant length.
            IndexedSource::Pad { outside, rank } => (
                include_str!("../../kernels/pad.c"),
                // The numbers of `EDGE`, `REFLECT` and `WRAP` in pad.c follow the order of the enum.
                format!("#define MODE {}\n#define RANK {rank}\n", outside as u8),
            ),
            IndexedSource::Extreme { is_max, is_last } => (
                include_str!("../../kernels/extreme.c"),
                format!("#define IS_MAX {}\n#define IS_LAST {}\n", flag(is_max), flag(is_last)),
            ),
            IndexedSource::Softmax { is_log } => {
                (include_str!("../../kernels/softmax.c"), format!("#define IS_LOG {}\n", flag(is_log)))
            }
            IndexedSource::LayerNormalization => {
                (include_str!("../../kernels/layer_normalization.c"), String::new())
            }
            IndexedSource::Convolution => (include_str!("../../kernels/convolution.c"), String::new()),
            IndexedSource::Pool { is_max } => {
                (include_str!("../../kernels/pool.c"), format!("#define IS_MAX {}\n", flag(is_max)))
            }
        };
        // An operand that is missing gets no `LOAD` macro, which is how a source finds out.
        let operands: Vec<NamedOperand<'_>> =
            self.operands.iter().map(|(name, dtype)| NamedOperand { name, dtype: *dtype }).collect();
        let template = SourceTemplate::new(text)
            .fill_gap("parameters", &operand_parameters(&operands))
            .fill_gap("places", &operand_declarations(&operands));
        // The first operand decides what is computed in; the output only converts the result.
        let (first, last) = (self.operands[0].1, self.operands[self.operands.len() - 1].1);
        format!(
            "{}#define R {}\n#define COOPERATIVE {}\n{}{}{defines}{}",
            arithmetic_definitions(first),
            computed_type(last),
            flag(self.is_cooperative),
            include_str!("../../kernels/tree.c"),
            operand_accessors(&operands),
            template.into_source()
        )
    }
}
