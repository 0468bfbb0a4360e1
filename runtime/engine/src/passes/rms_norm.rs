//! Fuses the op sequences that exporters write for normalization by the root of the mean square.

use std::collections::HashMap;

use oarlock_core::{Attribute, Result};

use super::graph_view::{GraphView, define_pass, replace_nodes};
use super::layer_norm::{is_square_of, match_mean};
use super::{GraphPass, PassContext};
use crate::graph::{Graph, Node, ValueId};

pub(super) const FUSE_RMS_NORM: GraphPass = define_pass(
    "RMS normalization fusion",
    "fuses x / √(mean of x² + ε) · scale, which exporters write as six ops, into RMSNormalization",
    fuse_rms_norms,
);

/// The opset that added `RMSNormalization` to ONNX.
const RMS_NORM_OPSET: u32 = 23;

fn fuse_rms_norms(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    let view = GraphView::of_graph(graph, context);
    let mut found = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        if let Some(norm) = node.is_op("Mul").then(|| match_rms_norm(&view, node)).flatten()
            && context.supports_node(graph, &norm)
        {
            found.insert(at, vec![norm]);
        }
    }
    Ok(replace_nodes(graph, found))
}

/// Matches a product that is x / √(mean of x² + ε) · scale.
fn match_rms_norm(view: &GraphView<'_>, product: &Node) -> Option<Node> {
    view.operand_orders(product).into_iter().flatten().find_map(|(normal, scale)| {
        let (x, epsilon) = match_quotient(view, normal)?;
        let is_row = move |graph: &Graph| {
            let size = *graph.value(x).dims()?.last()?;
            Some(graph.value(scale).dims()?.as_slice() == [size])
        };
        if !view.check_shapes(is_row) {
            return None;
        }
        let inputs = [Some(x), Some(scale)];
        let mut node = Node::new("", "RMSNormalization", RMS_NORM_OPSET, inputs, [product.output(0)]);
        node.attributes.set("axis", Attribute::Int(-1));
        node.attributes.set("epsilon", Attribute::Float(epsilon));
        node.name = product.name.clone();
        Some(node)
    })
}

/// Matches x / √(mean of x² + ε), or the product of x and the reciprocal of that root; returns x and ε.
fn match_quotient(view: &GraphView<'_>, value: ValueId) -> Option<(ValueId, f64)> {
    let node = view.producer(value).filter(|_| view.is_read_once(value))?;
    if node.is_op("Div") {
        let (x, root) = node.input(0).zip(node.input(1))?;
        return match_root(view, root, x).map(|epsilon| (x, epsilon));
    }
    let orders = view.operand_orders(node).into_iter().flatten().filter(|_| node.is_op("Mul"));
    orders.into_iter().find_map(|(x, factor)| {
        let inverse = view.producer(factor).filter(|_| view.is_read_once(factor))?;
        let epsilon = if inverse.is_op("Reciprocal") {
            match_root(view, inverse.input(0)?, x)
        } else if inverse.is_op("Div") && view.scalar_constant(inverse.input(0)?) == Some(1.0) {
            match_root(view, inverse.input(1)?, x)
        } else if inverse.is_op("Pow") && view.scalar_constant(inverse.input(1)?) == Some(-0.5) {
            match_mean_square(view, inverse.input(0)?, x)
        } else {
            None
        };
        Some((x, epsilon?))
    })
}

/// Matches √(mean of x² + ε); returns ε.
fn match_root(view: &GraphView<'_>, root: ValueId, x: ValueId) -> Option<f64> {
    let node = view.producer(root).filter(|_| view.is_read_once(root))?;
    let is_root =
        node.is_op("Sqrt") || node.is_op("Pow") && view.scalar_constant(node.input(1)?) == Some(0.5);
    if is_root { match_mean_square(view, node.input(0)?, x) } else { None }
}

/// Matches the mean of x² along the last axis plus ε; returns ε.
fn match_mean_square(view: &GraphView<'_>, sum: ValueId, x: ValueId) -> Option<f64> {
    let node = view.fusable_producer(sum, "Add")?;
    let orders = view.operand_orders(node).into_iter().flatten();
    let (mean, epsilon) =
        orders.into_iter().find_map(|(mean, epsilon)| Some((mean, view.scalar_constant(epsilon)?)))?;
    let square = match_mean(view, mean)?;
    is_square_of(view, view.producer(square)?, x).then_some(epsilon)
}
