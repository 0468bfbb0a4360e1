//! Constants that take less room as what they were computed from.
//!
//! Weights of few bits become floats before a model runs, and what is repeated becomes as large as it is read. In a file
//! either would only take room: who reads it computes the same again.

use std::collections::HashMap;

use crate::graph::{Graph, Node, ValueId};

/// Constants that are larger by no more bytes than this stand in the file as they are, for a node takes room too.
const SMALL_SAVING_BYTES: u64 = 1024;

/// The nodes that are written in the place of constants, in an order in which they can be computed, by what each makes.
pub(super) fn find_compact_producers<'a>(
    graph: &Graph,
    folded: &'a [Node],
    suits: impl Fn(&Node) -> bool,
) -> HashMap<ValueId, (usize, &'a Node)> {
    let mut shorter = HashMap::new();
    // How many bytes constants take that take fewer than they have.
    let mut sizes: HashMap<ValueId, u64> = HashMap::new();
    for (at, node) in folded.iter().enumerate() {
        let [Some(made)] = node.outputs.as_slice() else { continue };
        let own = |id: ValueId| graph.value(id).weight.as_ref().and(graph.value(id).size_in_bytes());
        let given = node.read_values().map(|id| sizes.get(&id).copied().or_else(|| own(id)));
        if let (Some(given), Some(own)) = (given.sum::<Option<u64>>(), own(*made))
            && given.saturating_add(SMALL_SAVING_BYTES) < own
            && suits(node)
        {
            sizes.insert(*made, given);
            shorter.insert(*made, (at, node));
        }
    }
    shorter
}
