//! Computes nodes whose inputs are constants.

use oarlock_core::{Constant, Device, Dtype, Op, OpInvocation, Result, Tensor, shape};

use super::PassContext;
use super::pass_recording::FoldedBytes;
use crate::graph::{Graph, Node, ValueId, Weight};

/// Limit on a folded output, unless it is at most [`MAX_GROWTH`] times as large as its inputs: a tiny `Expand` must not bloat
/// the model.
const MAX_FOLDED_BYTES: u64 = 1 << 20;
/// Weights of 8 bits become four times as large when they are cast to f32.
const MAX_GROWTH: u64 = 4;

/// Computes the outputs of a node from constants, large ones only if they are weights of layers. If that fails, the node stays and reports its error in the run, together
/// with the inputs.
pub(super) fn evaluate_constants(
    graph: &Graph,
    node: &Node,
    op: &Op,
    is_layer_weight: impl Fn(ValueId) -> bool,
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
    let mut result = FoldedBytes::default();
    for output in node.written_values() {
        let value = graph.value(output);
        let bytes = tensor_bytes(value.dtype()?, &value.dims()?)?;
        if bytes <= given.saturating_mul(MAX_GROWTH).max(MAX_FOLDED_BYTES) {
            result.constants += bytes;
        } else if is_layer_weight(output) {
            result.layer_weights += bytes;
        } else {
            return None;
        }
    }
    let seen = |(weight, output): (&&Weight, &ValueId)| {
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

fn tensor_bytes(dtype: Dtype, dims: &[i64]) -> Option<u64> {
    shape::size_in_bytes(dtype, dims).ok()
}

/// Computes a node on the device that folds constants.
pub(super) fn run_on_host(
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
        Weight::Numbers(numbers) => Tensor::from_constant(device, &numbers.to_aligned()?),
        Weight::Texts { dims, texts } => Tensor::from_strings(device, dims, texts.to_vec()),
    }
}

fn tensor_to_weight(tensor: &Tensor) -> Result<Weight> {
    if tensor.dtype() == Dtype::String {
        return Ok(Weight::Texts { dims: tensor.dims().to_vec(), texts: tensor.to_strings()?.into() });
    }
    Ok(Weight::Numbers(Constant::new(tensor.dtype(), tensor.dims(), tensor.to_bytes()?)?))
}
