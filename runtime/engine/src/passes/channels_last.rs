//! Moves images to NHWC where the device has kernels for it.
//!
//! Each convolution is put between two transposes, and so are the pools of a graph with convolutions. The pass `transposes`
//! then moves these through the ops between two convolutions until they meet and cancel out.

use std::collections::HashMap;

use oarlock_core::{Attribute, Attributes, Dtype, Result};

use super::graph_view::{GraphView, define_pass, replace_nodes};
use super::{GraphPass, PassContext};
use crate::graph::{Graph, Node, ValueId};
use oarlock_core::schema::OARLOCK_DOMAIN;

pub(super) const CONVERT_TO_CHANNELS_LAST: GraphPass = define_pass(
    "channels-last conversion",
    "has convolutions and pools read and write images in NHWC, where a vector holds the channels of \
     one pixel",
    move_channels_last,
);

fn move_channels_last(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    // Pools alone gain nothing from NHWC, so nothing would pay for their transposes.
    let is_convolution = |node: &Node| node.op.contains("Conv");
    if !context.has_kernel_for("Conv") || !graph.nodes.iter().any(is_convolution) {
        return Ok(0);
    }
    let found: Vec<(usize, ChannelsLastRewrite)> = {
        let view = GraphView::of_graph(graph, context);
        let wanted = graph.nodes.iter().enumerate();
        wanted.filter_map(|(at, node)| Some((at, plan_rewrite(&view, node)?))).collect()
    };
    let mut replacements = HashMap::new();
    for (at, wanted) in found {
        let node = graph.nodes[at].clone();
        if let Some(nodes) = transpose_around(graph, context, &node, wanted) {
            replacements.insert(at, nodes);
        }
    }
    Ok(replace_nodes(graph, replacements))
}

/// The replacement for a node.
struct ChannelsLastRewrite {
    domain: &'static str,
    op: &'static str,
    opset: u32,
    attributes: Attributes,
}

fn plan_rewrite(view: &GraphView<'_>, node: &Node) -> Option<ChannelsLastRewrite> {
    let x = node.input(0)?;
    let rank = view.rank(x)?;
    let is_plain = node.domain.is_empty() && node.outputs.iter().skip(1).all(Option::is_none);
    // Quantized values compare like the real numbers that they stand for.
    let is_supported = match view.dtype(x)? {
        Dtype::F32 => true,
        Dtype::I8 | Dtype::U8 => &*node.op == "MaxPool",
        _ => false,
    };
    if !is_plain || !is_supported || !(3..=4).contains(&rank) {
        return None;
    }
    let own = |op: &'static str, attributes| ChannelsLastRewrite {
        domain: OARLOCK_DOMAIN,
        op,
        opset: 1,
        attributes,
    };
    match &*node.op {
        "Conv" => {
            let kernel = view.dims(node.input(1)?)?.get(2..)?.to_vec();
            Some(own("Conv", window_attributes(view, node, kernel, &["group"])?))
        }
        "ConvTranspose" => {
            let kernel = view.dims(node.input(1)?)?.get(2..)?.to_vec();
            Some(own("ConvTranspose", transposed_window_attributes(view, node, kernel)?))
        }
        "MaxPool" | "AveragePool" => {
            let kernel = node.attributes.get_ints("kernel_shape").ok()??.to_vec();
            let is_max = &*node.op == "MaxPool";
            let kept: &[&str] = if is_max { &["ceil_mode"] } else { &["ceil_mode", "count_include_pad"] };
            Some(own(
                if is_max { "MaxPool" } else { "AveragePool" },
                window_attributes(view, node, kernel, kept)?,
            ))
        }
        "GlobalAveragePool" => {
            let axes = (1..i64::try_from(rank).ok()? - 1).collect();
            let attributes = Attributes::new()
                .with_attribute("axes", Attribute::Ints(axes))
                .with_attribute("keepdims", Attribute::Int(1));
            Some(ChannelsLastRewrite { domain: "", op: "ReduceMean", opset: 13, attributes })
        }
        _ => None,
    }
}

/// Attributes of a sliding window, with `auto_pad` resolved to explicit pads.
pub(super) fn window_attributes(
    view: &GraphView<'_>,
    node: &Node,
    kernel: Vec<i64>,
    kept: &[&str],
) -> Option<Attributes> {
    let (x, y) = node.input(0).zip(node.output(0))?;
    let rank = view.rank(x)?.checked_sub(2)?;
    let list = |name: &str, default: i64, count: usize| int_list_attribute(node, name, default, count);
    let (strides, dilations) = (list("strides", 1, rank)?, list("dilations", 1, rank)?);
    view.rank(y)?;
    let pads = match node.attributes.get_string("auto_pad").ok()? {
        None | Some("NOTSET" | "") => list("pads", 0, 2 * rank)?,
        Some("VALID") => vec![0; 2 * rank],
        Some(mode @ ("SAME_UPPER" | "SAME_LOWER")) => {
            let mut pads = vec![0; 2 * rank];
            let (size, result) = (view.dims(x)?, view.dims(y)?);
            for axis in 0..rank {
                let reach = (widen(kernel.get(axis)?) - 1) * widen(&dilations[axis]) + 1;
                let total = (widen(result.get(2 + axis)?) - 1) * widen(&strides[axis]) + reach
                    - widen(&size[2 + axis]);
                let total = i64::try_from(total.max(0)).ok()?;
                let (less, more) = (total / 2, total - total / 2);
                (pads[axis], pads[rank + axis]) =
                    if mode == "SAME_UPPER" { (less, more) } else { (more, less) };
            }
            pads
        }
        Some(_) => return None,
    };
    let mut attributes = Attributes::new()
        .with_attribute("kernel_shape", Attribute::Ints(kernel))
        .with_attribute("strides", Attribute::Ints(strides))
        .with_attribute("dilations", Attribute::Ints(dilations))
        .with_attribute("pads", Attribute::Ints(pads));
    for name in kept {
        if let Some(value) = node.attributes.get(name) {
            attributes.set(*name, value.clone());
        }
    }
    Some(attributes)
}

/// The same for a transposed convolution, whose pads may also follow from `output_shape`.
fn transposed_window_attributes(view: &GraphView<'_>, node: &Node, kernel: Vec<i64>) -> Option<Attributes> {
    let (x, y) = node.input(0).zip(node.output(0))?;
    let rank = view.rank(x)?.checked_sub(2)?;
    let strides = int_list_attribute(node, "strides", 1, rank)?;
    let dilations = int_list_attribute(node, "dilations", 1, rank)?;
    let mut more = int_list_attribute(node, "output_padding", 0, rank)?;
    let mut pads = vec![0; 2 * rank];
    view.rank(y)?;
    let mode = node.attributes.get_string("auto_pad").ok()?.unwrap_or("NOTSET");
    let has_shape = node.attributes.get_ints("output_shape").ok()?.is_some_and(|shape| !shape.is_empty());
    match mode {
        _ if has_shape || matches!(mode, "SAME_UPPER" | "SAME_LOWER") => {
            let (size, result) = (view.dims(x)?, view.dims(y)?);
            for axis in 0..rank {
                let reach = (widen(kernel.get(axis)?) - 1) * widen(&dilations[axis]) + 1;
                let needed =
                    widen(&strides[axis]) * (widen(&size[2 + axis]) - 1) + reach + widen(&more[axis]);
                let left = needed - widen(result.get(2 + axis)?);
                more[axis] = i64::try_from(widen(&more[axis]) + (-left).max(0)).ok()?;
                let left = i64::try_from(left.max(0)).ok()?;
                let (less, rest) = (left / 2, left - left / 2);
                (pads[axis], pads[rank + axis]) =
                    if mode == "SAME_UPPER" { (less, rest) } else { (rest, less) };
            }
        }
        "NOTSET" | "" => pads = int_list_attribute(node, "pads", 0, 2 * rank)?,
        "VALID" => {}
        _ => return None,
    }
    let mut attributes = Attributes::new()
        .with_attribute("kernel_shape", Attribute::Ints(kernel))
        .with_attribute("strides", Attribute::Ints(strides))
        .with_attribute("dilations", Attribute::Ints(dilations))
        .with_attribute("pads", Attribute::Ints(pads))
        .with_attribute("output_padding", Attribute::Ints(more));
    if let Some(group) = node.attributes.get("group") {
        attributes.set("group", group.clone());
    }
    Some(attributes)
}

/// Widens a number, so that sums and products of a few untrusted attributes cannot overflow.
fn widen(number: &i64) -> i128 {
    i128::from(*number)
}

/// An integer list attribute; `None` if its length is not `count`.
fn int_list_attribute(node: &Node, name: &str, default: i64, count: usize) -> Option<Vec<i64>> {
    let found = node.attributes.get_ints(name).ok()?;
    found.map_or_else(|| Some(vec![default; count]), |list| (list.len() == count).then(|| list.to_vec()))
}

/// The permutations from NCHW to NHWC and back, for any rank.
pub(super) fn channel_permutations(rank: usize) -> (Vec<i64>, Vec<i64>) {
    let rank = i64::try_from(rank).unwrap_or(0);
    let last = std::iter::once(0).chain(2..rank).chain([1]).collect();
    let first = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
    (last, first)
}

/// Puts a node between transposes of its image, if the device supports the result.
fn transpose_around(
    graph: &mut Graph,
    context: &PassContext<'_>,
    node: &Node,
    wanted: ChannelsLastRewrite,
) -> Option<Vec<Node>> {
    let (x, y) = node.input(0).zip(node.output(0))?;
    let (last, first) = channel_permutations(graph.value(x).dims()?.len());
    let transposed_x = context.add_transposed_value(graph, x, &last)?;
    let transposed_y = context.add_transposed_value(graph, y, &last)?;
    let others = node.inputs.iter().skip(1).copied();
    let inputs = std::iter::once(Some(transposed_x)).chain(others);
    let mut own = Node::new(wanted.domain, wanted.op, wanted.opset, inputs, [Some(transposed_y)]);
    own.attributes = wanted.attributes;
    own.name = node.name.clone();
    context
        .supports_node(graph, &own)
        .then(|| vec![transpose_node(x, transposed_x, last), own, transpose_node(transposed_y, y, first)])
}

pub(super) fn transpose_node(from: ValueId, to: ValueId, order: Vec<i64>) -> Node {
    let mut node = Node::new("", "Transpose", 13, [Some(from)], [Some(to)]);
    node.attributes.set("perm", Attribute::Ints(order));
    node
}
