//! Fuses the op sequences that exporters write for activations.

use std::collections::HashMap;

use oarlock_core::{Attribute, Result};

use super::factors::{FactoredProduct, is_close};
use super::graph_view::{GraphView, define_pass, replace_nodes};
use super::{GraphPass, PassContext};
use crate::graph::{Graph, Node, ValueId};

pub(super) const FUSE_ACTIVATIONS: GraphPass = define_pass(
    "activation fusion",
    "fuses x · sigmoid(x) into Swish, and x · clip(x + 3, 0, 6) / 6 into HardSwish, without x into \
     HardSigmoid",
    fuse_activations,
);

fn fuse_activations(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    let view = GraphView::of_graph(graph, context);
    let mut found = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        let joined =
            (node.is_op("Mul") || node.is_op("Div")).then(|| match_activation(&view, node)).flatten();
        if let Some(mut joined) = joined {
            joined.name = node.name.clone();
            if context.supports_node(graph, &joined) {
                found.insert(at, vec![joined]);
            }
        }
    }
    Ok(replace_nodes(graph, found))
}

fn match_activation(view: &GraphView<'_>, node: &Node) -> Option<Node> {
    let product = FactoredProduct::from_node(view, node)?;
    let one =
        |op: &str, opset: u32, x: ValueId| Node::new("", op, opset, [Some(x)], node.outputs.iter().copied());
    match product.factors[..] {
        [a, b] => [(a, b), (b, a)].into_iter().find_map(|(x, other)| {
            let is_swish = product.constant == 1.0
                && view.fusable_producer(other, "Sigmoid").is_some_and(|sigmoid| sigmoid.input(0) == Some(x));
            let is_hard =
                || is_close(product.constant, 1.0 / 6.0) && match_clipped_shift(view, other) == Some(x);
            match is_swish {
                true => Some(one("Swish", 24, x)),
                false => is_hard().then(|| one("HardSwish", 14, x)),
            }
        }),
        [bounds] if is_close(product.constant, 1.0 / 6.0) => {
            let mut joined = one("HardSigmoid", 6, match_clipped_shift(view, bounds)?);
            joined.attributes.set("alpha", Attribute::Float(1.0 / 6.0));
            joined.attributes.set("beta", Attribute::Float(0.5));
            Some(joined)
        }
        _ => None,
    }
}

/// Matches clip(x + 3, 0, 6); returns x.
fn match_clipped_shift(view: &GraphView<'_>, value: ValueId) -> Option<ValueId> {
    let clip = view.fusable_producer(value, "Clip")?;
    let bound = |index: usize, name: &str| match clip.input(index) {
        Some(bound) => view.scalar_constant(bound),
        None => clip.attributes.get_float(name).ok().flatten(),
    };
    if bound(1, "min")? != 0.0 || bound(2, "max")? != 6.0 {
        return None;
    }
    let sum = view.fusable_producer(clip.input(0)?, "Add")?;
    view.operand_orders(sum)
        .into_iter()
        .flatten()
        .find_map(|(three, x)| (view.scalar_constant(three)? == 3.0).then_some(x))
}
