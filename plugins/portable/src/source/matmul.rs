//! Matrix products.

use oarlock_sdk::Dtype;

use super::element::{self, computed_type, float_type, unsigned_type};
use super::template::{
    NamedOperand, SourceTemplate, index_declarations, operand_accessors, operand_declarations,
    operand_parameters, walk_struct,
};
use crate::operand_walk::ElementAccess;

/// A batched matrix product.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MatmulProgram {
    pub(crate) dtype: Dtype,
    /// Access to the matrices of the batch.
    pub(crate) a: ElementAccess,
    pub(crate) b: ElementAccess,
    /// True if the factor is contiguous along the summed dimension. It decides which way neighboring work-items load a tile, so
    /// that their loads are contiguous.
    pub(crate) a_along_depth: bool,
    pub(crate) b_along_depth: bool,
    /// True for `Gemm`: the product is scaled by `alpha`, and `beta · C` is added if there is a `C`.
    pub(crate) is_scaled: bool,
    pub(crate) has_c: bool,
    /// Rank of the walk over the batch.
    pub(crate) rank: u8,
    pub(crate) is_wide: bool,
}

impl MatmulProgram {
    pub(super) fn source_body(&self) -> String {
        let names = if self.has_c { &["a", "b", "c", "y"][..] } else { &["a", "b", "y"] };
        let operands: Vec<NamedOperand<'_>> =
            names.iter().map(|name| NamedOperand { name, dtype: self.dtype }).collect();
        // The walk covers the batch only. Inside of a matrix the strides are plain arguments, so their values need no program of their
        // own.
        let accesses = [("a", self.a), ("b", self.b)];
        let (walk_type, walk_parameter) = walk_struct("walk", self.rank, &accesses);
        let float = float_type(self.dtype);
        // `beta` is passed even without a `C`: leaving it out would gain nothing.
        let scales = if self.is_scaled { format!("{float} alpha, {float} beta, ") } else { String::new() };
        let template = SourceTemplate::new(include_str!("../../kernels/matmul.c"))
            .fill_gap("walk", &walk_type)
            .fill_gap("parameters", &(operand_parameters(&operands) + &walk_parameter + &scales))
            .fill_gap("places", &operand_declarations(&operands))
            .fill_gap("steps", &index_declarations("walk", self.rank, "i", &accesses));
        // Integers are summed unsigned, where overflow wraps around. Signed overflow is undefined in C.
        let summed = if element::arithmetic_kind(self.dtype) == element::ArithmeticKind::Float {
            computed_type
        } else {
            unsigned_type
        }(self.dtype);
        // The directions become constants, so that the loads of a slice have no branch.
        let flag = u8::from;
        format!(
            "#define A {summed}\n#define R {}\n#define A_ALONG_DEPTH {}\n#define B_ALONG_DEPTH {}\n{}{}{}",
            computed_type(self.dtype),
            flag(self.a_along_depth),
            flag(self.b_along_depth),
            if self.is_scaled { "#define SCALED\n" } else { "" },
            operand_accessors(&operands),
            template.into_source()
        )
    }
}
