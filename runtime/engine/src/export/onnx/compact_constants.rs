//! Finds constants that take less space as the nodes they were computed from.
//!
//! Before a run, block-quantized weights may be folded into floats, and small constants expanded. Written out, the result would
//! only take space; a reader can compute it again.

use std::collections::HashMap;

use crate::graph::{Graph, Node, ValueId};

/// Constants are written out unless their nodes save more bytes than this, because a node takes space too.
const SMALL_SAVING_BYTES: u64 = 1024;

/// The nodes to write in place of constants, with their position in topological order, keyed by the value they make.
pub(super) fn find_compact_producers<'a>(
    graph: &Graph,
    folded: &'a [Node],
    suits: impl Fn(&Node) -> bool,
) -> HashMap<ValueId, (usize, &'a Node)> {
    let mut shorter = HashMap::new();
    // Bytes that a compact constant takes in the file, where that is less than its size.
    let mut sizes: HashMap<ValueId, u64> = HashMap::new();
    for (at, node) in folded.iter().enumerate() {
        let [Some(result)] = node.outputs.as_slice() else { continue };
        let own = |id: ValueId| graph.value(id).weight.as_ref().and(graph.value(id).size_in_bytes());
        let given = node.read_values().map(|id| sizes.get(&id).copied().or_else(|| own(id)));
        if let (Some(given), Some(own)) = (given.sum::<Option<u64>>(), own(*result))
            && given.saturating_add(SMALL_SAVING_BYTES) < own
            && suits(node)
        {
            sizes.insert(*result, given);
            shorter.insert(*result, (at, node));
        }
    }
    shorter
}
