//! Dynamically quantized models: fuses integer sums, whose scale is known only during the run, with their conversion to floats.
//!
//! Such a model has `DynamicQuantizeLinear`, `MatMulInteger` or `ConvInteger`, a `Cast`, and a `Mul` by the product of two
//! scales. The quantization stays a node of its own, because several products may read it; the rest becomes one op. A depthwise
//! convolution has few products, for which floats are just as fast: it becomes one of floats.

use std::collections::{HashMap, HashSet};

use oarlock_core::{Attribute, Attributes, Constant, Dtype, Result};

use super::super::channels_last::{channel_permutations, transpose_node, window_attributes};
use super::super::graph_view::{GraphView, define_pass, replace_nodes};
use super::super::{GraphPass, PassContext};
use crate::graph::{Graph, GraphValue, Node, ValueId, Weight};
use oarlock_core::schema::OARLOCK_DOMAIN;

pub(in super::super) const FUSE_DYNAMIC_QUANTIZATION: GraphPass = define_pass(
    "dynamic quantization fusion",
    "scales the integer sums of products and convolutions to floats while they are in the cache",
    fuse_dynamic_quantization,
);

fn fuse_dynamic_quantization(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    if !context.has_kernel_for("DequantizedMatMul") {
        return Ok(0);
    }
    let mut found: Vec<(usize, ScaledIntegerSum)> = {
        let view = GraphView::of_graph(graph, context);
        let nodes = graph.nodes.iter().enumerate();
        nodes.filter_map(|(at, node)| Some((at, find_integer_sum(&view, node)?))).collect()
    };
    // Sums with a bias come first, so that the sum inside is not fused on its own.
    found.sort_by_key(|(_, found)| found.addend.is_none());
    let mut done: HashSet<ValueId> = HashSet::new();
    let mut replacements = HashMap::new();
    for (at, found) in found {
        if done.contains(&found.sum) {
            continue;
        }
        let node = graph.nodes[at].clone();
        if let Some(nodes) = fused_nodes(graph, context, &node, &found) {
            done.insert(found.sum);
            replacements.insert(at, nodes);
        }
    }
    Ok(replace_nodes(graph, replacements))
}

/// A vector with an element for each output, or a single one.
#[derive(Clone, Copy)]
enum OutputVector {
    /// A value to be used as it is.
    Value(ValueId),
    /// A constant whose dimensions of size 1 have to be removed.
    Narrow(ValueId),
}

/// A match of an integer sum that is converted to floats.
struct ScaledIntegerSum {
    /// The `MatMulInteger` or `ConvInteger` node.
    integer: Node,
    /// Output of that node.
    sum: ValueId,
    /// Scale of the input. If `None`, `w_scale` is the product of both scales.
    x_scale: Option<ValueId>,
    w_scale: OutputVector,
    /// Summands: of the integer sum, and of the floats.
    bias: Option<OutputVector>,
    addend: Option<OutputVector>,
    /// Attributes of the NHWC convolution; `None` for a product.
    attributes: Option<Attributes>,
    is_depthwise: bool,
}

/// Position of the output channels among the dimensions.
struct OutputAxis {
    count: i64,
    /// Number of dimensions behind them.
    behind: usize,
}

fn find_integer_sum(view: &GraphView<'_>, node: &Node) -> Option<ScaledIntegerSum> {
    if node.is_op("Add") {
        let mut pairs = view.operand_orders(node).into_iter().flatten();
        return pairs.find_map(|(own, other)| {
            let mul = view.fusable_producer(own, "Mul").filter(|_| view.dtype(own) == Some(Dtype::F32))?;
            let mut found = match_scaled_sum(view, mul)?;
            // The bias of a product is fused by the pass `epilogues`.
            found.attributes.as_ref()?;
            let is_same = view.has_same_shape(own, node.output(0)?);
            found.addend =
                match_output_vector(view, other, &output_axis(view, &found.integer)?).filter(|_| is_same);
            found.addend?;
            Some(found)
        });
    }
    if node.is_op("Mul") && view.dtype(node.output(0)?)? == Dtype::F32 {
        match_scaled_sum(view, node)
    } else {
        None
    }
}

/// Matches the integer sum that a `Mul` scales.
fn match_scaled_sum(view: &GraphView<'_>, mul: &Node) -> Option<ScaledIntegerSum> {
    view.operand_orders(mul).into_iter().flatten().find_map(|(result, scale)| {
        let cast = view.fusable_producer(result, "Cast");
        let cast =
            cast.filter(|_| mul.output(0).is_some_and(|scaled| view.has_same_shape(result, scaled)))?;
        let mut sum = cast.input(0).filter(|sum| view.dtype(*sum) == Some(Dtype::I32))?;
        let mut added = None;
        if let Some(add) = view.fusable_producer(sum, "Add") {
            let is_integer = |value: ValueId| view.producer(value).is_some_and(is_integer_op);
            let mut pairs = view.operand_orders(add).into_iter().flatten();
            let (own, other) = pairs.find(|(own, _)| is_integer(*own))?;
            (sum, added) = (view.has_same_shape(own, sum).then_some(own)?, Some(other));
        }
        let integer = view.producer(sum).filter(|node| is_integer_op(node) && view.is_read_once(sum))?;
        let outputs = output_axis(view, integer)?;
        let bias = match added {
            None => None,
            Some(added) => Some(match_output_vector(view, added, &outputs)?),
        };
        // A scale that is not a product itself already combines both scales.
        let parts = view.producer_with_op(scale, "Mul").and_then(|scales| {
            let mut pairs = view.operand_orders(scales).into_iter().flatten();
            pairs.find_map(|(x, w)| {
                Some((x, has_one_element(view, x).then(|| match_output_vector(view, w, &outputs))??))
            })
        });
        let (x_scale, w_scale) = match parts {
            Some((x, w)) => (Some(x), w),
            None => (None, match_output_vector(view, scale, &outputs)?),
        };
        let zeros = [integer.input(2), integer.input(3)];
        let fits = |index: usize, zero: ValueId| match index {
            0 => has_one_element(view, zero),
            _ => {
                view.rank(zero).is_some_and(|rank| rank <= 1)
                    && match_output_vector(view, zero, &outputs.as_last_axis()).is_some()
            }
        };
        let fit =
            zeros.into_iter().enumerate().all(|(index, zero)| zero.is_none_or(|zero| fits(index, zero)));
        let (attributes, is_depthwise) = convolution_attributes(view, integer)?;
        fit.then(|| ScaledIntegerSum {
            integer: integer.clone(),
            sum,
            x_scale,
            w_scale,
            bias,
            addend: None,
            attributes,
            is_depthwise,
        })
    })
}

fn is_integer_op(node: &Node) -> bool {
    node.is_op("MatMulInteger") || node.is_op("ConvInteger")
}

fn has_one_element(view: &GraphView<'_>, value: ValueId) -> bool {
    view.check_shapes(move |graph| Some(graph.value(value).dims()?.iter().all(|dim| *dim == 1)))
}

impl OutputAxis {
    /// The same count, as the last dimension.
    fn as_last_axis(&self) -> Self {
        Self { count: self.count, behind: 0 }
    }
}

/// The output channels of an op with constant weights.
fn output_axis(view: &GraphView<'_>, integer: &Node) -> Option<OutputAxis> {
    let w = integer.input(1)?;
    view.graph.value(w).weight.as_ref()?;
    let rank = view.rank(w)?;
    if integer.is_op("ConvInteger") {
        return Some(OutputAxis { count: view.dimension_size(w, 0)?, behind: rank.checked_sub(2)? });
    }
    (rank == 2).then_some(OutputAxis { count: view.dimension_size(w, 1)?, behind: 0 })
}

/// Matches a value with one element, or with one for each output channel.
fn match_output_vector(view: &GraphView<'_>, value: ValueId, outputs: &OutputAxis) -> Option<OutputVector> {
    let &OutputAxis { count, behind } = outputs;
    let fits = view.check_shapes(move |graph| {
        let dims = graph.value(value).dims()?;
        let at = dims.len().checked_sub(1 + behind);
        let is_one = dims.iter().all(|dim| *dim == 1);
        let others = dims.iter().enumerate().all(|(axis, dim)| Some(axis) == at || *dim == 1);
        Some(is_one || others && at.is_some_and(|at| dims[at] == count))
    });
    if !fits {
        return None;
    }
    if view.rank(value)? <= 1 {
        return Some(OutputVector::Value(value));
    }
    if view.graph.value(value).weight.is_some() {
        return Some(OutputVector::Narrow(value));
    }
    // Look through a reshape that only added dimensions to a vector.
    let before = view
        .producer_with_op(value, "Reshape")
        .or_else(|| view.producer_with_op(value, "Unsqueeze"))?
        .input(0)?;
    (view.rank(before)? == 1).then_some(OutputVector::Value(before))
}

/// NHWC attributes and whether the convolution is depthwise; `(None, false)` for a product.
fn convolution_attributes(view: &GraphView<'_>, integer: &Node) -> Option<(Option<Attributes>, bool)> {
    if !integer.is_op("ConvInteger") {
        return Some((None, false));
    }
    let (x, w) = integer.input(0).zip(integer.input(1))?;
    let groups = integer.attributes.get_int("group").ok()?.unwrap_or(1);
    let is_depthwise =
        groups > 1 && view.dimension_size(x, 1)? == groups && view.dimension_size(w, 0)? == groups;
    let kernel = view.dims(w)?.get(2..)?.to_vec();
    let is_supported = (3..=4).contains(&view.rank(x)?);
    let attributes = window_attributes(view, integer, kernel, &["group"]).filter(|_| is_supported)?;
    Some((Some(attributes), is_depthwise))
}

/// The fused op, with transposes around a convolution; `None` if the device does not support it.
fn fused_nodes(
    graph: &mut Graph,
    context: &PassContext<'_>,
    node: &Node,
    found: &ScaledIntegerSum,
) -> Option<Vec<Node>> {
    if found.is_depthwise {
        return float_depthwise_nodes(graph, context, node, found);
    }
    let (x, w) = found.integer.input(0).zip(found.integer.input(1))?;
    let (x_scale, scale) = (input_scale(graph, found)?, add_output_vector(graph, context, found.w_scale)?);
    let lists = [found.bias, found.addend];
    let [bias, addend] = lists.map(|list| list.map(|list| add_output_vector(graph, context, list)));
    let (bias, addend) =
        (bias.map_or(Some(None), |bias| bias.map(Some))?, addend.map_or(Some(None), |list| list.map(Some))?);
    let zeros = [found.integer.input(2), found.integer.input(3)];
    let y = node.output(0)?;
    let own = |op: &str, x: ValueId, y: ValueId| {
        let inputs = [Some(x), Some(w), Some(x_scale), Some(scale), zeros[0], zeros[1], bias, addend];
        let used = inputs.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        let mut own = Node::new(OARLOCK_DOMAIN, op, 1, inputs.into_iter().take(used), [Some(y)]);
        own.name = found.integer.name.clone();
        own
    };
    let Some(attributes) = &found.attributes else {
        let own = own("DequantizedMatMul", x, y);
        return context.supports_node(graph, &own).then(|| vec![own]);
    };
    let (last, first) = channel_permutations(graph.value(x).dims()?.len());
    let (transposed_x, transposed_y) =
        (context.add_transposed_value(graph, x, &last)?, context.add_transposed_value(graph, y, &last)?);
    let mut own = own("DequantizedConv", transposed_x, transposed_y);
    own.attributes = attributes.clone();
    context
        .supports_node(graph, &own)
        .then(|| vec![transpose_node(x, transposed_x, last), own, transpose_node(transposed_y, y, first)])
}

/// The scale of the input, or a constant 1 if it is part of the weight scale.
fn input_scale(graph: &mut Graph, found: &ScaledIntegerSum) -> Option<ValueId> {
    if found.x_scale.is_some() {
        return found.x_scale;
    }
    let one = Constant::new(Dtype::F32, &[], 1f32.to_ne_bytes().to_vec()).ok()?;
    Some(graph.add_value(GraphValue::with_weight("a scale of one", Weight::Numbers(one))))
}

/// Adds a vector with at most one dimension, as the op reads it.
fn add_output_vector(graph: &mut Graph, context: &PassContext<'_>, list: OutputVector) -> Option<ValueId> {
    let value = match list {
        OutputVector::Value(value) => return Some(value),
        OutputVector::Narrow(value) => value,
    };
    context.record_read(graph, value);
    let numbers = graph.value(value).known_numbers()?;
    let count = numbers.dims().iter().product();
    let narrow = numbers.with_shape(&[count]).ok()?;
    Some(graph.add_value(GraphValue::with_weight("a list", Weight::Numbers(narrow))))
}

/// The nodes of a depthwise convolution in floats.
fn float_depthwise_nodes(
    graph: &mut Graph,
    context: &PassContext<'_>,
    node: &Node,
    found: &ScaledIntegerSum,
) -> Option<Vec<Node>> {
    let (x, w) = found.integer.input(0).zip(found.integer.input(1))?;
    let scale = add_output_vector(graph, context, found.w_scale)?;
    let known = |graph: &Graph, value: ValueId| {
        context.record_read(graph, value);
        graph.value(value).known_numbers().cloned()
    };
    let (weights, scales) = (known(graph, w)?, known(graph, scale)?.to_floats().ok()?);
    let zeros = match found.integer.input(3) {
        None => vec![0],
        Some(zeros) => int8_numbers(&known(graph, zeros)?)?,
    };
    let outputs = usize::try_from(*weights.dims().first()?).ok()?;
    let taps = int8_numbers(&weights)?.len() / outputs.max(1);
    let of = |list: usize, index: usize| if list == 1 { 0 } else { index / taps.max(1) };
    let real = int8_numbers(&weights)?.into_iter().enumerate().flat_map(|(index, weight)| {
        let zero = zeros[of(zeros.len(), index)];
        ((weight - zero) as f32 * scales[of(scales.len(), index)] as f32).to_ne_bytes()
    });
    let real = Constant::new(Dtype::F32, weights.dims(), real.collect::<Vec<u8>>()).ok()?;
    let bias = match found.addend {
        None => None,
        Some(addend) => Some(add_output_vector(graph, context, addend)?),
    };
    // Only a plain vector with one element for each channel can be the bias of the float convolution.
    let count = i64::try_from(outputs).ok()?;
    let has_fitting_bias = bias.is_none_or(|bias| {
        context.check_shapes(graph, move |graph| Some(*graph.value(bias).dims()? == [count]))
    });
    let is_scalar = |value: ValueId| graph.value(value).dims().is_some_and(|dims| dims.is_empty());
    let is_of_all = found.x_scale.is_none_or(is_scalar) && found.integer.input(2).is_none_or(is_scalar);
    if found.bias.is_some() || !has_fitting_bias || !is_of_all {
        return None;
    }
    let y = node.output(0)?;
    let x_scale = input_scale(graph, found)?;
    let real_x =
        context.add_value_with_dims(graph, "an image of floats", y, move |graph| graph.value(x).dims())?;
    let real = graph.add_value(GraphValue::with_weight("weights of floats", Weight::Numbers(real)));
    let zero = found.integer.input(2);
    let inputs = [Some(x), Some(x_scale), zero].into_iter().take(if zero.is_some() { 3 } else { 2 });
    let moved = Node::new("", "DequantizeLinear", 13, inputs, [Some(real_x)]);
    let inputs = [Some(real_x), Some(real), bias].into_iter().take(if bias.is_some() { 3 } else { 2 });
    let mut conv = Node::new("", "Conv", 11, inputs, [Some(y)]);
    conv.attributes = found.attributes.clone()?;
    conv.attributes.set("group", Attribute::Int(count));
    conv.name = found.integer.name.clone();
    Some(vec![moved, conv])
}

/// Elements of an 8-bit constant; `None` for other dtypes.
fn int8_numbers(constant: &Constant) -> Option<Vec<i32>> {
    let number: fn(&u8) -> i32 = match constant.dtype() {
        Dtype::I8 => |byte| byte.cast_signed().into(),
        Dtype::U8 => |byte| i32::from(*byte),
        _ => return None,
    };
    Some(constant.bytes().ok()?.iter().map(number).collect())
}
