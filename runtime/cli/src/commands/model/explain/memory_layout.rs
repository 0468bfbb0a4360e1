//! The memory of a plan's values, as text and as a picture.

use oarlock_engine::graph::Graph;
use oarlock_engine::{ArenaSlot, ExecutionPlan};
use serde::Serialize;

use crate::commands::model::html_page::{escape_html, push_formatted};
use crate::render::{format_bytes, format_count};

/// Browsers take long to draw more values.
const MAX_DRAWN_VALUES: usize = 3000;

#[derive(Serialize)]
pub(super) struct MemoryLayout {
    weights_bytes: u64,
    arenas: Vec<ArenaLayout>,
}

/// The arena of one device, which each run needs besides inputs and outputs.
#[derive(Serialize)]
struct ArenaLayout {
    device: String,
    bytes: u64,
    /// What the values would take without sharing memory.
    bytes_apart: u64,
    values: Vec<ArenaAllocation>,
}

/// Memory that a value, or the workspace of a kernel, holds for some steps.
#[derive(Serialize)]
struct ArenaAllocation {
    /// Empty for workspace.
    value: String,
    offset: u64,
    bytes: u64,
    first_step: usize,
    last_step: usize,
}

impl MemoryLayout {
    pub(super) fn from_plan(plan: &ExecutionPlan, graph: &Graph) -> Self {
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
        for ArenaSlot { value, arena, offset, size, steps } in plan.arena_slots() {
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

    pub(super) fn to_sentences(&self) -> Vec<String> {
        let mut sentences = vec![format!("{} of weights in the file", format_bytes(self.weights_bytes))];
        for arena in &self.arenas {
            sentences.push(format!(
                "{} on `{}` for {} of each run, which one by one would take {}",
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

    /// Draws each arena: steps from left to right, bytes from top to bottom.
    pub(super) fn draw_arenas(&self, page: &mut String) {
        const PICTURE_WIDTH: f64 = 900.0;
        const PICTURE_HEIGHT: f64 = 280.0;
        for arena in self.arenas.iter().filter(|arena| arena.bytes > 0) {
            let steps = arena.values.iter().map(|part| part.last_step + 1).max().unwrap_or(1) as f64;
            push_formatted(
                page,
                format_args!("<h3>{}, {}</h3>\n", escape_html(&arena.device), format_bytes(arena.bytes)),
            );
            push_formatted(
                page,
                format_args!(
                    "<div class=\"wide\"><svg width=\"{PICTURE_WIDTH}\" height=\"{PICTURE_HEIGHT}\" role=\"img\">\n"
                ),
            );
            let mut drawn: Vec<(usize, &ArenaAllocation)> = arena.values.iter().enumerate().collect();
            // Draw the largest; the smallest would be invisible.
            drawn.sort_by_key(|(_, part)| std::cmp::Reverse(part.bytes));
            drawn.truncate(MAX_DRAWN_VALUES);
            for (index, part) in drawn {
                let x = PICTURE_WIDTH * part.first_step as f64 / steps;
                let width = PICTURE_WIDTH * (part.last_step + 1 - part.first_step) as f64 / steps;
                let y = PICTURE_HEIGHT * part.offset as f64 / arena.bytes as f64;
                let height = PICTURE_HEIGHT * part.bytes as f64 / arena.bytes as f64;
                let name = if part.value.is_empty() { "scratch memory" } else { &part.value };
                let hue = (index * 47) % 360;
                push_formatted(
                    page,
                    format_args!(
                        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"hsl({hue} 55% 60%)\" \
                     stroke=\"#0006\" stroke-width=\".5\"><title>{}: {} from {}, steps {} to {}</title></rect>\n",
                        escape_html(name),
                        format_bytes(part.bytes),
                        format_bytes(part.offset),
                        part.first_step,
                        part.last_step
                    ),
                );
            }
            let part = if arena.values.len() > MAX_DRAWN_VALUES { "The largest values only. " } else { "" };
            push_formatted(
                page,
                format_args!(
                    "</svg></div>\n<p class=\"quiet\">{part}Steps from left to right, bytes from top to bottom; a name stands at each part.</p>\n"
                ),
            );
        }
    }
}
