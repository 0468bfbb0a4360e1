//! Facts about ops of ONNX that hold in every version. `schemas/oarlock.schemas` has them.

use std::collections::HashMap;

use super::index::schema_index;

/// What passes, plans and dispatch know about an op beyond its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpFact {
    /// Each element of the output follows from those at its place.
    Elementwise,
    /// Outputs may differ from call to call.
    Random,
    /// The output has the elements of the first input, in the same order.
    Reshaping,
    /// The first input is read only as far as the output needs it.
    PartialRead,
    /// Subgraphs run: branches and loops.
    ControlFlow,
}

impl OpFact {
    const ALL: [(&'static str, Self); 5] = [
        ("elementwise", Self::Elementwise),
        ("random", Self::Random),
        ("reshaping", Self::Reshaping),
        ("partial-read", Self::PartialRead),
        ("control-flow", Self::ControlFlow),
    ];

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, fact)| *fact)
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The facts that hold for each op, as a set of bits.
#[derive(Default)]
pub(super) struct OpFactIndex(HashMap<&'static str, u8>);

impl OpFactIndex {
    pub(super) fn add_ops(&mut self, fact: OpFact, names: &'static str) {
        for name in names.split_whitespace() {
            *self.0.entry(name).or_default() |= fact.bit();
        }
    }

    fn holds(&self, op: &str, fact: OpFact) -> bool {
        self.0.get(op).is_some_and(|facts| facts & fact.bit() != 0)
    }

    /// The ops that any fact holds for.
    #[cfg(test)]
    pub(super) fn op_names(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }
}

/// True if a fact holds for an op of ONNX.
pub fn has_fact(op: &str, fact: OpFact) -> bool {
    schema_index().is_ok_and(|index| index.facts.holds(op, fact))
}
