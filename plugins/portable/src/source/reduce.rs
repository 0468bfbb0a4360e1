//! Reductions.

use oarlock_sdk::Dtype;

use super::element::{arithmetic, computed, name};
use super::template::{Named, Template, accessors, parameters, places, steps, walk};
use crate::walk::Access;

/// What a reduction computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reduction {
    Sum,
    Mean,
    Max,
    Min,
    Product,
    L1,
    L2,
    SumSquare,
    LogSum,
    LogSumExp,
}

/// A pass over the elements to be reduced.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Reduce {
    pub(crate) reduction: Reduction,
    pub(crate) input: Dtype,
    /// What is summed up in.
    pub(crate) compute: Dtype,
    pub(crate) output: Dtype,
    /// Whether this pass sees the operand itself, and not what an earlier one made of it.
    pub(crate) is_first: bool,
    /// Whether nothing comes after this pass.
    pub(crate) is_last: bool,
    pub(crate) is_cooperative: bool,
    /// How the operand is walked through from output to output, and from element to element of one.
    pub(crate) kept: (u8, Access),
    pub(crate) reduced: (u8, Access),
    pub(crate) is_wide: bool,
}

impl Reduce {
    pub(super) fn body(&self) -> String {
        let operands = [Named { name: "a", dtype: self.input }, Named { name: "y", dtype: self.output }];
        let (kept, reduced) = ([("a", self.kept.1)], [("x", self.reduced.1)]);
        let (kept_type, kept_parameter) = walk("kept", self.kept.0, &kept);
        let (reduced_type, reduced_parameter) = walk("reduced", self.reduced.0, &reduced);
        let (initial, combine, transform, finish) = self.formulas();
        let template = Template::new(include_str!("../../kernels/reduce.c"))
            .fill("walks", &format!("{kept_type}\n{reduced_type}"))
            .fill("parameters", &(parameters(&operands) + &kept_parameter + &reduced_parameter))
            .fill("places", &places(&operands))
            .fill("kept", &steps("kept", self.kept.0, "row", &kept))
            .fill("reduced", &steps("reduced", self.reduced.0, "j", &reduced))
            .fill("initial", initial)
            .fill("combine", combine)
            .fill("transform", if self.is_first { transform } else { "x" })
            .fill("finish", if self.is_last { finish } else { "x" });
        let result = computed(self.output);
        format!(
            "{}#define R {result}\n#define COOPERATIVE {}\n{}{}{}",
            arithmetic(self.compute),
            u8::from(self.is_cooperative),
            include_str!("../../kernels/tree.c"),
            accessors(&operands),
            template.finish()
        )
    }

    /// What a reduction starts with, how two results become one, what is done to each element and to the last result.
    fn formulas(&self) -> (&'static str, &'static str, &'static str, &'static str) {
        // The extremes of what comes in, since there is no other result where nothing does.
        let (least, greatest) = match self.input {
            Dtype::BOOL => ("0", "1"),
            Dtype::I8 => ("-128", "127"),
            Dtype::U8 => ("0", "255"),
            Dtype::I16 => ("-32768", "32767"),
            Dtype::U16 => ("0", "65535"),
            Dtype::I32 => ("(-2147483647 - 1)", "2147483647"),
            Dtype::U32 => ("0", "4294967295U"),
            Dtype::I64 => ("(-9223372036854775807L - 1)", "9223372036854775807L"),
            Dtype::U64 => ("0", "18446744073709551615UL"),
            _ => ("-INFINITE", "INFINITE"),
        };
        let absolute = "x < 0 ? -x : x";
        match self.reduction {
            Reduction::Sum => ("0", "plus(x, y)", "x", "x"),
            Reduction::Mean if matches!(name(self.compute), "i64" | "u64") => {
                ("0", "plus(x, y)", "x", "divide(x, (T)shape.total)")
            }
            Reduction::Mean => ("0", "plus(x, y)", "x", "x / (T)shape.total"),
            Reduction::Max => (least, "maximum(x, y)", "x", "x"),
            Reduction::Min => (greatest, "minimum(x, y)", "x", "x"),
            Reduction::Product => ("1", "times(x, y)", "x", "x"),
            Reduction::L1 => ("0", "plus(x, y)", absolute, "x"),
            Reduction::L2 => ("0", "plus(x, y)", "times(x, x)", "sqrt((F)x)"),
            Reduction::SumSquare => ("0", "plus(x, y)", "times(x, x)", "x"),
            Reduction::LogSum => ("0", "plus(x, y)", "x", "log((F)x)"),
            Reduction::LogSumExp => ("-INFINITE", "log_add_exp(x, y)", "x", "x"),
        }
    }
}
