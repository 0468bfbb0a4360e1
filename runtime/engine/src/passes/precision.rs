//! Factors of products are rounded where the session allows it.

use oarlock_core::{Attribute, Dtype, Result};

use super::common::{OARLOCK, pass};
use super::{Pass, Scene};
use crate::graph::{Graph, Node};
use crate::precision::Precision;

/// Comes after all others, once: what is joined to a product is decided by then, and none has to know of it.
pub(super) const PASS: Pass = pass(
    "precision",
    "has convolutions and products round what they multiply to bf16 where that is allowed and faster",
    run,
);

const ATTRIBUTE: &str = "precision";

fn run(graph: &mut Graph, scene: &Scene<'_>) -> Result<usize> {
    if scene.precision == Precision::F32 {
        return Ok(0);
    }
    let mut count = 0;
    for at in 0..graph.nodes.len() {
        let node = &graph.nodes[at];
        if rounds(node) || !may_round(graph, node) {
            continue;
        }
        let rounded = rounded(node);
        if scene.takes(graph, &rounded) {
            graph.nodes[at] = rounded;
            count += 1;
        }
    }
    Ok(count)
}

/// Whether a node is one of those that can be asked to round.
pub(crate) fn may_round(graph: &Graph, node: &Node) -> bool {
    let is_f32 = || node.input(0).and_then(|input| graph.value(input).dtype()) == Some(Dtype::F32);
    &*node.domain == OARLOCK && matches!(&*node.op, "Conv" | "MatMul") && is_f32()
}

/// Whether a node rounds.
pub(crate) fn rounds(node: &Node) -> bool {
    node.attributes.string(ATTRIBUTE).ok().flatten() == Some(Precision::Bf16.name())
}

/// A node that rounds.
pub(crate) fn rounded(node: &Node) -> Node {
    let mut rounded = node.clone();
    rounded.attributes.set(ATTRIBUTE, Attribute::String(Precision::Bf16.name().to_owned()));
    rounded
}
