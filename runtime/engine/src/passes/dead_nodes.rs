//! Removes nodes whose outputs are never read.

use oarlock_core::Result;

use super::graph_view::define_pass;
use super::{GraphPass, PassContext};
use crate::graph::Graph;

pub(super) const ELIMINATE_DEAD_NODES: GraphPass = define_pass(
    "dead node elimination",
    "removes nodes whose outputs nobody reads, so that they cost neither time nor memory",
    eliminate_dead_nodes,
);

fn eliminate_dead_nodes(graph: &mut Graph, _: &PassContext<'_>) -> Result<usize> {
    let mut is_read = vec![false; graph.value_count()];
    graph.outputs.iter().for_each(|output| is_read[output.index()] = true);
    let before = graph.nodes.len();
    let mut kept = Vec::new();
    for node in std::mem::take(&mut graph.nodes).into_iter().rev() {
        if node.written_values().any(|value| is_read[value.index()]) {
            node.read_values().for_each(|value| is_read[value.index()] = true);
            kept.push(node);
        }
    }
    kept.reverse();
    graph.nodes = kept;
    Ok(before - graph.nodes.len())
}
