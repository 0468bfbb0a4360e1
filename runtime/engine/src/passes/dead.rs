//! Nodes whose outputs nobody reads.

use oarlock_core::Result;

use super::common::pass;
use super::{Pass, Scene};
use crate::graph::Graph;

pub(super) const PASS: Pass = pass(
    "dead code",
    "removes nodes whose outputs nobody reads, so that they cost neither time nor memory",
    run,
);

fn run(graph: &mut Graph, _: &Scene<'_>) -> Result<usize> {
    let mut is_read = vec![false; graph.value_count()];
    graph.outputs.iter().for_each(|output| is_read[output.index()] = true);
    let before = graph.nodes.len();
    let mut kept = Vec::new();
    for node in std::mem::take(&mut graph.nodes).into_iter().rev() {
        if node.makes().any(|value| is_read[value.index()]) {
            node.uses().for_each(|value| is_read[value.index()] = true);
            kept.push(node);
        }
    }
    kept.reverse();
    graph.nodes = kept;
    Ok(before - graph.nodes.len())
}
