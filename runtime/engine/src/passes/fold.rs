//! Folds nodes whose outputs depend only on constants.

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
    for node in std::mem::take(&mut graph.nodes) {
        let is_kept = node.written_values().any(|result| of_integers.contains(&result));
        match if is_kept { None } else { fold_node(graph, &node, context) } {
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
fn fold_node(graph: &Graph, node: &Node, context: &PassContext<'_>) -> Option<(Arc<Op>, Vec<Weight>)> {
    let is_constant = |value: ValueId| graph.value(value).weight.is_some();
    let is_known = |value: ValueId| graph.value(value).fact.as_ref().is_some_and(|fact| fact.value.is_some());
    let may_fold =
        node.written_values().all(is_known) || node.inputs.iter().flatten().copied().all(is_constant);
    if !node.subgraphs.is_empty() || is_random(node) || !may_fold {
        return None;
    }
    let op = node_op(node, context.runtime).ok()?;
    let constants = evaluate_constants(graph, node, &op, context);
    if constants.is_none() {
        context.recording.record(|| PassDecision::NotFolded { node: node.clone(), op: op.clone() });
    }
    Some((op, constants?))
}

pub(super) fn is_random(node: &Node) -> bool {
    has_fact(&node.op, OpFact::Random)
}
