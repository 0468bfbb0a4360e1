//! What is computed between numbers of eight bits is computed on these.
//!
//! A quantised model says what its tensors are rounded to by pairs of `QuantizeLinear` and `DequantizeLinear`, and leaves
//! the ops between them to floats. A convolution or product of such tensors is a sum of products of integers, so it becomes
//! one op with what follows it up to the next `QuantizeLinear`. What that op makes is what the floats would make, but where
//! their own rounding decides a tie: there it may be one step off.

mod dynamic;
mod layer;
mod quantization;

use std::collections::{HashMap, HashSet};

use oarlock_core::{Attribute, Attributes, Constant, Dtype, Result};

use self::layer::{IntegerLayer, IntegerLayerKind};
use self::quantization::{QuantizationScheme, QuantizedValue, match_dequantize, match_quantize};
use super::channels_last::{channel_permutations, transpose_node};
use super::graph_view::{GraphView, OARLOCK_DOMAIN, define_pass, replace_nodes};
use super::{GraphPass, PassContext};
use crate::graph::{Graph, GraphValue, Node, ValueId, Weight};

pub(super) use self::dynamic::FUSE_DYNAMIC_QUANTIZATION as DYNAMIC;

pub(super) const FUSE_QUANTIZATION: GraphPass = define_pass(
    "quantised",
    "has convolutions, products and poolings between quantised tensors compute with their integers",
    fuse_quantization,
);

fn fuse_quantization(graph: &mut Graph, scene: &PassContext<'_>) -> Result<usize> {
    if !scene.has_kernel_for("QuantizedConv") {
        return Ok(0);
    }
    let mut found: Vec<(usize, QuantizedRewrite)> = {
        let look = GraphView::of_graph(graph, scene);
        let nodes = graph.nodes.iter().enumerate();
        nodes.filter_map(|(at, node)| Some((at, find_rewrite(&look, node)?))).collect()
    };
    // What becomes part of a sum is not computed for itself; so such sums come first.
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
            QuantizedRewrite::Layer(sum) => fused_nodes(graph, scene, &node, &sum),
            QuantizedRewrite::Moved(moved) => scene.supports_node(graph, &moved).then(|| vec![moved]),
        };
        if let Some(nodes) = nodes {
            absorbed.extend(absorbs);
            replacements.insert(at, nodes);
        }
    }
    Ok(replace_nodes(graph, replacements))
}

/// The weights, as floats, of convolutions and products that are to be computed with integers, or may be once shapes are
/// known. They are not to be folded into constants, which take four times the memory and are of no use then. Where the model is
/// to stay as it is, these are all that are made of eight bits.
pub(super) fn integer_layer_weights(graph: &Graph, scene: &PassContext<'_>) -> HashSet<ValueId> {
    if scene.is_plain {
        let made = graph
            .nodes
            .iter()
            .filter(|node| node.is_op("DequantizeLinear"))
            .flat_map(|node| node.written_values());
        return made.collect();
    }
    if !scene.has_kernel_for("QuantizedConv") {
        return HashSet::new();
    }
    let look = GraphView::of_graph(graph, scene);
    let of_layer = |node: &&Node| node.is_op("Conv") || node.is_op("Gemm") || node.is_op("MatMul");
    let is_open = |node: &&Node| {
        node.input(0).is_some_and(|x| match_dequantize(&look, x).is_some() && look.rank(x).is_none())
    };
    let open = graph.nodes.iter().filter(of_layer).filter(is_open).filter_map(|node| node.input(1));
    let found = graph.nodes.iter().filter_map(|node| match find_rewrite(&look, node)? {
        QuantizedRewrite::Layer(sum) => sum.layer.real_weights,
        QuantizedRewrite::Moved(_) => None,
    });
    open.chain(found).collect()
}

/// What takes the place of a node that makes quantised numbers.
enum QuantizedRewrite {
    Layer(RequantizedSum),
    /// An op that only moves numbers, or picks some, moves those of eight bits.
    Moved(Node),
}

/// A layer with what follows it.
struct RequantizedSum {
    layer: IntegerLayer,
    /// What becomes of the sum.
    step: QuantizationScheme,
    addition: Option<QuantizedAddend>,
}

/// What is added to a layer.
struct QuantizedAddend {
    to: QuantizedValue,
    /// What the layer is rounded to before, and the value that this would be.
    inner: Option<(QuantizationScheme, ValueId)>,
}

impl QuantizedRewrite {
    /// A value that is not needed any more.
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

fn find_rewrite(look: &GraphView<'_>, node: &Node) -> Option<QuantizedRewrite> {
    if node.is_op("QLinearConv") || node.is_op("QLinearMatMul") {
        let (layer, step) = IntegerLayer::match_linear_op(look, node)?;
        return Some(QuantizedRewrite::Layer(RequantizedSum { layer, step, addition: None }));
    }
    let (made, mut step) = match_quantize(look, node)?;
    if let Some(moved) = match_data_movement(look, node, made, &step) {
        return Some(QuantizedRewrite::Moved(moved));
    }
    let made = step.absorb_activations(look, made);
    if let Some(layer) = IntegerLayer::match_float_layer(look, made) {
        return Some(QuantizedRewrite::Layer(RequantizedSum { layer, step, addition: None }));
    }
    let add = look.fusable_producer(made, "Add")?;
    let mut pairs = look.operand_orders(add).into_iter().flatten();
    let (layer, addition) = pairs.find_map(|(own, other)| match_addition(look, own, other))?;
    Some(QuantizedRewrite::Layer(RequantizedSum { layer, step, addition: Some(addition) }))
}

/// A layer, rounded or not, and a quantised tensor of the same shape that is added to it.
fn match_addition(
    look: &GraphView<'_>,
    own: ValueId,
    other: ValueId,
) -> Option<(IntegerLayer, QuantizedAddend)> {
    let to = match_dequantize(look, other)?;
    if own == other || !look.has_same_shape(own, other) {
        return None;
    }
    if let Some(layer) = IntegerLayer::match_float_layer(look, own) {
        return Some((layer, QuantizedAddend { to, inner: None }));
    }
    let again = match_dequantize(look, own).filter(|_| look.is_read_once(own))?;
    let rounded = look.fusable_producer(again.value, "QuantizeLinear")?;
    let (made, mut step) = match_quantize(look, rounded)?;
    let made = step.absorb_activations(look, made);
    let is_same = step.scale == again.step.scale && step.zero == again.step.zero;
    let layer = IntegerLayer::match_float_layer(look, made).filter(|_| is_same)?;
    Some((layer, QuantizedAddend { to, inner: Some((step, again.value)) }))
}

/// An op between two steps that are the same, on the numbers themselves.
fn match_data_movement(
    look: &GraphView<'_>,
    quantize: &Node,
    made: ValueId,
    step: &QuantizationScheme,
) -> Option<Node> {
    let node = look.producer(made).filter(|node| node.domain.is_empty() && look.is_read_once(made))?;
    let moves = match &*node.op {
        "MaxPool" => node.opset >= 12,
        "Transpose" => true,
        _ => node.is_view(),
    };
    let from = node.input(0).filter(|_| moves && node.outputs.len() == 1)?;
    let from = match_dequantize(look, from)?;
    let is_same =
        from.step.dtype == step.dtype && from.step.scale == step.scale && from.step.zero == step.zero;
    let mut moved = node.clone();
    moved.inputs[0] = Some(from.value);
    moved.outputs.clone_from(&quantize.outputs);
    is_same.then_some(moved)
}

/// A layer and what follows it as one op, if the device takes it: a convolution between transposes.
fn fused_nodes(
    graph: &mut Graph,
    scene: &PassContext<'_>,
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
        return scene.supports_node(graph, &own).then(|| vec![own]);
    }
    let (last, first) = channel_permutations(graph.value(x).dims()?.len());
    let (turned_x, turned_y) =
        (scene.add_transposed_value(graph, x, &last)?, scene.add_transposed_value(graph, y, &last)?);
    let turned_z = match z {
        None => None,
        Some(z) => Some((z, scene.add_transposed_value(graph, z, &last)?)),
    };
    let own = own(turned_x, turned_z.map(|(_, turned)| turned), turned_y);
    if !scene.supports_node(graph, &own) {
        return None;
    }
    let mut nodes = vec![transpose_node(x, turned_x, last.clone())];
    nodes.extend(turned_z.map(|(z, turned)| transpose_node(z, turned, last)));
    nodes.extend([own, transpose_node(turned_y, y, first)]);
    Some(nodes)
}

/// The zero points, bounds and factors.
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
