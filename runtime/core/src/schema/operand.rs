//! What a schema says about each input and output.

/// An input or output of an op, or all the operands that a variadic one stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormalParameter {
    /// Its name.
    pub name: &'static str,
    /// How many operands it stands for.
    pub arity: OperandArity,
    /// Its type: which of the schema's `types` it has.
    pub type_index: usize,
}

/// How many operands a formal one stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandArity {
    /// One.
    Required,
    /// One that may be left out.
    Optional,
    /// As many as there are. It is the last one.
    Variadic {
        /// How many there must be at least.
        at_least: usize,
        /// Whether their types may differ.
        is_mixed: bool,
    },
}

impl OperandArity {
    /// Whether it stands for any number of operands.
    pub fn is_variadic(self) -> bool {
        matches!(self, Self::Variadic { .. })
    }
}

/// The formal operand behind an actual one.
pub(super) fn formal_at(formals: &[FormalParameter], index: usize) -> Option<&FormalParameter> {
    formals.get(index).or_else(|| formals.last().filter(|last| last.arity.is_variadic()))
}

/// How many operands there must be at least, those in between that may be left out included.
pub(super) fn min_operands(formals: &[FormalParameter]) -> usize {
    let needed = formals.iter().enumerate().map(|(index, formal)| match formal.arity {
        OperandArity::Required => index + 1,
        OperandArity::Optional => 0,
        OperandArity::Variadic { at_least, .. } => index + at_least,
    });
    needed.max().unwrap_or(0)
}

/// How many operands there may be; `None` for any number.
pub(super) fn max_operands(formals: &[FormalParameter]) -> Option<usize> {
    let is_variadic = formals.last().is_some_and(|last| last.arity.is_variadic());
    (!is_variadic).then_some(formals.len())
}
