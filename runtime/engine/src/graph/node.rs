//! Nodes: ops with their operands.

use std::sync::Arc;

use oarlock_core::Attributes;
use smallvec::SmallVec;

use super::{Graph, ValueId};

/// The domain of the ops that onnxruntime adds to ONNX.
pub(crate) const ONNXRUNTIME_DOMAIN: &str = "com.microsoft";

/// One op in a graph, with its operands.
#[derive(Clone, Debug)]
pub struct Node {
    /// What the model calls it; may be empty.
    pub name: Arc<str>,
    /// The domain of the op; empty for ONNX's own.
    pub domain: Arc<str>,
    /// The op.
    pub op: Arc<str>,
    /// The opset of the domain that the node means.
    pub opset: u32,
    /// Its attributes, but for graphs.
    pub attributes: Attributes,
    /// What it reads; one that is left out is `None`.
    pub inputs: SmallVec<[Option<ValueId>; 4]>,
    /// What it makes; one that nobody wants is `None`.
    pub outputs: SmallVec<[Option<ValueId>; 2]>,
    /// The graphs among its attributes.
    pub subgraphs: Vec<Subgraph>,
}

/// A graph that a node runs: a branch or the body of a loop.
#[derive(Clone, Debug)]
pub struct Subgraph {
    /// The attribute it is, such as `then_branch`.
    pub attribute: Arc<str>,
    /// The graph. Its last inputs are what it captures.
    pub graph: Graph,
    /// The values of the graph around it that it reads, in the order of its last inputs.
    pub captures: Vec<ValueId>,
}

impl Node {
    /// A node without name, attributes and subgraphs.
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

    /// Everything it reads, for its subgraphs too.
    pub fn read_values(&self) -> impl Iterator<Item = ValueId> {
        let captured = self.subgraphs.iter().flat_map(|subgraph| subgraph.captures.iter().copied());
        self.inputs.iter().flatten().copied().chain(captured)
    }

    /// Everything it reads, to be changed.
    pub fn read_values_mut(&mut self) -> impl Iterator<Item = &mut ValueId> {
        let captured = self.subgraphs.iter_mut().flat_map(|subgraph| &mut subgraph.captures);
        self.inputs.iter_mut().flatten().chain(captured)
    }

    /// Everything it makes.
    pub fn written_values(&self) -> impl Iterator<Item = ValueId> {
        self.outputs.iter().flatten().copied()
    }

    /// Whether it is this op of ONNX's own domain.
    pub fn is_op(&self, op: &str) -> bool {
        self.domain.is_empty() && &*self.op == op
    }

    /// Whether it sees the elements of its first input in another shape, where it makes as many.
    pub fn is_view(&self) -> bool {
        let views = ["Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"];
        self.domain.is_empty() && views.contains(&&*self.op)
    }

    /// The input at a place, where it is given.
    pub fn input(&self, index: usize) -> Option<ValueId> {
        self.inputs.get(index).copied().flatten()
    }

    /// The output at a place, where it is wanted.
    pub fn output(&self, index: usize) -> Option<ValueId> {
        self.outputs.get(index).copied().flatten()
    }

    /// What messages call it: its op, and its name where it has one.
    pub fn label(&self) -> String {
        let domain = if self.domain.is_empty() { String::new() } else { format!("{}.", self.domain) };
        match &*self.name {
            "" => format!("`{domain}{}`", self.op),
            name => format!("`{domain}{}` (`{name}`)", self.op),
        }
    }
}
