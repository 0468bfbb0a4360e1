//! What there is to say about a model as a page with pictures.

use oarlock_engine::graph::Graph;

use super::{End, PassReport, Report, picture};
use crate::commands::model::page::{self, Align, add, escape};
use crate::render::count;

/// A table of more rows takes a browser long.
const MOST_ROWS: usize = 20_000;

pub(super) fn page(report: &Report, graph: &Graph) -> String {
    let mut body = String::new();
    add(&mut body, format_args!("<p>{}</p>\n", escape(&report.origin())));
    let text = |title| (title, Align::Left);
    let end = |end: &End| vec![end.name.clone(), end.declared.clone(), end.planned()];
    for (title, ends) in [("Inputs", &report.inputs), ("Outputs", &report.outputs)] {
        add(&mut body, format_args!("<h2>{title}</h2>\n"));
        let titles = [text("name"), text("the model says"), text("the plan")];
        page::table(&mut body, &titles, &ends.iter().map(end).collect::<Vec<_>>());
    }
    for note in &report.notes {
        add(&mut body, format_args!("<p class=\"quiet\">{}</p>\n", escape(note)));
    }
    body.push_str("<h2>Memory</h2>\n");
    for sentence in report.memory.sentences() {
        add(&mut body, format_args!("<p>{}</p>\n", escape(&sentence)));
    }
    report.memory.draw(&mut body);
    if let Some(precision) = &report.precision {
        body.push_str("<h2>Precision</h2>\n");
        for sentence in precision.sentences() {
            add(&mut body, format_args!("<p>{}</p>\n", escape(&sentence)));
        }
    }
    body.push_str("<h2>Passes</h2>\n");
    let titles = [text("pass"), text("when"), text("changes"), text("nodes"), text("what it does")];
    let pass = |pass: &PassReport| pass.row().to_vec();
    if report.passes.is_empty() {
        body.push_str("<p>None had anything to change.</p>\n");
    } else {
        page::table(&mut body, &titles, &report.passes.iter().map(pass).collect::<Vec<_>>());
    }
    body.push_str("<h2>Graph</h2>\n");
    if report.nodes.len() <= picture::MOST_DRAWN {
        add(&mut body, format_args!("<div class=\"wide\">{}</div>\n", picture::inline(graph, &report.nodes)));
        body.push_str("<p class=\"quiet\">What a node reads and makes, and what runs it and why, stands at its box.</p>\n");
    } else {
        add(&mut body, format_args!("<p>{} nodes are too many for a picture.</p>\n", report.nodes.len()));
    }
    body.push_str("<h2>Nodes</h2>\n");
    let titles = ["op", "node", "output", "device", "kernel", "why"].map(text);
    let rows = report.nodes.iter().flat_map(|node| node.rows(0));
    let mut rows: Vec<Vec<String>> = rows.map(|row| row.to_vec()).collect();
    let left_out = rows.len().saturating_sub(MOST_ROWS);
    rows.truncate(MOST_ROWS);
    page::table(&mut body, &titles, &rows);
    if left_out > 0 {
        let rest = count(left_out, "more node is", "more nodes are");
        add(&mut body, format_args!("<p>{rest} in the answer of <code>--json</code>.</p>\n"));
    }
    page::page(&format!("How {} is run", report.model), &body)
}
