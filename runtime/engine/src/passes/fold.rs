//! Folds nodes whose outputs depend only on constants.

use std::sync::Arc;

use oarlock_core::schema::{OpFact, has_fact};
use oarlock_core::{Constant, Device, Dtype, Op, OpInvocation, Result, Tensor, shape};

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

/// Limit on a folded output, unless it is at most twice as large as its inputs: a tiny `Expand` must not bloat the model.
const MAX_FOLDED_BYTES: u64 = 1 << 20;

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
                context.trace.record(|| PassDecision::Folded(DerivedOutputs::from_node(graph, &node, op)));
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
        context.trace.record(|| PassDecision::NotFolded { node: node.clone(), op: op.clone() });
    }
    Some((op, constants?))
}

/// Computes the outputs of a node from constants. If that fails, the node stays and reports its error in the run, together
/// with the inputs.
pub(super) fn evaluate_constants(
    graph: &Graph,
    node: &Node,
    op: &Op,
    context: &PassContext<'_>,
) -> Option<Vec<Weight>> {
    let inferred = |output: &Option<_>| match output {
        Some(output) => graph.value(*output).fact.as_ref()?.value.clone().map(Weight::Numbers),
        None => None,
    };
    if let Some(known) = node.outputs.iter().map(inferred).collect() {
        return Some(known);
    }
    let weights: Option<Vec<Option<&Weight>>> = node
        .inputs
        .iter()
        .map(|input| input.map_or(Some(None), |id| graph.value(id).weight.as_ref().map(Some)))
        .collect();
    let weights = weights?;
    let given: u64 =
        weights.iter().flatten().filter_map(|weight| tensor_bytes(weight.dtype(), weight.dims())).sum();
    let mut result = 0;
    for output in node.written_values() {
        let value = graph.value(output);
        let bytes = tensor_bytes(value.dtype()?, &value.dims()?)?;
        if bytes > given.saturating_mul(2).max(MAX_FOLDED_BYTES) {
            return None;
        }
        result += bytes;
    }
    let seen = |(weight, output): (&&Weight, &crate::graph::ValueId)| {
        let dims = graph.value(*output).dims()?;
        Some(vec![Weight::Numbers(weight.as_numbers()?.with_shape(&dims).ok()?)])
    };
    if node.is_view() {
        return weights.first()?.as_ref().zip(node.output(0).as_ref()).and_then(seen);
    }
    if !context.reserve_constant_bytes(graph, result) {
        return None;
    }
    run_on_host(node, op, &weights, context).ok()
}

pub(super) fn is_random(node: &Node) -> bool {
    has_fact(&node.op, OpFact::Random)
}

fn tensor_bytes(dtype: Dtype, dims: &[i64]) -> Option<u64> {
    shape::size_in_bytes(dtype, dims).ok()
}

fn run_on_host(
    node: &Node,
    op: &Op,
    weights: &[Option<&Weight>],
    context: &PassContext<'_>,
) -> Result<Vec<Weight>> {
    let tensors: Vec<Option<Tensor>> = weights
        .iter()
        .map(|weight| weight.map(|weight| weight_to_tensor(weight, context.host)).transpose())
        .collect::<Result<_>>()?;
    let inputs: Vec<Option<&Tensor>> = tensors.iter().map(Option::as_ref).collect();
    let call = OpInvocation {
        inputs: &inputs,
        outputs: node.outputs.len(),
        device: Some(context.host),
        stream: None,
    };
    let outputs = op.invoke(context.runtime, &call)?;
    outputs.iter().flatten().map(tensor_to_weight).collect()
}

/// Copies a constant to a device; unaligned elements are aligned first.
pub(crate) fn weight_to_tensor(weight: &Weight, device: &Device) -> Result<Tensor> {
    match weight {
        Weight::Numbers(numbers) => Tensor::from_constant(device, &numbers.to_aligned()),
        Weight::Texts { dims, texts } => Tensor::from_strings(device, dims, texts.to_vec()),
    }
}

fn tensor_to_weight(tensor: &Tensor) -> Result<Weight> {
    if tensor.dtype() == Dtype::String {
        return Ok(Weight::Texts { dims: tensor.dims().to_vec(), texts: tensor.to_strings()?.into() });
    }
    Ok(Weight::Numbers(Constant::new(tensor.dtype(), tensor.dims(), tensor.to_bytes()?)?))
}
