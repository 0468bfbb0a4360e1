//! Nodes: ops with their operands.

use std::sync::Arc;

use oarlock_core::Attributes;
use oarlock_core::schema::{OpFact, has_fact};
use smallvec::SmallVec;

use super::{Graph, ValueId};

/// One op in a graph, with its operands.
#[derive(Clone, Debug)]
pub struct Node {
    /// Name in the model; may be empty.
    pub name: Arc<str>,
    /// The domain of the op; empty for ONNX's own.
    pub domain: Arc<str>,
    /// Name of the op, such as `Conv`.
    pub op: Arc<str>,
    /// Opset version of the domain that the model imports; it selects the schema.
    pub opset: u32,
    /// Attributes other than graphs.
    pub attributes: Attributes,
    /// Input values; an omitted optional input is `None`.
    pub inputs: SmallVec<[Option<ValueId>; 4]>,
    /// Output values; an unused optional output is `None`.
    pub outputs: SmallVec<[Option<ValueId>; 2]>,
    /// Attributes that are graphs.
    pub subgraphs: Vec<Subgraph>,
}

/// A graph that a node runs: a branch or the body of a loop.
#[derive(Clone, Debug)]
pub struct Subgraph {
    /// Name of the attribute, such as `then_branch`.
    pub attribute: Arc<str>,
    /// The body. Its last inputs receive the captures.
    pub graph: Graph,
    /// Values of the enclosing graph that the body reads, in the order of its last inputs.
    pub captures: Vec<ValueId>,
}

impl Node {
    /// A node without name, attributes or subgraphs.
    pub fn new(
        domain: &str,
        op: &str,
        opset: u32,
        inputs: impl IntoIterator<Item = Option<ValueId>>,
        outputs: impl IntoIterator<Item = Option<ValueId>>,
    ) -> Self {
        Self {
            name: Arc::default(),
            domain: domain.into(),
            op: op.into(),
            opset,
            attributes: Attributes::new(),
            inputs: inputs.into_iter().collect(),
            outputs: outputs.into_iter().collect(),
            subgraphs: Vec::new(),
        }
    }

    /// All values it reads, captures of subgraphs included.
    pub fn read_values(&self) -> impl Iterator<Item = ValueId> {
        let captured = self.subgraphs.iter().flat_map(|subgraph| subgraph.captures.iter().copied());
        self.inputs.iter().flatten().copied().chain(captured)
    }

    /// Mutable access to all values it reads, captures included.
    pub fn read_values_mut(&mut self) -> impl Iterator<Item = &mut ValueId> {
        let captured = self.subgraphs.iter_mut().flat_map(|subgraph| &mut subgraph.captures);
        self.inputs.iter_mut().flatten().chain(captured)
    }

    /// All values it writes.
    pub fn written_values(&self) -> impl Iterator<Item = ValueId> {
        self.outputs.iter().flatten().copied()
    }

    /// True for this op in ONNX's own domain; contrib ops of the same name do not match.
    pub fn is_op(&self, op: &str) -> bool {
        self.domain.is_empty() && &*self.op == op
    }

    /// True for ops that may only change the shape of their first input. They are views only if input and output have the same
    /// size.
    pub fn is_view(&self) -> bool {
        self.domain.is_empty() && has_fact(&self.op, OpFact::Reshaping)
    }

    /// True for branches and loops, which run subgraphs.
    pub fn is_control_flow(&self) -> bool {
        self.domain.is_empty() && has_fact(&self.op, OpFact::ControlFlow)
    }

    /// An input by position; `None` if it is omitted or past the end.
    pub fn input(&self, index: usize) -> Option<ValueId> {
        self.inputs.get(index).copied().flatten()
    }

    /// An output by position; `None` if it is unused or past the end.
    pub fn output(&self, index: usize) -> Option<ValueId> {
        self.outputs.get(index).copied().flatten()
    }

    /// Label for messages: the op, and the node's name if it has one.
    pub fn label(&self) -> String {
        let domain = if self.domain.is_empty() { String::new() } else { format!("{}.", self.domain) };
        match &*self.name {
            "" => format!("`{domain}{}`", self.op),
            name => format!("`{domain}{}` (`{name}`)", self.op),
        }
    }
}
