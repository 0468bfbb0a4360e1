//! Batch normalisation becomes part of the convolution before it.

use std::collections::HashMap;

use oarlock_core::{Constant, Dtype, Result};

use super::common::{Look, pass, replace};
use super::{Pass, Scene};
use crate::graph::{Graph, Node, Value, ValueId, Weight};

pub(super) const PASS: Pass = pass(
    "batch normalisation",
    "scales the weights of a convolution once, in place of what it makes in every run",
    run,
);

fn run(graph: &mut Graph, _: &Scene<'_>) -> Result<usize> {
    let look = Look::at(graph);
    let mut found = Vec::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        if let Some(folded) = node.is("BatchNormalization").then(|| folded(&look, node)).flatten() {
            found.push((at, folded));
        }
    }
    let mut replacements = HashMap::new();
    for (at, Folded { mut node, weights, bias }) in found {
        let name = node.label();
        let mut add = |weight, kind: &str| {
            let fact = oarlock_core::infer::Fact::of_shape(Dtype::F32, Weight::dims(&weight));
            let constant = Value::constant(format!("{kind} of {name}"), weight);
            graph.add(Value { fact: Some(fact), ..constant })
        };
        let (weights, bias) = (add(weights, "weights"), add(bias, "bias"));
        node.inputs.truncate(1);
        node.inputs.extend([Some(weights), Some(bias)]);
        replacements.insert(at, vec![node]);
    }
    Ok(replace(graph, replacements))
}

/// A convolution with a normalisation in its weights and bias.
struct Folded {
    node: Node,
    weights: Weight,
    bias: Weight,
}

fn folded(look: &Look<'_>, norm: &Node) -> Option<Folded> {
    let is_training = norm.attributes.int("training_mode").ok()?.unwrap_or(0) != 0;
    if is_training || norm.outputs.iter().skip(1).any(Option::is_some) {
        return None;
    }
    let conv = look.made_only_for(norm.input(0)?, "Conv")?;
    let epsilon = norm.attributes.float("epsilon").ok()?.unwrap_or(1e-5);
    let floats = |value: Option<ValueId>| -> Option<Vec<f64>> {
        look.graph.value(value?).weight.as_ref()?.numbers().filter(|of| of.dtype() == Dtype::F32)?.floats().ok()
    };
    let [scale, shift, mean, variance] =
        [1, 2, 3, 4].map(|index| floats(norm.input(index)).unwrap_or_default());
    let weights = look.graph.value(conv.input(1)?).weight.as_ref()?.numbers()?;
    let channels = usize::try_from(*weights.dims().first()?).ok()?;
    if [&scale, &shift, &mean, &variance].iter().any(|list| list.len() != channels) || channels == 0 {
        return None;
    }
    let bias = match conv.input(2) {
        Some(bias) => floats(Some(bias)).filter(|bias| bias.len() == channels)?,
        None => vec![0.0; channels],
    };
    let factor: Vec<f64> = scale.iter().zip(&variance).map(|(scale, variance)| scale / (variance + epsilon).sqrt()).collect();
    let bias = (0..channels).map(|at| ((bias[at] - mean[at]) * factor[at] + shift[at]) as f32);
    let bias: Vec<u8> = bias.flat_map(f32::to_ne_bytes).collect();
    let each = weights.bytes().len() / channels;
    if weights.dtype() != Dtype::F32 || each == 0 {
        return None;
    }
    let scaled = weights.bytes().chunks_exact(each).zip(&factor).flat_map(|(channel, factor)| {
        let elements = channel.as_chunks::<4>().0.iter();
        elements.flat_map(move |bytes| ((f64::from(f32::from_ne_bytes(*bytes)) * factor) as f32).to_ne_bytes())
    });
    let mut scaled_bytes = Vec::with_capacity(weights.bytes().len());
    scaled_bytes.extend(scaled);
    let mut node = conv.clone();
    node.outputs = norm.outputs.iter().copied().take(1).collect();
    Some(Folded {
        node,
        weights: Weight::Numbers(Constant::new(Dtype::F32, weights.dims(), scaled_bytes).ok()?),
        bias: Weight::Numbers(Constant::new(Dtype::F32, &[i64::try_from(channels).ok()?], bias).ok()?),
    })
}
