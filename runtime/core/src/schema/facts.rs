//! Facts about ONNX ops that hold in every version, read from `schemas/oarlock.schemas`.

use std::collections::HashMap;

/// Facts about an op beyond its schema, for passes, plans and dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpFact {
    /// Each element of the output depends only on the input elements at the same (broadcast) index.
    Elementwise,
    /// Outputs may differ between calls with the same inputs.
    Random,
    /// The output has the elements of the first input, in the same order.
    Reshaping,
    /// Only the elements of the first input that the output needs are read.
    PartialRead,
    /// The op runs subgraphs: branches and loops.
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

    pub(super) fn holds(&self, op: &str, fact: OpFact) -> bool {
        self.0.get(op).is_some_and(|facts| facts & fact.bit() != 0)
    }

    /// The ops that have any fact.
    #[cfg(test)]
    pub(super) fn op_names(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }
}
