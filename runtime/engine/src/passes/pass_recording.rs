//! A replay log of the shape-dependent decisions of all passes.
//!
//! The result of the passes depends on the graph and on the answers they get: inferred shapes, folded constants, supported
//! nodes, predicates on shapes. The trace logs each question with its answer, in order. For inputs of other sizes, the log is
//! replayed instead of the passes: each question is asked replayed, and if every answer is as before, the passes would make the
//! same rewrites. The optimized graph is then valid with only the sizes updated. At the first different answer the replay
//! fails and the passes run anew. Ranks, and which dimensions are known, may be read without a log entry; a replay therefore
//! requires them to be equal.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use oarlock_core::infer::{PartialDim, TensorFact};
use oarlock_core::{Constant, Dims, Op};
use smallvec::SmallVec;

use super::graph_view::{is_node_supported, is_same_op, is_same_value};
use super::infer::{declared_fact, infer_outputs};
use super::{PassContext, PassEffect, fold};
use crate::graph::{Graph, GraphValue, Node, ValueId, Weight};

/// Log of one run of the passes.
#[derive(Default)]
pub struct PassRecording {
    entries: RefCell<Vec<PassDecision>>,
    /// Values that were read outright, as they were then. Avoids repeated entries for the same value.
    read: RefCell<HashMap<ValueId, Arc<GraphValue>>>,
    /// The last inference of each node, by the index of its first output.
    inferred: RefCell<Vec<Option<InferenceRecord>>>,
    /// Bytes of constants that passes may still create; `None` before the first.
    remaining_constant_bytes: Cell<Option<u64>>,
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

/// Budget for constants that passes create: this base, plus [`CONSTANT_BYTES_FACTOR`] times the bytes of the model's constants.
const BASE_CONSTANT_BYTES: u64 = 16 << 20;
/// Bytes that passes may create for each byte of constants in the model.
const CONSTANT_BYTES_FACTOR: u64 = 4;

impl PassContext<'_> {
    /// Reserves budget for new constants; returns false if it is exhausted. All of them count, because a small file could
    /// otherwise describe a chain of constants that keeps growing.
    pub(super) fn reserve_constant_bytes(&self, graph: &Graph, bytes: u64) -> bool {
        let at_first =
            || graph.weight_bytes().saturating_mul(CONSTANT_BYTES_FACTOR).saturating_add(BASE_CONSTANT_BYTES);
        let left = self.trace.remaining_constant_bytes.get().unwrap_or_else(at_first);
        let after = left.checked_sub(bytes);
        self.trace.remaining_constant_bytes.set(Some(after.unwrap_or(left)));
        after.is_some()
    }

    /// Logs that a value was read outright, so the result is valid only while the value stays the same.
    pub(super) fn record_read(&self, graph: &Graph, value: ValueId) {
        let known = graph.shared_value(value);
        let before = self.trace.read.borrow_mut().insert(value, known.clone());
        if before.is_none_or(|before| !Arc::ptr_eq(&before, known)) {
            self.trace.record(|| PassDecision::Read(value));
        }
    }

    /// Evaluates a predicate on shapes and logs the answer; false if something is unknown.
    pub(super) fn check_shapes(
        &self,
        graph: &Graph,
        question: impl Fn(&Graph) -> Option<bool> + Send + Sync + 'static,
    ) -> bool {
        let answer = question(graph).unwrap_or(false);
        self.trace.record(|| PassDecision::PredicateEvaluated { question: Box::new(question), answer });
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
        self.trace.record(|| PassDecision::Transposed { from: value, to, order: order.to_vec() });
        Some(to)
    }

    /// Adds a value with the dtype of another and a shape computed by `dims`, which a replay calls replayed.
    pub(super) fn add_value_with_dims(
        &self,
        graph: &mut Graph,
        name: &str,
        like: ValueId,
        dims: impl Fn(&Graph) -> Option<Dims> + Send + Sync + 'static,
    ) -> Option<ValueId> {
        let fact = TensorFact::from_shape(graph.value(like).dtype()?, &dims(graph)?);
        let to = graph.add_value(GraphValue::with_fact(name, fact));
        self.trace.record(|| PassDecision::ShapeComputed { to, dims: Box::new(dims) });
        Some(to)
    }

    /// Adds a constant that holds the shape of a value; a replay updates it.
    pub(super) fn add_shape_constant(&self, graph: &mut Graph, value: ValueId) -> Option<ValueId> {
        let shape = graph.value(value).dims()?;
        let constant = Weight::Numbers(Constant::from_ints(&shape));
        let to = graph.add_value(GraphValue::with_weight("a shape", constant));
        self.trace.record(|| PassDecision::Shape { of: value, to });
        Some(to)
    }
}

fn transposed_fact(value: &GraphValue, order: &[i64]) -> Option<TensorFact> {
    let (dtype, dims) = (value.dtype()?, value.dims()?);
    let dim = |axis: &i64| usize::try_from(*axis).ok().and_then(|axis| dims.get(axis)).copied();
    let transposed: Dims = order.iter().map(dim).collect::<Option<_>>()?;
    Some(TensorFact::from_shape(dtype, &transposed))
}

/// An optimized graph together with the log of the decisions that led to it.
pub(crate) struct ReplayPlan {
    /// The optimized nodes; the values are as they were before the passes, and entries of the log update them.
    graph: Graph,
    /// Facts about the inputs in the original run.
    inputs: Vec<Arc<GraphValue>>,
    entries: Vec<PassDecision>,
    /// Ops of the nodes, where the log has them; saves schema lookups.
    ops: Vec<Option<Arc<Op>>>,
    effects: Vec<PassEffect>,
}

/// The result of a replay for other sizes.
pub(crate) struct ReplayedGraph {
    pub(crate) graph: Graph,
    /// For each value, true if it differs from the original run. Steps that touch no such value can be reused.
    pub(crate) differs: Vec<bool>,
}

impl ReplayPlan {
    /// Bundles the graphs before and after the passes with the log. Values are only ever added, so ids stay the same.
    pub(crate) fn new(before: &Graph, after: &Graph, trace: PassRecording, effects: Vec<PassEffect>) -> Self {
        let mut graph = after.clone();
        before.values().for_each(|(id, _)| graph.set_shared_value(id, before.shared_value(id)));
        let inputs = after.inputs.iter().map(|input| after.shared_value(*input).clone()).collect();
        let op = |node: &Node| trace.inferred_op(after, node).map(|(op, _)| op);
        let ops = after.nodes.iter().map(op).collect();
        Self { graph, inputs, ops, entries: trace.entries.into_inner(), effects }
    }

    /// The op of an optimized node, if the log has it.
    pub(crate) fn node_op(&self, at: usize) -> Option<&Arc<Op>> {
        self.ops.get(at)?.as_ref()
    }

    /// Effects of the passes in the original run.
    pub(crate) fn effects(&self) -> &[PassEffect] {
        &self.effects
    }

    /// Replays the log for other inputs. `None` if any decision would differ, so that the passes have to run.
    pub(crate) fn replay(
        &self,
        inputs: &[Option<TensorFact>],
        context: &PassContext<'_>,
    ) -> Option<ReplayedGraph> {
        let mut replayed =
            ReplayedGraph { graph: self.graph.clone(), differs: vec![false; self.graph.value_count()] };
        let mut answers = Vec::new();
        for ((id, known), fact) in self.graph.inputs.iter().zip(&self.inputs).zip(inputs) {
            let fact = fact.clone().or_else(|| declared_fact(&known.declared));
            replayed.update_fact(*id, known, fact)?;
        }
        for entry in &self.entries {
            replayed.replay_entry(entry, &mut answers, context)?;
        }
        Some(replayed)
    }
}

/// A memoized answer to a question about support by the device.
struct SupportAnswer<'r> {
    node: &'r Node,
    inputs: SmallVec<[Option<Arc<GraphValue>>; 4]>,
    is_supported: bool,
}

/// Limit on memoized answers, since a question is compared with each.
const MAX_REMEMBERED_ANSWERS: usize = 16;

impl ReplayedGraph {
    /// Replays one entry; `None` if the decision would differ.
    fn replay_entry<'r>(
        &mut self,
        entry: &'r PassDecision,
        answers: &mut Vec<SupportAnswer<'r>>,
        context: &PassContext<'_>,
    ) -> Option<()> {
        match entry {
            PassDecision::Inferred(DerivedOutputs { node, op, outputs }) => {
                if !self.reads_changed_value(node) {
                    outputs.iter().for_each(|(id, value)| self.keep_value(*id, value));
                    return Some(());
                }
                let facts = infer_outputs(&self.graph, node, op).ok()?;
                let Some(facts) = facts else {
                    let is_same =
                        |(id, before): &(ValueId, Arc<GraphValue>)| self.graph.value(*id).fact == before.fact;
                    return outputs.iter().all(is_same).then_some(());
                };
                let mut outputs = outputs.iter();
                for (_, fact) in node.outputs.iter().zip(facts).filter(|(output, _)| output.is_some()) {
                    let (id, before) = outputs.next()?;
                    self.update_fact(*id, before, Some(fact))?;
                }
            }
            PassDecision::Folded(DerivedOutputs { node, op, outputs }) => {
                if !self.reads_changed_value(node)
                    && !node.written_values().any(|value| self.differs[value.index()])
                {
                    outputs.iter().for_each(|(id, value)| self.keep_value(*id, value));
                    return Some(());
                }
                let weights = fold::evaluate_constants(&self.graph, node, op, context)?;
                let mut outputs = outputs.iter();
                for (_, weight) in node.outputs.iter().zip(weights).filter(|(output, _)| output.is_some()) {
                    let (id, before) = outputs.next()?;
                    let is_alike = before.weight.as_ref().is_some_and(|before| {
                        before.dtype() == weight.dtype() && before.dims().len() == weight.dims().len()
                    });
                    is_alike.then_some(())?;
                    if before.weight.as_ref() == Some(&weight) {
                        self.keep_value(*id, before);
                    } else {
                        self.graph.value_mut(*id).weight = Some(weight);
                        self.differs[id.index()] = true;
                    }
                }
            }
            PassDecision::NotFolded { node, op } => {
                let is_kept = !self.reads_changed_value(node)
                    || fold::evaluate_constants(&self.graph, node, op, context).is_none();
                is_kept.then_some(())?;
            }
            PassDecision::Transposed { from, to, order } => {
                if self.differs[from.index()] {
                    self.graph.value_mut(*to).fact = Some(transposed_fact(self.graph.value(*from), order)?);
                    self.differs[to.index()] = true;
                }
            }
            PassDecision::Shape { of, to } => {
                if self.differs[of.index()] {
                    let shape = Constant::from_ints(&self.graph.value(*of).dims()?);
                    self.graph.value_mut(*to).weight = Some(Weight::Numbers(shape));
                    self.differs[to.index()] = true;
                }
            }
            PassDecision::ShapeComputed { to, dims } => {
                let before = self.graph.shared_value(*to).clone();
                let fact = TensorFact::from_shape(before.dtype()?, &dims(&self.graph)?);
                self.update_fact(*to, &before, Some(fact))?;
            }
            PassDecision::SupportQueried { node, op, is_supported: before } => {
                let is_same = !self.reads_changed_value(node)
                    || self.is_node_supported(node, op, answers, context) == *before;
                is_same.then_some(())?;
            }
            PassDecision::PredicateEvaluated { question, answer } => {
                (question(&self.graph).unwrap_or(false) == *answer).then_some(())?;
            }
            PassDecision::Read(value) => (!self.differs[value.index()]).then_some(())?,
        }
        Some(())
    }

    /// Asks replayed whether the device supports a node. Models repeat their layers, so the answer is often memoized.
    fn is_node_supported<'r>(
        &self,
        node: &'r Node,
        op: &Op,
        answers: &mut Vec<SupportAnswer<'r>>,
        context: &PassContext<'_>,
    ) -> bool {
        let inputs = || node.inputs.iter().map(|input| input.map(|input| self.graph.shared_value(input)));
        let is_same_call = |other: &&SupportAnswer<'_>| {
            let is_same =
                |(own, other): (Option<&Arc<GraphValue>>, &Option<Arc<GraphValue>>)| match (own, other) {
                    (Some(own), Some(other)) => is_same_value(own, other),
                    (own, other) => own.is_none() && other.is_none(),
                };
            is_same_op(node, other.node) && inputs().zip(&other.inputs).all(is_same)
        };
        if let Some(known) = answers.iter().find(is_same_call) {
            return known.is_supported;
        }
        let is_supported = is_node_supported(&self.graph, node, op, context);
        if answers.len() < MAX_REMEMBERED_ANSWERS {
            answers.push(SupportAnswer {
                node,
                inputs: inputs().map(|input| input.cloned()).collect(),
                is_supported,
            });
        }
        is_supported
    }

    /// True if any input of the node differs from the original run.
    fn reads_changed_value(&self, node: &Node) -> bool {
        node.inputs.iter().flatten().any(|input| self.differs[input.index()])
    }

    /// Restores the value of the original run.
    fn keep_value(&mut self, id: ValueId, before: &Arc<GraphValue>) {
        self.graph.set_shared_value(id, before);
        self.differs[id.index()] = false;
    }

    /// Updates the fact about a value. `None` if the rank, the dtype or what is known differs from the original run, because
    /// passes may read those without logging.
    fn update_fact(&mut self, id: ValueId, before: &Arc<GraphValue>, fact: Option<TensorFact>) -> Option<()> {
        if before.fact == fact {
            self.keep_value(id, before);
            return Some(());
        }
        let (known, fact) = before.fact.as_ref().zip(fact)?;
        has_same_knowledge(known, &fact).then_some(())?;
        let weight = before.weight.clone();
        let (name, declared) = (before.name.clone(), before.declared.clone());
        self.graph.set_shared_value(id, &Arc::new(GraphValue { name, declared, weight, fact: Some(fact) }));
        self.differs[id.index()] = true;
        Some(())
    }
}

/// True if two facts agree in dtype, rank, and which dimensions and elements are known.
fn has_same_knowledge(one: &TensorFact, other: &TensorFact) -> bool {
    let is_known = |dim: &PartialDim| dim.known_size().is_some();
    let has_same_dims = match (&one.dims, &other.dims) {
        (Some(one), Some(other)) => one.iter().map(is_known).eq(other.iter().map(is_known)),
        (one, other) => one.is_none() && other.is_none(),
    };
    one.dtype == other.dtype && has_same_dims && one.value.is_some() == other.value.is_some()
}
