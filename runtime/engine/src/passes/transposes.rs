//! Moves transposes towards each other until they cancel out.

use std::collections::{HashMap, HashSet};

use oarlock_core::schema::{OpFact, has_fact};
use oarlock_core::{Attribute, Constant, Result};

use super::channels_last::transpose_node;
use super::graph_view::{define_pass, replace_nodes};
use super::{GraphPass, PassContext};
use crate::graph::{Graph, GraphValue, Node, ValueId, Weight};
use oarlock_core::schema::OARLOCK_DOMAIN;

pub(super) const MOVE_TRANSPOSES: GraphPass = define_pass(
    "transpose elimination",
    "joins transposes that follow each other, and moves them past ops that work in any order of \
     dimensions",
    move_transposes,
);

fn move_transposes(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    // Reshapes are introduced last, because the sweep moves only transposes.
    Ok(TransposeSweep::sweep_graph(graph, context) + replace_by_reshape(graph, context))
}

/// The permutation of a `Transpose`.
fn transpose_order(node: &Node) -> Option<&[i64]> {
    if node.is_op("Transpose") { node.attributes.get_ints("perm").ok().flatten() } else { None }
}

fn inverse_order(order: &[i64]) -> Vec<i64> {
    let mut inverse = vec![0; order.len()];
    for (at, axis) in order.iter().enumerate() {
        if let (Ok(axis), Ok(at)) = (usize::try_from(*axis), i64::try_from(at))
            && axis < inverse.len()
        {
            inverse[axis] = at;
        }
    }
    inverse
}

fn is_identity(order: &[i64]) -> bool {
    order.iter().enumerate().all(|(at, axis)| usize::try_from(*axis) == Ok(at))
}

/// Replaces transposes that move only dimensions of size 1 by reshapes, which are views.
fn replace_by_reshape(graph: &mut Graph, context: &PassContext<'_>) -> usize {
    let mut found = HashMap::new();
    for at in 0..graph.nodes.len() {
        let node = &graph.nodes[at];
        let Some(order) = transpose_order(node) else { continue };
        let Some((from, to)) = node.input(0).zip(node.output(0)) else { continue };
        let order = order.to_vec();
        let moves_nothing = move |graph: &Graph| {
            let (dims, result) = (graph.value(from).dims()?, graph.value(to).dims()?);
            let moved = order.iter().copied().filter(|axis| {
                usize::try_from(*axis).ok().and_then(|axis| dims.get(axis)).is_some_and(|dim| *dim != 1)
            });
            Some(moved.is_sorted() && !result.contains(&0))
        };
        let outputs = node.outputs.clone();
        if context.check_shapes(graph, moves_nothing)
            && let Some(shape) = context.add_shape_constant(graph, to)
        {
            found.insert(at, vec![Node::new("", "Reshape", 13, [Some(from), Some(shape)], outputs)]);
        }
    }
    replace_nodes(graph, found)
}

/// A node's dependence on the order of its dimensions.
enum AxisBehavior {
    /// Elementwise: all inputs with more than one element must have the same order.
    Nothing,
    /// An attribute names one axis.
    Axis(&'static str, i64),
    /// An attribute lists axes, and the rank stays.
    Axes(&'static str),
    /// A constant input lists axes, and the rank stays.
    AxesInput(usize),
    /// Constant inputs have a fixed number of elements for each axis.
    Lists(&'static [usize], usize),
}

fn axis_behavior(node: &Node) -> Option<AxisBehavior> {
    if &*node.domain == OARLOCK_DOMAIN && &*node.op == "ByteMap" {
        // Its table is the same for all elements.
        return Some(AxisBehavior::Lists(&[], 0));
    }
    if &*node.domain == OARLOCK_DOMAIN || !node.subgraphs.is_empty() {
        return None;
    }
    Some(match &*node.op {
        name if has_fact(name, OpFact::Elementwise) => AxisBehavior::Nothing,
        // Its scale and zero point cover all elements.
        "DynamicQuantizeLinear" => AxisBehavior::Nothing,
        "Concat" => AxisBehavior::Axis("axis", 0),
        "QuantizeLinear" | "DequantizeLinear"
            if node.opset >= 13 && node.attributes.get_int("block_size").ok()?.unwrap_or(0) == 0 =>
        {
            AxisBehavior::Axis("axis", 1)
        }
        "Split" => AxisBehavior::Axis("axis", 0),
        "Softmax" | "LogSoftmax" if node.opset >= 13 => AxisBehavior::Axis("axis", -1),
        "ReduceMean" | "ReduceSum" | "ReduceMax" | "ReduceMin"
            if node.inputs.len() == 1 && node.attributes.get_int("keepdims").ok()?.unwrap_or(1) == 1 =>
        {
            AxisBehavior::Axes("axes")
        }
        "ReduceMean" | "ReduceSum" | "ReduceMax" | "ReduceMin"
            if node.inputs.len() == 2 && node.attributes.get_int("keepdims").ok()?.unwrap_or(1) == 1 =>
        {
            AxisBehavior::AxesInput(1)
        }
        "Slice" if node.input(3).is_some() => AxisBehavior::AxesInput(3),
        "Pad" if node.opset >= 11 && node.input(3).is_none() => AxisBehavior::Lists(&[1], 2),
        "Resize" if node.opset >= 11 && node.attributes.get("axes").is_none() => {
            AxisBehavior::Lists(&[2, 3], 1)
        }
        _ => return None,
    })
}

/// Number of leading inputs that carry data; the rest are parameters.
fn data_input_count(node: &Node) -> usize {
    match axis_behavior(node) {
        Some(AxisBehavior::Nothing) => node.inputs.len(),
        _ if node.is_op("Concat") => node.inputs.len(),
        _ => 1,
    }
}

fn element_count(dims: &[i64]) -> u64 {
    oarlock_core::shape::element_count(dims).unwrap_or(u64::MAX)
}

/// A value is small compared with another that has at least this many times its elements.
const SMALL_VALUE_FACTOR: u64 = 16;

/// Prepends dimensions of size 1 to a value; only constants may have a lower rank.
fn expand_to_rank(
    graph: &mut Graph,
    value: ValueId,
    rank: usize,
    context: &PassContext<'_>,
) -> Option<ValueId> {
    let dims = graph.value(value).dims()?;
    if dims.len() == rank {
        return Some(value);
    }
    context.record_read(graph, value);
    let numbers = graph.value(value).weight.as_ref()?.as_numbers()?;
    let wide: Vec<i64> = std::iter::repeat_n(1, rank - dims.len()).chain(dims).collect();
    let constant = numbers.with_shape(&wide).ok()?;
    Some(graph.add_value(GraphValue::with_weight("a constant of more dimensions", Weight::Numbers(constant))))
}

/// A sweep over the nodes in order that pushes each transpose as far down as it can: once moved behind a node, it is met again
/// at that node's readers.
struct TransposeSweep<'a> {
    /// The graph, with the nodes that are done.
    graph: &'a mut Graph,
    context: &'a PassContext<'a>,
    makers: Vec<Option<usize>>,
    outputs: HashSet<ValueId>,
    /// Replacements for outputs of transposes that were removed.
    replaced: HashMap<ValueId, ValueId>,
}

/// Composition of two consecutive transposes.
enum MergedTranspose {
    Nothing(ValueId),
    One(Node),
}

impl<'a> TransposeSweep<'a> {
    /// Sweeps the graph; returns how many transposes moved or merged.
    fn sweep_graph(graph: &'a mut Graph, context: &'a PassContext<'a>) -> usize {
        let nodes = std::mem::take(&mut graph.nodes);
        let outputs = graph.outputs.iter().copied().collect();
        let makers = vec![None; graph.value_count()];
        let mut sweep = TransposeSweep { graph, context, makers, outputs, replaced: HashMap::new() };
        let mut changes = 0;
        for mut node in nodes {
            node.read_values_mut().for_each(|read| *read = *sweep.replaced.get(read).unwrap_or(read));
            if let Some(nodes) = sweep.rewrite_node(&node) {
                nodes.into_iter().for_each(|node| sweep.push_node(node));
                changes += 1;
            } else {
                sweep.push_node(node);
            }
        }
        changes
    }

    /// The replacement for a node at which transposes move or merge, if any.
    fn rewrite_node(&mut self, node: &Node) -> Option<Vec<Node>> {
        match self.merge_transposes(node) {
            Some((to, MergedTranspose::Nothing(from))) if !self.outputs.contains(&to) => {
                self.replaced.insert(to, from);
                Some(Vec::new())
            }
            Some((_, MergedTranspose::One(both))) => Some(vec![both]),
            _ => {
                let order = self.order_after(node)?;
                move_behind(self.graph, self.context, &self.makers, node.clone(), &order)
            }
        }
    }

    fn push_node(&mut self, node: Node) {
        self.makers.resize(self.graph.value_count(), None);
        node.written_values().for_each(|value| self.makers[value.index()] = Some(self.graph.nodes.len()));
        self.graph.nodes.push(node);
    }

    fn producer(&self, value: ValueId) -> Option<&Node> {
        self.makers.get(value.index()).copied().flatten().map(|at| &self.graph.nodes[at])
    }

    /// Composes a transpose with the one before it; returns its output and the composition.
    fn merge_transposes(&self, node: &Node) -> Option<(ValueId, MergedTranspose)> {
        let second = transpose_order(node)?;
        let inner = self.producer(node.input(0)?)?;
        let first = transpose_order(inner).filter(|first| first.len() == second.len())?;
        let (from, to) = inner.input(0).zip(node.output(0))?;
        let both = second.iter().map(|axis| first.get(usize::try_from(*axis).ok()?).copied());
        let both: Vec<i64> = both.collect::<Option<_>>()?;
        Some((
            to,
            if is_identity(&both) {
                MergedTranspose::Nothing(from)
            } else {
                MergedTranspose::One(transpose_node(from, to, both))
            },
        ))
    }

    /// The permutation that all inputs of a node share, if it can be applied behind the node instead.
    fn order_after(&self, node: &Node) -> Option<Vec<i64>> {
        let minds = axis_behavior(node)?;
        let rank_of = |value: ValueId| Some(self.graph.value(value).dims()?.len());
        let mut order: Option<&[i64]> = None;
        let result = node.output(0)?;
        let (rank, data) = (rank_of(result)?, data_input_count(node));
        for (index, input) in node.inputs.iter().enumerate() {
            let Some(input) = input else { continue };
            let input = *input;
            let own_rank = rank_of(input)?;
            if index >= data {
                // A parameter must be constant, or a scale or zero point for all elements.
                let is_of_all = move |graph: &Graph| Some(element_count(&graph.value(input).dims()?) == 1);
                if !node.is_op("DequantizeLinear") || !self.context.check_shapes(self.graph, is_of_all) {
                    self.graph.value(input).weight.as_ref()?;
                }
                continue;
            }
            if let Some(own) = self.producer(input).and_then(transpose_order) {
                // If others read the transpose as well, it stays for them and moving it would add a second one.
                let is_same = order.is_none_or(|order| order == own);
                if !is_same || own_rank != rank {
                    return None;
                }
                order = Some(own);
            } else {
                // Constants are transposed once, and transposing a small operand is cheaper than a large result.
                let is_small = move |graph: &Graph| {
                    let (dims, result) = (graph.value(input).dims()?, graph.value(result).dims()?);
                    let is_small = dims.len() == rank
                        && element_count(&dims).saturating_mul(SMALL_VALUE_FACTOR) <= element_count(&result);
                    Some(is_small || element_count(&dims) == 1)
                };
                let is_constant = self.graph.value(input).weight.is_some();
                let may_be = matches!(minds, AxisBehavior::Nothing) && own_rank <= rank;
                if !may_be || !is_constant && !self.context.check_shapes(self.graph, is_small) {
                    return None;
                }
            }
        }
        order.filter(|order| order.len() == rank).map(<[i64]>::to_vec)
    }
}

/// Moves the transposes of a node's inputs behind it.
fn move_behind(
    graph: &mut Graph,
    context: &PassContext<'_>,
    makers: &[Option<usize>],
    mut node: Node,
    order: &[i64],
) -> Option<Vec<Node>> {
    let back = inverse_order(order);
    let mut nodes = Vec::new();
    let (minds, data) = (axis_behavior(&node)?, data_input_count(&node));
    for input in node.inputs.iter_mut().take(data).flatten() {
        let maker = makers.get(input.index()).copied().flatten().map(|at| &graph.nodes[at]);
        if let Some(before) =
            maker.filter(|maker| transpose_order(maker).is_some()).and_then(|maker| maker.input(0))
        {
            *input = before;
        } else {
            let own = *input;
            if context
                .check_shapes(graph, move |graph| Some(graph.value(own).dims()?.iter().all(|dim| *dim == 1)))
            {
                continue;
            }
            *input = expand_to_rank(graph, *input, order.len(), context)?;
            let transposed = context.add_transposed_value(graph, *input, &back)?;
            nodes.push(transpose_node(*input, transposed, back.clone()));
            *input = transposed;
        }
    }
    let moved = |axis: i64| -> Option<i64> {
        let axis = oarlock_core::shape::resolve_axis(axis, order.len()).ok()?;
        order.get(axis).copied()
    };
    match minds {
        AxisBehavior::Nothing => {}
        AxisBehavior::Axis(name, default) => {
            let axis = node.attributes.get_int(name).ok()?.unwrap_or(default);
            node.attributes.set(name, Attribute::Int(moved(axis)?));
        }
        AxisBehavior::Axes(name) => {
            let axes = node
                .attributes
                .get_ints(name)
                .ok()??
                .iter()
                .map(|axis| moved(*axis))
                .collect::<Option<_>>()?;
            node.attributes.set(name, Attribute::Ints(axes));
        }
        AxisBehavior::AxesInput(index) => {
            if let Some(axes) = node.input(index) {
                context.record_read(graph, axes);
                let known = graph.value(axes).known_numbers()?.to_ints().ok()?;
                let axes: Vec<i64> = known.into_iter().map(moved).collect::<Option<_>>()?;
                let axes = GraphValue::with_weight("axes", Weight::Numbers(Constant::from_ints(&axes)));
                node.inputs[index] = Some(graph.add_value(axes));
            }
        }
        AxisBehavior::Lists(indices, each) => {
            let rank = i64::try_from(order.len()).ok()?;
            for index in indices {
                let Some(input) = node.input(*index) else { continue };
                context.record_read(graph, input);
                let numbers = graph.value(input).known_numbers()?.clone();
                if numbers.size_in_bytes() == 0 {
                    continue;
                }
                if numbers.dims() != [rank * i64::try_from(each).ok()?] {
                    return None;
                }
                let of_all = (0..i64::try_from(each).ok()?)
                    .flat_map(|part| back.iter().map(move |axis| part * rank + axis));
                node.inputs[*index] = Some(add_list_constant(graph, &numbers, of_all.collect())?);
            }
        }
    }
    let mut transposed = Vec::new();
    // Only the first output is an image; the others are its scale and zero point.
    let images = if node.is_op("DynamicQuantizeLinear") { 1 } else { usize::MAX };
    for output in node.outputs.iter_mut().take(images).flatten() {
        let inner = context.add_transposed_value(graph, *output, &back)?;
        transposed.push(transpose_node(inner, *output, order.to_vec()));
        *output = inner;
    }
    nodes.push(node);
    nodes.extend(transposed);
    Some(nodes)
}

/// Adds a permuted constant vector in place of a parameter.
fn add_list_constant(graph: &mut Graph, numbers: &Constant, elements: Vec<i64>) -> Option<ValueId> {
    // Works on bytes, so it serves integer lists and float scales alike.
    let bytes = numbers.bytes().ok()?;
    let size = bytes.len() / elements.len().max(1);
    let parts = elements.iter().map(|at| usize::try_from(*at).ok()).collect::<Option<Vec<usize>>>()?;
    let bytes: Vec<u8> = parts.iter().flat_map(|at| bytes[at * size..(at + 1) * size].to_vec()).collect();
    let constant = Constant::new(numbers.dtype(), numbers.dims(), bytes).ok()?;
    Some(graph.add_value(GraphValue::with_weight("a list in another order", Weight::Numbers(constant))))
}
