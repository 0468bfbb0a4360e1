//! The report of `oarlock explain` as a page with pictures.

use oarlock_engine::graph::Graph;

use oarlock_report::pass_report::PassReport;

use super::{ExplainReport, GraphEndpoint, graph_picture, graph_sections, memory_picture};
use crate::commands::model::html_page::{self, ColumnAlignment, escape_html, push_formatted};
use oarlock_report::text::format_count;

/// Browsers take long to show longer tables.
const MAX_TABLE_ROWS: usize = 20_000;

pub(super) fn render_explanation(report: &ExplainReport, graph: &Graph) -> String {
    let mut body = String::new();
    push_formatted(&mut body, format_args!("<p>{}</p>\n", escape_html(&report.origin_text())));
    let text = |title| (title, ColumnAlignment::Left);
    let end = |end: &GraphEndpoint| vec![end.name.clone(), end.declared.clone(), end.plan_text()];
    for (title, ends) in [("Inputs", &report.inputs), ("Outputs", &report.outputs)] {
        push_formatted(&mut body, format_args!("<h2>{title}</h2>\n"));
        let titles = [text("name"), text("the model says"), text("the plan")];
        html_page::push_table(&mut body, &titles, &ends.iter().map(end).collect::<Vec<_>>());
    }
    for note in &report.notes {
        push_formatted(&mut body, format_args!("<p class=\"quiet\">{}</p>\n", escape_html(note)));
    }
    body.push_str("<h2>Memory</h2>\n");
    for sentence in report.memory.to_sentences() {
        push_formatted(&mut body, format_args!("<p>{}</p>\n", escape_html(&sentence)));
    }
    memory_picture::draw_arenas(&report.memory, &mut body);
    if let Some(precision) = &report.precision {
        body.push_str("<h2>Precision</h2>\n");
        for sentence in precision.to_sentences() {
            push_formatted(&mut body, format_args!("<p>{}</p>\n", escape_html(&sentence)));
        }
    }
    body.push_str("<h2>Passes</h2>\n");
    let titles = [text("pass"), text("when"), text("changes"), text("nodes"), text("what it does")];
    let pass = |pass: &PassReport| pass.table_row().to_vec();
    if report.passes.is_empty() {
        body.push_str("<p>None had anything to change.</p>\n");
    } else {
        html_page::push_table(&mut body, &titles, &report.passes.iter().map(pass).collect::<Vec<_>>());
    }
    body.push_str("<h2>Graph</h2>\n");
    if report.nodes.len() <= graph_picture::MAX_DRAWN_NODES {
        push_formatted(
            &mut body,
            format_args!(
                "<div class=\"wide\">{}</div>\n",
                graph_picture::render_inline(graph, &report.nodes)
            ),
        );
        body.push_str("<p class=\"quiet\">What a node reads and makes, and what runs it and why, stands at its box.</p>\n");
    } else {
        graph_sections::push_sections(&mut body, graph, &report.nodes);
    }
    body.push_str("<h2>Nodes</h2>\n");
    let titles = ["op", "node", "output", "device", "kernel", "why"].map(text);
    let rows = report.nodes.iter().flat_map(|node| node.table_rows(0));
    let mut rows: Vec<Vec<String>> = rows.map(|row| row.to_vec()).collect();
    let left_out = rows.len().saturating_sub(MAX_TABLE_ROWS);
    rows.truncate(MAX_TABLE_ROWS);
    // A browser lays out a long table only if it is open.
    let is_long = rows.len() > graph_picture::MAX_DRAWN_NODES;
    if is_long {
        let count = format_count(rows.len(), "node", "nodes");
        push_formatted(&mut body, format_args!("<details><summary>A table of {count}</summary>\n"));
    }
    html_page::push_table(&mut body, &titles, &rows);
    if is_long {
        body.push_str("</details>\n");
    }
    if left_out > 0 {
        let rest = format_count(left_out, "more node is", "more nodes are");
        push_formatted(&mut body, format_args!("<p>{rest} in the answer of <code>--json</code>.</p>\n"));
    }
    html_page::render_page(&format!("How {} is run", report.model), &body)
}
