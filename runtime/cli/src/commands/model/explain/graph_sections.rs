//! Draws a large graph in sections: a picture of the sections, and one of the nodes of each.
//!
//! A browser lays out only the sections that are open. A section is a part of the model by the names of its nodes, which exporters
//! separate with slashes, or a number of consecutive nodes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use oarlock_engine::graph::{Graph, ValueId};

use super::graph_picture::{DrawnEnd, DrawnNodes, GraphPicture, PictureBox};
use super::node_report::NodeReport;
use crate::commands::model::html_page::{escape_html, push_formatted};
use oarlock_report::text::format_count;

/// Nodes of a section.
const MAX_SECTION_NODES: usize = 300;
/// Nodes that are drawn at all: the page has about 1 KiB for each.
const MAX_PICTURED_NODES: usize = 40_000;
/// Parts of a name that are looked at.
const MAX_SCOPE_DEPTH: usize = 16;
/// Ops that the note of a section counts.
const MAX_COUNTED_OPS: usize = 5;

/// The nodes of a section, and what it is called.
struct GraphSection {
    range: Range<usize>,
    title: String,
}

/// Adds the pictures of a graph to a page.
pub(super) fn push_sections(page: &mut String, graph: &Graph, nodes: &[NodeReport]) {
    let sections = divide_nodes(nodes);
    let mut homes: HashMap<ValueId, usize> = HashMap::new();
    for (at, section) in sections.iter().enumerate() {
        let made = graph.nodes[section.range.clone()].iter().flat_map(|node| node.written_values());
        homes.extend(made.map(|value| (value, at)));
    }
    let overview = draw_overview(graph, nodes, &sections, &homes);
    push_formatted(page, format_args!("<div class=\"wide\">{overview}</div>\n"));
    page.push_str(
        "<p class=\"quiet\">Each box is a section below, which a click opens. What a node reads and makes, and what runs it and \
         why, stands at its box.</p>\n",
    );
    let readers = section_readers(graph, &sections);
    for (at, section) in sections.iter().enumerate() {
        let range = section.range.clone();
        let (number, title) = (at + 1, escape_html(&section.title));
        let summary = format!("{number}: {title}, {}", section_note(nodes, &range));
        if range.end > MAX_PICTURED_NODES {
            push_formatted(page, format_args!("<p id=\"section-{number}\">{summary}; not drawn</p>\n"));
            continue;
        }
        let drawn = section_nodes(graph, range, at, &homes, &readers);
        let picture = GraphPicture::from_nodes(graph, nodes, &drawn).render_svg(false);
        push_formatted(
            page,
            format_args!(
                "<details><summary>{summary}</summary><div id=\"section-{number}\" class=\"wide\">{picture}</div></details>\n"
            ),
        );
    }
}

/// The sections that read each value.
fn section_readers(graph: &Graph, sections: &[GraphSection]) -> HashMap<ValueId, Vec<usize>> {
    let mut readers: HashMap<ValueId, Vec<usize>> = HashMap::new();
    for (at, section) in sections.iter().enumerate() {
        for value in graph.nodes[section.range.clone()].iter().flat_map(|node| node.read_values()) {
            let known = readers.entry(value).or_default();
            if known.last() != Some(&at) {
                known.push(at);
            }
        }
    }
    readers
}

/// What to draw of a section: its nodes, and the values between it and others.
fn section_nodes(
    graph: &Graph,
    range: Range<usize>,
    section: usize,
    homes: &HashMap<ValueId, usize>,
    readers: &HashMap<ValueId, Vec<usize>>,
) -> DrawnNodes {
    let mut seen = HashSet::new();
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    for node in &graph.nodes[range.clone()] {
        for value in node.read_values().filter(|value| seen.insert(*value)) {
            let role = match homes.get(&value) {
                Some(home) if *home == section => continue,
                Some(home) => format!("from section {},", home + 1),
                None if graph.inputs.contains(&value) => "input".to_owned(),
                None => continue,
            };
            inputs.push(DrawnEnd { value, role });
        }
        for value in node.written_values() {
            seen.insert(value);
            let others = readers.get(&value).into_iter().flatten().filter(|other| **other != section);
            let numbers: Vec<String> = others.map(|other| (other + 1).to_string()).collect();
            let role = match numbers.is_empty() {
                _ if graph.outputs.contains(&value) => "output".to_owned(),
                true => continue,
                false => format!("for section {},", numbers.join(", ")),
            };
            outputs.push(DrawnEnd { value, role });
        }
    }
    DrawnNodes { range, inputs, outputs }
}

/// The picture of the sections.
fn draw_overview(
    graph: &Graph,
    nodes: &[NodeReport],
    sections: &[GraphSection],
    homes: &HashMap<ValueId, usize>,
) -> String {
    let mut picture = GraphPicture { items: Vec::new(), lines: Vec::new() };
    for (at, section) in sections.iter().enumerate() {
        let read = graph.nodes[section.range.clone()].iter().flat_map(|node| node.read_values());
        let mut from: Vec<usize> =
            read.filter_map(|value| homes.get(&value).copied()).filter(|from| *from < at).collect();
        from.sort_unstable();
        from.dedup();
        let layer = from.iter().map(|from| picture.items[*from].layer() + 1).max().unwrap_or(0);
        picture.lines.extend(from.into_iter().map(|from| (from, at)));
        let number = at + 1;
        let details = format!("{}, {}", section.title, section_note(nodes, &section.range));
        let label = format!("{number}: {}", section.title);
        let item = PictureBox::new(&label, details, layer).with_link(format!("#section-{number}"));
        picture.items.push(item);
    }
    picture.render_svg(false)
}

/// How many nodes a section has, and of which ops.
fn section_note(nodes: &[NodeReport], range: &Range<usize>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for node in &nodes[range.clone()] {
        *counts.entry(node.op.as_str()).or_default() += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let shown = counts.iter().take(MAX_COUNTED_OPS).map(|(op, count)| format!("{count} {}", escape_html(op)));
    let more = if counts.len() > MAX_COUNTED_OPS { ", …" } else { "" };
    let all = format_count(range.len(), "node", "nodes");
    format!("{all} ({}{more})", shown.collect::<Vec<_>>().join(", "))
}

/// Divides the nodes by the parts of their names, and joins what is small.
fn divide_nodes(nodes: &[NodeReport]) -> Vec<GraphSection> {
    let mut parts = Vec::new();
    divide_range(nodes, 0..nodes.len(), 0, &mut parts);
    let mut joined: Vec<Range<usize>> = Vec::new();
    for part in parts {
        match joined.last_mut() {
            Some(last) if part.end - last.start <= MAX_SECTION_NODES => last.end = part.end,
            _ => joined.push(part),
        }
    }
    let section = |range: Range<usize>| GraphSection { title: section_title(nodes, &range), range };
    joined.into_iter().map(section).collect()
}

fn divide_range(nodes: &[NodeReport], range: Range<usize>, depth: usize, parts: &mut Vec<Range<usize>>) {
    if range.len() <= MAX_SECTION_NODES {
        parts.push(range);
        return;
    }
    if depth == MAX_SCOPE_DEPTH {
        let starts = range.clone().step_by(MAX_SECTION_NODES);
        parts.extend(starts.map(|start| start..range.end.min(start + MAX_SECTION_NODES)));
        return;
    }
    let mut start = range.start;
    for run in nodes[range].chunk_by(|a, b| scope_part(a, depth) == scope_part(b, depth)) {
        divide_range(nodes, start..start + run.len(), depth + 1, parts);
        start += run.len();
    }
}

/// A part of the name of a node. The last part is the name of the node itself.
fn scope_part(node: &NodeReport, depth: usize) -> Option<&str> {
    scope(node).nth(depth)
}

fn scope(node: &NodeReport) -> impl Iterator<Item = &str> {
    let (scope, _) = node.node.rsplit_once('/').unwrap_or_default();
    scope.split('/').filter(|part| !part.is_empty())
}

/// The part of their names that all nodes of a section share, with where it begins and ends, or their numbers.
fn section_title(nodes: &[NodeReport], range: &Range<usize>) -> String {
    let scopes: Vec<Vec<&str>> = nodes[range.clone()].iter().map(|node| scope(node).collect()).collect();
    let mut named = scopes.iter().filter(|parts| !parts.is_empty());
    let (Some(first), Some(last)) = (named.next(), scopes.iter().rfind(|parts| !parts.is_empty())) else {
        return format!("nodes {} to {}", range.start + 1, range.end);
    };
    let same =
        |one: &[&str], other: &[&str]| one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let shared = named.fold(first.len(), |shared, parts| shared.min(same(first, parts)));
    let mut title = first[..shared].join("/");
    if let (Some(from), Some(to)) = (first.get(shared), last.get(shared))
        && from != to
    {
        let slash = if shared > 0 { "/" } else { "" };
        title = format!("{title}{slash}{from} to {to}");
    }
    if title.is_empty() { format!("nodes {} to {}", range.start + 1, range.end) } else { title }
}
