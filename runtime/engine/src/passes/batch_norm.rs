//! Batch normalisation becomes part of the convolution before it, or a factor and a summand for each channel.

use std::collections::HashMap;

use oarlock_core::{Constant, Dtype, Result};

use super::common::{Look, pass, replace};
use super::{Pass, Scene};
use crate::graph::{Graph, Node, Value, ValueId, Weight};

pub(super) const PASS: Pass = pass(
    "batch normalisation",
    "scales the weights of a convolution once, in place of what it makes in every run; elsewhere one factor and one summand \
     for each channel are left",
    run,
);

fn run(graph: &mut Graph, scene: &Scene<'_>) -> Result<usize> {
    let found: Vec<(usize, Change)> = {
        let look = Look::at(graph, scene);
        let norms = graph.nodes.iter().enumerate().filter(|(_, node)| node.is("BatchNormalization"));
        norms.filter_map(|(at, node)| Some((at, change(&look, node)?))).collect()
    };
    let mut replacements = HashMap::new();
    for (at, change) in found {
        let name = graph.nodes[at].label();
        let mut add = |weight: Constant, kind: &str| {
            let constant = Value::constant(format!("{kind} of {name}"), Weight::Numbers(weight));
            Some(graph.add(constant))
        };
        let nodes = match change {
            Change::Folded { mut conv, weights, bias } => {
                let inputs = [add(weights, "weights"), add(bias, "bias")];
                conv.inputs.truncate(1);
                conv.inputs.extend(inputs);
                vec![conv]
            }
            Change::Apart { factor, summand } => {
                let (factor, summand) = (add(factor, "factor"), add(summand, "summand"));
                let norm = graph.nodes[at].clone();
                let (x, y) = (norm.input(0), norm.output(0));
                let fact = y.and_then(|y| graph.value(y).fact.clone());
                let scaled = graph.add(Value { fact, ..Value::named(format!("{name}, scaled")) });
                let scale = Node::new("", "Mul", ARITHMETIC_OPSET, [x, factor], [Some(scaled)]);
                let shift = Node::new("", "Add", ARITHMETIC_OPSET, [Some(scaled), summand], [y]);
                vec![Node { name: norm.name.clone(), ..scale }, Node { name: norm.name, ..shift }]
            }
        };
        replacements.insert(at, nodes);
    }
    Ok(replace(graph, replacements))
}

/// An opset in which `Mul` and `Add` repeat their inputs to one shape.
const ARITHMETIC_OPSET: u32 = 14;

/// What becomes of a normalisation.
enum Change {
    /// The convolution before it, with other weights.
    Folded { conv: Node, weights: Constant, bias: Constant },
    /// A factor and a summand for each channel.
    Apart { factor: Constant, summand: Constant },
}

fn change(look: &Look<'_>, norm: &Node) -> Option<Change> {
    let is_training = norm.attributes.int("training_mode").ok()?.unwrap_or(0) != 0;
    if is_training || norm.opset < 7 || norm.outputs.iter().skip(1).any(Option::is_some) {
        return None;
    }
    let epsilon = norm.attributes.float("epsilon").ok()?.unwrap_or(1e-5);
    let scale = floats(look, norm.input(1))?;
    let channels = scale.len();
    let of_channels = |index: usize| floats(look, norm.input(index)).filter(|list| list.len() == channels);
    let (shift, mean, variance) = (of_channels(2)?, of_channels(3)?, of_channels(4)?);
    let factor: Vec<f64> =
        scale.iter().zip(&variance).map(|(scale, variance)| scale / (variance + epsilon).sqrt()).collect();
    let made_by = |op: &str| norm.input(0).and_then(|x| look.made_only_for(x, op));
    let conv = made_by("Conv").or_else(|| made_by("ConvTranspose"));
    if let Some(folded) = conv.and_then(|conv| folded(look, norm, conv, &factor, &mean, &shift)) {
        return Some(folded);
    }
    let rank = look.graph.value(norm.input(0)?).fact.as_ref()?.dims.as_ref()?.len();
    if conv.is_some() || look.dtype(norm.input(0)?)? != Dtype::F32 || rank < 2 {
        return None;
    }
    let dims: Vec<i64> =
        std::iter::once(i64::try_from(channels).ok()?).chain(std::iter::repeat_n(1, rank - 2)).collect();
    let summand = shift.iter().zip(&mean).zip(&factor).map(|((shift, mean), factor)| shift - mean * factor);
    Some(Change::Apart {
        summand: constant(summand, &dims)?,
        factor: constant(factor.iter().copied(), &dims)?,
    })
}

/// The numbers of a constant of `f32`.
fn floats(look: &Look<'_>, value: Option<ValueId>) -> Option<Vec<f64>> {
    let numbers = look.constant(value?)?;
    if numbers.dtype() == Dtype::F32 { numbers.floats().ok() } else { None }
}

fn constant(numbers: impl Iterator<Item = f64>, dims: &[i64]) -> Option<Constant> {
    let bytes: Vec<u8> = numbers.flat_map(|number| (number as f32).to_ne_bytes()).collect();
    Constant::new(Dtype::F32, dims, bytes).ok()
}

fn folded(
    look: &Look<'_>,
    norm: &Node,
    conv: &Node,
    factor: &[f64],
    mean: &[f64],
    shift: &[f64],
) -> Option<Change> {
    let weights = look.constant(conv.input(1)?)?;
    let outer = [weights.dims().first()?, weights.dims().get(1)?].map(|dim| usize::try_from(*dim).ok());
    let [Some(first), Some(second)] = outer else { return None };
    let groups = usize::try_from(conv.attributes.int("group").ok()?.unwrap_or(1)).ok()?.max(1);
    let is_transposed = &*conv.op == "ConvTranspose";
    let channels = if is_transposed { second.checked_mul(groups)? } else { first };
    let kernels = first.checked_mul(second)?;
    if channels != factor.len() || kernels == 0 || weights.dtype() != Dtype::F32 {
        return None;
    }
    // For which output channel a kernel is, of which there is one for each pair of an input and an output channel of a group.
    let channel_of = |kernel: usize| {
        let (first_of, second_of) = (kernel / second, kernel % second);
        if is_transposed { first_of * groups / first * second + second_of } else { first_of }
    };
    let bias = match conv.input(2) {
        Some(bias) => floats(look, Some(bias)).filter(|bias| bias.len() == channels)?,
        None => vec![0.0; channels],
    };
    let bias = (0..channels).map(|at| (bias[at] - mean[at]) * factor[at] + shift[at]);
    let each = weights.bytes().len() / kernels;
    let mut scaled = Vec::with_capacity(weights.bytes().len());
    for (at, kernel) in weights.bytes().chunks_exact(each.max(1)).enumerate() {
        let factor = factor[channel_of(at)];
        let elements = kernel.as_chunks::<4>().0.iter().map(|bytes| f64::from(f32::from_ne_bytes(*bytes)));
        elements.for_each(|element| scaled.extend(((element * factor) as f32).to_ne_bytes()));
    }
    let mut folded = conv.clone();
    folded.outputs = norm.outputs.iter().copied().take(1).collect();
    Some(Change::Folded {
        conv: folded,
        weights: Constant::new(Dtype::F32, weights.dims(), scaled).ok()?,
        bias: constant(bias, &[i64::try_from(channels).ok()?])?,
    })
}
