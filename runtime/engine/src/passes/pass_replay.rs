//! Replays the decisions of a run of the passes for inputs of other sizes.

use std::sync::Arc;

use oarlock_core::infer::{PartialDim, TensorFact};
use oarlock_core::{Constant, Op};
use smallvec::SmallVec;

use super::constant_evaluation::evaluate_constants;
use super::infer::{declared_fact, infer_outputs};
use super::node_support::{is_node_supported, is_same_op, is_same_value};
use super::pass_recording::{DerivedOutputs, PassDecision, PassRecording, transposed_fact};
use super::{PassContext, PassEffect};
use crate::graph::{Graph, GraphValue, Node, ValueId, Weight};

/// An optimized graph together with the log of the decisions that led to it.
pub(crate) struct PassReplay {
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

impl PassReplay {
    /// Bundles the graphs before and after the passes with the log. Values are only ever added, so ids stay the same.
    pub(crate) fn new(
        before: &Graph,
        after: &Graph,
        recording: PassRecording,
        effects: Vec<PassEffect>,
    ) -> Self {
        let mut graph = after.clone();
        before.values().for_each(|(id, _)| graph.set_shared_value(id, before.shared_value(id)));
        let inputs = after.inputs.iter().map(|input| after.shared_value(*input).clone()).collect();
        let op = |node: &Node| recording.inferred_op(after, node).map(|(op, _)| op);
        let ops = after.nodes.iter().map(op).collect();
        Self { graph, inputs, ops, entries: recording.entries.into_inner(), effects }
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

/// Large weights of layers are only computed by the passes themselves, since a replay does not know the readers of a value.
const NO_LAYER_WEIGHTS: fn(ValueId) -> bool = |_| false;

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
                let weights = evaluate_constants(&self.graph, node, op, NO_LAYER_WEIGHTS, context)?;
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
                    || evaluate_constants(&self.graph, node, op, NO_LAYER_WEIGHTS, context).is_none();
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

    /// Asks again whether the device supports a node. Models repeat their layers, so the answer is often memoized.
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
