//! Draws the memory of a plan's values.

use oarlock_report::memory_layout::{ArenaAllocation, MemoryLayout};
use oarlock_report::text::format_bytes;

use crate::commands::model::html_page::{escape_html, push_formatted};

/// Browsers take long to draw more values.
const MAX_DRAWN_VALUES: usize = 3000;

/// Draws each arena: steps from left to right, bytes from top to bottom.
pub(super) fn draw_arenas(layout: &MemoryLayout, page: &mut String) {
    const PICTURE_WIDTH: f64 = 900.0;
    const PICTURE_HEIGHT: f64 = 280.0;
    for arena in layout.arenas.iter().filter(|arena| arena.bytes > 0) {
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
