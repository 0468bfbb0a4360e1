//! The ops that exporters write for layer normalisation become one.

use std::collections::HashMap;

use oarlock_core::{Attribute, Result};

use super::graph_view::{GraphView, OARLOCK_DOMAIN, define_pass, replace_nodes};
use super::{GraphPass, PassContext};
use crate::graph::{Graph, Node, ValueId};

pub(super) const FUSE_LAYER_NORM: GraphPass = define_pass(
    "layer normalisation",
    "joins means, differences and roots into LayerNormalization, as older exporters write them apart",
    fuse_layer_norms,
);

pub(super) const FUSE_SKIP_LAYER_NORM: GraphPass = define_pass(
    "skip layer normalisation",
    "adds the residual within the normalisation that follows, so that the sum is read and written once",
    fuse_skip_layer_norms,
);

/// The opset in which ONNX got the op.
const LAYER_NORM_OPSET: u32 = 17;

fn fuse_layer_norms(graph: &mut Graph, scene: &PassContext<'_>) -> Result<usize> {
    let look = GraphView::of_graph(graph, scene);
    let mut found = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        if let Some(norm) = node.is_op("Add").then(|| match_layer_norm(&look, node)).flatten()
            && scene.supports_node(graph, &norm)
        {
            found.insert(at, vec![norm]);
        }
    }
    Ok(replace_nodes(graph, found))
}

/// The normalisation that ends in a sum: (x − mean) / √(variance + ε) · scale + bias.
fn match_layer_norm(look: &GraphView<'_>, sum: &Node) -> Option<Node> {
    look.operand_orders(sum).into_iter().flatten().find_map(|(scaled, bias)| {
        let product = look.fusable_producer(scaled, "Mul")?;
        look.operand_orders(product).into_iter().flatten().find_map(|(normal, scale)| {
            let (x, epsilon) = match_standardization(look, normal)?;
            let are_rows =
                move |graph: &Graph| {
                    let size = *graph.value(x).dims()?.last()?;
                    Some([scale, bias].iter().all(|value| {
                        graph.value(*value).dims().is_some_and(|dims| dims.as_slice() == [size])
                    }))
                };
            if !look.check_shapes(are_rows) {
                return None;
            }
            let mut node = Node::new(
                "",
                "LayerNormalization",
                LAYER_NORM_OPSET,
                [Some(x), Some(scale), Some(bias)],
                [sum.output(0)],
            );
            node.attributes.set("axis", Attribute::Int(-1));
            node.attributes.set("epsilon", Attribute::Float(epsilon));
            node.name = sum.name.clone();
            Some(node)
        })
    })
}

/// What is standardised along the last axis in a quotient, and what is added to its variance.
fn match_standardization(look: &GraphView<'_>, quotient: ValueId) -> Option<(ValueId, f64)> {
    let node = look.fusable_producer(quotient, "Div")?;
    let (difference, root) = node.input(0).zip(node.input(1))?;
    let sum = look.fusable_producer(look.fusable_producer(root, "Sqrt")?.input(0)?, "Add")?;
    let (variance, epsilon) = look
        .operand_orders(sum)
        .into_iter()
        .flatten()
        .find_map(|(variance, epsilon)| Some((variance, look.scalar_constant(epsilon)?)))?;
    let square = match_mean(look, variance)?;
    let squared = look.producer(square)?;
    let is_square = match &*squared.op {
        "Pow" => squared.input(0) == Some(difference) && look.scalar_constant(squared.input(1)?)? == 2.0,
        "Mul" => squared.input(0) == Some(difference) && squared.input(1) == Some(difference),
        _ => false,
    };
    let less = look.producer_with_op(difference, "Sub")?;
    let (x, mean) = less.input(0).zip(less.input(1))?;
    (is_square && match_mean(look, mean)? == x).then_some((x, epsilon))
}

/// What a mean along the last axis is of.
fn match_mean(look: &GraphView<'_>, mean: ValueId) -> Option<ValueId> {
    let node = look.producer_with_op(mean, "ReduceMean")?;
    let x = node.input(0)?;
    let axes = match node.input(1) {
        Some(axes) => look.known_numbers(axes)?.to_ints().ok()?,
        None => node.attributes.get_ints("axes").ok()??.to_vec(),
    };
    let rank = i64::try_from(look.rank(x)?).ok()?;
    let keeps = node.attributes.get_int("keepdims").ok()?.unwrap_or(1) == 1;
    (keeps && (axes == [-1] || axes == [rank - 1])).then_some(x)
}

fn fuse_skip_layer_norms(graph: &mut Graph, scene: &PassContext<'_>) -> Result<usize> {
    if !scene.has_kernel_for("SkipLayerNormalization") {
        return Ok(0);
    }
    let look = GraphView::of_graph(graph, scene);
    let mut found = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        if let Some(joined) = node.is_op("LayerNormalization").then(|| match_skip(&look, node)).flatten()
            && scene.supports_node(graph, &joined)
        {
            found.insert(at, joined);
        }
    }
    // The sum is made by the joined node from now on, so whoever else reads it must stand behind that.
    let is_early = |graph: &Graph, at: usize, sum: ValueId| {
        graph.nodes[..at].iter().any(|node| node.read_values().any(|value| value == sum))
    };
    found.retain(|at, node| node.output(1).is_none_or(|sum| !is_early(graph, *at, sum)));
    let count = found.len();
    for (at, node) in found {
        if let Some(sum) = node.output(1) {
            graph
                .nodes
                .iter_mut()
                .filter(|other| other.output(0) == Some(sum))
                .for_each(|add| add.outputs.clear());
        }
        graph.nodes[at] = node;
    }
    graph.nodes.retain(|node| !node.outputs.is_empty());
    Ok(count)
}

/// A normalisation of a sum, with the sum in it.
fn match_skip(look: &GraphView<'_>, node: &Node) -> Option<Node> {
    let sum = node.input(0)?;
    let add = look.producer_with_op(sum, "Add")?;
    let (x, skip) = add.input(0).zip(add.input(1))?;
    let rank = i64::try_from(look.rank(sum)?).ok()?;
    let axis = node.attributes.get_int("axis").ok()?.unwrap_or(-1);
    let is_plain = look.has_same_shape(x, skip)
        && (axis == -1 || axis == rank - 1)
        && node.outputs.iter().skip(1).all(Option::is_none);
    if !is_plain || look.graph.value(x).weight.is_some() || look.graph.value(skip).weight.is_some() {
        return None;
    }
    let is_wanted = !look.is_read_once(sum);
    let outputs = std::iter::once(node.output(0)).chain(is_wanted.then_some(Some(sum)));
    let inputs = [Some(x), Some(skip), node.input(1), node.input(2)];
    let mut joined = Node::new(OARLOCK_DOMAIN, "SkipLayerNormalization", 1, inputs, outputs);
    let epsilon = node.attributes.get_float("epsilon").ok()?.unwrap_or(1e-5);
    joined.attributes.set("epsilon", Attribute::Float(epsilon));
    joined.name = node.name.clone();
    Some(joined)
}
