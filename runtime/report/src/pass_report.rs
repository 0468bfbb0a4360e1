//! What the passes did to a graph.

use oarlock_engine::passes::{self, PassEffect};
use serde::Serialize;

use crate::text::format_count;

/// What a pass changed.
#[derive(Serialize)]
pub struct PassReport {
    /// The name of the pass.
    pub pass: &'static str,
    /// What it is for.
    pub purpose: &'static str,
    /// True if the shapes of the inputs were known.
    pub with_shapes: bool,
    /// How often it changed the graph.
    pub changes: usize,
    /// Nodes before it ran.
    pub nodes_before: usize,
    /// Nodes after it ran.
    pub nodes_after: usize,
}

impl PassReport {
    /// Describes the effect of a pass.
    pub fn from_effect(effect: &PassEffect, with_shapes: bool) -> Self {
        let (nodes_before, nodes_after) = effect.nodes;
        Self {
            pass: effect.pass,
            purpose: passes::ALL_PASSES
                .iter()
                .find(|pass| pass.name == effect.pass)
                .map_or("", |pass| pass.purpose),
            with_shapes,
            changes: effect.changes,
            nodes_before,
            nodes_after,
        }
    }

    /// One row of the table of inputs and outputs.
    pub fn table_row(&self) -> [String; 5] {
        let when = if self.with_shapes { "with shapes" } else { "before shapes" };
        [
            format!("  {}", self.pass),
            when.to_owned(),
            format_count(self.changes, "change", "changes"),
            format!("{} → {} nodes", self.nodes_before, self.nodes_after),
            self.purpose.to_owned(),
        ]
    }
}
