//! Tables and sentences for people.
//!
//! On a terminal they fit its width. In a pipe each row and each sentence is one line, so that `grep` finds it.

use anstyle::Style;
use oarlock_host::{LoadedPlugin, PluginInfo, PluginOrigin, sanitize_text};
use serde::Serialize;

use crate::output::{CommandOutput, PLAIN_STYLE};

/// Spaces between two columns.
const COLUMN_GAP: usize = 2;
/// Columns are never truncated below this width.
const MIN_COLUMN_WIDTH: usize = 12;

pub(crate) struct TableCell {
    text: String,
    style: Style,
}

impl TableCell {
    pub(crate) fn new(text: impl AsRef<str>) -> Self {
        Self::with_style(text, PLAIN_STYLE)
    }

    pub(crate) fn with_style(text: impl AsRef<str>, style: Style) -> Self {
        Self { text: sanitize_text(text.as_ref()), style }
    }
}

pub(crate) struct TextTable {
    /// Index of the column that is truncated on a narrow terminal.
    shrinks: usize,
    rows: Vec<Vec<TableCell>>,
}

impl TextTable {
    pub(crate) fn new(shrinks: usize) -> Self {
        Self { shrinks, rows: Vec::new() }
    }

    pub(crate) fn add_row(&mut self, cells: impl Into<Vec<TableCell>>) {
        self.rows.push(cells.into());
    }

    pub(crate) fn print_table(&self, output: &mut CommandOutput) {
        let available = output.width().unwrap_or(usize::MAX);
        match self.column_widths(available) {
            Some(widths) => self.rows.iter().for_each(|row| print_row(row, &widths, output)),
            None => self.rows.iter().for_each(|row| print_stacked(row, available, output)),
        }
    }

    /// `None` if the table does not fit even with a truncated column.
    fn column_widths(&self, available: usize) -> Option<Vec<usize>> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| display_width(&cell.text))
                .max()
                .unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..columns).map(width).collect();
        let whole = widths.iter().sum::<usize>() + COLUMN_GAP * columns.saturating_sub(1);
        let excess = whole.saturating_sub(available);
        if excess > 0 {
            let column = widths.get_mut(self.shrinks)?;
            *column = column.checked_sub(excess).filter(|left| *left >= MIN_COLUMN_WIDTH)?;
        }
        Some(widths)
    }
}

fn print_row(row: &[TableCell], widths: &[usize], output: &mut CommandOutput) {
    let mut line = String::new();
    let mut padding = 0;
    for (cell, width) in row.iter().zip(widths) {
        line += &" ".repeat(padding);
        let text = truncate_text(&cell.text, *width);
        padding = width - display_width(&text) + COLUMN_GAP;
        line += &output.paint_text(cell.style, &text);
    }
    output.write_line(line.trim_end());
}

/// Prints each cell on its own line, under the first; for terminals too narrow for columns.
fn print_stacked(row: &[TableCell], available: usize, output: &mut CommandOutput) {
    for (index, cell) in row.iter().filter(|cell| !cell.text.is_empty()).enumerate() {
        let indent = if index == 0 { "" } else { "    " };
        let text = truncate_text(&cell.text, available.saturating_sub(indent.len()));
        let line = format!("{indent}{}", output.paint_text(cell.style, &text));
        output.write_line(&line);
    }
}

pub(crate) fn print_sentence(output: &mut CommandOutput, indent: usize, text: &str) {
    print_labeled(output, &" ".repeat(indent), indent, text);
}

/// The label fills `indent` columns; further lines align below the text.
pub(crate) fn print_labeled(output: &mut CommandOutput, label: &str, indent: usize, text: &str) {
    let room = output.width().map_or(usize::MAX, |width| width.saturating_sub(indent).max(MIN_COLUMN_WIDTH));
    let spaces = " ".repeat(indent);
    for (index, line) in wrap_text(&sanitize_text(text), room).into_iter().enumerate() {
        output.write_line(&format!("{}{line}", if index == 0 { label } else { &spaces }));
    }
}

/// Breaks a text into lines of at most `room` columns; longer words stay whole.
fn wrap_text(text: &str, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && display_width(&line) + 1 + display_width(word) > room {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    lines.push(line);
    lines
}

fn display_width(text: &str) -> usize {
    text.chars().count()
}

/// Ends with an ellipsis if something was cut.
pub(crate) fn truncate_text(text: &str, width: usize) -> String {
    if display_width(text) <= width {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(width.saturating_sub(1)).collect();
    kept.truncate(kept.trim_end().len());
    kept + "…"
}

pub(crate) fn plugin_with_file(plugin: &LoadedPlugin) -> String {
    format!("`{}` (`{}`)", plugin.info().name, plugin.file().display())
}

/// Draft profiles of a plugin, such as `graph 1 (not used)`; `None` if it has none.
pub(crate) fn draft_list(info: &PluginInfo) -> Option<String> {
    let drafts: Vec<String> = info.drafts.iter().map(ToString::to_string).collect();
    (!drafts.is_empty()).then(|| drafts.join(", "))
}

/// The origin in terms of this command's options.
pub(crate) fn origin_text(origin: PluginOrigin) -> String {
    if origin == PluginOrigin::Explicit { "`--plugin`".to_owned() } else { origin.to_string() }
}

/// The name that serde gives a value in `--json` output.
pub(crate) fn json_name(value: &impl Serialize) -> String {
    let name = serde_json::to_value(value).ok();
    name.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_does_not_fit_is_cut_between_characters() {
        assert_eq!(truncate_text("Zürich", 6), "Zürich");
        assert_eq!(truncate_text("Zürich", 3), "Zü…");
        assert_eq!(truncate_text("a b", 3), "a b");
        assert_eq!(truncate_text("a bc", 3), "a…");
    }

    #[test]
    fn sentences_break_between_words() {
        assert_eq!(wrap_text("a bc def", 4), ["a bc", "def"]);
        assert_eq!(wrap_text("abcdef g", 4), ["abcdef", "g"]);
        assert_eq!(wrap_text("a bc def", usize::MAX), ["a bc def"]);
    }

    #[test]
    fn only_one_column_shrinks_and_only_as_far_as_it_says_something() {
        let mut table = TextTable::new(1);
        table.add_row([TableCell::new("cpu:0"), TableCell::new("x".repeat(40)), TableCell::new("end")]);
        assert_eq!(table.column_widths(usize::MAX), Some(vec![5, 40, 3]));
        assert_eq!(table.column_widths(32), Some(vec![5, 20, 3]));
        assert_eq!(table.column_widths(20), None);
    }
}
