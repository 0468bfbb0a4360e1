//! Folds batch normalization into the preceding convolution, or rewrites it as a scale and a shift for each channel.

use std::collections::HashMap;

use oarlock_core::{Constant, Dtype, Result};

use super::graph_view::{GraphView, define_pass, replace_nodes};
use super::{GraphPass, PassContext};
use crate::graph::{Graph, GraphValue, Node, ValueId, Weight};

pub(super) const FOLD_BATCH_NORM: GraphPass = define_pass(
    "batch normalization folding",
    "scales the weights of the convolution before it once; elsewhere leaves one factor and one \
     summand for each channel",
    fold_batch_norms,
);

fn fold_batch_norms(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    let found: Vec<(usize, BatchNormRewrite)> = {
        let view = GraphView::of_graph(graph, context);
        let norms = graph.nodes.iter().enumerate().filter(|(_, node)| node.is_op("BatchNormalization"));
        norms.filter_map(|(at, node)| Some((at, plan_rewrite(&view, node)?))).collect()
    };
    let mut replacements = HashMap::new();
    for (at, change) in found {
        let name = graph.nodes[at].label();
        let mut add = |weight: Constant, kind: &str| {
            let constant = GraphValue::with_weight(format!("{kind} of {name}"), Weight::Numbers(weight));
            Some(graph.add_value(constant))
        };
        let nodes = match change {
            BatchNormRewrite::Folded { mut conv, weights, bias } => {
                let inputs = [add(weights, "weights"), add(bias, "bias")];
                conv.inputs.truncate(1);
                conv.inputs.extend(inputs);
                vec![conv]
            }
            BatchNormRewrite::Apart { factor, summand } => {
                let (factor, summand) = (add(factor, "factor"), add(summand, "summand"));
                let norm = graph.nodes[at].clone();
                let (x, y) = (norm.input(0), norm.output(0));
                let fact = y.and_then(|y| graph.value(y).fact.clone());
                let scaled =
                    graph.add_value(GraphValue { fact, ..GraphValue::with_name(format!("{name}, scaled")) });
                let scale = Node::new("", "Mul", ARITHMETIC_OPSET, [x, factor], [Some(scaled)]);
                let shift = Node::new("", "Add", ARITHMETIC_OPSET, [Some(scaled), summand], [y]);
                vec![Node { name: norm.name.clone(), ..scale }, Node { name: norm.name, ..shift }]
            }
        };
        replacements.insert(at, nodes);
    }
    Ok(replace_nodes(graph, replacements))
}

/// An opset in which `Mul` and `Add` broadcast in both directions.
const ARITHMETIC_OPSET: u32 = 14;

enum BatchNormRewrite {
    /// The preceding convolution with scaled weights and a new bias.
    Folded { conv: Node, weights: Constant, bias: Constant },
    /// A factor and a summand for each channel.
    Apart { factor: Constant, summand: Constant },
}

fn plan_rewrite(view: &GraphView<'_>, norm: &Node) -> Option<BatchNormRewrite> {
    let is_training = norm.attributes.get_int("training_mode").ok()?.unwrap_or(0) != 0;
    if is_training || norm.opset < 7 || norm.outputs.iter().skip(1).any(Option::is_some) {
        return None;
    }
    let epsilon = norm.attributes.get_float("epsilon").ok()?.unwrap_or(1e-5);
    let scale = constant_floats(view, norm.input(1))?;
    let channels = scale.len();
    let of_channels =
        |index: usize| constant_floats(view, norm.input(index)).filter(|list| list.len() == channels);
    let (shift, mean, variance) = (of_channels(2)?, of_channels(3)?, of_channels(4)?);
    let factor: Vec<f64> =
        scale.iter().zip(&variance).map(|(scale, variance)| scale / (variance + epsilon).sqrt()).collect();
    let made_by = |op: &str| norm.input(0).and_then(|x| view.fusable_producer(x, op));
    let conv = made_by("Conv").or_else(|| made_by("ConvTranspose"));
    if let Some(folded) =
        conv.and_then(|conv| fold_into_convolution(view, norm, conv, &factor, &mean, &shift))
    {
        return Some(folded);
    }
    let rank = view.graph.value(norm.input(0)?).fact.as_ref()?.dims.as_ref()?.len();
    if conv.is_some() || view.dtype(norm.input(0)?)? != Dtype::F32 || rank < 2 {
        return None;
    }
    let dims: Vec<i64> =
        std::iter::once(i64::try_from(channels).ok()?).chain(std::iter::repeat_n(1, rank - 2)).collect();
    let summand = shift.iter().zip(&mean).zip(&factor).map(|((shift, mean), factor)| shift - mean * factor);
    Some(BatchNormRewrite::Apart {
        summand: float_constant(summand, &dims)?,
        factor: float_constant(factor.iter().copied(), &dims)?,
    })
}

/// Elements of an f32 constant; `None` for other dtypes.
fn constant_floats(view: &GraphView<'_>, value: Option<ValueId>) -> Option<Vec<f64>> {
    let numbers = view.constant(value?)?;
    if numbers.dtype() == Dtype::F32 { numbers.to_floats().ok() } else { None }
}

fn float_constant(numbers: impl Iterator<Item = f64>, dims: &[i64]) -> Option<Constant> {
    let bytes: Vec<u8> = numbers.flat_map(|number| (number as f32).to_ne_bytes()).collect();
    Constant::new(Dtype::F32, dims, bytes).ok()
}

fn fold_into_convolution(
    view: &GraphView<'_>,
    norm: &Node,
    conv: &Node,
    factor: &[f64],
    mean: &[f64],
    shift: &[f64],
) -> Option<BatchNormRewrite> {
    let weights = view.constant(conv.input(1)?)?;
    let outer = [weights.dims().first()?, weights.dims().get(1)?].map(|dim| usize::try_from(*dim).ok());
    let [Some(first), Some(second)] = outer else { return None };
    let groups = usize::try_from(conv.attributes.get_int("group").ok()?.unwrap_or(1)).ok()?.max(1);
    let is_transposed = &*conv.op == "ConvTranspose";
    let channels = if is_transposed { second.checked_mul(groups)? } else { first };
    let kernels = first.checked_mul(second)?;
    if channels != factor.len() || kernels == 0 || weights.dtype() != Dtype::F32 {
        return None;
    }
    // The output channel of a kernel. There is one kernel for each pair of an input and an output channel within a group.
    let channel_of = |kernel: usize| {
        let (first_of, second_of) = (kernel / second, kernel % second);
        if is_transposed { first_of * groups / first * second + second_of } else { first_of }
    };
    let bias = match conv.input(2) {
        Some(bias) => constant_floats(view, Some(bias)).filter(|bias| bias.len() == channels)?,
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
    Some(BatchNormRewrite::Folded {
        conv: folded,
        weights: Constant::new(Dtype::F32, weights.dims(), scaled).ok()?,
        bias: float_constant(bias, &[i64::try_from(channels).ok()?])?,
    })
}
