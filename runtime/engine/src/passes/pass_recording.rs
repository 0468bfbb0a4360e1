//! A replay log of the shape-dependent decisions of all passes.
//!
//! The result of the passes depends on the graph and on the answers they get: inferred shapes, folded constants, supported
//! nodes, predicates on shapes. The trace logs each question with its answer, in order. For inputs of other sizes, the log is
//! replayed instead of the passes: each question is asked again, and if every answer is as before, the passes would make the
//! same rewrites. The optimized graph is then valid with only the sizes updated. At the first different answer the replay
//! fails and the passes run anew. Ranks, and which dimensions are known, may be read without a log entry; a replay therefore
//! requires them to be equal.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use oarlock_core::infer::TensorFact;
use oarlock_core::{Constant, Dims, Op};

use super::PassContext;
use crate::graph::{Graph, GraphValue, Node, ValueId, Weight};

/// Log of one run of the passes.
#[derive(Default)]
pub struct PassRecording {
    pub(super) entries: RefCell<Vec<PassDecision>>,
    /// Values that were read outright, as they were then. Avoids repeated entries for the same value.
    read: RefCell<HashMap<ValueId, Arc<GraphValue>>>,
    /// The last inference of each node, by the index of its first output.
    inferred: RefCell<Vec<Option<InferenceRecord>>>,
    /// Bytes that passes may still create; `None` before the first.
    remaining_bytes: Cell<Option<FoldedBytes>>,
}

/// One decision in the log.
pub(super) enum PassDecision {
    /// Types and shapes of a node's outputs were inferred.
    Inferred(DerivedOutputs),
    /// A node was folded into constants.
    Folded(DerivedOutputs),
    /// A node could not be folded although its inputs are constant.
    NotFolded { node: Node, op: Arc<Op> },
    /// A value was added as the transpose of another.
    Transposed { from: ValueId, to: ValueId, order: Vec<i64> },
    /// A constant was added that holds the shape of a value.
    Shape { of: ValueId, to: ValueId },
    /// A value was added whose shape is a function of other shapes.
    ShapeComputed { to: ValueId, dims: Box<DimsFunction> },
    /// The device was asked to support a node.
    SupportQueried { node: Node, op: Arc<Op>, is_supported: bool },
    /// A predicate on shapes was evaluated; only the answer must stay the same.
    PredicateEvaluated { question: Box<ShapePredicate>, answer: bool },
    /// A value was read outright, so nothing about it may change.
    Read(ValueId),
}

pub(super) type DimsFunction = dyn Fn(&Graph) -> Option<Dims> + Send + Sync;
pub(super) type ShapePredicate = dyn Fn(&Graph) -> Option<bool> + Send + Sync;

/// Outputs of a node that follow from its inputs.
pub(super) struct DerivedOutputs {
    pub(super) node: Node,
    pub(super) op: Arc<Op>,
    pub(super) outputs: Vec<(ValueId, Arc<GraphValue>)>,
}

/// The inputs that an inference used, to detect whether it is still up to date.
struct InferenceRecord {
    node: Node,
    op: Arc<Op>,
    inputs: Vec<Option<Arc<GraphValue>>>,
}

impl PassRecording {
    pub(super) fn record(&self, entry: impl FnOnce() -> PassDecision) {
        self.entries.borrow_mut().push(entry());
    }

    /// The nodes that were folded, in topological order.
    pub(crate) fn folded_nodes(&self) -> Vec<Node> {
        let entries = self.entries.borrow();
        let folded = entries.iter().filter_map(|entry| {
            if let PassDecision::Folded(DerivedOutputs { node, .. }) = entry { Some(node) } else { None }
        });
        folded.cloned().collect()
    }

    /// The op of a node that was inferred before, and true if its inputs have changed since.
    pub(super) fn inferred_op(&self, graph: &Graph, node: &Node) -> Option<(Arc<Op>, bool)> {
        let inferred = self.inferred.borrow();
        let known = inferred.get(node.written_values().next()?.index())?.as_ref()?;
        let is_same = (&known.node.op, known.node.opset, &known.node.domain, &known.node.attributes)
            == (&node.op, node.opset, &node.domain, &node.attributes)
            && (&known.node.inputs, &known.node.outputs) == (&node.inputs, &node.outputs);
        let is_as_before =
            |(input, before): (&Option<ValueId>, &Option<Arc<GraphValue>>)| match (input, before) {
                (Some(input), Some(before)) => Arc::ptr_eq(graph.shared_value(*input), before),
                _ => true,
            };
        is_same.then(|| (known.op.clone(), !node.inputs.iter().zip(&known.inputs).all(is_as_before)))
    }

    pub(super) fn record_inference(&self, graph: &Graph, node: &Node, op: Arc<Op>) {
        let Some(first) = node.written_values().next() else { return };
        let inputs = node.inputs.iter().map(|input| input.map(|input| graph.shared_value(input).clone()));
        let inputs = inputs.collect();
        let mut inferred = self.inferred.borrow_mut();
        if inferred.len() <= first.index() {
            inferred.resize_with(graph.value_count(), || None);
        }
        inferred[first.index()] = Some(InferenceRecord { node: node.clone(), op: op.clone(), inputs });
        drop(inferred);
        self.record(|| PassDecision::Inferred(DerivedOutputs::from_node(graph, node, op)));
    }
}

impl DerivedOutputs {
    pub(super) fn from_node(graph: &Graph, node: &Node, op: Arc<Op>) -> Self {
        let outputs = node.written_values().map(|value| (value, graph.shared_value(value).clone())).collect();
        Self { node: node.clone(), op, outputs }
    }
}

/// Bytes of constants that passes create.
#[derive(Clone, Copy, Default)]
pub(super) struct FoldedBytes {
    pub(super) constants: u64,
    /// Those of large constants that layers read as their weights.
    pub(super) layer_weights: u64,
}

/// Budget for constants: this base, plus [`CONSTANT_BYTES_FACTOR`] times the bytes of the model's constants.
const BASE_CONSTANT_BYTES: u64 = 16 << 20;
/// Bytes that passes may create for each byte of constants in the model: weights of 8 bits are cast to f32, scaled and transposed,
/// and each result is four times as large as they.
const CONSTANT_BYTES_FACTOR: u64 = 12;
/// Budget for weights that a model computes from shapes, such as with `ConstantOfShape`.
const LAYER_WEIGHT_BYTES: u64 = 1 << 30;

impl PassContext<'_> {
    /// Reserves budget for new constants; returns false if it is exhausted. All of them count, because a small file could
    /// otherwise describe a chain of constants that keeps growing.
    pub(super) fn reserve_constant_bytes(&self, graph: &Graph, bytes: FoldedBytes) -> bool {
        let at_first = || FoldedBytes {
            constants: graph
                .weight_bytes()
                .saturating_mul(CONSTANT_BYTES_FACTOR)
                .saturating_add(BASE_CONSTANT_BYTES),
            layer_weights: LAYER_WEIGHT_BYTES,
        };
        let left = self.recording.remaining_bytes.get().unwrap_or_else(at_first);
        let constants = left.constants.checked_sub(bytes.constants);
        let layer_weights = left.layer_weights.checked_sub(bytes.layer_weights);
        let after = constants
            .zip(layer_weights)
            .map(|(constants, layer_weights)| FoldedBytes { constants, layer_weights });
        self.recording.remaining_bytes.set(Some(after.unwrap_or(left)));
        after.is_some()
    }

    /// Logs that a value was read outright, so the result is valid only while the value stays the same.
    pub(super) fn record_read(&self, graph: &Graph, value: ValueId) {
        let known = graph.shared_value(value);
        let before = self.recording.read.borrow_mut().insert(value, known.clone());
        if before.is_none_or(|before| !Arc::ptr_eq(&before, known)) {
            self.recording.record(|| PassDecision::Read(value));
        }
    }

    /// Evaluates a predicate on shapes and logs the answer; false if something is unknown.
    pub(super) fn check_shapes(
        &self,
        graph: &Graph,
        question: impl Fn(&Graph) -> Option<bool> + Send + Sync + 'static,
    ) -> bool {
        let answer = question(graph).unwrap_or(false);
        self.recording.record(|| PassDecision::PredicateEvaluated { question: Box::new(question), answer });
        answer
    }

    /// Adds a value that is the transpose of another.
    pub(super) fn add_transposed_value(
        &self,
        graph: &mut Graph,
        value: ValueId,
        order: &[i64],
    ) -> Option<ValueId> {
        let fact = transposed_fact(graph.value(value), order)?;
        // Strip the suffix first, or repeated transposes would grow the name.
        let name = graph.value(value).name.trim_end_matches(" in another order");
        let to = graph.add_value(GraphValue::with_fact(format!("{name} in another order"), fact));
        self.recording.record(|| PassDecision::Transposed { from: value, to, order: order.to_vec() });
        Some(to)
    }

    /// Adds a value with the dtype of another and a shape computed by `dims`, which a replay calls again.
    pub(super) fn add_value_with_dims(
        &self,
        graph: &mut Graph,
        name: &str,
        like: ValueId,
        dims: impl Fn(&Graph) -> Option<Dims> + Send + Sync + 'static,
    ) -> Option<ValueId> {
        let fact = TensorFact::from_shape(graph.value(like).dtype()?, &dims(graph)?);
        let to = graph.add_value(GraphValue::with_fact(name, fact));
        self.recording.record(|| PassDecision::ShapeComputed { to, dims: Box::new(dims) });
        Some(to)
    }

    /// Adds a constant that holds the shape of a value; a replay updates it.
    pub(super) fn add_shape_constant(&self, graph: &mut Graph, value: ValueId) -> Option<ValueId> {
        let shape = graph.value(value).dims()?;
        let constant = Weight::Numbers(Constant::from_ints(&shape));
        let to = graph.add_value(GraphValue::with_weight("a shape", constant));
        self.recording.record(|| PassDecision::Shape { of: value, to });
        Some(to)
    }
}

pub(super) fn transposed_fact(value: &GraphValue, order: &[i64]) -> Option<TensorFact> {
    let (dtype, dims) = (value.dtype()?, value.dims()?);
    let dim = |axis: &i64| usize::try_from(*axis).ok().and_then(|axis| dims.get(axis)).copied();
    let transposed: Dims = order.iter().map(dim).collect::<Option<_>>()?;
    Some(TensorFact::from_shape(dtype, &transposed))
}
