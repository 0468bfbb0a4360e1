//! Branches whose condition is known.

use std::collections::HashMap;

use oarlock_core::Result;

use super::common::pass;
use super::{Pass, Scene};
use crate::graph::{Graph, Node, Subgraph, ValueId};

pub(super) const PASS: Pass = pass(
    "known branches",
    "puts the branch that is taken in the place of an If whose condition is always the same",
    run,
);

fn run(graph: &mut Graph, _: &Scene<'_>) -> Result<usize> {
    let mut replaced = HashMap::new();
    let mut count = 0;
    let mut kept = Vec::new();
    for node in std::mem::take(&mut graph.nodes) {
        match taken(graph, &node) {
            Some(branch) => {
                let branch = branch.clone();
                kept.extend(inline(graph, &node, &branch, &mut replaced));
                count += 1;
            }
            None => kept.push(node),
        }
    }
    graph.nodes = kept;
    graph.replace_uses(&replaced);
    Ok(count)
}

/// The branch that an `If` always takes.
fn taken<'a>(graph: &Graph, node: &'a Node) -> Option<&'a Subgraph> {
    if !node.is("If") {
        return None;
    }
    let is_true = match graph.value(node.input(0)?).numbers()?.bytes() {
        [truth] => *truth != 0,
        _ => return None,
    };
    let name = if is_true { "then_branch" } else { "else_branch" };
    node.subgraphs.iter().find(|subgraph| &*subgraph.attribute == name)
}

/// The nodes of a branch, with its values among those of the graph around it.
fn inline(
    graph: &mut Graph,
    node: &Node,
    branch: &Subgraph,
    replaced: &mut HashMap<ValueId, ValueId>,
) -> Vec<Node> {
    let inner = &branch.graph;
    let mut ids: HashMap<ValueId, ValueId> =
        inner.inputs.iter().copied().zip(branch.captures.iter().copied()).collect();
    for (id, value) in inner.values() {
        ids.entry(id).or_insert_with(|| graph.add(value.clone()));
    }
    let outer = |id: &ValueId| ids.get(id).copied().unwrap_or(*id);
    for (own, inner) in node.outputs.iter().zip(&inner.outputs) {
        if let Some(own) = own {
            replaced.insert(*own, outer(inner));
        }
    }
    let moved = |node: &Node| {
        let mut node = node.clone();
        node.inputs.iter_mut().chain(&mut node.outputs).flatten().for_each(|id| *id = outer(id));
        let captures = node.subgraphs.iter_mut().flat_map(|subgraph| &mut subgraph.captures);
        captures.for_each(|id| *id = outer(id));
        node
    };
    inner.nodes.iter().map(moved).collect()
}
