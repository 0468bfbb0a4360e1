//! Reductions.

use oarlock_sdk::Dtype;

use super::element::{ArithmeticKind, arithmetic_definitions, arithmetic_kind, computed_type, dtype_name};
use super::template::{
    NamedOperand, SourceTemplate, index_declarations, operand_accessors, operand_declarations,
    operand_parameters, walk_struct,
};
use crate::operand_walk::ElementAccess;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ReductionKind {
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

/// One pass of a reduction; long reductions take two.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReduceProgram {
    pub(crate) reduction: ReductionKind,
    pub(crate) input: Dtype,
    /// The accumulator's dtype.
    pub(crate) compute: Dtype,
    pub(crate) output: Dtype,
    /// True if this pass reads the operand itself and not partial results.
    pub(crate) is_first: bool,
    /// True if this pass writes the final result.
    pub(crate) is_last: bool,
    pub(crate) is_cooperative: bool,
    /// Walks over the kept and over the reduced dimensions: rank, and access to the operand.
    pub(crate) kept: (u8, ElementAccess),
    pub(crate) reduced: (u8, ElementAccess),
    pub(crate) is_wide: bool,
}

impl ReduceProgram {
    pub(super) fn source_body(&self) -> String {
        let operands =
            [NamedOperand { name: "a", dtype: self.input }, NamedOperand { name: "y", dtype: self.output }];
        let (kept, reduced) = ([("a", self.kept.1)], [("x", self.reduced.1)]);
        let (kept_type, kept_parameter) = walk_struct("kept", self.kept.0, &kept);
        let (reduced_type, reduced_parameter) = walk_struct("reduced", self.reduced.0, &reduced);
        // Partial results are already transformed: a second pass must not square them again. A root or a quotient belongs to the whole,
        // so only the last pass takes it.
        let (initial, combine, transform, finish) = self.reduction_formulas();
        let template = SourceTemplate::new(include_str!("../../kernels/reduce.c"))
            .fill_gap("walks", &format!("{kept_type}\n{reduced_type}"))
            .fill_gap("parameters", &(operand_parameters(&operands) + &kept_parameter + &reduced_parameter))
            .fill_gap("places", &operand_declarations(&operands))
            .fill_gap("kept", &index_declarations("kept", self.kept.0, "row", &kept))
            .fill_gap("reduced", &index_declarations("reduced", self.reduced.0, "j", &reduced))
            .fill_gap("initial", initial)
            .fill_gap("combine", combine)
            .fill_gap("transform", if self.is_first { transform } else { "x" })
            .fill_gap("finish", if self.is_last { finish } else { "x" });
        let result = computed_type(self.output);
        format!(
            "{}#define R {result}\n#define COOPERATIVE {}\n{}{}{}",
            arithmetic_definitions(self.compute),
            u8::from(self.is_cooperative),
            include_str!("../../kernels/tree.c"),
            operand_accessors(&operands),
            template.into_source()
        )
    }

    /// Formulas of a reduction: initial value, combine step, per-element transform, and final transform.
    fn reduction_formulas(&self) -> (&'static str, &'static str, &'static str, &'static str) {
        // The limits of the input dtype, which are the result of an empty reduction.
        let (least, greatest) = match self.input {
            Dtype::BOOL => ("0", "1"),
            Dtype::I8 => ("-128", "127"),
            Dtype::U8 => ("0", "255"),
            Dtype::I16 => ("-32768", "32767"),
            Dtype::U16 => ("0", "65535"),
            // C has no negative literals: 2147483648 does not fit into an `int`, so 1 is subtracted.
            Dtype::I32 => ("(-2147483647 - 1)", "2147483647"),
            Dtype::U32 => ("0", "4294967295U"),
            Dtype::I64 => ("(-9223372036854775807L - 1)", "9223372036854775807L"),
            Dtype::U64 => ("0", "18446744073709551615UL"),
            _ => ("-INFINITE", "INFINITE"),
        };
        // The smallest integer has no opposite, and wraps around.
        let is_float = arithmetic_kind(self.compute) == ArithmeticKind::Float;
        let absolute = if is_float { "x < 0 ? -x : x" } else { "x < 0 ? WRAP_NEG(x) : x" };
        match self.reduction {
            ReductionKind::Sum => ("0", "plus(x, y)", "x", "x"),
            // With nothing to reduce `total` is 0, and a processor may fault on an integer divided by 0.
            ReductionKind::Mean if matches!(dtype_name(self.compute), "i64" | "u64") => {
                ("0", "plus(x, y)", "x", "divide(x, (T)shape.total)")
            }
            ReductionKind::Mean => ("0", "plus(x, y)", "x", "x / (T)shape.total"),
            ReductionKind::Max => (least, "maximum(x, y)", "x", "x"),
            ReductionKind::Min => (greatest, "minimum(x, y)", "x", "x"),
            ReductionKind::Product => ("1", "times(x, y)", "x", "x"),
            ReductionKind::L1 => ("0", "plus(x, y)", absolute, "x"),
            // OpenCL C has no roots and logarithms of integers.
            ReductionKind::L2 => ("0", "plus(x, y)", "times(x, x)", "sqrt((F)x)"),
            ReductionKind::SumSquare => ("0", "plus(x, y)", "times(x, x)", "x"),
            ReductionKind::LogSum => ("0", "plus(x, y)", "x", "log((F)x)"),
            // Combined as logarithms, since the exponentials themselves may overflow.
            ReductionKind::LogSumExp => ("-INFINITE", "log_add_exp(x, y)", "x", "x"),
        }
    }
}
