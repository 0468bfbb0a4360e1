//! Programs that count through contiguous operands by themselves, with a struct that says their shape.

use oarlock_sdk::Dtype;

use super::element::{arithmetic, computed};
use super::template::{Named, Template, accessors, parameters, places};

/// Where a pad takes what lies outside of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Outside {
    Edge,
    Reflect,
    Wrap,
}

/// The sources there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Indexed {
    Gather,
    Pad {
        outside: Outside,
        rank: u8,
    },
    /// The index of the greatest or smallest element of a row, the last one of equals if asked for.
    Extreme {
        is_max: bool,
        is_last: bool,
    },
    Softmax {
        is_log: bool,
    },
    LayerNormalization,
    Convolution,
    /// The greatest element or the mean of a window.
    Pool {
        is_max: bool,
    },
}

/// A program over contiguous operands, of which the last is written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shaped {
    pub(crate) source: Indexed,
    /// The operands by name; those a call leaves out are not there.
    pub(crate) operands: Vec<(&'static str, Dtype)>,
    pub(crate) is_cooperative: bool,
    pub(crate) is_wide: bool,
}

impl Shaped {
    pub(super) fn body(&self) -> String {
        let flag = u8::from;
        let (text, defines) = match self.source {
            Indexed::Gather => (include_str!("../../kernels/gather.c"), String::new()),
            Indexed::Pad { outside, rank } => (
                include_str!("../../kernels/pad.c"),
                format!("#define MODE {}\n#define RANK {rank}\n", outside as u8),
            ),
            Indexed::Extreme { is_max, is_last } => (
                include_str!("../../kernels/extreme.c"),
                format!("#define IS_MAX {}\n#define IS_LAST {}\n", flag(is_max), flag(is_last)),
            ),
            Indexed::Softmax { is_log } => {
                (include_str!("../../kernels/softmax.c"), format!("#define IS_LOG {}\n", flag(is_log)))
            }
            Indexed::LayerNormalization => {
                (include_str!("../../kernels/layer_normalization.c"), String::new())
            }
            Indexed::Convolution => (include_str!("../../kernels/convolution.c"), String::new()),
            Indexed::Pool { is_max } => {
                (include_str!("../../kernels/pool.c"), format!("#define IS_MAX {}\n", flag(is_max)))
            }
        };
        let operands: Vec<Named<'_>> =
            self.operands.iter().map(|(name, dtype)| Named { name, dtype: *dtype }).collect();
        let template =
            Template::new(text).fill("parameters", &parameters(&operands)).fill("places", &places(&operands));
        let (first, last) = (self.operands[0].1, self.operands[self.operands.len() - 1].1);
        format!(
            "{}#define R {}\n#define COOPERATIVE {}\n{}{}{defines}{}",
            arithmetic(first),
            computed(last),
            flag(self.is_cooperative),
            include_str!("../../kernels/tree.c"),
            accessors(&operands),
            template.finish()
        )
    }
}
