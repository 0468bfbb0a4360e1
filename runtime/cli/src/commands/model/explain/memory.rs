//! Where values lie in a run, in words and as a picture.

use oarlock_engine::graph::Graph;
use oarlock_engine::{Lodging, Plan};
use serde::Serialize;

use crate::commands::model::page::{add, escape};
use crate::render::{bytes, count};

/// A picture of more values takes a browser long.
const MOST_DRAWN: usize = 3000;

/// The memory that a model takes.
#[derive(Serialize)]
pub(super) struct Memory {
    weights_bytes: u64,
    arenas: Vec<Arena>,
}

/// The memory that each run takes on a device, beside its inputs and outputs.
#[derive(Serialize)]
struct Arena {
    device: String,
    bytes: u64,
    /// What the values would take if none shared its memory with another.
    bytes_apart: u64,
    values: Vec<Part>,
}

/// What a value, or the scratch memory of a kernel, has for some steps.
#[derive(Serialize)]
struct Part {
    /// Empty for scratch memory.
    value: String,
    offset: u64,
    bytes: u64,
    first_step: usize,
    last_step: usize,
}

impl Memory {
    pub(super) fn of(plan: &Plan, graph: &Graph) -> Self {
        let mut arenas: Vec<Arena> = plan
            .arenas()
            .iter()
            .map(|(device, bytes)| Arena {
                device: device.name().to_owned(),
                bytes: *bytes,
                bytes_apart: 0,
                values: Vec::new(),
            })
            .collect();
        for Lodging { value, arena, offset, size, steps } in plan.lodgings() {
            if let Some(arena) = arenas.get_mut(arena) {
                arena.bytes_apart += size;
                arena.values.push(Part {
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

    pub(super) fn sentences(&self) -> Vec<String> {
        let mut sentences = vec![format!("{} of weights in the file", bytes(self.weights_bytes))];
        for arena in &self.arenas {
            sentences.push(format!(
                "{} on `{}` for {} of each run, which one by one would take {}",
                bytes(arena.bytes),
                arena.device,
                count(arena.values.len(), "value", "values"),
                bytes(arena.bytes_apart)
            ));
        }
        if self.arenas.is_empty() {
            sentences
                .push("nothing for values of a run but inputs, outputs and what is dispatched".to_owned());
        }
        sentences
    }

    /// A picture of each arena: steps from left to right, bytes from top to bottom.
    pub(super) fn draw(&self, page: &mut String) {
        const WIDTH: f64 = 900.0;
        const HEIGHT: f64 = 280.0;
        for arena in self.arenas.iter().filter(|arena| arena.bytes > 0) {
            let steps = arena.values.iter().map(|part| part.last_step + 1).max().unwrap_or(1) as f64;
            add(page, format_args!("<h3>{}, {}</h3>\n", escape(&arena.device), bytes(arena.bytes)));
            add(
                page,
                format_args!(
                    "<div class=\"wide\"><svg width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\">\n"
                ),
            );
            let mut drawn: Vec<(usize, &Part)> = arena.values.iter().enumerate().collect();
            // The smallest would not be seen.
            drawn.sort_by_key(|(_, part)| std::cmp::Reverse(part.bytes));
            drawn.truncate(MOST_DRAWN);
            for (index, part) in drawn {
                let x = WIDTH * part.first_step as f64 / steps;
                let width = WIDTH * (part.last_step + 1 - part.first_step) as f64 / steps;
                let y = HEIGHT * part.offset as f64 / arena.bytes as f64;
                let height = HEIGHT * part.bytes as f64 / arena.bytes as f64;
                let name = if part.value.is_empty() { "scratch memory" } else { &part.value };
                let hue = (index * 47) % 360;
                add(
                    page,
                    format_args!(
                        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"hsl({hue} 55% 60%)\" \
                     stroke=\"#0006\" stroke-width=\".5\"><title>{}: {} from {}, steps {} to {}</title></rect>\n",
                        escape(name),
                        bytes(part.bytes),
                        bytes(part.offset),
                        part.first_step,
                        part.last_step
                    ),
                );
            }
            let part = if arena.values.len() > MOST_DRAWN { "The largest values only. " } else { "" };
            add(
                page,
                format_args!(
                    "</svg></div>\n<p class=\"quiet\">{part}Steps from left to right, bytes from top to bottom; a name stands at each part.</p>\n"
                ),
            );
        }
    }
}
