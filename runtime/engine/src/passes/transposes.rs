//! Transposes move towards each other and cancel out.

use std::collections::{HashMap, HashSet};

use oarlock_core::{Attribute, Constant, Result};

use super::channels_last::transpose;
use super::common::{OARLOCK, pass, replace};
use super::{Pass, Scene};
use crate::graph::{Graph, Node, Value, ValueId, Weight};

pub(super) const PASS: Pass = pass(
    "transposes",
    "joins transposes that follow each other, and moves them behind what does not mind the order of dimensions",
    run,
);

fn run(graph: &mut Graph, scene: &Scene<'_>) -> Result<usize> {
    // Last, since a view stays where it is.
    Ok(Sweep::over(graph, scene) + unfold(graph, scene))
}

/// The order in which a node puts the dimensions of its input.
fn order_of(node: &Node) -> Option<&[i64]> {
    if node.is("Transpose") { node.attributes.ints("perm").ok().flatten() } else { None }
}

fn inverse(order: &[i64]) -> Vec<i64> {
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

/// A transpose that moves only dimensions of one element is another view of the same memory.
fn unfold(graph: &mut Graph, scene: &Scene<'_>) -> usize {
    let mut found = HashMap::new();
    for at in 0..graph.nodes.len() {
        let node = &graph.nodes[at];
        let Some(order) = order_of(node) else { continue };
        let Some((from, to)) = node.input(0).zip(node.output(0)) else { continue };
        let order = order.to_vec();
        let moves_nothing = move |graph: &Graph| {
            let (dims, made) = (graph.value(from).dims()?, graph.value(to).dims()?);
            let moved = order.iter().copied().filter(|axis| {
                usize::try_from(*axis).ok().and_then(|axis| dims.get(axis)).is_some_and(|dim| *dim != 1)
            });
            Some(moved.is_sorted() && !made.contains(&0))
        };
        let outputs = node.outputs.clone();
        if scene.asks(graph, moves_nothing)
            && let Some(shape) = scene.add_shape(graph, to)
        {
            found.insert(at, vec![Node::new("", "Reshape", 13, [Some(from), Some(shape)], outputs)]);
        }
    }
    replace(graph, found)
}

/// What a node does with the order of dimensions of its inputs.
enum Minds {
    /// Nothing: it treats each element by itself. All inputs of more than one element must be in the same order.
    Nothing,
    /// It has an attribute that says a dimension.
    Axis(&'static str, i64),
    /// It has an attribute that lists dimensions, and keeps them.
    Axes(&'static str),
    /// An input, which is constant, lists dimensions, and it keeps them.
    AxesInput(usize),
    /// Some inputs, which are constant, have so many elements for each dimension.
    Lists(&'static [usize], usize),
}

fn minds(node: &Node) -> Option<Minds> {
    if &*node.domain == OARLOCK || !node.subgraphs.is_empty() {
        return None;
    }
    Some(match &*node.op {
        "Relu" | "Clip" | "LeakyRelu" | "Sigmoid" | "HardSigmoid" | "HardSwish" | "Tanh" | "Elu" | "Selu"
        | "Celu" | "Softplus" | "Softsign" | "Mish" | "Swish" | "Gelu" | "Erf" | "Exp" | "Log" | "Sqrt"
        | "Abs" | "Neg" | "Reciprocal" | "Floor" | "Ceil" | "Round" | "Sign" | "Not" | "Cast"
        | "Identity" | "Add" | "Sub" | "Mul" | "Div" | "Pow" | "Max" | "Min" | "Sum" | "Mean"
        | "ThresholdedRelu" => Minds::Nothing,
        // Its scale and its zero point are of all elements.
        "DynamicQuantizeLinear" => Minds::Nothing,
        "Concat" => Minds::Axis("axis", 0),
        "QuantizeLinear" | "DequantizeLinear"
            if node.opset >= 13 && node.attributes.int("block_size").ok()?.unwrap_or(0) == 0 =>
        {
            Minds::Axis("axis", 1)
        }
        "Split" => Minds::Axis("axis", 0),
        "Softmax" | "LogSoftmax" if node.opset >= 13 => Minds::Axis("axis", -1),
        "ReduceMean" | "ReduceSum" | "ReduceMax" | "ReduceMin"
            if node.inputs.len() == 1 && node.attributes.int("keepdims").ok()?.unwrap_or(1) == 1 =>
        {
            Minds::Axes("axes")
        }
        "ReduceMean" | "ReduceSum" | "ReduceMax" | "ReduceMin"
            if node.inputs.len() == 2 && node.attributes.int("keepdims").ok()?.unwrap_or(1) == 1 =>
        {
            Minds::AxesInput(1)
        }
        "Slice" if node.input(3).is_some() => Minds::AxesInput(3),
        "Pad" if node.opset >= 11 && node.input(3).is_none() => Minds::Lists(&[1], 2),
        "Resize" if node.opset >= 11 && node.attributes.get("axes").is_none() => Minds::Lists(&[2, 3], 1),
        _ => return None,
    })
}

/// How many inputs are what a node computes with; others say how.
fn data_inputs(node: &Node) -> usize {
    match minds(node) {
        Some(Minds::Nothing) => node.inputs.len(),
        _ if node.is("Concat") => node.inputs.len(),
        _ => 1,
    }
}

fn count(dims: &[i64]) -> u64 {
    oarlock_core::shape::element_count(dims).unwrap_or(u64::MAX)
}

/// A value is small beside another one that has so many times its elements.
const SMALL: u64 = 16;

/// A value with dimensions of one element before its own; only constants have fewer than they should.
fn of_rank(graph: &mut Graph, value: ValueId, rank: usize, scene: &Scene<'_>) -> Option<ValueId> {
    let dims = graph.value(value).dims()?;
    if dims.len() == rank {
        return Some(value);
    }
    scene.reads(graph, value);
    let numbers = graph.value(value).weight.as_ref()?.numbers()?;
    let wide: Vec<i64> = std::iter::repeat_n(1, rank - dims.len()).chain(dims).collect();
    let constant = numbers.reshaped(&wide).ok()?;
    Some(graph.add(Value::constant("a constant of more dimensions", Weight::Numbers(constant))))
}

/// A walk over the nodes in their order, in which a transpose goes as far as it can: when it has moved behind a node, the
/// next one meets it there.
struct Sweep<'a> {
    /// The graph, with the nodes that are done.
    graph: &'a mut Graph,
    scene: &'a Scene<'a>,
    makers: Vec<Option<usize>>,
    outputs: HashSet<ValueId>,
    /// What to read instead of what a transpose made that is gone.
    replaced: HashMap<ValueId, ValueId>,
}

/// What becomes of two transposes, one after the other.
enum Both {
    Nothing(ValueId),
    One(Node),
}

impl<'a> Sweep<'a> {
    /// Says how many transposes moved or were joined.
    fn over(graph: &'a mut Graph, scene: &'a Scene<'a>) -> usize {
        let nodes = std::mem::take(&mut graph.nodes);
        let outputs = graph.outputs.iter().copied().collect();
        let makers = vec![None; graph.value_count()];
        let mut sweep = Sweep { graph, scene, makers, outputs, replaced: HashMap::new() };
        let mut changes = 0;
        for mut node in nodes {
            node.uses_mut().for_each(|read| *read = *sweep.replaced.get(read).unwrap_or(read));
            if let Some(nodes) = sweep.changed(&node) {
                nodes.into_iter().for_each(|node| sweep.push(node));
                changes += 1;
            } else {
                sweep.push(node);
            }
        }
        changes
    }

    /// What takes the place of a node at which transposes move or are joined.
    fn changed(&mut self, node: &Node) -> Option<Vec<Node>> {
        match self.joined(node) {
            Some((to, Both::Nothing(from))) if !self.outputs.contains(&to) => {
                self.replaced.insert(to, from);
                Some(Vec::new())
            }
            Some((_, Both::One(both))) => Some(vec![both]),
            _ => {
                let order = self.order_behind(node)?;
                behind(self.graph, self.scene, &self.makers, node.clone(), &order)
            }
        }
    }

    fn push(&mut self, node: Node) {
        self.makers.resize(self.graph.value_count(), None);
        node.makes().for_each(|value| self.makers[value.index()] = Some(self.graph.nodes.len()));
        self.graph.nodes.push(node);
    }

    fn maker(&self, value: ValueId) -> Option<&Node> {
        self.makers.get(value.index()).copied().flatten().map(|at| &self.graph.nodes[at])
    }

    /// What a transpose makes, and what it is together with the one before it.
    fn joined(&self, node: &Node) -> Option<(ValueId, Both)> {
        let second = order_of(node)?;
        let inner = self.maker(node.input(0)?)?;
        let first = order_of(inner).filter(|first| first.len() == second.len())?;
        let (from, to) = inner.input(0).zip(node.output(0))?;
        let both = second.iter().map(|axis| first.get(usize::try_from(*axis).ok()?).copied());
        let both: Vec<i64> = both.collect::<Option<_>>()?;
        Some((
            to,
            if is_identity(&both) { Both::Nothing(from) } else { Both::One(transpose(from, to, both)) },
        ))
    }

    /// The order that all inputs of a node are put into, if it can be done behind the node as well.
    fn order_behind(&self, node: &Node) -> Option<Vec<i64>> {
        let minds = minds(node)?;
        let rank_of = |value: ValueId| Some(self.graph.value(value).dims()?.len());
        let mut order: Option<&[i64]> = None;
        let made = node.output(0)?;
        let (rank, data) = (rank_of(made)?, data_inputs(node));
        for (index, input) in node.inputs.iter().enumerate() {
            let Some(input) = input else { continue };
            let input = *input;
            let own_rank = rank_of(input)?;
            if index >= data {
                // What says how, and not what: it must be known, or be a scale or zero point of all elements.
                let is_of_all = move |graph: &Graph| Some(count(&graph.value(input).dims()?) == 1);
                if !node.is("DequantizeLinear") || !self.scene.asks(self.graph, is_of_all) {
                    self.graph.value(input).weight.as_ref()?;
                }
                continue;
            }
            if let Some(own) = self.maker(input).and_then(order_of) {
                // A transpose that others read too stays for them, and there would be two.
                let is_same = order.is_none_or(|order| order == own);
                if !is_same || own_rank != rank {
                    return None;
                }
                order = Some(own);
            } else {
                // Constants are turned once; what is small is turned for less than what is large.
                let is_small = move |graph: &Graph| {
                    let (dims, made) = (graph.value(input).dims()?, graph.value(made).dims()?);
                    let is_small = dims.len() == rank && count(&dims).saturating_mul(SMALL) <= count(&made);
                    Some(is_small || count(&dims) == 1)
                };
                let is_constant = self.graph.value(input).weight.is_some();
                let may_be = matches!(minds, Minds::Nothing) && own_rank <= rank;
                if !may_be || !is_constant && !self.scene.asks(self.graph, is_small) {
                    return None;
                }
            }
        }
        order.filter(|order| order.len() == rank).map(<[i64]>::to_vec)
    }
}

/// A node with the transposes of its inputs behind it.
fn behind(
    graph: &mut Graph,
    scene: &Scene<'_>,
    makers: &[Option<usize>],
    mut node: Node,
    order: &[i64],
) -> Option<Vec<Node>> {
    let back = inverse(order);
    let mut nodes = Vec::new();
    let (minds, data) = (minds(&node)?, data_inputs(&node));
    for input in node.inputs.iter_mut().take(data).flatten() {
        let maker = makers.get(input.index()).copied().flatten().map(|at| &graph.nodes[at]);
        if let Some(before) = maker.filter(|maker| order_of(maker).is_some()).and_then(|maker| maker.input(0))
        {
            *input = before;
        } else {
            let own = *input;
            if scene.asks(graph, move |graph| Some(graph.value(own).dims()?.iter().all(|dim| *dim == 1))) {
                continue;
            }
            *input = of_rank(graph, *input, order.len(), scene)?;
            let turned = scene.add_turned(graph, *input, &back)?;
            nodes.push(transpose(*input, turned, back.clone()));
            *input = turned;
        }
    }
    let moved = |axis: i64| -> Option<i64> {
        let axis = oarlock_core::shape::axis(axis, order.len()).ok()?;
        order.get(axis).copied()
    };
    match minds {
        Minds::Nothing => {}
        Minds::Axis(name, default) => {
            let axis = node.attributes.int(name).ok()?.unwrap_or(default);
            node.attributes.set(name, Attribute::Int(moved(axis)?));
        }
        Minds::Axes(name) => {
            let axes =
                node.attributes.ints(name).ok()??.iter().map(|axis| moved(*axis)).collect::<Option<_>>()?;
            node.attributes.set(name, Attribute::Ints(axes));
        }
        Minds::AxesInput(index) => {
            if let Some(axes) = node.input(index) {
                scene.reads(graph, axes);
                let known = graph.value(axes).numbers()?.ints().ok()?;
                let axes: Vec<i64> = known.into_iter().map(moved).collect::<Option<_>>()?;
                let axes = Value::constant("axes", Weight::Numbers(Constant::of_ints(&axes)));
                node.inputs[index] = Some(graph.add(axes));
            }
        }
        Minds::Lists(indices, each) => {
            let rank = i64::try_from(order.len()).ok()?;
            for index in indices {
                let Some(input) = node.input(*index) else { continue };
                scene.reads(graph, input);
                let numbers = graph.value(input).numbers()?.clone();
                if numbers.bytes().is_empty() {
                    continue;
                }
                if numbers.dims() != [rank * i64::try_from(each).ok()?] {
                    return None;
                }
                let of_all = (0..i64::try_from(each).ok()?)
                    .flat_map(|part| back.iter().map(move |axis| part * rank + axis));
                node.inputs[*index] = Some(list(graph, &numbers, of_all.collect())?);
            }
        }
    }
    let mut turned = Vec::new();
    // Others than the first are no images.
    let images = if node.is("DynamicQuantizeLinear") { 1 } else { usize::MAX };
    for output in node.outputs.iter_mut().take(images).flatten() {
        let inner = scene.add_turned(graph, *output, &back)?;
        turned.push(transpose(inner, *output, order.to_vec()));
        *output = inner;
    }
    nodes.push(node);
    nodes.extend(turned);
    Some(nodes)
}

/// A constant list in the place of an input.
fn list(graph: &mut Graph, numbers: &Constant, elements: Vec<i64>) -> Option<ValueId> {
    // Lists of floats are scales; their bytes move as those of integers do.
    let size = numbers.bytes().len() / elements.len().max(1);
    let parts = elements.iter().map(|at| usize::try_from(*at).ok()).collect::<Option<Vec<usize>>>()?;
    let bytes: Vec<u8> =
        parts.iter().flat_map(|at| numbers.bytes()[at * size..(at + 1) * size].to_vec()).collect();
    let constant = Constant::new(numbers.dtype(), numbers.dims(), bytes).ok()?;
    Some(graph.add(Value::constant("a list in another order", Weight::Numbers(constant))))
}
