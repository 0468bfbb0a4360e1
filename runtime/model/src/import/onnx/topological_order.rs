//! Sorts nodes into topological order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use oarlock_core::Result;

use crate::graph::{Graph, Node};
use crate::import::error_location::invalid_model;

/// Nodes of a cycle that a message names.
const MAX_NAMED_NODES: usize = 8;

/// Sorts the nodes of a graph; a graph that is sorted already stays as it is.
pub(super) fn sort_nodes(graph: &mut Graph) -> Result<()> {
    let makers = graph.producers();
    let needs: Vec<Vec<usize>> = (graph.nodes.iter())
        .map(|node| node.read_values().filter_map(|value| makers[value.index()]).collect())
        .collect();
    if needs.iter().enumerate().all(|(at, needs)| needs.iter().all(|need| *need < at)) {
        return Ok(());
    }
    let mut waits: Vec<usize> = needs.iter().map(Vec::len).collect();
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); needs.len()];
    for (at, needs) in needs.iter().enumerate() {
        needs.iter().for_each(|need| readers[*need].push(at));
    }
    let ready = (0..waits.len()).filter(|at| waits[*at] == 0).map(Reverse);
    let mut ready: BinaryHeap<_> = ready.collect();
    let mut order = Vec::with_capacity(waits.len());
    while let Some(Reverse(next)) = ready.pop() {
        order.push(next);
        for reader in &readers[next] {
            waits[*reader] -= 1;
            if waits[*reader] == 0 {
                ready.push(Reverse(*reader));
            }
        }
    }
    if let Some(stuck) = waits.iter().position(|waits| *waits > 0) {
        return Err(invalid_model(
            "nodes that can be put in order",
            describe_cycle(&graph.nodes, &needs, &waits, stuck),
        ));
    }
    let mut nodes: Vec<Option<Node>> = std::mem::take(&mut graph.nodes).into_iter().map(Some).collect();
    graph.nodes = order.into_iter().filter_map(|at| nodes[at].take()).collect();
    Ok(())
}

/// Describes a cycle, starting the search from a node that is stuck.
fn describe_cycle(nodes: &[Node], needs: &[Vec<usize>], waits: &[usize], stuck: usize) -> String {
    let mut path = vec![stuck];
    let mut seen = vec![false; nodes.len()];
    loop {
        let last = path[path.len() - 1];
        seen[last] = true;
        // A stuck node waits for at least one other stuck node.
        let Some(next) = needs[last].iter().copied().find(|need| waits[*need] > 0) else { break };
        if seen[next] {
            let start = path.iter().position(|at| *at == next).unwrap_or_default();
            path.drain(..start);
            break;
        }
        path.push(next);
    }
    // The path runs from readers to producers; reverse it.
    let labels: Vec<String> = path.iter().rev().take(MAX_NAMED_NODES).map(|at| nodes[*at].label()).collect();
    let more = path.len().saturating_sub(labels.len());
    let and = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{and}, which wait for each other", labels.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{GraphValue, ValueId, check_graph};

    /// Builds a graph from nodes with numbered values; value 0 is the input.
    fn build_graph(nodes: &[(&str, &[usize], usize)]) -> Graph {
        let mut graph = Graph::new("test");
        let ids: Vec<ValueId> =
            (0..10).map(|at| graph.add_value(GraphValue::with_name(format!("v{at}")))).collect();
        graph.inputs = vec![ids[0]];
        for (op, reads, makes) in nodes {
            let reads = reads.iter().map(|at| Some(ids[*at]));
            graph.nodes.push(Node::new("", op, 20, reads, [Some(ids[*makes])]));
        }
        graph
    }

    fn node_ops(graph: &Graph) -> Vec<&str> {
        graph.nodes.iter().map(|node| &*node.op).collect()
    }

    #[test]
    fn nodes_move_after_their_inputs_and_otherwise_keep_their_order() {
        let mut graph = build_graph(&[("D", &[2, 3], 4), ("B", &[1], 2), ("A", &[0], 1), ("C", &[0], 3)]);
        sort_nodes(&mut graph).unwrap();
        assert_eq!(node_ops(&graph), ["A", "B", "C", "D"]);
        check_graph(&graph).unwrap();
    }

    #[test]
    fn a_cycle_is_named_without_what_only_hangs_on_it() {
        let mut graph = build_graph(&[("Tail", &[2], 5), ("A", &[0, 2], 1), ("B", &[1], 2)]);
        let error = sort_nodes(&mut graph).unwrap_err().to_string();
        assert!(
            error.contains("found `A`, `B`, which wait") || error.contains("found `B`, `A`, which wait"),
            "{error}"
        );
        assert!(!error.contains("Tail"), "{error}");
    }

    #[test]
    fn a_node_that_reads_what_it_makes_is_a_cycle() {
        let mut graph = build_graph(&[("A", &[1], 1)]);
        assert!(sort_nodes(&mut graph).unwrap_err().to_string().contains("`A`, which wait"));
    }
}
