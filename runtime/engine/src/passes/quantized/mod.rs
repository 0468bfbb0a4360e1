//! Computes in 8 bits what a quantized model computes between 8-bit values.
//!
//! A quantized model marks what its tensors are rounded to by pairs of `QuantizeLinear` and `DequantizeLinear`; the ops between
//! them work on floats. A convolution or product of such tensors is a sum of integer products, so it becomes one op, together
//! with what follows up to the next `QuantizeLinear`. Results equal those of floats, except where the rounding of the floats
//! themselves decides a tie: there they may differ by one step.

mod byte_map;
mod dynamic;
mod layer;
mod quantization;

use std::collections::{HashMap, HashSet};

use oarlock_core::{Attribute, Attributes, Constant, Dtype, Result};

use self::layer::{IntegerLayer, IntegerLayerKind};
use self::quantization::{QuantizationScheme, QuantizedValue, match_dequantize, match_quantize};
use super::channels_last::{channel_permutations, transpose_node};
use super::graph_view::{GraphView, define_pass, replace_nodes};
use super::{GraphPass, PassContext};
use crate::graph::{Graph, GraphValue, Node, ValueId, Weight};
use oarlock_core::schema::OARLOCK_DOMAIN;

pub(super) use self::byte_map::FUSE_BYTE_MAPS;
pub(super) use self::dynamic::FUSE_DYNAMIC_QUANTIZATION;

pub(super) const FUSE_QUANTIZATION: GraphPass = define_pass(
    "quantization fusion",
    "runs convolutions, products and pools between quantized tensors on their integers",
    fuse_quantization,
);

fn fuse_quantization(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    if !context.has_kernel_for("QuantizedConv") {
        return Ok(0);
    }
    let mut found: Vec<(usize, QuantizedRewrite)> = {
        let view = GraphView::of_graph(graph, context);
        let nodes = graph.nodes.iter().enumerate();
        nodes.filter_map(|(at, node)| Some((at, find_rewrite(&view, node)?))).collect()
    };
    // Rewrites that absorb another sum come first, so that the absorbed one is not rewritten on its own.
    found.sort_by_key(|(_, found)| found.absorbed_value().is_none());
    let mut absorbed: HashSet<ValueId> = HashSet::new();
    let mut replacements = HashMap::new();
    for (at, found) in found {
        let node = graph.nodes[at].clone();
        if node.output(0).is_some_and(|made| absorbed.contains(&made)) {
            continue;
        }
        let absorbs = found.absorbed_value();
        let nodes = match found {
            QuantizedRewrite::Layer(sum) => fused_nodes(graph, context, &node, &sum),
            QuantizedRewrite::Moved(moved) => context.supports_node(graph, &moved).then(|| vec![moved]),
        };
        if let Some(nodes) = nodes {
            absorbed.extend(absorbs);
            replacements.insert(at, nodes);
        }
    }
    Ok(replace_nodes(graph, replacements))
}

/// Float weights of layers that are, or may be once shapes are known, computed in integers. They must not be folded: constants
/// of floats take four times the memory and would be of no use. In a plain session, these are all values that are dequantized.
pub(super) fn integer_layer_weights(graph: &Graph, context: &PassContext<'_>) -> HashSet<ValueId> {
    if context.is_plain {
        let made = graph
            .nodes
            .iter()
            .filter(|node| node.is_op("DequantizeLinear"))
            .flat_map(|node| node.written_values());
        return made.collect();
    }
    if !context.has_kernel_for("QuantizedConv") {
        return HashSet::new();
    }
    let view = GraphView::of_graph(graph, context);
    let of_layer = |node: &&Node| node.is_op("Conv") || node.is_op("Gemm") || node.is_op("MatMul");
    let is_open = |node: &&Node| {
        node.input(0).is_some_and(|x| match_dequantize(&view, x).is_some() && view.rank(x).is_none())
    };
    let open = graph.nodes.iter().filter(of_layer).filter(is_open).filter_map(|node| node.input(1));
    let found = graph.nodes.iter().filter_map(|node| match find_rewrite(&view, node)? {
        QuantizedRewrite::Layer(sum) => sum.layer.real_weights,
        QuantizedRewrite::Moved(_) => None,
    });
    open.chain(found).collect()
}

/// The replacement for a node that quantizes.
enum QuantizedRewrite {
    Layer(RequantizedSum),
    /// A data-movement op, applied to the 8-bit values instead.
    Moved(Node),
}

/// A layer with everything up to the next quantization.
struct RequantizedSum {
    layer: IntegerLayer,
    /// Quantization of the output.
    step: QuantizationScheme,
    addition: Option<QuantizedAddend>,
}

/// A residual that is added to a layer.
struct QuantizedAddend {
    to: QuantizedValue,
    /// Quantization of the layer before the addition, if any, and the value that held it.
    inner: Option<(QuantizationScheme, ValueId)>,
}

impl QuantizedRewrite {
    /// The value that becomes unnecessary, if any.
    fn absorbed_value(&self) -> Option<ValueId> {
        match self {
            Self::Layer(RequantizedSum {
                addition: Some(QuantizedAddend { inner: Some((_, value)), .. }),
                ..
            }) => Some(*value),
            _ => None,
        }
    }
}

fn find_rewrite(view: &GraphView<'_>, node: &Node) -> Option<QuantizedRewrite> {
    if node.is_op("QLinearConv") || node.is_op("QLinearMatMul") {
        let (layer, step) = IntegerLayer::match_linear_op(view, node)?;
        return Some(QuantizedRewrite::Layer(RequantizedSum { layer, step, addition: None }));
    }
    let (made, mut step) = match_quantize(view, node)?;
    if let Some(moved) = match_data_movement(view, node, made, &step) {
        return Some(QuantizedRewrite::Moved(moved));
    }
    let made = step.absorb_activations(view, made);
    if let Some(layer) = IntegerLayer::match_float_layer(view, made) {
        return Some(QuantizedRewrite::Layer(RequantizedSum { layer, step, addition: None }));
    }
    let add = view.fusable_producer(made, "Add")?;
    let mut pairs = view.operand_orders(add).into_iter().flatten();
    let (layer, addition) = pairs.find_map(|(own, other)| match_addition(view, own, other))?;
    Some(QuantizedRewrite::Layer(RequantizedSum { layer, step, addition: Some(addition) }))
}

/// Matches the sum of a layer, rounded or not, and a quantized tensor of the same shape.
fn match_addition(
    view: &GraphView<'_>,
    own: ValueId,
    other: ValueId,
) -> Option<(IntegerLayer, QuantizedAddend)> {
    let to = match_dequantize(view, other)?;
    if own == other || !view.has_same_shape(own, other) {
        return None;
    }
    if let Some(layer) = IntegerLayer::match_float_layer(view, own) {
        return Some((layer, QuantizedAddend { to, inner: None }));
    }
    let again = match_dequantize(view, own).filter(|_| view.is_read_once(own))?;
    let rounded = view.fusable_producer(again.value, "QuantizeLinear")?;
    let (made, mut step) = match_quantize(view, rounded)?;
    let made = step.absorb_activations(view, made);
    let is_same = step.scale == again.step.scale && step.zero == again.step.zero;
    let layer = IntegerLayer::match_float_layer(view, made).filter(|_| is_same)?;
    Some((layer, QuantizedAddend { to, inner: Some((step, again.value)) }))
}

/// Matches a data-movement op between a dequantization and an equal quantization.
fn match_data_movement(
    view: &GraphView<'_>,
    quantize: &Node,
    made: ValueId,
    step: &QuantizationScheme,
) -> Option<Node> {
    let node = view.producer(made).filter(|node| node.domain.is_empty() && view.is_read_once(made))?;
    let moves = match &*node.op {
        "MaxPool" => node.opset >= 12,
        "Transpose" => true,
        _ => node.is_view(),
    };
    let from = node.input(0).filter(|_| moves && node.outputs.len() == 1)?;
    let from = match_dequantize(view, from)?;
    let is_same =
        from.step.dtype == step.dtype && from.step.scale == step.scale && from.step.zero == step.zero;
    let mut moved = node.clone();
    moved.inputs[0] = Some(from.value);
    moved.outputs.clone_from(&quantize.outputs);
    is_same.then_some(moved)
}

/// The fused op, with transposes around a convolution; `None` if the device does not support it.
fn fused_nodes(
    graph: &mut Graph,
    context: &PassContext<'_>,
    node: &Node,
    sum: &RequantizedSum,
) -> Option<Vec<Node>> {
    let RequantizedSum { layer, step, addition } = sum;
    let same_dtype = |other: &QuantizationScheme| other.dtype == step.dtype;
    if !same_dtype(&layer.x.step) || !addition.as_ref().is_none_or(|addition| same_dtype(&addition.to.step)) {
        return None;
    }
    let inner = addition.as_ref().and_then(|addition| addition.inner.as_ref()).map(|(step, _)| step);
    let scale = layer.requantize_factors(inner.unwrap_or(step))?;
    let label = node.label();
    let mut constant = |dtype, bytes: Vec<u8>, dims: &[i64], what: &str| {
        let constant = Constant::new(dtype, dims, bytes).ok()?;
        Some(
            graph.add_value(GraphValue::with_weight(format!("{what} of {label}"), Weight::Numbers(constant))),
        )
    };
    let bytes: Vec<u8> = scale.iter().flat_map(|factor| factor.to_ne_bytes()).collect();
    let scale = constant(Dtype::F32, bytes, &[i64::try_from(scale.len()).ok()?], "factors")?;
    let bias = match &layer.bias {
        None => None,
        Some(bias) => {
            let bytes = bias.iter().flat_map(|bias| bias.to_ne_bytes()).collect();
            Some(constant(Dtype::I32, bytes, &[i64::try_from(bias.len()).ok()?], "bias")?)
        }
    };
    let weights = match &layer.moved_weights {
        None => layer.w,
        Some((dims, bytes)) => constant(Dtype::I8, bytes.clone(), dims, "weights")?,
    };
    let mut attributes = layer.attributes.clone();
    set_quantization_attributes(&mut attributes, layer, step, addition.as_ref());
    let (x, y) = (layer.x.value, node.output(0)?);
    let z = addition.as_ref().map(|addition| addition.to.value);
    let mut own = |x, z: Option<ValueId>, y| {
        let inputs = [Some(x), Some(weights), Some(scale), bias, z];
        let used = inputs.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        let mut own =
            Node::new(OARLOCK_DOMAIN, layer.kind.op_name(), 1, inputs.into_iter().take(used), [Some(y)]);
        own.attributes = std::mem::take(&mut attributes);
        own.name = node.name.clone();
        own
    };
    if layer.kind == IntegerLayerKind::Product {
        let own = own(x, z, y);
        return context.supports_node(graph, &own).then(|| vec![own]);
    }
    let (last, first) = channel_permutations(graph.value(x).dims()?.len());
    let (transposed_x, transposed_y) =
        (context.add_transposed_value(graph, x, &last)?, context.add_transposed_value(graph, y, &last)?);
    let transposed_z = match z {
        None => None,
        Some(z) => Some((z, context.add_transposed_value(graph, z, &last)?)),
    };
    let own = own(transposed_x, transposed_z.map(|(_, transposed)| transposed), transposed_y);
    if !context.supports_node(graph, &own) {
        return None;
    }
    let mut nodes = vec![transpose_node(x, transposed_x, last.clone())];
    nodes.extend(transposed_z.map(|(z, transposed)| transpose_node(z, transposed, last)));
    nodes.extend([own, transpose_node(transposed_y, y, first)]);
    Some(nodes)
}

/// Sets zero points, bounds and factors.
fn set_quantization_attributes(
    attributes: &mut Attributes,
    layer: &IntegerLayer,
    step: &QuantizationScheme,
    addition: Option<&QuantizedAddend>,
) {
    attributes.set("x_zero", Attribute::Int(layer.x.step.zero));
    attributes.set("y_zero", Attribute::Int(step.zero));
    attributes.set("bounds", Attribute::Ints(step.bounds.to_vec()));
    let Some(QuantizedAddend { to, inner }) = addition else { return };
    let factor = |scale: f32| Attribute::Float(f64::from(scale / step.scale));
    attributes.set("z_zero", Attribute::Int(to.step.zero));
    attributes.set("z_factor", factor(to.step.scale));
    if let Some((inner, _)) = inner {
        attributes.set("inner_factor", factor(inner.scale));
        let bounds = inner.bounds.map(|bound| bound - inner.zero).to_vec();
        attributes.set("inner_bounds", Attribute::Ints(bounds));
    }
}
