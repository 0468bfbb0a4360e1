//! Inlines branches whose condition is constant.

use std::collections::HashMap;

use oarlock_core::Result;

use super::graph_view::define_pass;
use super::{GraphPass, PassContext};
use crate::graph::{Graph, Node, Subgraph, ValueId};

pub(super) const INLINE_BRANCHES: GraphPass = define_pass(
    "branch inlining",
    "replaces an If whose condition is constant by the branch that it takes",
    inline_branches,
);

fn inline_branches(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    let mut replaced = HashMap::new();
    let mut count = 0;
    let mut kept = Vec::new();
    for node in std::mem::take(&mut graph.nodes) {
        match taken_branch(graph, &node, context) {
            Some(branch) => {
                let (nodes, outputs) = inline_subgraph(graph, &branch.graph, branch.captures.iter().copied());
                let pairs = node.outputs.iter().zip(outputs);
                replaced.extend(pairs.filter_map(|(own, inner)| Some(((*own)?, inner))));
                kept.extend(nodes);
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
fn taken_branch<'a>(graph: &Graph, node: &'a Node, context: &PassContext<'_>) -> Option<&'a Subgraph> {
    if !node.is_op("If") {
        return None;
    }
    let condition = graph.value(node.input(0)?).known_numbers()?;
    context.record_read(graph, node.input(0)?);
    let is_true = match *condition.bytes().ok()? {
        [truth] => truth != 0,
        _ => return None,
    };
    let name = if is_true { "then_branch" } else { "else_branch" };
    let branch = node.subgraphs.iter().find(|subgraph| &*subgraph.attribute == name)?;
    // A branch whose captures or outputs do not match is invalid; it is left for the run to report.
    let fits = branch.graph.inputs.len() == branch.captures.len()
        && branch.graph.outputs.len() >= node.outputs.len();
    fits.then_some(branch)
}

/// Copies the values of a subgraph into the enclosing graph. Returns its nodes, and the values that replace its outputs.
pub(super) fn inline_subgraph(
    graph: &mut Graph,
    inner: &Graph,
    arguments: impl Iterator<Item = ValueId>,
) -> (Vec<Node>, Vec<ValueId>) {
    let mut ids: HashMap<ValueId, ValueId> = inner.inputs.iter().copied().zip(arguments).collect();
    for (id, value) in inner.values() {
        ids.entry(id).or_insert_with(|| graph.add_value(value.clone()));
    }
    let outer = |id: &ValueId| ids.get(id).copied().unwrap_or(*id);
    let moved = |node: &Node| {
        let mut node = node.clone();
        node.inputs.iter_mut().chain(&mut node.outputs).flatten().for_each(|id| *id = outer(id));
        let captures = node.subgraphs.iter_mut().flat_map(|subgraph| &mut subgraph.captures);
        captures.for_each(|id| *id = outer(id));
        node
    };
    (inner.nodes.iter().map(moved).collect(), inner.outputs.iter().map(outer).collect())
}
