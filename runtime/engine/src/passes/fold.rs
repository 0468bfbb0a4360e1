//! Folds nodes whose outputs depend only on constants.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use oarlock_core::schema::{OpFact, has_fact};
use oarlock_core::{Op, Result};

use super::constant_evaluation::evaluate_constants;
use super::graph_view::define_pass;
use super::infer::node_op;
use super::pass_recording::{DerivedOutputs, PassDecision};
use super::{GraphPass, PassContext, quantized};
use crate::graph::{Graph, Node, ValueId, Weight};

pub(super) const FOLD_CONSTANTS: GraphPass = define_pass(
    "constant folding",
    "computes once what does not depend on the inputs, such as shapes assembled from sizes",
    fold_constants,
);

fn fold_constants(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    let mut kept = Vec::new();
    let mut folded = 0;
    let of_integers = quantized::integer_layer_weights(graph, context);
    let layer_weights = computed_layer_weights(graph, context);
    for node in std::mem::take(&mut graph.nodes) {
        let is_kept = node.written_values().any(|result| of_integers.contains(&result));
        match if is_kept { None } else { fold_node(graph, &node, &layer_weights, context) } {
            Some((op, constants)) => {
                for (output, weight) in node.outputs.iter().zip(constants) {
                    if let Some(output) = output {
                        graph.value_mut(*output).weight = Some(weight);
                    }
                }
                context
                    .recording
                    .record(|| PassDecision::Folded(DerivedOutputs::from_node(graph, &node, op)));
                folded += 1;
            }
            None => kept.push(node),
        }
    }
    graph.nodes = kept;
    Ok(folded)
}

/// Folds a node; returns its op and outputs. A node that could have been folded but was not is recorded too.
fn fold_node(
    graph: &Graph,
    node: &Node,
    layer_weights: &HashSet<ValueId>,
    context: &PassContext<'_>,
) -> Option<(Arc<Op>, Vec<Weight>)> {
    let is_constant = |value: ValueId| graph.value(value).weight.is_some();
    let is_known = |value: ValueId| graph.value(value).fact.as_ref().is_some_and(|fact| fact.value.is_some());
    let may_fold =
        node.written_values().all(is_known) || node.inputs.iter().flatten().copied().all(is_constant);
    if !node.subgraphs.is_empty() || is_random(node) || !may_fold {
        return None;
    }
    let op = node_op(node, context.runtime).ok()?;
    let constants = evaluate_constants(graph, node, &op, |value| layer_weights.contains(&value), context);
    if constants.is_none() {
        context.recording.record(|| PassDecision::NotFolded { node: node.clone(), op: op.clone() });
    }
    Some((op, constants?))
}

/// Values that nodes compute, and that nothing reads but layers, as their weights. A run needs the memory of such a value anyway,
/// and a constant is packed only once. A plain graph keeps them, so that exports stay small.
fn computed_layer_weights(graph: &Graph, context: &PassContext<'_>) -> HashSet<ValueId> {
    if context.is_plain {
        return HashSet::new();
    }
    let is_layer = |node: &&Node| ["Conv", "ConvTranspose", "Gemm", "MatMul"].iter().any(|op| node.is_op(op));
    let mut reads = HashMap::<ValueId, u32>::new();
    for weights in graph.nodes.iter().filter(is_layer).filter_map(|node| node.input(1)) {
        *reads.entry(weights).or_default() += 1;
    }
    let uses = graph.use_counts();
    reads.retain(|value, reads| {
        let value = *value;
        graph.value(value).weight.is_none()
            && uses[value.index()] == *reads
            && !graph.outputs.contains(&value)
    });
    reads.into_keys().collect()
}

pub(super) fn is_random(node: &Node) -> bool {
    has_fact(&node.op, OpFact::Random)
}
