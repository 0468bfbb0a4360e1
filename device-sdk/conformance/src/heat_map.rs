//! The table of ops and dtypes in the page of a report. Each cell has a letter, so that it can be read without colors.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::elements::{ELEMENT_DTYPES, dtype_name};
use crate::findings::{KernelNumbers, NumbersOutcome};
use crate::markup::EscapedMarkup;

/// The letter and the class of a cell. Of several kernels for one op, the worst outcome shows.
fn cell_style(outcome: NumbersOutcome) -> (&'static str, &'static str) {
    match outcome {
        NumbersOutcome::Failed => ("✗", "failed"),
        NumbersOutcome::ExpectedFailure => ("e", "expected"),
        NumbersOutcome::Passed => ("✓", "passed"),
        NumbersOutcome::Refused => ("–", "refused"),
        NumbersOutcome::NoReference => ("", "none"),
    }
}

fn severity(outcome: NumbersOutcome) -> u32 {
    match outcome {
        NumbersOutcome::Failed => 0,
        NumbersOutcome::ExpectedFailure => 1,
        NumbersOutcome::Passed => 2,
        NumbersOutcome::Refused => 3,
        NumbersOutcome::NoReference => 4,
    }
}

/// Renders the table; empty if there is nothing to show.
pub(crate) fn render_heat_map(rows: &[KernelNumbers]) -> String {
    let mut cells: BTreeMap<(&str, &str), &KernelNumbers> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.dtype.is_empty()) {
        let cell = cells.entry((&row.op, &row.dtype)).or_insert(row);
        if severity(row.outcome) < severity(cell.outcome) {
            *cell = row;
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let dtypes: Vec<&str> = ELEMENT_DTYPES
        .into_iter()
        .map(dtype_name)
        .filter(|dtype| cells.keys().any(|(_, known)| known == dtype))
        .collect();
    let ops: BTreeSet<&str> = cells.keys().map(|(op, _)| *op).collect();
    let head: String = dtypes.iter().map(|dtype| format!("<th scope=\"col\">{dtype}</th>")).collect();
    let mut body = String::new();
    for op in &ops {
        _ = write!(body, "<tr><th scope=\"row\">{}</th>", EscapedMarkup(op));
        for dtype in &dtypes {
            body += &cells.get(&(*op, *dtype)).map_or_else(|| "<td></td>".to_owned(), |row| render_cell(row));
        }
        body += "</tr>\n";
    }
    let without: BTreeSet<&str> = rows
        .iter()
        .filter(|row| row.outcome == NumbersOutcome::NoReference && !ops.contains(row.op.as_str()))
        .map(|row| row.op.as_str())
        .collect();
    let without: Vec<String> = without.iter().map(|op| EscapedMarkup(op).to_string()).collect();
    let without = match without.as_slice() {
        [] => String::new(),
        ops => {
            format!("<p class=\"about\">Without a reference, and so not compared: {}</p>\n", ops.join(", "))
        }
    };
    format!(
        "<section>\n<h2>Numbers <small>{}</small></h2>\n\
         <p class=\"about\">✓ right in every call, ✗ wrong, e wrong as the manifest says, – every call refused. \
         Point at a cell for its calls and its largest error.</p>\n\
         <div class=\"map\"><table>\n<thead><tr><th></th>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n{without}{}</section>\n",
        numbers_summary(rows),
        render_failures(rows)
    )
}

fn render_cell(row: &KernelNumbers) -> String {
    let (letter, class) = cell_style(row.outcome);
    let title = match &row.message {
        Some(message) => message.clone(),
        None => format!("{} {}: {} calls, at most {:.2} ulp", row.op, row.dtype, row.calls, row.worst_ulps),
    };
    format!("<td class=\"{class}\" title=\"{}\">{letter}</td>", EscapedMarkup(&title))
}

fn render_failures(rows: &[KernelNumbers]) -> String {
    let failed = rows.iter().filter(|row| row.outcome == NumbersOutcome::Failed);
    let items: String = failed
        .map(|row| {
            let message = EscapedMarkup(row.message.as_deref().unwrap_or_default());
            format!("<li class=\"failed\"><b class=\"failed\">failed</b><span>{message}</span></li>\n")
        })
        .collect();
    if items.is_empty() { items } else { format!("<ul>\n{items}</ul>\n") }
}

/// Counts what kernels computed, such as `12 right, 1 wrong`. A kernel counts once for each dtype.
pub(crate) fn numbers_summary(rows: &[KernelNumbers]) -> String {
    let count = |outcome: NumbersOutcome| rows.iter().filter(|row| row.outcome == outcome).count();
    let parts = [
        (NumbersOutcome::Passed, "right"),
        (NumbersOutcome::Failed, "wrong"),
        (NumbersOutcome::ExpectedFailure, "wrong as expected"),
        (NumbersOutcome::Refused, "refused"),
        (NumbersOutcome::NoReference, "without a reference"),
    ];
    let named = parts.into_iter().map(|(outcome, name)| (count(outcome), name));
    let named = named.filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}"));
    named.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(op: &str, dtype: &str, outcome: NumbersOutcome) -> KernelNumbers {
        KernelNumbers {
            op: op.to_owned(),
            domain: String::new(),
            versions: "1-".to_owned(),
            dtype: dtype.to_owned(),
            outcome,
            calls: 3,
            refused: 0,
            worst_ulps: 0.5,
            message: None,
        }
    }

    #[test]
    fn a_cell_shows_the_worst_of_several_kernels_and_a_letter_beside_its_color() {
        let rows = [
            row("Add", "f32", NumbersOutcome::Passed),
            row("Add", "f32", NumbersOutcome::Failed),
            row("Add", "i8", NumbersOutcome::Passed),
            row("<Op>", "f32", NumbersOutcome::Refused),
            row("Loop", "", NumbersOutcome::NoReference),
        ];
        let page = render_heat_map(&rows);
        assert!(page.contains("<th scope=\"col\">i8</th><th scope=\"col\">f32</th>"), "{page}");
        assert!(
            page.contains("title=\"Add i8: 3 calls, at most 0.50 ulp\">✓</td><td class=\"failed\""),
            "{page}"
        );
        assert!(page.contains("&lt;Op&gt;</th><td></td><td class=\"refused\""), "{page}");
        assert!(page.contains("not compared: Loop"), "{page}");
        assert_eq!(render_heat_map(&[]), "");
    }
}
