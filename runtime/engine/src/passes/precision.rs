//! Rounds factors of products where the session permits it, and keeps images between convolutions rounded.

use std::collections::HashSet;

use oarlock_core::{Attribute, Dtype, Result};

use super::graph_view::define_pass;
use super::infer::{infer_graph, node_op};
use super::node_support::is_node_supported;
use super::{GraphPass, PassContext};
use crate::graph::{Graph, Node, ValueId};
use crate::precision::PrecisionMode;
use oarlock_core::schema::OARLOCK_DOMAIN;

/// Runs once, after all other passes: fusion is finished by then, and no other pass has to know about rounding.
pub(super) const LOWER_PRECISION: GraphPass = define_pass(
    "precision lowering",
    "has convolutions and products round their factors to bf16, and images between convolutions hold \
     bf16, where that is permitted and faster",
    lower_precision,
);

const PRECISION_ATTRIBUTE: &str = "precision";
const OUTPUT_PRECISION_ATTRIBUTE: &str = "output_precision";

/// Positions of images among the inputs of a convolution: the image itself, and the residual.
const IMAGE_INPUTS: [usize; 2] = [0, 3];

fn lower_precision(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    if context.precision == PrecisionMode::F32 {
        return Ok(0);
    }
    let mut count = 0;
    for at in 0..graph.nodes.len() {
        let node = &graph.nodes[at];
        if is_rounded(node) || !can_round(graph, node) {
            continue;
        }
        let rounded = with_rounding(node);
        if context.supports_node(graph, &rounded) {
            graph.nodes[at] = rounded;
            count += 1;
        }
    }
    Ok(count + round_images(graph, context)?)
}

/// True if a node could round its factors.
pub(crate) fn can_round(graph: &Graph, node: &Node) -> bool {
    let dtype = || node.input(0).and_then(|input| graph.value(input).dtype());
    &*node.domain == OARLOCK_DOMAIN
        && matches!(&*node.op, "Conv" | "MatMul")
        && matches!(dtype(), Some(Dtype::F32 | Dtype::BF16))
}

/// True if a node rounds its factors or its output.
pub(crate) fn is_rounded(node: &Node) -> bool {
    [PRECISION_ATTRIBUTE, OUTPUT_PRECISION_ATTRIBUTE]
        .into_iter()
        .any(|name| node.attributes.get_string(name).ok().flatten() == Some(PrecisionMode::Bf16.name()))
}

/// The same node with rounding of its factors.
pub(crate) fn with_rounding(node: &Node) -> Node {
    with_bf16_attribute(node, PRECISION_ATTRIBUTE)
}

fn with_bf16_attribute(node: &Node, attribute: &str) -> Node {
    let mut rounded = node.clone();
    rounded.attributes.set(attribute, Attribute::String(PrecisionMode::Bf16.name().to_owned()));
    rounded
}

/// Stores images in bf16 if only convolutions write and read them; returns how many. Every convolution around an image must
/// support it, and dropping one image may make other convolutions fail. So all images start out rounded, and refused ones are
/// dropped until a fixed point is reached.
fn round_images(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    let mut chosen = images_between_convolutions(graph);
    set_dtypes(graph, &chosen, Dtype::BF16);
    let mut is_settled = chosen.is_empty();
    while !is_settled {
        is_settled = true;
        for at in 0..graph.nodes.len() {
            let node = &graph.nodes[at];
            let images: Vec<ValueId> = image_inputs(node).filter(|image| chosen.contains(image)).collect();
            let made = node.output(0).filter(|made| chosen.contains(made));
            if !is_convolution(node)
                || images.is_empty() && made.is_none()
                || supports_rounded_images(graph, node, made, context)
            {
                continue;
            }
            // If it works with an unrounded output, only the output is dropped; else the inputs are dropped as well.
            let others = if made.is_some() && supports_rounded_images(graph, node, None, context) {
                Vec::new()
            } else {
                images
            };
            let refused: HashSet<ValueId> = made.into_iter().chain(others).collect();
            set_dtypes(graph, &refused, Dtype::F32);
            chosen.retain(|image| !refused.contains(image));
            is_settled = false;
        }
    }
    for node in &mut graph.nodes {
        if node.output(0).is_some_and(|made| chosen.contains(&made)) {
            *node = with_bf16_attribute(node, OUTPUT_PRECISION_ATTRIBUTE);
        }
    }
    if !chosen.is_empty() {
        infer_graph(graph, context)?;
    }
    Ok(chosen.len())
}

fn is_convolution(node: &Node) -> bool {
    &*node.domain == OARLOCK_DOMAIN && &*node.op == "Conv"
}

fn image_inputs(node: &Node) -> impl Iterator<Item = ValueId> {
    IMAGE_INPUTS.into_iter().filter_map(|place| node.input(place))
}

/// F32 images that convolutions write and only convolutions read.
fn images_between_convolutions(graph: &Graph) -> HashSet<ValueId> {
    let mut unread = graph.use_counts();
    for node in graph.nodes.iter().filter(|node| is_convolution(node)) {
        image_inputs(node).for_each(|image| unread[image.index()] -= 1);
    }
    let is_between = |made: &ValueId| {
        unread[made.index()] == 0
            && graph.value(*made).dtype() == Some(Dtype::F32)
            && !graph.outputs.contains(made)
    };
    let convolutions = graph.nodes.iter().filter(|node| is_convolution(node));
    convolutions.filter_map(|node| node.output(0)).filter(is_between).collect()
}

fn set_dtypes(graph: &mut Graph, values: &HashSet<ValueId>, dtype: Dtype) {
    for value in values {
        if let Some(fact) = &mut graph.value_mut(*value).fact {
            fact.dtype = dtype;
        }
    }
}

/// True if the device supports a convolution with the current dtypes of its images, and with a rounded output if there is one.
/// Not logged, because the dtypes are tentative.
fn supports_rounded_images(
    graph: &Graph,
    node: &Node,
    made: Option<ValueId>,
    context: &PassContext<'_>,
) -> bool {
    let node =
        if made.is_some() { with_bf16_attribute(node, OUTPUT_PRECISION_ATTRIBUTE) } else { node.clone() };
    node_op(&node, context.runtime).is_ok_and(|op| is_node_supported(graph, &node, &op, context))
}
