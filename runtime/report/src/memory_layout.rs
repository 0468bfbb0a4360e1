//! The memory of a plan's values.

use oarlock_engine::graph::Graph;
use oarlock_engine::{ArenaRange, ExecutionPlan};
use serde::Serialize;

use crate::text::{format_bytes, format_count};

/// The memory of a model and of its runs.
#[derive(Serialize)]
pub struct MemoryLayout {
    /// Bytes of the weights in the file.
    pub weights_bytes: u64,
    /// The arena of each device.
    pub arenas: Vec<ArenaLayout>,
}

/// The arena of one device, which each run needs besides inputs and outputs.
#[derive(Serialize)]
pub struct ArenaLayout {
    /// The name of the device.
    pub device: String,
    /// Its size.
    pub bytes: u64,
    /// What the values would take without sharing memory.
    pub bytes_apart: u64,
    /// What lies in it.
    pub values: Vec<ArenaAllocation>,
}

/// Memory that a value, or the workspace of a kernel, holds for some steps.
#[derive(Serialize)]
pub struct ArenaAllocation {
    /// Empty for workspace.
    pub value: String,
    /// Where it begins.
    pub offset: u64,
    /// Its size.
    pub bytes: u64,
    /// The step that writes it.
    pub first_step: usize,
    /// The last step that reads it.
    pub last_step: usize,
}

impl MemoryLayout {
    /// Reads the layout of a plan for a graph.
    pub fn from_plan(plan: &ExecutionPlan, graph: &Graph) -> Self {
        let mut arenas: Vec<ArenaLayout> = plan
            .arenas()
            .iter()
            .map(|(device, bytes)| ArenaLayout {
                device: device.name().to_owned(),
                bytes: *bytes,
                bytes_apart: 0,
                values: Vec::new(),
            })
            .collect();
        for ArenaRange { value, arena, offset, size, steps } in plan.arena_ranges() {
            if let Some(arena) = arenas.get_mut(arena) {
                arena.bytes_apart += size;
                arena.values.push(ArenaAllocation {
                    value,
                    offset,
                    bytes: size,
                    first_step: steps.0,
                    last_step: steps.1,
                });
            }
        }
        Self { weights_bytes: graph.weight_bytes(), arenas }
    }

    /// One sentence for the weights, and one for each arena.
    pub fn to_sentences(&self) -> Vec<String> {
        let mut sentences = vec![format!("{} of weights in the file", format_bytes(self.weights_bytes))];
        for arena in &self.arenas {
            sentences.push(format!(
                "{} on `{}` for {} of each run, {} without reuse",
                format_bytes(arena.bytes),
                arena.device,
                format_count(arena.values.len(), "value", "values"),
                format_bytes(arena.bytes_apart)
            ));
        }
        if self.arenas.is_empty() {
            sentences
                .push("nothing for values of a run but inputs, outputs and what is dispatched".to_owned());
        }
        sentences
    }
}
