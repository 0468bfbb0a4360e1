//! Fuses the op sequences that exporters write for GELU.

use std::collections::HashMap;

use oarlock_core::{Attribute, Result};

use super::factors::{FactoredProduct, is_close};
use super::graph_view::{GraphView, define_pass, replace_nodes};
use super::{GraphPass, PassContext};
use crate::graph::{Graph, Node, ValueId};

pub(super) const FUSE_GELU: GraphPass = define_pass(
    "GELU fusion",
    "fuses the ops that exporters write for GELU, with Erf or Tanh, into one",
    fuse_gelus,
);

/// The opset that added `Gelu` to ONNX.
const GELU_OPSET: u32 = 20;

fn fuse_gelus(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    let view = GraphView::of_graph(graph, context);
    let mut found = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        if let Some((x, approximate)) = node.is_op("Mul").then(|| match_gelu(&view, node)).flatten() {
            let mut gelu = Node::new("", "Gelu", GELU_OPSET, [Some(x)], node.outputs.iter().copied());
            gelu.attributes.set("approximate", Attribute::String(approximate.to_owned()));
            gelu.name = node.name.clone();
            if context.supports_node(graph, &gelu) {
                found.insert(at, vec![gelu]);
            }
        }
    }
    Ok(replace_nodes(graph, found))
}

/// Matches ½ · x · (1 + …); returns x and which approximation of GELU it is.
fn match_gelu(view: &GraphView<'_>, node: &Node) -> Option<(ValueId, &'static str)> {
    let product = FactoredProduct::from_node(view, node)?;
    let [a, b] = product.factors[..] else { return None };
    if !is_close(product.constant, 0.5) {
        return None;
    }
    [(a, b), (b, a)].into_iter().find_map(|(x, sum)| {
        let inner = match_plus_one(view, sum)?;
        let kind = match &*inner.op {
            "Erf" if is_erf_of(view, inner, x) => "none",
            "Tanh" if is_tanh_of(view, inner, x) => "tanh",
            _ => return None,
        };
        Some((x, kind))
    })
}

/// Matches 1 + node.
fn match_plus_one<'a>(view: &GraphView<'a>, sum: ValueId) -> Option<&'a Node> {
    let node = view.fusable_producer(sum, "Add")?;
    view.operand_orders(node).into_iter().flatten().find_map(|(one, other)| {
        view.scalar_constant(one).filter(|one| *one == 1.0)?;
        view.producer(other).filter(|_| view.is_read_once(other))
    })
}

/// True if a node is erf(x / √2).
fn is_erf_of(view: &GraphView<'_>, node: &Node, x: ValueId) -> bool {
    let scaled = || {
        let maker = view.producer(node.input(0)?)?;
        let product = FactoredProduct::from_node(view, maker)?;
        Some(is_close(product.constant, std::f64::consts::FRAC_1_SQRT_2) && product.factors == [x])
    };
    scaled().unwrap_or(false)
}

/// True if a node is tanh(√(2/π) · (x + 0.044715 · x³)).
fn is_tanh_of(view: &GraphView<'_>, node: &Node, x: ValueId) -> bool {
    let matches = || {
        let product = FactoredProduct::from_node(view, view.producer(node.input(0)?)?)?;
        if !is_close(product.constant, (2.0 / std::f64::consts::PI).sqrt()) {
            return None;
        }
        let sums: Vec<&Node> =
            product.factors.iter().filter_map(|factor| view.producer_with_op(*factor, "Add")).collect();
        let [sum] = sums[..] else { return None };
        let rest: Vec<ValueId> =
            product.factors.iter().copied().filter(|factor| Some(*factor) != sum.output(0)).collect();
        let fits = |(first, second): (ValueId, ValueId)| match rest[..] {
            // x + 0.044715 · x³
            [] => first == x && is_power_of(view, second, x, 3),
            // x · (1 + 0.044715 · x²)
            [other] => {
                other == x && view.scalar_constant(first) == Some(1.0) && is_power_of(view, second, x, 2)
            }
            _ => false,
        };
        Some(view.operand_orders(sum).into_iter().flatten().any(fits))
    };
    matches().unwrap_or(false)
}

/// True if a value is 0.044715 · x^power.
fn is_power_of(view: &GraphView<'_>, value: ValueId, x: ValueId, power: usize) -> bool {
    let matches = || {
        let product = FactoredProduct::from_node(view, view.producer(value)?)?;
        let mut found = 0;
        for factor in &product.factors {
            found += match view.producer_with_op(*factor, "Pow") {
                _ if *factor == x => 1,
                Some(node) if node.input(0) == Some(x) => view.scalar_constant(node.input(1)?)? as usize,
                _ => return None,
            };
        }
        Some(is_close(product.constant, 0.044715) && found == power)
    };
    matches().unwrap_or(false)
}
