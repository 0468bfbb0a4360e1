//! What several passes need.

use oarlock_core::Result;

use crate::graph::{Graph, Node, ValueId};

/// Removes the nodes for which `decide` gives a value to use instead of their first output.
pub(super) fn bypass(graph: &mut Graph, decide: impl Fn(&Graph, &Node) -> Option<ValueId>) -> Result<usize> {
    let mut replaced = std::collections::HashMap::new();
    let mut kept = Vec::new();
    for node in std::mem::take(&mut graph.nodes) {
        match (decide(graph, &node), node.output(0)) {
            (Some(instead), Some(output)) => {
                replaced.insert(output, instead);
            }
            _ => kept.push(node),
        }
    }
    graph.nodes = kept;
    graph.replace_uses(&replaced);
    Ok(replaced.len())
}
