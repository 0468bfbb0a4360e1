//! The ops that exporters write for activations become one.

use std::collections::HashMap;

use oarlock_core::{Attribute, Result};

use super::common::{Look, pass, replace};
use super::factors::{Product, is_near};
use super::{Pass, Scene};
use crate::graph::{Graph, Node, ValueId};

pub(super) const PASS: Pass = pass(
    "activations",
    "joins x · sigmoid(x) into Swish, and x · clip(x + 3, 0, 6) / 6 into HardSwish, without x into HardSigmoid",
    run,
);

fn run(graph: &mut Graph, scene: &Scene<'_>) -> Result<usize> {
    let look = Look::at(graph, scene);
    let mut found = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        let joined = (node.is("Mul") || node.is("Div")).then(|| activation(&look, node)).flatten();
        if let Some(mut joined) = joined {
            joined.name = node.name.clone();
            if scene.takes(graph, &joined) {
                found.insert(at, vec![joined]);
            }
        }
    }
    Ok(replace(graph, found))
}

fn activation(look: &Look<'_>, node: &Node) -> Option<Node> {
    let product = Product::of(look, node)?;
    let one =
        |op: &str, opset: u32, x: ValueId| Node::new("", op, opset, [Some(x)], node.outputs.iter().copied());
    match product.factors[..] {
        [a, b] => [(a, b), (b, a)].into_iter().find_map(|(x, other)| {
            let is_swish = product.constant == 1.0
                && look.made_only_for(other, "Sigmoid").is_some_and(|sigmoid| sigmoid.input(0) == Some(x));
            let is_hard = || is_near(product.constant, 1.0 / 6.0) && bounded(look, other) == Some(x);
            match is_swish {
                true => Some(one("Swish", 24, x)),
                false => is_hard().then(|| one("HardSwish", 14, x)),
            }
        }),
        [bounds] if is_near(product.constant, 1.0 / 6.0) => {
            let mut joined = one("HardSigmoid", 6, bounded(look, bounds)?);
            joined.attributes.set("alpha", Attribute::Float(1.0 / 6.0));
            joined.attributes.set("beta", Attribute::Float(0.5));
            Some(joined)
        }
        _ => None,
    }
}

/// What a value is three more of, kept between 0 and 6.
fn bounded(look: &Look<'_>, value: ValueId) -> Option<ValueId> {
    let clip = look.made_only_for(value, "Clip")?;
    let bound = |index: usize, name: &str| match clip.input(index) {
        Some(bound) => look.scalar(bound),
        None => clip.attributes.float(name).ok().flatten(),
    };
    if bound(1, "min")? != 0.0 || bound(2, "max")? != 6.0 {
        return None;
    }
    let sum = look.made_only_for(clip.input(0)?, "Add")?;
    look.either_way(sum)
        .into_iter()
        .flatten()
        .find_map(|(three, x)| (look.scalar(three)? == 3.0).then_some(x))
}
