//! What is computed between numbers of eight bits is computed on these.
//!
//! A quantised model says what its tensors are rounded to by pairs of `QuantizeLinear` and `DequantizeLinear`, and leaves
//! the ops between them to floats. A convolution or product of such tensors is a sum of products of integers, so it becomes
//! one op with what follows it up to the next `QuantizeLinear`. What that op makes is what the floats would make, but where
//! their own rounding decides a tie: there it may be one step off.

mod dynamic;
mod layer;
mod parts;

use std::collections::{HashMap, HashSet};

use oarlock_core::{Attribute, Attributes, Constant, Dtype, Result};

use self::layer::{Kind, Layer};
use self::parts::{Step, Stepped, dequantized, quantize_step};
use super::channels_last::{orders, transpose};
use super::common::{Look, OARLOCK, pass, replace};
use super::{Pass, Scene};
use crate::graph::{Graph, Node, Value, ValueId, Weight};

pub(super) use self::dynamic::PASS as DYNAMIC;

pub(super) const PASS: Pass = pass(
    "quantised",
    "has convolutions, products and poolings between quantised tensors compute with their integers",
    run,
);

fn run(graph: &mut Graph, scene: &Scene<'_>) -> Result<usize> {
    if !scene.has("QuantizedConv") {
        return Ok(0);
    }
    let mut found: Vec<(usize, Found)> = {
        let look = Look::at(graph, scene);
        let nodes = graph.nodes.iter().enumerate();
        nodes.filter_map(|(at, node)| Some((at, find(&look, node)?))).collect()
    };
    // What becomes part of a sum is not computed for itself; so such sums come first.
    found.sort_by_key(|(_, found)| found.absorbed().is_none());
    let mut absorbed: HashSet<ValueId> = HashSet::new();
    let mut replacements = HashMap::new();
    for (at, found) in found {
        let node = graph.nodes[at].clone();
        if node.output(0).is_some_and(|made| absorbed.contains(&made)) {
            continue;
        }
        let absorbs = found.absorbed();
        let nodes = match found {
            Found::Layer(sum) => written(graph, scene, &node, &sum),
            Found::Moved(moved) => scene.takes(graph, &moved).then(|| vec![moved]),
        };
        if let Some(nodes) = nodes {
            absorbed.extend(absorbs);
            replacements.insert(at, nodes);
        }
    }
    Ok(replace(graph, replacements))
}

/// The weights, as floats, of convolutions and products that are to be computed with integers, or may be once shapes are
/// known. They are not to be folded into constants, which take four times the memory and are of no use then. Where the model is
/// to stay as it is, these are all that are made of eight bits.
pub(super) fn weights(graph: &Graph, scene: &Scene<'_>) -> HashSet<ValueId> {
    if scene.is_plain {
        let made =
            graph.nodes.iter().filter(|node| node.is("DequantizeLinear")).flat_map(|node| node.makes());
        return made.collect();
    }
    if !scene.has("QuantizedConv") {
        return HashSet::new();
    }
    let look = Look::at(graph, scene);
    let of_layer = |node: &&Node| node.is("Conv") || node.is("Gemm") || node.is("MatMul");
    let is_open = |node: &&Node| {
        node.input(0).is_some_and(|x| dequantized(&look, x).is_some() && look.rank(x).is_none())
    };
    let open = graph.nodes.iter().filter(of_layer).filter(is_open).filter_map(|node| node.input(1));
    let found = graph.nodes.iter().filter_map(|node| match find(&look, node)? {
        Found::Layer(sum) => sum.layer.real_weights,
        Found::Moved(_) => None,
    });
    open.chain(found).collect()
}

/// What takes the place of a node that makes quantised numbers.
enum Found {
    Layer(Sum),
    /// An op that only moves numbers, or picks some, moves those of eight bits.
    Moved(Node),
}

/// A layer with what follows it.
struct Sum {
    layer: Layer,
    /// What becomes of the sum.
    step: Step,
    addition: Option<Addition>,
}

/// What is added to a layer.
struct Addition {
    to: Stepped,
    /// What the layer is rounded to before, and the value that this would be.
    inner: Option<(Step, ValueId)>,
}

impl Found {
    /// A value that is not needed any more.
    fn absorbed(&self) -> Option<ValueId> {
        match self {
            Self::Layer(Sum { addition: Some(Addition { inner: Some((_, value)), .. }), .. }) => Some(*value),
            _ => None,
        }
    }
}

fn find(look: &Look<'_>, node: &Node) -> Option<Found> {
    if node.is("QLinearConv") || node.is("QLinearMatMul") {
        let (layer, step) = Layer::of_linear(look, node)?;
        return Some(Found::Layer(Sum { layer, step, addition: None }));
    }
    let (made, mut step) = quantize_step(look, node)?;
    if let Some(moved) = moved(look, node, made, &step) {
        return Some(Found::Moved(moved));
    }
    let made = step.narrowed(look, made);
    if let Some(layer) = Layer::of(look, made) {
        return Some(Found::Layer(Sum { layer, step, addition: None }));
    }
    let add = look.made_only_for(made, "Add")?;
    let mut pairs = look.either_way(add).into_iter().flatten();
    let (layer, addition) = pairs.find_map(|(own, other)| added(look, own, other))?;
    Some(Found::Layer(Sum { layer, step, addition: Some(addition) }))
}

/// A layer, rounded or not, and a quantised tensor of the same shape that is added to it.
fn added(look: &Look<'_>, own: ValueId, other: ValueId) -> Option<(Layer, Addition)> {
    let to = dequantized(look, other)?;
    if own == other || !look.has_same_shape(own, other) {
        return None;
    }
    if let Some(layer) = Layer::of(look, own) {
        return Some((layer, Addition { to, inner: None }));
    }
    let again = dequantized(look, own).filter(|_| look.is_read_once(own))?;
    let rounded = look.made_only_for(again.value, "QuantizeLinear")?;
    let (made, mut step) = quantize_step(look, rounded)?;
    let made = step.narrowed(look, made);
    let is_same = step.scale == again.step.scale && step.zero == again.step.zero;
    let layer = Layer::of(look, made).filter(|_| is_same)?;
    Some((layer, Addition { to, inner: Some((step, again.value)) }))
}

/// An op between two steps that are the same, on the numbers themselves.
fn moved(look: &Look<'_>, quantize: &Node, made: ValueId, step: &Step) -> Option<Node> {
    let node = look.maker(made).filter(|node| node.domain.is_empty() && look.is_read_once(made))?;
    let moves = match &*node.op {
        "MaxPool" => node.opset >= 12,
        "Transpose" => true,
        _ => node.is_view(),
    };
    let from = node.input(0).filter(|_| moves && node.outputs.len() == 1)?;
    let from = dequantized(look, from)?;
    let is_same =
        from.step.dtype == step.dtype && from.step.scale == step.scale && from.step.zero == step.zero;
    let mut moved = node.clone();
    moved.inputs[0] = Some(from.value);
    moved.outputs.clone_from(&quantize.outputs);
    is_same.then_some(moved)
}

/// A layer and what follows it as one op, if the device takes it: a convolution between transposes.
fn written(graph: &mut Graph, scene: &Scene<'_>, node: &Node, sum: &Sum) -> Option<Vec<Node>> {
    let Sum { layer, step, addition } = sum;
    let same_dtype = |other: &Step| other.dtype == step.dtype;
    if !same_dtype(&layer.x.step) || !addition.as_ref().is_none_or(|addition| same_dtype(&addition.to.step)) {
        return None;
    }
    let inner = addition.as_ref().and_then(|addition| addition.inner.as_ref()).map(|(step, _)| step);
    let scale = layer.factors(inner.unwrap_or(step))?;
    let label = node.label();
    let mut constant = |dtype, bytes: Vec<u8>, dims: &[i64], what: &str| {
        let constant = Constant::new(dtype, dims, bytes).ok()?;
        Some(graph.add(Value::constant(format!("{what} of {label}"), Weight::Numbers(constant))))
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
    step_attributes(&mut attributes, layer, step, addition.as_ref());
    let (x, y) = (layer.x.value, node.output(0)?);
    let z = addition.as_ref().map(|addition| addition.to.value);
    let mut own = |x, z: Option<ValueId>, y| {
        let inputs = [Some(x), Some(weights), Some(scale), bias, z];
        let used = inputs.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        let mut own = Node::new(OARLOCK, layer.kind.op(), 1, inputs.into_iter().take(used), [Some(y)]);
        own.attributes = std::mem::take(&mut attributes);
        own.name = node.name.clone();
        own
    };
    if layer.kind == Kind::Product {
        let own = own(x, z, y);
        return scene.takes(graph, &own).then(|| vec![own]);
    }
    let (last, first) = orders(graph.value(x).dims()?.len());
    let (turned_x, turned_y) = (scene.add_turned(graph, x, &last)?, scene.add_turned(graph, y, &last)?);
    let turned_z = match z {
        None => None,
        Some(z) => Some((z, scene.add_turned(graph, z, &last)?)),
    };
    let own = own(turned_x, turned_z.map(|(_, turned)| turned), turned_y);
    if !scene.takes(graph, &own) {
        return None;
    }
    let mut nodes = vec![transpose(x, turned_x, last.clone())];
    nodes.extend(turned_z.map(|(z, turned)| transpose(z, turned, last)));
    nodes.extend([own, transpose(turned_y, y, first)]);
    Some(nodes)
}

/// The zero points, bounds and factors.
fn step_attributes(attributes: &mut Attributes, layer: &Layer, step: &Step, addition: Option<&Addition>) {
    attributes.set("x_zero", Attribute::Int(layer.x.step.zero));
    attributes.set("y_zero", Attribute::Int(step.zero));
    attributes.set("bounds", Attribute::Ints(step.bounds.to_vec()));
    let Some(Addition { to, inner }) = addition else { return };
    let factor = |scale: f32| Attribute::Float(f64::from(scale / step.scale));
    attributes.set("z_zero", Attribute::Int(to.step.zero));
    attributes.set("z_factor", factor(to.step.scale));
    if let Some((inner, _)) = inner {
        attributes.set("inner_factor", factor(inner.scale));
        let bounds = inner.bounds.map(|bound| bound - inner.zero).to_vec();
        attributes.set("inner_bounds", Attribute::Ints(bounds));
    }
}
