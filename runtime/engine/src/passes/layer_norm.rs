//! Fuses the op sequences that exporters write for layer normalization.

use std::collections::HashMap;

use oarlock_core::{Attribute, Result};

use super::graph_view::{GraphView, define_pass, replace_nodes};
use super::{GraphPass, PassContext};
use crate::graph::{Graph, Node, ValueId};
use oarlock_core::schema::OARLOCK_DOMAIN;

pub(super) const FUSE_LAYER_NORM: GraphPass = define_pass(
    "layer normalization fusion",
    "fuses the means, differences and roots that older exporters write into LayerNormalization",
    fuse_layer_norms,
);

pub(super) const FUSE_SKIP_LAYER_NORM: GraphPass = define_pass(
    "skip layer normalization fusion",
    "adds the residual within the normalization that follows, so that the sum is read and written \
     once",
    fuse_skip_layer_norms,
);

/// The opset that added `LayerNormalization` to ONNX.
const LAYER_NORM_OPSET: u32 = 17;

fn fuse_layer_norms(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    let view = GraphView::of_graph(graph, context);
    let mut found = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        if let Some(norm) = node.is_op("Add").then(|| match_layer_norm(&view, node)).flatten()
            && context.supports_node(graph, &norm)
        {
            found.insert(at, vec![norm]);
        }
    }
    Ok(replace_nodes(graph, found))
}

/// Matches a sum that is (x − mean) / √(variance + ε) · scale + bias.
fn match_layer_norm(view: &GraphView<'_>, sum: &Node) -> Option<Node> {
    view.operand_orders(sum).into_iter().flatten().find_map(|(scaled, bias)| {
        let product = view.fusable_producer(scaled, "Mul")?;
        view.operand_orders(product).into_iter().flatten().find_map(|(normal, scale)| {
            let (x, epsilon) = match_standardization(view, normal)?;
            let are_rows =
                move |graph: &Graph| {
                    let size = *graph.value(x).dims()?.last()?;
                    Some([scale, bias].iter().all(|value| {
                        graph.value(*value).dims().is_some_and(|dims| dims.as_slice() == [size])
                    }))
                };
            if !view.check_shapes(are_rows) {
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

/// Matches the quotient (x − mean) / √(variance + ε) along the last axis; returns x and ε.
fn match_standardization(view: &GraphView<'_>, quotient: ValueId) -> Option<(ValueId, f64)> {
    let node = view.fusable_producer(quotient, "Div")?;
    let (difference, root) = node.input(0).zip(node.input(1))?;
    let sum = view.fusable_producer(view.fusable_producer(root, "Sqrt")?.input(0)?, "Add")?;
    let (variance, epsilon) = view
        .operand_orders(sum)
        .into_iter()
        .flatten()
        .find_map(|(variance, epsilon)| Some((variance, view.scalar_constant(epsilon)?)))?;
    let square = match_mean(view, variance)?;
    let is_square = is_square_of(view, view.producer(square)?, difference);
    let less = view.producer_with_op(difference, "Sub")?;
    let (x, mean) = less.input(0).zip(less.input(1))?;
    (is_square && match_mean(view, mean)? == x).then_some((x, epsilon))
}

/// True if a node computes x².
pub(super) fn is_square_of(view: &GraphView<'_>, node: &Node, x: ValueId) -> bool {
    let is_two = |power: ValueId| view.scalar_constant(power) == Some(2.0);
    match &*node.op {
        "Pow" => node.input(0) == Some(x) && node.input(1).is_some_and(is_two),
        "Mul" => node.input(0) == Some(x) && node.input(1) == Some(x),
        _ => false,
    }
}

/// Matches a mean along the last axis; returns its input.
pub(super) fn match_mean(view: &GraphView<'_>, mean: ValueId) -> Option<ValueId> {
    let node = view.producer_with_op(mean, "ReduceMean")?;
    let x = node.input(0)?;
    let axes = match node.input(1) {
        Some(axes) => view.known_numbers(axes)?.to_ints().ok()?,
        None => node.attributes.get_ints("axes").ok()??.to_vec(),
    };
    let rank = i64::try_from(view.rank(x)?).ok()?;
    let keeps = node.attributes.get_int("keepdims").ok()?.unwrap_or(1) == 1;
    (keeps && (axes == [-1] || axes == [rank - 1])).then_some(x)
}

fn fuse_skip_layer_norms(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    if !context.has_kernel_for("SkipLayerNormalization") {
        return Ok(0);
    }
    let view = GraphView::of_graph(graph, context);
    let mut found = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        if let Some(joined) = node.is_op("LayerNormalization").then(|| match_skip(&view, node)).flatten()
            && context.supports_node(graph, &joined)
        {
            found.insert(at, joined);
        }
    }
    // The fused node writes the sum from now on, so every other reader of the sum must come after it.
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

/// Matches a normalization of a sum of two tensors.
fn match_skip(view: &GraphView<'_>, node: &Node) -> Option<Node> {
    let sum = node.input(0)?;
    let add = view.producer_with_op(sum, "Add")?;
    let (x, skip) = add.input(0).zip(add.input(1))?;
    let rank = i64::try_from(view.rank(sum)?).ok()?;
    let axis = node.attributes.get_int("axis").ok()?.unwrap_or(-1);
    let is_plain = view.has_same_shape(x, skip)
        && (axis == -1 || axis == rank - 1)
        && node.outputs.iter().skip(1).all(Option::is_none);
    if !is_plain || view.graph.value(x).weight.is_some() || view.graph.value(skip).weight.is_some() {
        return None;
    }
    let is_wanted = !view.is_read_once(sum);
    let outputs = std::iter::once(node.output(0)).chain(is_wanted.then_some(Some(sum)));
    let inputs = [Some(x), Some(skip), node.input(1), node.input(2)];
    let mut joined = Node::new(OARLOCK_DOMAIN, "SkipLayerNormalization", 1, inputs, outputs);
    let epsilon = node.attributes.get_float("epsilon").ok()?.unwrap_or(1e-5);
    joined.attributes.set("epsilon", Attribute::Float(epsilon));
    joined.name = node.name.clone();
    Some(joined)
}
