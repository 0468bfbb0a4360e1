//! The ops that exporters write for GELU become one.

use std::collections::HashMap;

use oarlock_core::{Attribute, Result};

use super::factors::{FactoredProduct, is_close};
use super::graph_view::{GraphView, define_pass, replace_nodes};
use super::{GraphPass, PassContext};
use crate::graph::{Graph, Node, ValueId};

pub(super) const FUSE_GELU: GraphPass = define_pass(
    "GELU",
    "joins the ops that exporters write for GELU, by way of Erf or Tanh, into one",
    fuse_gelus,
);

/// The opset in which ONNX got the op.
const GELU_OPSET: u32 = 20;

fn fuse_gelus(graph: &mut Graph, scene: &PassContext<'_>) -> Result<usize> {
    let look = GraphView::of_graph(graph, scene);
    let mut found = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        if let Some((x, approximate)) = node.is_op("Mul").then(|| match_gelu(&look, node)).flatten() {
            let mut gelu = Node::new("", "Gelu", GELU_OPSET, [Some(x)], node.outputs.iter().copied());
            gelu.attributes.set("approximate", Attribute::String(approximate.to_owned()));
            gelu.name = node.name.clone();
            if scene.supports_node(graph, &gelu) {
                found.insert(at, vec![gelu]);
            }
        }
    }
    Ok(replace_nodes(graph, found))
}

/// What GELU is computed of, and in which way, if a product is GELU: ½ · x · (1 + …).
fn match_gelu(look: &GraphView<'_>, node: &Node) -> Option<(ValueId, &'static str)> {
    let product = FactoredProduct::from_node(look, node)?;
    let [a, b] = product.factors[..] else { return None };
    if !is_close(product.constant, 0.5) {
        return None;
    }
    [(a, b), (b, a)].into_iter().find_map(|(x, sum)| {
        let inner = match_plus_one(look, sum)?;
        let kind = match &*inner.op {
            "Erf" if is_erf_of(look, inner, x) => "none",
            "Tanh" if is_tanh_of(look, inner, x) => "tanh",
            _ => return None,
        };
        Some((x, kind))
    })
}

/// The node of which a sum is one more.
fn match_plus_one<'a>(look: &GraphView<'a>, sum: ValueId) -> Option<&'a Node> {
    let node = look.fusable_producer(sum, "Add")?;
    look.operand_orders(node).into_iter().flatten().find_map(|(one, other)| {
        look.scalar_constant(one).filter(|one| *one == 1.0)?;
        look.producer(other).filter(|_| look.is_read_once(other))
    })
}

/// Whether a node is the error function of x / √2.
fn is_erf_of(look: &GraphView<'_>, node: &Node, x: ValueId) -> bool {
    let scaled = || {
        let maker = look.producer(node.input(0)?)?;
        let product = FactoredProduct::from_node(look, maker)?;
        Some(is_close(product.constant, std::f64::consts::FRAC_1_SQRT_2) && product.factors == [x])
    };
    scaled().unwrap_or(false)
}

/// Whether a node is the hyperbolic tangent of √(2/π) · (x + 0.044715 · x³).
fn is_tanh_of(look: &GraphView<'_>, node: &Node, x: ValueId) -> bool {
    let matches = || {
        let product = FactoredProduct::from_node(look, look.producer(node.input(0)?)?)?;
        if !is_close(product.constant, (2.0 / std::f64::consts::PI).sqrt()) {
            return None;
        }
        let sums: Vec<&Node> =
            product.factors.iter().filter_map(|factor| look.producer_with_op(*factor, "Add")).collect();
        let [sum] = sums[..] else { return None };
        let rest: Vec<ValueId> =
            product.factors.iter().copied().filter(|factor| Some(*factor) != sum.output(0)).collect();
        let fits = |(first, second): (ValueId, ValueId)| match rest[..] {
            // x + 0.044715 · x³
            [] => first == x && is_power_of(look, second, x, 3),
            // x · (1 + 0.044715 · x²)
            [other] => {
                other == x && look.scalar_constant(first) == Some(1.0) && is_power_of(look, second, x, 2)
            }
            _ => false,
        };
        Some(look.operand_orders(sum).into_iter().flatten().any(fits))
    };
    matches().unwrap_or(false)
}

/// Whether a value is 0.044715 · x to a power.
fn is_power_of(look: &GraphView<'_>, value: ValueId, x: ValueId, power: usize) -> bool {
    let matches = || {
        let product = FactoredProduct::from_node(look, look.producer(value)?)?;
        let mut found = 0;
        for factor in &product.factors {
            found += match look.producer_with_op(*factor, "Pow") {
                _ if *factor == x => 1,
                Some(node) if node.input(0) == Some(x) => look.scalar_constant(node.input(1)?)? as usize,
                _ => return None,
            };
        }
        Some(is_close(product.constant, 0.044715) && found == power)
    };
    matches().unwrap_or(false)
}
