//! Schemas of inputs and outputs.

/// A formal input or output of an op. A variadic one stands for any number of operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormalParameter {
    /// The name, such as `B`.
    pub name: &'static str,
    /// The number of operands it stands for.
    pub arity: OperandArity,
    /// The index of its type in the schema's `types`.
    pub type_index: usize,
}

/// The number of operands that a formal parameter stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandArity {
    /// Exactly one.
    Required,
    /// One that may be left out.
    Optional,
    /// Any number. Only the last parameter can be variadic.
    Variadic {
        /// The minimum number of operands.
        at_least: usize,
        /// True if the operands may differ in type.
        is_mixed: bool,
    },
}

impl OperandArity {
    /// True for [`OperandArity::Variadic`].
    pub fn is_variadic(self) -> bool {
        matches!(self, Self::Variadic { .. })
    }

    /// True if the operands may differ in type.
    pub fn is_mixed(self) -> bool {
        matches!(self, Self::Variadic { is_mixed: true, .. })
    }
}

/// The formal parameter of an actual operand. All operands from a variadic one on share it.
pub(super) fn formal_at(formals: &[FormalParameter], index: usize) -> Option<&FormalParameter> {
    formals.get(index).or_else(|| formals.last().filter(|last| last.arity.is_variadic()))
}

/// The minimum number of operands, counting optional ones before a required one.
pub(super) fn min_operands(formals: &[FormalParameter]) -> usize {
    let needed = formals.iter().enumerate().map(|(index, formal)| match formal.arity {
        OperandArity::Required => index + 1,
        OperandArity::Optional => 0,
        OperandArity::Variadic { at_least, .. } => index + at_least,
    });
    needed.max().unwrap_or(0)
}

/// The maximum number of operands; `None` if there is no limit.
pub(super) fn max_operands(formals: &[FormalParameter]) -> Option<usize> {
    let is_variadic = formals.last().is_some_and(|last| last.arity.is_variadic());
    (!is_variadic).then_some(formals.len())
}
