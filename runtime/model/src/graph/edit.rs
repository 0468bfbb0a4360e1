//! Edits that passes make to a graph.

use std::collections::HashMap;

use super::{Graph, ValueId};

impl Graph {
    /// Redirects all uses of the keys to the mapped values. A graph output keeps its name: where one is replaced, the other
    /// value takes its place in the list.
    pub fn replace_uses(&mut self, replaced: &HashMap<ValueId, ValueId>) {
        if replaced.is_empty() {
            return;
        }
        // Replacements may chain. Each chain is walked once and its end remembered, so that long ones stay linear.
        let mut last: HashMap<ValueId, ValueId> = HashMap::new();
        for first in replaced.keys() {
            let (mut chain, mut end) = (vec![*first], *first);
            while let Some(next) = last.get(&end).or_else(|| replaced.get(&end)) {
                end = *next;
                chain.push(end);
            }
            last.extend(chain.into_iter().filter(|id| *id != end).map(|id| (id, end)));
        }
        let replace = |id: &mut ValueId| *id = *last.get(id).unwrap_or(id);
        self.nodes.iter_mut().flat_map(|node| node.read_values_mut()).for_each(replace);
        self.outputs.iter_mut().for_each(replace);
    }

    /// Number of uses of each value, by index. Being an output of the graph is a use.
    pub fn use_counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.value_count()];
        let uses = self.nodes.iter().flat_map(|node| node.read_values().collect::<Vec<_>>());
        uses.chain(self.outputs.iter().copied()).for_each(|value| counts[value.index()] += 1);
        counts
    }

    /// The node that writes each value, by index; `None` for inputs and constants.
    pub fn producers(&self) -> Vec<Option<usize>> {
        let mut makers = vec![None; self.value_count()];
        for (at, node) in self.nodes.iter().enumerate() {
            node.written_values().for_each(|value| makers[value.index()] = Some(at));
        }
        makers
    }
}
