//! What several passes need: looking at who makes and who reads a value, and asking whether a device takes a node.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use oarlock_core::{Constant, Dims, Dtype, ExpectedInput, Op};
use smallvec::SmallVec;

use super::infer::node_op;
use super::pass_trace::PassTraceEntry;
use super::{GraphPass, PassContext};
use crate::graph::{Graph, GraphValue, Node, ValueId};

/// A graph with the makers and readers of its values, as they are when it is made.
pub(super) struct GraphView<'a> {
    pub(super) graph: &'a Graph,
    pub(super) scene: &'a PassContext<'a>,
    makers: Vec<Option<usize>>,
    uses: Vec<u32>,
    outputs: HashSet<ValueId>,
}

impl<'a> GraphView<'a> {
    pub(super) fn of_graph(graph: &'a Graph, scene: &'a PassContext<'a>) -> Self {
        let outputs = graph.outputs.iter().copied().collect();
        Self { graph, scene, makers: graph.producers(), uses: graph.use_counts(), outputs }
    }

    /// The node that makes a value.
    pub(super) fn producer(&self, value: ValueId) -> Option<&'a Node> {
        self.makers[value.index()].map(|at| &self.graph.nodes[at])
    }

    /// The node that makes a value, if it is this op of ONNX.
    pub(super) fn producer_with_op(&self, value: ValueId, op: &str) -> Option<&'a Node> {
        self.producer(value).filter(|node| node.is_op(op))
    }

    /// The same, if moreover nobody else reads the value, so that the node may become part of its reader.
    pub(super) fn fusable_producer(&self, value: ValueId, op: &str) -> Option<&'a Node> {
        self.producer_with_op(value, op).filter(|_| self.is_read_once(value))
    }

    /// Whether a value has one reader, which is no output of the graph.
    pub(super) fn is_read_once(&self, value: ValueId) -> bool {
        self.uses[value.index()] == 1 && !self.outputs.contains(&value)
    }

    /// The one element of a constant that has one.
    pub(super) fn scalar_constant(&self, value: ValueId) -> Option<f64> {
        match self.known_numbers(value)?.to_floats().ok()?.as_slice() {
            [element] => Some(*element),
            _ => None,
        }
    }

    /// The numbers of a value that are known. What is done because of them holds for these alone.
    pub(super) fn known_numbers(&self, value: ValueId) -> Option<&'a Constant> {
        let numbers = self.graph.value(value).known_numbers()?;
        self.scene.record_read(self.graph, value);
        Some(numbers)
    }

    /// The same of a constant.
    pub(super) fn constant(&self, value: ValueId) -> Option<&'a Constant> {
        self.graph.value(value).weight.as_ref()?;
        self.known_numbers(value)
    }

    /// How many dimensions a value of known shape has.
    pub(super) fn rank(&self, value: ValueId) -> Option<usize> {
        Some(self.graph.value(value).dims()?.len())
    }

    /// The shape of a value. What is done because of it holds for this shape alone.
    pub(super) fn dims(&self, value: ValueId) -> Option<Dims> {
        self.scene.record_read(self.graph, value);
        self.graph.value(value).dims()
    }

    /// The size of one dimension. What is done because of it holds for this size alone.
    pub(super) fn dimension_size(&self, value: ValueId, axis: usize) -> Option<i64> {
        let size = *self.graph.value(value).dims()?.get(axis)?;
        let is_same = move |graph: &Graph| Some(*graph.value(value).dims()?.get(axis)? == size);
        self.scene.check_shapes(self.graph, is_same).then_some(size)
    }

    /// Whether shapes are such as a pass wants them.
    pub(super) fn check_shapes(
        &self,
        question: impl Fn(&Graph) -> Option<bool> + Send + Sync + 'static,
    ) -> bool {
        self.scene.check_shapes(self.graph, question)
    }

    /// Whether two values have the same shape, as far as it is known.
    pub(super) fn has_same_shape(&self, one: ValueId, other: ValueId) -> bool {
        self.check_shapes(move |graph| Some(graph.value(one).dims()? == graph.value(other).dims()?))
    }

    pub(super) fn dtype(&self, value: ValueId) -> Option<Dtype> {
        self.graph.value(value).dtype()
    }

    /// The two inputs of a node that has two, in both orders.
    pub(super) fn operand_orders(&self, node: &Node) -> [Option<(ValueId, ValueId)>; 2] {
        let pair = node.input(0).zip(node.input(1));
        [pair, pair.map(|(a, b)| (b, a))]
    }
}

/// Puts nodes into the places of others.
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

/// Removes the nodes for which `decide` gives a value to use instead of their first output.
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

/// Does something with what is known of the inputs of a node before a run; nothing where some shape is not known.
pub(crate) fn with_expected_inputs<T>(
    graph: &Graph,
    node: &Node,
    done: impl FnOnce(&[Option<ExpectedInput<'_>>]) -> T,
) -> Option<T> {
    let dims =
        |input: &Option<ValueId>| input.map_or(Some(None), |input| graph.value(input).dims().map(Some));
    let dims: SmallVec<[Option<Dims>; 4]> = node.inputs.iter().map(dims).collect::<Option<_>>()?;
    if node.inputs.iter().flatten().any(|input| graph.value(*input).dtype().is_none()) {
        return None;
    }
    let expected: SmallVec<[Option<ExpectedInput<'_>>; 4]> = node
        .inputs
        .iter()
        .zip(&dims)
        .map(|(input, dims)| {
            let value = graph.value((*input)?);
            let (dtype, is_constant) = (value.dtype()?, value.weight.is_some());
            Some(ExpectedInput { dtype, dims: dims.as_ref()?, is_constant, value: value.known_numbers() })
        })
        .collect();
    Some(done(&expected))
}

impl PassContext<'_> {
    /// Whether the device has a kernel that takes a node with operands of the shapes they have; no where shapes are not
    /// known.
    pub(super) fn supports_node(&self, graph: &Graph, node: &Node) -> bool {
        let Ok(op) = node_op(node, self.runtime) else { return false };
        let is_taken = is_node_supported(graph, node, &op, self);
        self.notes.record(|| PassTraceEntry::Taken { node: node.clone(), op, is_taken });
        is_taken
    }

    /// Whether the device has any kernel for an op of Oarlock's own, so that it is worth to look for places for it.
    pub(super) fn has_kernel_for(&self, op: &str) -> bool {
        let registry = self.runtime.registry();
        let mut rows = registry.entries_for_op(OARLOCK_DOMAIN, op);
        rows.any(|row| row.info().device_type == self.device.device_type())
    }
}

/// Whether the device of a scene has a kernel that takes a node.
pub(super) fn is_node_supported(graph: &Graph, node: &Node, op: &Op, scene: &PassContext<'_>) -> bool {
    let chosen = with_expected_inputs(graph, node, |expected| {
        op.select_kernel(scene.runtime, scene.device, expected, node.outputs.len())
    });
    matches!(chosen, Some(Ok(Some(Some(_)))))
}

/// Whether two nodes make the same calls, where their operands have the same dtypes and shapes.
pub(crate) fn is_same_op(one: &Node, other: &Node) -> bool {
    (&one.op, &one.domain, one.opset) == (&other.op, &other.domain, other.opset)
        && (one.inputs.len(), one.outputs.len()) == (other.inputs.len(), other.outputs.len())
        && one.attributes == other.attributes
}

/// Whether the same is known of two values. Of constants nobody says so unless they are one.
pub(crate) fn is_same_value(one: &Arc<GraphValue>, other: &Arc<GraphValue>) -> bool {
    Arc::ptr_eq(one, other)
        || one.weight.is_none() && other.weight.is_none() && one.fact.is_some() && one.fact == other.fact
}

/// The domain of the ops that only Oarlock has.
pub(super) const OARLOCK_DOMAIN: &str = "oarlock";

/// A pass, for the table.
pub(super) const fn define_pass(
    name: &'static str,
    purpose: &'static str,
    run: fn(&mut Graph, &PassContext<'_>) -> oarlock_core::Result<usize>,
) -> GraphPass {
    GraphPass { name, purpose, run }
}
