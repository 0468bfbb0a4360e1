//! Queries that passes share: producers and readers of values, known shapes, and support by the device.
//!
//! The methods on shapes and elements write to the [`PassRecording`](super::PassRecording), a replay log of shape-dependent decisions.
//! A pass that reads a size behind its back decides something that a replay cannot check.

use std::collections::{HashMap, HashSet};

use oarlock_core::{Constant, Dims, Dtype};

use super::infer::node_op;
use super::node_support::is_node_supported;
use super::pass_recording::PassDecision;
use super::{GraphPass, PassContext};
use crate::graph::{Graph, Node, ValueId};
use oarlock_core::schema::OARLOCK_DOMAIN;

/// A graph with producers and uses of its values, as of the creation of the view; edits do not update it.
pub(super) struct GraphView<'a> {
    pub(super) graph: &'a Graph,
    pub(super) context: &'a PassContext<'a>,
    makers: Vec<Option<usize>>,
    uses: Vec<u32>,
    outputs: HashSet<ValueId>,
}

impl<'a> GraphView<'a> {
    pub(super) fn of_graph(graph: &'a Graph, context: &'a PassContext<'a>) -> Self {
        let outputs = graph.outputs.iter().copied().collect();
        Self { graph, context, makers: graph.producers(), uses: graph.use_counts(), outputs }
    }

    pub(super) fn producer(&self, value: ValueId) -> Option<&'a Node> {
        self.producer_index(value).map(|at| &self.graph.nodes[at])
    }

    pub(super) fn producer_index(&self, value: ValueId) -> Option<usize> {
        self.makers[value.index()]
    }

    /// The node that writes a value, if it is this op of ONNX's own domain.
    pub(super) fn producer_with_op(&self, value: ValueId, op: &str) -> Option<&'a Node> {
        self.producer(value).filter(|node| node.is_op(op))
    }

    /// Like `producer_with_op`, but only if nothing else reads the value, so that the node may be fused into its reader.
    pub(super) fn fusable_producer(&self, value: ValueId, op: &str) -> Option<&'a Node> {
        self.producer_with_op(value, op).filter(|_| self.is_read_once(value))
    }

    /// True if exactly one node input uses the value and it is not an output of the graph.
    pub(super) fn is_read_once(&self, value: ValueId) -> bool {
        self.has_uses(value, 1)
    }

    /// True if as many node inputs use the value and it is not an output of the graph.
    pub(super) fn has_uses(&self, value: ValueId, uses: u32) -> bool {
        self.uses[value.index()] == uses && !self.outputs.contains(&value)
    }

    /// The element of a one-element constant. Recorded, like all known elements.
    pub(super) fn scalar_constant(&self, value: ValueId) -> Option<f64> {
        match self.known_numbers(value)?.to_floats().ok()?.as_slice() {
            [element] => Some(*element),
            _ => None,
        }
    }

    /// The known elements of a value. The read is recorded: the result of the pass is valid for these elements only.
    pub(super) fn known_numbers(&self, value: ValueId) -> Option<&'a Constant> {
        let numbers = self.graph.value(value).known_numbers()?;
        self.context.record_read(self.graph, value);
        Some(numbers)
    }

    /// Like `known_numbers`, but only for constants, not for inferred elements.
    pub(super) fn constant(&self, value: ValueId) -> Option<&'a Constant> {
        self.graph.value(value).weight.as_ref()?;
        self.known_numbers(value)
    }

    /// The rank of a value with a known shape. Not recorded: a replay requires equal ranks anyway.
    pub(super) fn rank(&self, value: ValueId) -> Option<usize> {
        Some(self.graph.value(value).dims()?.len())
    }

    /// The shape of a value. The read is recorded: the result of the pass is valid for this shape only.
    pub(super) fn dims(&self, value: ValueId) -> Option<Dims> {
        self.context.record_read(self.graph, value);
        self.graph.value(value).dims()
    }

    /// The size of one dimension. Recorded: the result of the pass is valid for this size only, but other dimensions may
    /// change.
    pub(super) fn dimension_size(&self, value: ValueId, axis: usize) -> Option<i64> {
        let size = *self.graph.value(value).dims()?.get(axis)?;
        let is_same = move |graph: &Graph| Some(*graph.value(value).dims()?.get(axis)? == size);
        self.context.check_shapes(self.graph, is_same).then_some(size)
    }

    /// Evaluates a predicate on shapes. Only its answer is recorded, so the result stays valid for all shapes with the same
    /// answer.
    pub(super) fn check_shapes(
        &self,
        question: impl Fn(&Graph) -> Option<bool> + Send + Sync + 'static,
    ) -> bool {
        self.context.check_shapes(self.graph, question)
    }

    /// True if two values have the same known shape. Only the answer is recorded.
    pub(super) fn has_same_shape(&self, one: ValueId, other: ValueId) -> bool {
        self.check_shapes(move |graph| Some(graph.value(one).dims()? == graph.value(other).dims()?))
    }

    pub(super) fn dtype(&self, value: ValueId) -> Option<Dtype> {
        self.graph.value(value).dtype()
    }

    /// The two operands of a binary node in both orders, to match commutative ops.
    pub(super) fn operand_orders(&self, node: &Node) -> [Option<(ValueId, ValueId)>; 2] {
        let pair = node.input(0).zip(node.input(1));
        [pair, pair.map(|(a, b)| (b, a))]
    }
}

/// Replaces nodes, by index, with others; returns the number of nodes replaced.
pub(super) fn replace_nodes(graph: &mut Graph, replacements: HashMap<usize, Vec<Node>>) -> usize {
    let count = replacements.len();
    if count == 0 {
        return 0;
    }
    let mut replacements = replacements;
    let nodes = std::mem::take(&mut graph.nodes).into_iter().enumerate();
    graph.nodes =
        nodes.flat_map(|(at, node)| replacements.remove(&at).unwrap_or_else(|| vec![node])).collect();
    count
}

/// Removes the nodes for which `decide` returns a value that replaces their first output.
pub(super) fn bypass_nodes(graph: &mut Graph, decide: impl Fn(&Graph, &Node) -> Option<ValueId>) -> usize {
    let mut replaced = HashMap::new();
    let mut kept = Vec::new();
    for node in std::mem::take(&mut graph.nodes) {
        match (decide(graph, &node), node.output(0)) {
            (Some(instead), Some(output)) => {
                replaced.insert(output, instead);
            }
            _ => kept.push(node),
        }
    }
    graph.nodes = kept;
    graph.replace_uses(&replaced);
    replaced.len()
}

impl PassContext<'_> {
    /// True if the device has a kernel for a node with operands of these shapes; false if they are unknown. The answer is
    /// recorded, and a replay asks again.
    pub(super) fn supports_node(&self, graph: &Graph, node: &Node) -> bool {
        let Ok(op) = node_op(node, self.runtime) else { return false };
        let is_supported = is_node_supported(graph, node, &op, self);
        self.recording.record(|| PassDecision::SupportQueried { node: node.clone(), op, is_supported });
        is_supported
    }

    /// True if the device has any kernel for one of Oarlock's own ops; if not, a pass need not look for places to use it.
    pub(super) fn has_kernel_for(&self, op: &str) -> bool {
        let registry = self.runtime.registry();
        let mut entries = registry.entries_for_op(OARLOCK_DOMAIN, op);
        entries.any(|entry| entry.info().device_type == self.device.device_type())
    }
}

/// Creates an entry of the table of passes.
pub(super) const fn define_pass(
    name: &'static str,
    purpose: &'static str,
    run: fn(&mut Graph, &PassContext<'_>) -> oarlock_core::Result<usize>,
) -> GraphPass {
    GraphPass { name, purpose, run }
}
