//! Fuses bias, residual and activation into the preceding convolution or product.

use std::collections::HashMap;

use oarlock_core::{Attribute, Result};

use super::block_product::waits_for_row_count;
use super::graph_view::{GraphView, define_pass};
use super::{GraphPass, PassContext};
use crate::graph::{Graph, Node, ValueId};
use oarlock_core::schema::OARLOCK_DOMAIN;

pub(super) const FUSE_EPILOGUES: GraphPass = define_pass(
    "epilogue fusion",
    "has convolutions and products add bias and residual and apply activations while their results \
     are in the cache",
    fuse_epilogues,
);

/// Positions of bias and residual among the inputs of an op.
fn epilogue_inputs(op: &Node) -> (usize, usize) {
    if makes_dequantized(op) { (7, 8) } else { (2, 3) }
}

/// True for ops that multiply integers and write floats.
fn makes_dequantized(op: &Node) -> bool {
    matches!(&*op.op, "DequantizedConv" | "DequantizedMatMul")
}

fn fuse_epilogues(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    let mut count = 0;
    // Each fusion changes producers and uses, so every round rebuilds the view; a chain grows by one op for each round.
    loop {
        let joined = fuse_once(graph, context);
        if joined == 0 {
            return Ok(count);
        }
        count += joined;
    }
}

fn fuse_once(graph: &mut Graph, context: &PassContext<'_>) -> usize {
    let view = GraphView::of_graph(graph, context);
    let mut replaced: HashMap<usize, Node> = HashMap::new();
    let mut removed = Vec::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        let inputs = node.input(0).into_iter().chain(node.input(1));
        for input in inputs {
            let Some(base) = view.producer(input).filter(|base| {
                accepts_epilogue(base) && view.is_read_once(input) && !waits_for_row_count(&view, base)
            }) else {
                continue;
            };
            let is_supported = removed.contains(&base.output(0));
            if let Some(grown) = with_epilogue(&view, base, input, node).filter(|_| !is_supported)
                && context.supports_node(graph, &grown)
            {
                removed.push(base.output(0));
                replaced.insert(at, grown);
                break;
            }
        }
    }
    let count = replaced.len();
    for (at, node) in replaced {
        graph.nodes[at] = node;
    }
    graph.nodes.retain(|node| !(accepts_epilogue(node) && removed.contains(&node.output(0))));
    count
}

fn accepts_epilogue(node: &Node) -> bool {
    &*node.domain == OARLOCK_DOMAIN
        && (matches!(&*node.op, "Conv" | "ConvTranspose" | "MatMul") || makes_dequantized(node))
        && !has_whole_activation(node)
}

fn activation_name(node: &Node) -> &str {
    node.attributes.get_string("activation").ok().flatten().unwrap_or_default()
}

/// True for activations that nothing can be fused into. A leaky one may still get a lower bound.
fn has_whole_activation(node: &Node) -> bool {
    let parameters = node.attributes.get_floats("activation_parameters").ok().flatten().unwrap_or_default();
    !matches!((activation_name(node), parameters), ("", _) | ("LeakyRelu", [_]))
}

/// Fuses `next`, the only reader of `made`, into the op that makes it.
fn with_epilogue(view: &GraphView<'_>, base: &Node, made: ValueId, next: &Node) -> Option<Node> {
    if !next.domain.is_empty() || next.outputs.iter().skip(1).any(Option::is_some) {
        return None;
    }
    let mut grown = base.clone();
    grown.outputs.clone_from(&next.outputs);
    if activation_name(base) == "LeakyRelu" {
        let [low, high] = match_bounds(view, next, made)?;
        let mut parameters = base.attributes.get_floats("activation_parameters").ok()??.to_vec();
        parameters.push(low);
        grown.attributes.set("activation_parameters", Attribute::Floats(parameters));
        return (high == f64::INFINITY).then_some(grown);
    }
    if let Some((name, parameters)) = match_activation(view, next, made) {
        grown.attributes.set("activation", Attribute::String(name.to_owned()));
        if !parameters.is_empty() {
            grown.attributes.set("activation_parameters", Attribute::Floats(parameters));
        }
        return Some(grown);
    }
    let (bias, residual) = epilogue_inputs(base);
    let is_product = matches!(&*base.op, "MatMul" | "DequantizedMatMul");
    match &*next.op {
        "Add" => {
            let other = view.operand_orders(next).into_iter().flatten().find(|(own, _)| *own == made)?.1;
            let place = if base.input(bias).is_none() && is_bias(view, other, made, is_product) {
                bias
            } else if base.input(residual).is_none() && other != made && view.has_same_shape(other, made) {
                residual
            } else {
                return None;
            };
            while grown.inputs.len() <= place {
                grown.inputs.push(None);
            }
            grown.inputs[place] = Some(other);
            Some(grown)
        }
        "Mul" | "Div"
            if &*base.op == "MatMul" && base.input(bias).is_none() && base.input(residual).is_none() =>
        {
            let (a, b) = next.input(0).zip(next.input(1))?;
            let factor = match (&*next.op, a == made) {
                ("Div", true) => 1.0 / view.scalar_constant(b)?,
                ("Mul", true) => view.scalar_constant(b)?,
                ("Mul", false) => view.scalar_constant(a)?,
                _ => return None,
            };
            let is_same_shape = view.has_same_shape(next.output(0)?, made);
            let alpha = base.attributes.get_float("alpha").ok()?.unwrap_or(1.0) * factor;
            grown.attributes.set("alpha", Attribute::Float(alpha));
            is_same_shape.then_some(grown)
        }
        _ => None,
    }
}

/// True if a value can be the bias: a constant with one element for each channel or column.
fn is_bias(view: &GraphView<'_>, bias: ValueId, made: ValueId, is_product: bool) -> bool {
    let fits = move |graph: &Graph| {
        let (bias, made) = (graph.value(bias).dims()?, graph.value(made).dims()?);
        let columns = *made.last()?;
        Some(
            bias.last() == Some(&columns)
                && bias.iter().rev().skip(1).all(|dim| *dim == 1)
                && bias.len() <= 2,
        )
    };
    let may_be = view.graph.value(bias).weight.is_some() && (is_product || view.rank(bias) == Some(1));
    may_be && view.check_shapes(fits)
}

/// Matches an activation that epilogues support, with its parameters.
fn match_activation(view: &GraphView<'_>, node: &Node, made: ValueId) -> Option<(&'static str, Vec<f64>)> {
    let float =
        |name: &str, default: f64| node.attributes.get_float(name).ok().map(|found| found.unwrap_or(default));
    if let Some(bounds) = match_bounds(view, node, made) {
        return Some(("Clip", bounds.to_vec()));
    }
    if node.input(0) != Some(made) {
        return None;
    }
    Some(match &*node.op {
        "Relu" => ("Relu", vec![]),
        "LeakyRelu" => ("LeakyRelu", vec![float("alpha", 0.01)?]),
        "HardSigmoid" => ("HardSigmoid", vec![float("alpha", 0.2)?, float("beta", 0.5)?]),
        "HardSwish" => ("HardSwish", vec![]),
        "Sigmoid" => ("Sigmoid", vec![]),
        "Tanh" => ("Tanh", vec![]),
        "Swish" if float("alpha", 1.0)? == 1.0 => ("Silu", vec![]),
        "Gelu" => match node.attributes.get_string("approximate").ok()? {
            Some("tanh") => ("GeluTanh", vec![]),
            _ => ("Gelu", vec![]),
        },
        _ => return None,
    })
}

/// Matches an op that only clamps, with its bounds.
fn match_bounds(view: &GraphView<'_>, node: &Node, made: ValueId) -> Option<[f64; 2]> {
    match &*node.op {
        "Clip" if node.input(0) == Some(made) => clip_bounds(view, node),
        "Max" | "Min" if node.inputs.len() == 2 => {
            let (own, other) =
                view.operand_orders(node).into_iter().flatten().find(|(own, _)| *own == made)?;
            let bound = view.scalar_constant(other).filter(|bound| !bound.is_nan())?;
            // A scalar of a higher rank would add dimensions.
            let is_elementwise = view.has_same_shape(node.output(0)?, own);
            is_elementwise.then_some(if &*node.op == "Max" {
                [bound, f64::INFINITY]
            } else {
                [f64::NEG_INFINITY, bound]
            })
        }
        _ => None,
    }
}

/// The bounds of a `Clip`, which are inputs, or attributes in old opsets.
fn clip_bounds(view: &GraphView<'_>, node: &Node) -> Option<[f64; 2]> {
    let bound = |index: usize, name: &str, default: f64| match node.input(index) {
        Some(value) => view.scalar_constant(value),
        None => node.attributes.get_float(name).ok().map(|found| found.unwrap_or(default)),
    };
    Some([bound(1, "min", f64::NEG_INFINITY)?, bound(2, "max", f64::INFINITY)?])
}
