//! Dynamically quantised models: sums of integers whose scale is only known in the run, made floats at once.
//!
//! Such a model has `DynamicQuantizeLinear`, `MatMulInteger` or `ConvInteger`, a `Cast`, and a `Mul` by the product of two
//! scales. What quantises stays what it is, since several products may read what it makes; the rest becomes one op. A
//! convolution of each channel for itself has few products, for which floats are as good: it becomes one of those.

use std::collections::{HashMap, HashSet};

use oarlock_core::{Attribute, Attributes, Constant, Dtype, Result};

use super::super::channels_last::{channel_permutations, transpose_node, window_attributes};
use super::super::graph_view::{GraphView, OARLOCK_DOMAIN, define_pass, replace_nodes};
use super::super::{GraphPass, PassContext};
use crate::graph::{Graph, GraphValue, Node, ValueId, Weight};

pub(in super::super) const FUSE_DYNAMIC_QUANTIZATION: GraphPass = define_pass(
    "dynamically quantised",
    "joins sums of integers with what makes them floats, which happens while they are in the cache then",
    fuse_dynamic_quantization,
);

fn fuse_dynamic_quantization(graph: &mut Graph, scene: &PassContext<'_>) -> Result<usize> {
    if !scene.has_kernel_for("DequantizedMatMul") {
        return Ok(0);
    }
    let mut found: Vec<(usize, ScaledIntegerSum)> = {
        let look = GraphView::of_graph(graph, scene);
        let nodes = graph.nodes.iter().enumerate();
        nodes.filter_map(|(at, node)| Some((at, find_integer_sum(&look, node)?))).collect()
    };
    // Where a bias is added is the end of a sum, and what it is added to is not computed for itself.
    found.sort_by_key(|(_, found)| found.addend.is_none());
    let mut done: HashSet<ValueId> = HashSet::new();
    let mut replacements = HashMap::new();
    for (at, found) in found {
        if done.contains(&found.sum) {
            continue;
        }
        let node = graph.nodes[at].clone();
        if let Some(nodes) = fused_nodes(graph, scene, &node, &found) {
            done.insert(found.sum);
            replacements.insert(at, nodes);
        }
    }
    Ok(replace_nodes(graph, replacements))
}

/// A list with an element for each output, or one for all.
#[derive(Clone, Copy)]
enum OutputVector {
    /// As it is.
    Value(ValueId),
    /// A constant, with its dimensions of one element left out.
    Narrow(ValueId),
}

/// A sum of integers that becomes floats.
struct ScaledIntegerSum {
    /// `MatMulInteger` or `ConvInteger`.
    integer: Node,
    /// What it makes.
    sum: ValueId,
    /// That of what is multiplied with weights, where the other is that of weights alone.
    x_scale: Option<ValueId>,
    w_scale: OutputVector,
    /// What is added to the sum, and to the floats.
    bias: Option<OutputVector>,
    addend: Option<OutputVector>,
    /// For a convolution, the attributes of the one whose channels are last.
    attributes: Option<Attributes>,
    is_depthwise: bool,
}

/// Where outputs are along the dimensions of what is made.
struct OutputAxis {
    count: i64,
    /// How many dimensions follow them.
    behind: usize,
}

fn find_integer_sum(look: &GraphView<'_>, node: &Node) -> Option<ScaledIntegerSum> {
    if node.is_op("Add") {
        let mut pairs = look.operand_orders(node).into_iter().flatten();
        return pairs.find_map(|(own, other)| {
            let mul = look.fusable_producer(own, "Mul").filter(|_| look.dtype(own) == Some(Dtype::F32))?;
            let mut found = match_scaled_sum(look, mul)?;
            // A product has its bias from the pass for what follows products.
            found.attributes.as_ref()?;
            let is_same = look.has_same_shape(own, node.output(0)?);
            found.addend =
                match_output_vector(look, other, &output_axis(look, &found.integer)?).filter(|_| is_same);
            found.addend?;
            Some(found)
        });
    }
    if node.is_op("Mul") && look.dtype(node.output(0)?)? == Dtype::F32 {
        match_scaled_sum(look, node)
    } else {
        None
    }
}

/// The sum that a node scales.
fn match_scaled_sum(look: &GraphView<'_>, mul: &Node) -> Option<ScaledIntegerSum> {
    look.operand_orders(mul).into_iter().flatten().find_map(|(made, scale)| {
        let cast = look.fusable_producer(made, "Cast");
        let cast = cast.filter(|_| mul.output(0).is_some_and(|scaled| look.has_same_shape(made, scaled)))?;
        let mut sum = cast.input(0).filter(|sum| look.dtype(*sum) == Some(Dtype::I32))?;
        let mut added = None;
        if let Some(add) = look.fusable_producer(sum, "Add") {
            let is_integer = |value: ValueId| look.producer(value).is_some_and(is_integer_op);
            let mut pairs = look.operand_orders(add).into_iter().flatten();
            let (own, other) = pairs.find(|(own, _)| is_integer(*own))?;
            (sum, added) = (look.has_same_shape(own, sum).then_some(own)?, Some(other));
        }
        let integer = look.producer(sum).filter(|node| is_integer_op(node) && look.is_read_once(sum))?;
        let outputs = output_axis(look, integer)?;
        let bias = match added {
            None => None,
            Some(added) => Some(match_output_vector(look, added, &outputs)?),
        };
        // A scale that is known beforehand is the product already.
        let parts = look.producer_with_op(scale, "Mul").and_then(|scales| {
            let mut pairs = look.operand_orders(scales).into_iter().flatten();
            pairs.find_map(|(x, w)| {
                Some((x, has_one_element(look, x).then(|| match_output_vector(look, w, &outputs))??))
            })
        });
        let (x_scale, w_scale) = match parts {
            Some((x, w)) => (Some(x), w),
            None => (None, match_output_vector(look, scale, &outputs)?),
        };
        let zeros = [integer.input(2), integer.input(3)];
        let fits = |index: usize, zero: ValueId| match index {
            0 => has_one_element(look, zero),
            _ => {
                look.rank(zero).is_some_and(|rank| rank <= 1)
                    && match_output_vector(look, zero, &outputs.as_last_axis()).is_some()
            }
        };
        let fit =
            zeros.into_iter().enumerate().all(|(index, zero)| zero.is_none_or(|zero| fits(index, zero)));
        let (attributes, is_depthwise) = convolution_attributes(look, integer)?;
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

fn has_one_element(look: &GraphView<'_>, value: ValueId) -> bool {
    look.check_shapes(move |graph| Some(graph.value(value).dims()?.iter().all(|dim| *dim == 1)))
}

impl OutputAxis {
    /// The same where they are the last dimension.
    fn as_last_axis(&self) -> Self {
        Self { count: self.count, behind: 0 }
    }
}

/// The outputs of an op whose weights are known to be constant.
fn output_axis(look: &GraphView<'_>, integer: &Node) -> Option<OutputAxis> {
    let w = integer.input(1)?;
    look.graph.value(w).weight.as_ref()?;
    let rank = look.rank(w)?;
    if integer.is_op("ConvInteger") {
        return Some(OutputAxis { count: look.dimension_size(w, 0)?, behind: rank.checked_sub(2)? });
    }
    (rank == 2).then_some(OutputAxis { count: look.dimension_size(w, 1)?, behind: 0 })
}

/// A value that has one element, or one for each output.
fn match_output_vector(look: &GraphView<'_>, value: ValueId, outputs: &OutputAxis) -> Option<OutputVector> {
    let &OutputAxis { count, behind } = outputs;
    let fits = look.check_shapes(move |graph| {
        let dims = graph.value(value).dims()?;
        let at = dims.len().checked_sub(1 + behind);
        let is_one = dims.iter().all(|dim| *dim == 1);
        let others = dims.iter().enumerate().all(|(axis, dim)| Some(axis) == at || *dim == 1);
        Some(is_one || others && at.is_some_and(|at| dims[at] == count))
    });
    if !fits {
        return None;
    }
    if look.rank(value)? <= 1 {
        return Some(OutputVector::Value(value));
    }
    if look.graph.value(value).weight.is_some() {
        return Some(OutputVector::Narrow(value));
    }
    // What was a list before it had more dimensions.
    let before = look
        .producer_with_op(value, "Reshape")
        .or_else(|| look.producer_with_op(value, "Unsqueeze"))?
        .input(0)?;
    (look.rank(before)? == 1).then_some(OutputVector::Value(before))
}

/// What a convolution is with its channels last, and whether it is one of each channel for itself; nothing of a product.
fn convolution_attributes(look: &GraphView<'_>, integer: &Node) -> Option<(Option<Attributes>, bool)> {
    if !integer.is_op("ConvInteger") {
        return Some((None, false));
    }
    let (x, w) = integer.input(0).zip(integer.input(1))?;
    let groups = integer.attributes.get_int("group").ok()?.unwrap_or(1);
    let is_depthwise =
        groups > 1 && look.dimension_size(x, 1)? == groups && look.dimension_size(w, 0)? == groups;
    let kernel = look.dims(w)?.get(2..)?.to_vec();
    let is_taken = (3..=4).contains(&look.rank(x)?);
    let attributes = window_attributes(look, integer, kernel, &["group"]).filter(|_| is_taken)?;
    Some((Some(attributes), is_depthwise))
}

/// The op in the place of the last node of a sum, if the device takes it: a convolution between transposes.
fn fused_nodes(
    graph: &mut Graph,
    scene: &PassContext<'_>,
    node: &Node,
    found: &ScaledIntegerSum,
) -> Option<Vec<Node>> {
    if found.is_depthwise {
        return float_depthwise_nodes(graph, scene, node, found);
    }
    let (x, w) = found.integer.input(0).zip(found.integer.input(1))?;
    let (x_scale, scale) = (input_scale(graph, found)?, add_output_vector(graph, scene, found.w_scale)?);
    let lists = [found.bias, found.addend];
    let [bias, addend] = lists.map(|list| list.map(|list| add_output_vector(graph, scene, list)));
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
        return scene.supports_node(graph, &own).then(|| vec![own]);
    };
    let (last, first) = channel_permutations(graph.value(x).dims()?.len());
    let (turned_x, turned_y) =
        (scene.add_transposed_value(graph, x, &last)?, scene.add_transposed_value(graph, y, &last)?);
    let mut own = own("DequantizedConv", turned_x, turned_y);
    own.attributes = attributes.clone();
    scene
        .supports_node(graph, &own)
        .then(|| vec![transpose_node(x, turned_x, last), own, transpose_node(turned_y, y, first)])
}

/// The scale of what is multiplied with weights.
fn input_scale(graph: &mut Graph, found: &ScaledIntegerSum) -> Option<ValueId> {
    if found.x_scale.is_some() {
        return found.x_scale;
    }
    let one = Constant::new(Dtype::F32, &[], 1f32.to_ne_bytes().to_vec()).ok()?;
    Some(graph.add_value(GraphValue::with_weight("a scale of one", Weight::Numbers(one))))
}

/// A list as an op reads it: of one dimension at most.
fn add_output_vector(graph: &mut Graph, scene: &PassContext<'_>, list: OutputVector) -> Option<ValueId> {
    let value = match list {
        OutputVector::Value(value) => return Some(value),
        OutputVector::Narrow(value) => value,
    };
    scene.record_read(graph, value);
    let numbers = graph.value(value).known_numbers()?;
    let count = numbers.dims().iter().product();
    let narrow = numbers.with_shape(&[count]).ok()?;
    Some(graph.add_value(GraphValue::with_weight("a list", Weight::Numbers(narrow))))
}

/// A convolution of each channel for itself, of floats.
fn float_depthwise_nodes(
    graph: &mut Graph,
    scene: &PassContext<'_>,
    node: &Node,
    found: &ScaledIntegerSum,
) -> Option<Vec<Node>> {
    let (x, w) = found.integer.input(0).zip(found.integer.input(1))?;
    let scale = add_output_vector(graph, scene, found.w_scale)?;
    let known = |graph: &Graph, value: ValueId| {
        scene.record_read(graph, value);
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
        Some(addend) => Some(add_output_vector(graph, scene, addend)?),
    };
    // Integers that are added have steps of their own, lists of one element are no bias, and scales of one are lists.
    let count = i64::try_from(outputs).ok()?;
    let has_fitting_bias = bias.is_none_or(|bias| {
        scene.check_shapes(graph, move |graph| Some(*graph.value(bias).dims()? == [count]))
    });
    let is_scalar = |value: ValueId| graph.value(value).dims().is_some_and(|dims| dims.is_empty());
    let is_of_all = found.x_scale.is_none_or(is_scalar) && found.integer.input(2).is_none_or(is_scalar);
    if found.bias.is_some() || !has_fitting_bias || !is_of_all {
        return None;
    }
    let y = node.output(0)?;
    let x_scale = input_scale(graph, found)?;
    let real_x =
        scene.add_value_with_dims(graph, "an image of floats", y, move |graph| graph.value(x).dims())?;
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

/// The numbers of a constant of eight bits.
fn int8_numbers(constant: &Constant) -> Option<Vec<i32>> {
    let number: fn(&u8) -> i32 = match constant.dtype() {
        Dtype::I8 => |byte| byte.cast_signed().into(),
        Dtype::U8 => |byte| i32::from(*byte),
        _ => return None,
    };
    Some(constant.bytes().iter().map(number).collect())
}
