//! The ops that exporters write for GELU become one.

use std::collections::HashMap;

use oarlock_core::{Attribute, Result};

use super::common::{Look, pass, replace};
use super::factors::{Product, is_near};
use super::{Pass, Scene};
use crate::graph::{Graph, Node, ValueId};

pub(super) const PASS: Pass =
    pass("GELU", "joins the ops that exporters write for GELU, by way of Erf or Tanh, into one", run);

/// The opset in which ONNX got the op.
const GELU_OPSET: u32 = 20;

fn run(graph: &mut Graph, scene: &Scene<'_>) -> Result<usize> {
    let look = Look::at(graph, scene);
    let mut found = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        if let Some((x, approximate)) = node.is("Mul").then(|| gelu(&look, node)).flatten() {
            let mut gelu = Node::new("", "Gelu", GELU_OPSET, [Some(x)], node.outputs.iter().copied());
            gelu.attributes.set("approximate", Attribute::String(approximate.to_owned()));
            gelu.name = node.name.clone();
            if scene.takes(graph, &gelu) {
                found.insert(at, vec![gelu]);
            }
        }
    }
    Ok(replace(graph, found))
}

/// What GELU is computed of, and in which way, if a product is GELU: ½ · x · (1 + …).
fn gelu(look: &Look<'_>, node: &Node) -> Option<(ValueId, &'static str)> {
    let product = Product::of(look, node)?;
    let [a, b] = product.factors[..] else { return None };
    if !is_near(product.constant, 0.5) {
        return None;
    }
    [(a, b), (b, a)].into_iter().find_map(|(x, sum)| {
        let inner = plus_one(look, sum)?;
        let kind = match &*inner.op {
            "Erf" if is_erf_of(look, inner, x) => "none",
            "Tanh" if is_tanh_of(look, inner, x) => "tanh",
            _ => return None,
        };
        Some((x, kind))
    })
}

/// The node of which a sum is one more.
fn plus_one<'a>(look: &Look<'a>, sum: ValueId) -> Option<&'a Node> {
    let node = look.made_only_for(sum, "Add")?;
    look.either_way(node).into_iter().flatten().find_map(|(one, other)| {
        look.scalar(one).filter(|one| *one == 1.0)?;
        look.maker(other).filter(|_| look.is_read_once(other))
    })
}

/// Whether a node is the error function of x / √2.
fn is_erf_of(look: &Look<'_>, node: &Node, x: ValueId) -> bool {
    let scaled = || {
        let maker = look.maker(node.input(0)?)?;
        let product = Product::of(look, maker)?;
        Some(is_near(product.constant, std::f64::consts::FRAC_1_SQRT_2) && product.factors == [x])
    };
    scaled().unwrap_or(false)
}

/// Whether a node is the hyperbolic tangent of √(2/π) · (x + 0.044715 · x³).
fn is_tanh_of(look: &Look<'_>, node: &Node, x: ValueId) -> bool {
    let matches = || {
        let product = Product::of(look, look.maker(node.input(0)?)?)?;
        if !is_near(product.constant, (2.0 / std::f64::consts::PI).sqrt()) {
            return None;
        }
        let sums: Vec<&Node> =
            product.factors.iter().filter_map(|factor| look.made_by(*factor, "Add")).collect();
        let [sum] = sums[..] else { return None };
        let rest: Vec<ValueId> =
            product.factors.iter().copied().filter(|factor| Some(*factor) != sum.output(0)).collect();
        let fits = |(first, second): (ValueId, ValueId)| match rest[..] {
            // x + 0.044715 · x³
            [] => first == x && is_power_of(look, second, x, 3),
            // x · (1 + 0.044715 · x²)
            [other] => other == x && look.scalar(first) == Some(1.0) && is_power_of(look, second, x, 2),
            _ => false,
        };
        Some(look.either_way(sum).into_iter().flatten().any(fits))
    };
    matches().unwrap_or(false)
}

/// Whether a value is 0.044715 · x to a power.
fn is_power_of(look: &Look<'_>, value: ValueId, x: ValueId, power: usize) -> bool {
    let matches = || {
        let product = Product::of(look, look.maker(value)?)?;
        let mut found = 0;
        for factor in &product.factors {
            found += match look.made_by(*factor, "Pow") {
                _ if *factor == x => 1,
                Some(node) if node.input(0) == Some(x) => look.scalar(node.input(1)?)? as usize,
                _ => return None,
            };
        }
        Some(is_near(product.constant, 0.044715) && found == power)
    };
    matches().unwrap_or(false)
}
