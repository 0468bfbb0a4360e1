//! Changes that passes make to a graph.

use std::collections::HashMap;

use super::{Graph, ValueId};

impl Graph {
    /// Has everybody who reads one value read another instead. Outputs of the graph keep their names: where one is replaced,
    /// the other takes its place in the list.
    pub fn replace_uses(&mut self, replaced: &HashMap<ValueId, ValueId>) {
        if replaced.is_empty() {
            return;
        }
        let last = |mut id: ValueId| {
            while let Some(next) = replaced.get(&id) {
                id = *next;
            }
            id
        };
        for node in &mut self.nodes {
            node.inputs.iter_mut().flatten().for_each(|input| *input = last(*input));
            let captures = node.subgraphs.iter_mut().flat_map(|subgraph| &mut subgraph.captures);
            captures.for_each(|captured| *captured = last(*captured));
        }
        self.outputs.iter_mut().for_each(|output| *output = last(*output));
    }

    /// How often each value is read, as an output of the graph too; by the index of the value.
    pub fn use_counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.value_count()];
        let uses = self.nodes.iter().flat_map(|node| node.uses().collect::<Vec<_>>());
        uses.chain(self.outputs.iter().copied()).for_each(|value| counts[value.index()] += 1);
        counts
    }

    /// The node that makes each value, by the index of the value.
    pub fn makers(&self) -> Vec<Option<usize>> {
        let mut makers = vec![None; self.value_count()];
        for (at, node) in self.nodes.iter().enumerate() {
            node.makes().for_each(|value| makers[value.index()] = Some(at));
        }
        makers
    }
}
