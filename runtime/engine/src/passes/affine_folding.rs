//! Folds affine maps of channels into the constant weights of the convolution before or after them.

use std::collections::{HashMap, HashSet};

use oarlock_core::infer::TensorFact;
use oarlock_core::{Constant, Result};

use super::channel_affine::{ChannelAffine, float_constant};
use super::conv_kernels::{ConvConstants, ConvKernels};
use super::graph_view::{GraphView, define_pass, replace_nodes};
use super::{GraphPass, PassContext};
use crate::graph::{Graph, GraphValue, Node, ValueId, Weight};

pub(super) const FOLD_AFFINE_OUTPUTS: GraphPass = define_pass(
    "affine folding",
    "scales the weights of a convolution once, instead of its outputs by batch normalization or by \
     arithmetic with constants",
    fold_affine_outputs,
);

pub(super) const FOLD_AFFINE_INPUTS: GraphPass = define_pass(
    "affine input folding",
    "scales the weights of a convolution once, instead of its inputs",
    fold_affine_inputs,
);

fn fold_affine_outputs(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    let mut found = Vec::new();
    {
        let view = GraphView::of_graph(graph, context);
        let mut folded = HashSet::new();
        // The last nodes first, so that a chain is folded as a whole.
        for (at, node) in graph.nodes.iter().enumerate().rev() {
            if let Some((conv, constants)) = fold_outputs(&view, node)
                && folded.insert(conv.output(0))
            {
                let conv = Node { outputs: [node.output(0)].into_iter().collect(), ..conv.clone() };
                found.push((at, conv, constants));
            }
        }
    }
    let mut replacements = HashMap::new();
    for (at, mut conv, constants) in found {
        constants.replace_in(graph, &mut conv);
        replacements.insert(at, vec![conv]);
    }
    Ok(replace_nodes(graph, replacements))
}

/// The convolution before a chain of affine maps that ends in a node, and its constants with the maps in them.
fn fold_outputs<'a>(view: &GraphView<'a>, node: &Node) -> Option<(&'a Node, ConvConstants)> {
    let (input, map) = ChannelAffine::from_chain(view, node.output(0)?)?;
    let kernels = convolution_before(view, input)?;
    if !map.fits(kernels.output_channels(), kernels.rank()) {
        return None;
    }
    let weights = kernels.scaled(|output, _| map.at(output).0)?;
    let bias = kernels.bias(view)?.into_iter().enumerate().map(|(channel, bias)| {
        let (factor, summand) = map.at(channel);
        bias * factor + summand
    });
    Some((kernels.node(), kernels.with_constants(weights, bias)?))
}

/// The convolution with constant weights that makes a value, if nothing else reads it.
fn convolution_before<'a>(view: &GraphView<'a>, value: ValueId) -> Option<ConvKernels<'a>> {
    let kernels = ConvKernels::from_node(view, view.producer(value)?)?;
    let is_only_output = kernels.node().outputs.len() == 1;
    (is_only_output && view.is_read_once(value) && kernels.bias(view).is_some()).then_some(kernels)
}

/// A convolution with the affine maps before it in its weights.
struct FoldedInputs {
    conv: Node,
    constants: ConvConstants,
    /// The value before the maps.
    input: ValueId,
    /// What remains to be added before the convolution, because its padding is not shifted.
    shift: Option<Constant>,
}

fn fold_affine_inputs(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    let found: Vec<(usize, FoldedInputs)> = {
        let view = GraphView::of_graph(graph, context);
        let folded = |(at, node)| Some((at, fold_inputs(&view, node)?));
        graph.nodes.iter().enumerate().filter_map(folded).collect()
    };
    let mut replacements = HashMap::new();
    for (at, folded) in found {
        let FoldedInputs { mut conv, constants, input, shift } = folded;
        constants.replace_in(graph, &mut conv);
        let addition = shift.map(|shift| add_shift(graph, &conv, input, shift));
        let shifted = addition.as_ref().and_then(|addition| addition.output(0));
        conv.inputs[0] = shifted.or(Some(input));
        replacements.insert(at, addition.into_iter().chain([conv]).collect());
    }
    Ok(replace_nodes(graph, replacements))
}

/// The sum of a value and a constant, as the input of a convolution.
fn add_shift(graph: &mut Graph, conv: &Node, input: ValueId, shift: Constant) -> Node {
    let label = conv.label();
    let shift = graph.add_value(GraphValue::with_weight(format!("shift of {label}"), Weight::Numbers(shift)));
    let fact = graph.value(input).fact.clone().map(|fact| TensorFact { value: None, ..fact });
    let shifted =
        graph.add_value(GraphValue { fact, ..GraphValue::with_name(format!("shifted input of {label}")) });
    Node::new("", "Add", ADD_OPSET, [Some(input), Some(shift)], [Some(shifted)])
}

fn fold_inputs(view: &GraphView<'_>, node: &Node) -> Option<FoldedInputs> {
    let made = node.input(0).filter(|made| view.is_read_once(*made))?;
    let (input, map) = ChannelAffine::from_chain(view, made)?;
    let kernels = ConvKernels::from_node(view, node)?;
    let fits = map.fits(kernels.input_channels(), kernels.rank());
    // Constants may broadcast one channel to several. Another convolution before the maps takes them without a change of this one.
    if !fits || !view.has_same_shape(input, made) || convolution_before(view, input).is_some() {
        return None;
    }
    let has_shift = map.pairs().any(|(_, summand)| summand != 0.0);
    let bias = kernels.bias(view)?.into_iter();
    if !has_shift || !is_padded(node) {
        let shifted = kernels.sums(|input| map.at(input).1)?;
        return folded(&kernels, &map, bias.zip(shifted).map(|(bias, sum)| bias + sum), input, None);
    }
    // factor · x + summand is factor · (x + summand / factor); the padding stays 0 if only the factor goes into the weights.
    let is_scaled = map.pairs().any(|(factor, _)| factor != 1.0);
    let shifts: Vec<f64> = map.pairs().map(|(factor, summand)| summand / factor).collect();
    let is_finite = shifts.iter().all(|shift| (*shift as f32).is_finite());
    let dims: Vec<i64> =
        std::iter::once(shifts.len() as i64).chain(std::iter::repeat_n(1, kernels.rank() - 2)).collect();
    let shift = (is_scaled && is_finite).then(|| float_constant(shifts.into_iter(), &dims))??;
    folded(&kernels, &map, bias, input, Some(shift))
}

fn folded(
    kernels: &ConvKernels<'_>,
    map: &ChannelAffine,
    bias: impl Iterator<Item = f64>,
    input: ValueId,
    shift: Option<Constant>,
) -> Option<FoldedInputs> {
    let weights = kernels.scaled(|_, input| map.at(input).0)?;
    let constants = kernels.with_constants(weights, bias)?;
    Some(FoldedInputs { conv: kernels.node().clone(), constants, input, shift })
}

/// True if a convolution may read padding. A transposed one does so at all borders.
fn is_padded(conv: &Node) -> bool {
    let is_none = |pads: Option<&[i64]>| pads.is_none_or(|pads| pads.iter().all(|pad| *pad == 0));
    let is_valid = match conv.attributes.get_string("auto_pad") {
        Ok(None | Some("NOTSET" | "")) => conv.attributes.get_ints("pads").is_ok_and(is_none),
        Ok(Some("VALID")) => true,
        _ => false,
    };
    !is_valid || conv.is_op("ConvTranspose")
}

/// An opset in which `Add` broadcasts in both directions.
const ADD_OPSET: u32 = 14;
