//! Moves elementwise ops in front of the `Squeeze` that follows a convolution. Converters make a convolution along sequences of one
//! over images of height 1, and leave its bias and its activation behind the `Squeeze`, where they cannot become part of it.

use oarlock_core::schema::{OpFact, has_fact};
use oarlock_core::{Constant, Result};

use super::graph_view::{GraphView, define_pass, replace_nodes};
use super::{GraphPass, PassContext};
use crate::graph::{Graph, GraphValue, Node, ValueId, Weight};

pub(super) const DELAY_SQUEEZES: GraphPass = define_pass(
    "squeeze delay",
    "moves what is computed for each element from behind a `Squeeze` to the convolution in front of it",
    delay_squeezes,
);

fn delay_squeezes(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    let mut changes = 0;
    // One op at a time: the next one sees the `Squeeze` where the last one moved it.
    while let Some(delayed) = first_delayed_squeeze(graph, context) {
        delayed.replace_in(graph);
        changes += 1;
    }
    Ok(changes)
}

fn first_delayed_squeeze(graph: &Graph, context: &PassContext<'_>) -> Option<DelayedSqueeze> {
    if !graph.nodes.iter().any(|node| node.is_op("Squeeze")) {
        return None;
    }
    let view = GraphView::of_graph(graph, context);
    (0..graph.nodes.len()).find_map(|at| delayed_squeeze(&view, graph, at))
}

/// An elementwise node, and the `Squeeze` in front of it.
struct DelayedSqueeze {
    at: usize,
    squeeze: Node,
    /// For each input of the node the constant that replaces it.
    constants: Vec<Option<Constant>>,
}

fn delayed_squeeze(view: &GraphView<'_>, graph: &Graph, at: usize) -> Option<DelayedSqueeze> {
    let node = &graph.nodes[at];
    let squeezed = only_data_input(graph, node)?;
    let squeeze = view.fusable_producer(squeezed, "Squeeze")?;
    let image = squeeze.input(0)?;
    if !is_of_convolution(view, graph, image) {
        return None;
    }
    let result = node.output(0)?;
    let keeps_shape = view.dtype(result) == view.dtype(image) && view.has_same_shape(result, squeezed);
    let axes = keeps_shape.then(|| squeezed_axes(view, squeeze)).flatten()?;
    let mut constants = Vec::new();
    for input in &node.inputs {
        // Bounds of `Clip` are scalars.
        let is_list = |input: ValueId| view.rank(input) != Some(0) && !node.is_op("Clip");
        constants.push(match input.filter(|input| *input != squeezed && is_list(*input)) {
            Some(input) => Some(unsqueezed(view.constant(input)?, view.rank(image)?, &axes)?),
            None => None,
        });
    }
    Some(DelayedSqueeze { at, squeeze: squeeze.clone(), constants })
}

/// The one input of an elementwise op that is not a constant.
fn only_data_input(graph: &Graph, node: &Node) -> Option<ValueId> {
    if !has_fact(&node.op, OpFact::Elementwise) || !node.domain.is_empty() || node.outputs.len() != 1 {
        return None;
    }
    let mut data = node.inputs.iter().flatten().filter(|input| graph.value(**input).weight.is_none());
    data.next().copied().filter(|_| data.next().is_none())
}

/// True if a value is the result of a convolution, perhaps after elementwise ops, and nothing else reads what is between them.
fn is_of_convolution(view: &GraphView<'_>, graph: &Graph, mut value: ValueId) -> bool {
    while view.is_read_once(value)
        && let Some(node) = view.producer(value)
    {
        if node.is_op("Conv") || node.is_op("ConvTranspose") {
            return true;
        }
        let Some(input) = only_data_input(graph, node) else { break };
        value = input;
    }
    false
}

/// The axes that a `Squeeze` names, in order.
fn squeezed_axes(view: &GraphView<'_>, squeeze: &Node) -> Option<Vec<usize>> {
    let rank = i64::try_from(view.rank(squeeze.input(0)?)?).ok()?;
    let axes = match squeeze.input(1) {
        Some(axes) => view.constant(axes)?.to_ints().ok()?,
        None => squeeze.attributes.get_ints("axes").ok()??.to_vec(),
    };
    let resolve = |axis: i64| usize::try_from(if axis < 0 { axis + rank } else { axis }).ok();
    let mut axes = axes.into_iter().map(resolve).collect::<Option<Vec<_>>>()?;
    axes.sort_unstable();
    Some(axes)
}

/// A constant that broadcasts to an image as it does to the squeezed one.
fn unsqueezed(constant: &Constant, rank: usize, axes: &[usize]) -> Option<Constant> {
    let missing = rank.checked_sub(axes.len())?.checked_sub(constant.dims().len())?;
    let mut dims = vec![1; missing];
    dims.extend(constant.dims());
    for axis in axes {
        // Axes of a bad model may be the same or beyond the rank.
        if *axis > dims.len() {
            return None;
        }
        dims.insert(*axis, 1);
    }
    // Broadcasting adds leading dimensions of size 1 again, and passes expect them to be left out.
    let leading = dims.iter().take_while(|dim| **dim == 1).count().min(dims.len() - 1);
    constant.with_shape(&dims[leading..]).ok()
}

impl DelayedSqueeze {
    fn replace_in(self, graph: &mut Graph) {
        let mut node = graph.nodes[self.at].clone();
        let image = self.squeeze.input(0);
        for (input, constant) in node.inputs.iter_mut().zip(self.constants) {
            if let Some(constant) = constant {
                let value = GraphValue::with_weight("an unsqueezed constant", Weight::Numbers(constant));
                *input = Some(graph.add_value(value));
            } else if *input == self.squeeze.output(0) {
                *input = image;
            }
        }
        let fact = image.and_then(|image| graph.value(image).fact.clone());
        let name = format!("{}, not squeezed yet", node.label());
        let delayed = graph.add_value(GraphValue { fact, ..GraphValue::with_name(name) });
        let mut squeeze = self.squeeze.clone();
        squeeze.outputs.clone_from(&node.outputs);
        squeeze.inputs[0] = Some(delayed);
        node.outputs = [Some(delayed)].into_iter().collect();
        // What is left of it would be a second reader of the image.
        let old = graph.nodes.iter().position(|node| node.outputs == self.squeeze.outputs);
        let replacements =
            old.map(|old| (old, Vec::new())).into_iter().chain([(self.at, vec![node, squeeze])]);
        replace_nodes(graph, replacements.collect());
    }
}
