//! The nodes that replace one.

use std::sync::Arc;

use oarlock_core::{Attribute, Constant, Dtype, Result};

use crate::graph::{Graph, GraphValue, Node, ValueId, Weight};

/// Builds the nodes that replace a node of a graph.
pub(super) struct NodeDecomposition<'g> {
    graph: &'g mut Graph,
    nodes: Vec<Node>,
    /// The name of the replaced node, with which the names of the new ones begin.
    name: Arc<str>,
    opset: u32,
    /// The dtype of its first input.
    pub(super) dtype: Dtype,
}

impl<'g> NodeDecomposition<'g> {
    pub(super) fn new(graph: &'g mut Graph, node: &Node, opset: u32, dtype: Dtype) -> Self {
        Self { graph, nodes: Vec::new(), name: node.name.clone(), opset, dtype }
    }

    /// Adds a node with one output.
    pub(super) fn op<const COUNT: usize>(&mut self, op: &str, inputs: [ValueId; COUNT]) -> ValueId {
        self.op_with(op, inputs, None)
    }

    /// Adds a node with an attribute.
    pub(super) fn op_with<const COUNT: usize>(
        &mut self,
        op: &str,
        inputs: [ValueId; COUNT],
        attribute: Option<(&str, Attribute)>,
    ) -> ValueId {
        let output = self.graph.add_value(GraphValue::with_name(self.free_name()));
        let mut node = Node::new("", op, self.opset, inputs.map(Some), [Some(output)]);
        node.name = self.free_name().into();
        if let Some((name, value)) = attribute {
            node.attributes.set(name, value);
        }
        self.nodes.push(node);
        output
    }

    /// A number of the dtype.
    pub(super) fn number(&mut self, number: f64) -> Result<ValueId> {
        let (dtype, bytes) = match self.dtype {
            Dtype::F64 => (Dtype::F64, number.to_ne_bytes().to_vec()),
            _ => (Dtype::F32, (number as f32).to_ne_bytes().to_vec()),
        };
        let constant = Constant::new(dtype, &[], bytes)?;
        let weight = GraphValue::with_weight(self.free_name(), Weight::Numbers(constant));
        let value = self.graph.add_value(weight);
        Ok(if dtype == self.dtype { value } else { self.cast(value, self.dtype) })
    }

    pub(super) fn cast(&mut self, value: ValueId, to: Dtype) -> ValueId {
        self.op_with("Cast", [value], Some(("to", Attribute::Int(to.onnx_number()))))
    }

    /// Adds the nodes to the graph. The last one writes the output of the replaced node.
    pub(super) fn finish(mut self, result: ValueId, output: Option<ValueId>) {
        if let Some(last) = self.nodes.last_mut().filter(|last| last.output(0) == Some(result)) {
            last.outputs = [output].into_iter().collect();
        }
        self.graph.nodes.append(&mut self.nodes);
    }

    fn free_name(&self) -> String {
        format!("{}/{}", self.name, self.graph.value_count())
    }
}
