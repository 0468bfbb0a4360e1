//! Finds the nodes that the host runs on purpose, although other devices come first.
//!
//! Some work belongs on the host: sizes and indices that it must know before it can call a kernel, and text, which exists only
//! in host memory. Other nodes could run on a device but stay where copying would take longer.

use std::collections::HashSet;

use oarlock_core::{Dtype, infer, shape};

use super::ExecutionPlan;
use crate::graph::{Graph, Node, ValueId};

/// Shapes, axes and the like have at most this many elements. Larger values are data, whatever they are computed from.
const MAX_SHAPE_ELEMENTS: u64 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostReason {
    /// It computes shapes, or other values that the host reads before it calls a kernel.
    Shapes,
    /// It reads or writes text.
    Text,
    /// A device could run it, but copying would take longer.
    TooSmall,
}

pub(crate) struct HostNodes<'a> {
    plan: &'a ExecutionPlan,
    shapes: HashSet<usize>,
}

impl<'a> HostNodes<'a> {
    pub(crate) fn from_plan(plan: &'a ExecutionPlan) -> Self {
        Self { plan, shapes: find_shape_nodes(&plan.graph) }
    }

    /// Returns `None` if the host runs the node only because no other device can.
    pub(crate) fn host_reason(&self, node: usize) -> Option<HostReason> {
        let graph = &self.plan.graph;
        let is_text = |value: ValueId| graph.value(value).dtype() == Some(Dtype::String);
        if self.plan.host_affinities.contains_key(&node) {
            Some(HostReason::TooSmall)
        } else if graph.nodes[node].read_values().chain(graph.nodes[node].written_values()).any(is_text) {
            Some(HostReason::Text)
        } else {
            self.shapes.contains(&node).then_some(HostReason::Shapes)
        }
    }
}

/// Finds nodes that compute with shapes: their outputs are small, and either computed only from shapes or read only as shapes.
fn find_shape_nodes(graph: &Graph) -> HashSet<usize> {
    let mut found = HashSet::new();
    let mut made_of_shapes = HashSet::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        let mut read = node.read_values().filter(|value| graph.value(*value).weight.is_none()).peekable();
        let reads_shapes = read.peek().is_some() && read.all(|value| made_of_shapes.contains(&value));
        if (node.is_op("Shape") || node.is_op("Size") || reads_shapes) && has_small_outputs(graph, node) {
            found.insert(at);
            made_of_shapes.extend(node.written_values());
        }
    }
    let mut read_as_data: HashSet<ValueId> = graph.outputs.iter().copied().collect();
    let mut is_read = HashSet::new();
    for (at, node) in graph.nodes.iter().enumerate().rev() {
        let is_for_shapes = node.written_values().any(|value| is_read.contains(&value))
            && node.written_values().all(|value| !read_as_data.contains(&value))
            && node.subgraphs.is_empty()
            && has_small_outputs(graph, node);
        if is_for_shapes {
            found.insert(at);
        }
        is_read.extend(node.read_values());
        if !is_for_shapes {
            let shapes = infer::value_input_indices(&node.domain, &node.op, node.opset);
            let data = node.inputs.iter().enumerate().filter(|(index, _)| !shapes.contains(index));
            read_as_data.extend(data.filter_map(|(_, input)| *input));
            read_as_data.extend(node.subgraphs.iter().flat_map(|subgraph| subgraph.captures.iter().copied()));
        }
    }
    found
}

fn has_small_outputs(graph: &Graph, node: &Node) -> bool {
    let elements = |value: ValueId| shape::element_count(&graph.value(value).dims()?).ok();
    node.written_values().all(|value| elements(value).is_some_and(|count| count <= MAX_SHAPE_ELEMENTS))
}

#[cfg(test)]
mod tests {
    use oarlock_core::infer::TensorFact;

    use super::*;
    use crate::graph::GraphValue;

    /// Builds a graph from nodes such as `("Add", &[0, 1], &[2])`, with numbered values of the given dtypes and shapes.
    fn build_graph(
        values: &[(Dtype, &[i64])],
        nodes: &[(&str, &[usize], &[usize])],
        outputs: &[usize],
    ) -> Graph {
        let mut graph = Graph::new("test");
        let values = values
            .iter()
            .map(|(dtype, dims)| GraphValue::with_fact("", TensorFact::from_shape(*dtype, dims)));
        let ids: Vec<ValueId> = values.map(|value| graph.add_value(value)).collect();
        let pick = |places: &[usize]| places.iter().map(|place| Some(ids[*place])).collect::<Vec<_>>();
        graph.nodes =
            nodes.iter().map(|(op, reads, makes)| Node::new("", op, 21, pick(reads), pick(makes))).collect();
        graph.outputs = outputs.iter().map(|place| ids[*place]).collect();
        graph
    }

    fn shape_node_ops(graph: &Graph) -> Vec<&str> {
        let mut found: Vec<usize> = find_shape_nodes(graph).into_iter().collect();
        found.sort_unstable();
        found.into_iter().map(|at| &*graph.nodes[at].op).collect()
    }

    #[test]
    fn what_is_made_of_shapes_is_shape_work_until_it_becomes_data() {
        let values: [(Dtype, &[i64]); 5] = [
            (Dtype::F32, &[2, 3]),
            (Dtype::I64, &[2]),
            (Dtype::F32, &[2]),
            (Dtype::F32, &[100, 2]),
            (Dtype::F32, &[2, 3]),
        ];
        let nodes: [(&str, &[usize], &[usize]); 4] =
            [("Shape", &[0], &[1]), ("Cast", &[1], &[2]), ("Expand", &[2], &[3]), ("Mul", &[0, 2], &[4])];
        assert_eq!(shape_node_ops(&build_graph(&values, &nodes, &[3, 4])), ["Shape", "Cast"]);
    }

    #[test]
    fn what_is_read_as_a_shape_alone_is_shape_work() {
        let values: [(Dtype, &[i64]); 4] =
            [(Dtype::F32, &[6]), (Dtype::I64, &[1]), (Dtype::I64, &[2]), (Dtype::F32, &[2, 3])];
        let nodes: [(&str, &[usize], &[usize]); 2] = [("Concat", &[1, 1], &[2]), ("Reshape", &[0, 2], &[3])];
        assert_eq!(shape_node_ops(&build_graph(&values, &nodes, &[3])), ["Concat"]);
        assert!(
            shape_node_ops(&build_graph(&values, &nodes, &[2, 3])).is_empty(),
            "an output of the model is data"
        );
    }
}
