//! Draws a graph as SVG, with producers above consumers.
//!
//! Each node lies in the layer below its lowest producer. Within a layer, nodes are sorted by the positions of their
//! neighbors, a few times down and up, which leaves few crossing edges.

use std::collections::HashMap;
use std::ops::Range;

use oarlock_engine::graph::{Graph, ValueId};

use super::node_report::NodeReport;
use crate::commands::model::html_page::{escape_html, push_formatted};
use crate::problem::CommandError;
use oarlock_report::graph_text::describe_value;

const ROW_HEIGHT: f64 = 52.0;
const BOX_HEIGHT: f64 = 26.0;
const BOX_GAP: f64 = 18.0;
const MARGIN: f64 = 20.0;
/// Estimated width of a character, in pixels.
const LETTER_WIDTH: f64 = 7.2;
/// Rounds of sorting, each down and up.
const SORT_ROUNDS: usize = 4;
/// Edges that span more layers are drawn faintly.
const LONG_EDGE_LAYERS: usize = 12;
/// A larger graph is unreadable as a picture and slow in a browser.
pub(super) const MAX_DRAWN_NODES: usize = 3000;
/// Labels are truncated to this many characters.
const MAX_LABEL_LENGTH: usize = 34;

pub(super) struct PictureBox {
    label: String,
    details: String,
    hue: Option<u64>,
    /// Where in the page a click leads.
    link: Option<String>,
    layer: usize,
    x: f64,
}

/// The nodes to draw, with the values that come from outside and those that go there.
pub(super) struct DrawnNodes {
    pub(super) range: Range<usize>,
    pub(super) inputs: Vec<DrawnEnd>,
    pub(super) outputs: Vec<DrawnEnd>,
}

/// A value at the edge of a picture.
pub(super) struct DrawnEnd {
    pub(super) value: ValueId,
    /// What it is, such as `input`.
    pub(super) role: String,
}

impl PictureBox {
    pub(super) fn new(label: &str, details: String, layer: usize) -> Self {
        Self { label: truncate_label(label), details, hue: None, link: None, layer, x: 0.0 }
    }

    pub(super) fn with_link(self, link: String) -> Self {
        Self { link: Some(link), ..self }
    }

    pub(super) fn layer(&self) -> usize {
        self.layer
    }

    fn width(&self) -> f64 {
        self.label.chars().count() as f64 * LETTER_WIDTH + 20.0
    }

    fn y(&self) -> f64 {
        MARGIN + self.layer as f64 * ROW_HEIGHT
    }
}

pub(super) struct GraphPicture {
    pub(super) items: Vec<PictureBox>,
    pub(super) lines: Vec<(usize, usize)>,
}

/// Rejects graphs that are too large to draw.
pub(super) fn check_node_count(nodes: usize) -> Result<(), CommandError> {
    if nodes <= MAX_DRAWN_NODES {
        return Ok(());
    }
    let message = format!("expected a graph of at most {MAX_DRAWN_NODES} nodes for a picture, found {nodes}");
    Err(CommandError::new(message)
        .with_hint("leave out `--svg`; the page of `--html` draws larger graphs in sections"))
}

/// The picture of a whole graph as an SVG file.
pub(super) fn render_standalone(graph: &Graph, nodes: &[NodeReport]) -> String {
    GraphPicture::from_nodes(graph, nodes, &whole_graph(graph)).render_svg(true)
}

/// The picture of a whole graph as an element of a page.
pub(super) fn render_inline(graph: &Graph, nodes: &[NodeReport]) -> String {
    GraphPicture::from_nodes(graph, nodes, &whole_graph(graph)).render_svg(false)
}

fn whole_graph(graph: &Graph) -> DrawnNodes {
    let ends = |values: &[ValueId], role: &str| {
        values.iter().map(|value| DrawnEnd { value: *value, role: role.to_owned() }).collect()
    };
    DrawnNodes {
        range: 0..graph.nodes.len(),
        inputs: ends(&graph.inputs, "input"),
        outputs: ends(&graph.outputs, "output"),
    }
}

impl GraphPicture {
    /// Arranges the boxes and draws them.
    pub(super) fn render_svg(mut self, is_alone: bool) -> String {
        self.arrange_boxes();
        let picture = &self;
        let width =
            picture.items.iter().map(|item| item.x + item.width()).fold(0.0, f64::max) + MARGIN + 90.0;
        let height = picture.items.iter().map(|item| item.y() + BOX_HEIGHT).fold(0.0, f64::max) + MARGIN;
        let mut svg = String::new();
        push_formatted(
            &mut svg,
            format_args!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n"
            ),
        );
        if is_alone {
            svg.push_str("<style>text{font:12px system-ui,sans-serif;fill:#1c2430}</style><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
        }
        picture
            .lines
            .iter()
            .for_each(|(from, to)| draw_edge(&mut svg, &picture.items[*from], &picture.items[*to]));
        picture.items.iter().for_each(|item| draw_box(&mut svg, item));
        svg.push_str("</svg>\n");
        svg
    }
}

fn draw_edge(svg: &mut String, from: &PictureBox, to: &PictureBox) {
    let (x1, y1) = (from.x + from.width() / 2.0, from.y() + BOX_HEIGHT);
    let (x2, y2) = (to.x + to.width() / 2.0, to.y());
    let far = to.layer.saturating_sub(from.layer);
    // An edge that skips layers bends around the boxes that may lie between.
    let aside = if far > 1 { 50.0 + 4.0 * (far.min(10) as f64) + from.width() / 2.0 } else { 0.0 };
    let bend = (y2 - y1) / 2.0;
    // A value used all over the graph, such as a mask, would cover everything else.
    let opacity = if far > LONG_EDGE_LAYERS { 0.3 } else { 1.0 };
    push_formatted(
        svg,
        format_args!(
            "<path d=\"M{x1:.1} {y1:.1}C{:.1} {:.1} {:.1} {:.1} {x2:.1} {y2:.1}\" fill=\"none\" stroke=\"#8a94a0\" \
             opacity=\"{opacity}\"/>\n",
            x1 + aside,
            y1 + bend,
            x2 + aside,
            y2 - bend
        ),
    );
}

fn draw_box(svg: &mut String, item: &PictureBox) {
    let link = item.link.as_ref();
    if let Some(link) = link {
        push_formatted(svg, format_args!("<a href=\"{}\">", escape_html(link)));
    }
    let (x, y, width) = (item.x, item.y(), item.width());
    let fill = item.hue.map_or_else(|| "#d8dde3".to_owned(), |hue| format!("hsl({hue} 60% 82%)"));
    push_formatted(
        svg,
        format_args!(
            "<g><title>{}</title><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BOX_HEIGHT}\" rx=\"5\" fill=\"{fill}\" \
         stroke=\"#66707d\"/><text style=\"fill:#1c2430\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text></g>\n",
            escape_html(&item.details),
            x + width / 2.0,
            y + BOX_HEIGHT / 2.0 + 4.0,
            escape_html(&item.label)
        ),
    );
    if link.is_some() {
        svg.push_str("</a>\n");
    }
}

impl GraphPicture {
    pub(super) fn from_nodes(graph: &Graph, nodes: &[NodeReport], drawn: &DrawnNodes) -> Self {
        let mut picture = Self { items: Vec::new(), lines: Vec::new() };
        let mut makers: HashMap<ValueId, usize> = HashMap::new();
        for DrawnEnd { value, role } in &drawn.inputs {
            makers.insert(*value, picture.items.len());
            let kind = describe_value(graph, *value);
            picture.items.push(PictureBox::new(&kind, format!("{role} {kind}"), 0));
        }
        let several = nodes.iter().any(|node| nodes.first().is_some_and(|first| first.device != node.device));
        let range = drawn.range.clone();
        for (node, report) in graph.nodes[range.clone()].iter().zip(&nodes[range]) {
            let at = picture.items.len();
            let read: Vec<usize> =
                node.read_values().filter_map(|value| makers.get(&value).copied()).collect();
            let layer = read.iter().map(|from| picture.items[*from].layer + 1).max().unwrap_or(0);
            picture.lines.extend(read.into_iter().map(|from| (from, at)));
            makers.extend(node.written_values().map(|value| (value, at)));
            let on = if several { format!(" on {}", report.device) } else { String::new() };
            let NodeReport { node: name, op, inputs, outputs, kernel, how, why, .. } = report;
            let kernel = how.as_ref().unwrap_or(kernel);
            let details = format!(
                "{op} {name}; reads {}; makes {}; {kernel}; {why}",
                inputs.join(", "),
                outputs.join(", ")
            );
            let hue =
                op.bytes().fold(7, |hue: u64, byte| hue.wrapping_mul(31).wrapping_add(byte.into())) % 360;
            let label = format!("{op}{on}");
            picture.items.push(PictureBox { hue: Some(hue), ..PictureBox::new(&label, details, layer) });
        }
        for DrawnEnd { value, role } in &drawn.outputs {
            let Some(from) = makers.get(value) else { continue };
            let (layer, kind) = (picture.items[*from].layer + 1, describe_value(graph, *value));
            picture.lines.push((*from, picture.items.len()));
            picture.items.push(PictureBox::new(&kind, format!("{role} {kind}"), layer));
        }
        picture.lines.sort_unstable();
        picture.lines.dedup();
        picture
    }

    /// Assigns a position to every box.
    fn arrange_boxes(&mut self) {
        let count = self.items.iter().map(|item| item.layer + 1).max().unwrap_or(0);
        let mut layers: Vec<Vec<usize>> = vec![Vec::new(); count];
        self.items.iter().enumerate().for_each(|(at, item)| layers[item.layer].push(at));
        let (mut above, mut below) = (vec![Vec::new(); self.items.len()], vec![Vec::new(); self.items.len()]);
        for (from, to) in &self.lines {
            above[*to].push(*from);
            below[*from].push(*to);
        }
        self.place_layers(&layers);
        for _ in 0..SORT_ROUNDS {
            for layer in &mut layers {
                self.sort_layer(layer, &above);
            }
            for layer in layers.iter_mut().rev() {
                self.sort_layer(layer, &below);
            }
        }
        // Layers are laid out around 0; shift everything until the leftmost box is at the margin.
        let left = self.items.iter().map(|item| item.x).fold(0.0, f64::min);
        self.items.iter_mut().for_each(|item| item.x += MARGIN - left);
    }

    fn place_layers(&mut self, layers: &[Vec<usize>]) {
        layers.iter().for_each(|layer| self.spread_layer(layer));
    }

    /// Sorts a layer by the mean position of the connected boxes.
    fn sort_layer(&mut self, layer: &mut Vec<usize>, connected: &[Vec<usize>]) {
        let middle = |item: &PictureBox| item.x + item.width() / 2.0;
        let mut wanted: Vec<(f64, usize)> = layer
            .iter()
            .map(|at| {
                let others = &connected[*at];
                let sum: f64 = others.iter().map(|other| middle(&self.items[*other])).sum();
                (if others.is_empty() { middle(&self.items[*at]) } else { sum / others.len() as f64 }, *at)
            })
            .collect();
        wanted.sort_by(|one, other| one.0.total_cmp(&other.0));
        *layer = wanted.iter().map(|(_, at)| *at).collect();
        let mean = wanted.iter().map(|(place, _)| place).sum::<f64>() / wanted.len().max(1) as f64;
        self.spread_layer(layer);
        for at in layer.iter() {
            self.items[*at].x += mean;
        }
    }

    /// Lays out a layer side by side, centered at 0.
    fn spread_layer(&mut self, layer: &[usize]) {
        let whole: f64 = layer.iter().map(|at| self.items[*at].width() + BOX_GAP).sum::<f64>() - BOX_GAP;
        let mut x = -whole / 2.0;
        for at in layer {
            self.items[*at].x = x;
            x += self.items[*at].width() + BOX_GAP;
        }
    }
}

fn truncate_label(text: &str) -> String {
    if text.chars().count() <= MAX_LABEL_LENGTH {
        return text.to_owned();
    }
    text.chars().take(MAX_LABEL_LENGTH - 1).chain(['…']).collect()
}
