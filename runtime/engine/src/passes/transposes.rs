//! Transposes move towards each other and cancel out.

use std::collections::HashMap;

use oarlock_core::{Attribute, Constant, Result};

use super::channels_last::{add_turned, transpose};
use super::common::{Look, OARLOCK, pass, replace};
use super::{Pass, Scene};
use crate::graph::{Graph, Node, Value, ValueId, Weight};

pub(super) const PASS: Pass = pass(
    "transposes",
    "joins transposes that follow each other, and moves them behind what does not mind the order of dimensions",
    run,
);

fn run(graph: &mut Graph, _: &Scene<'_>) -> Result<usize> {
    let mut count = 0;
    // Each round moves every transpose behind one more node.
    for _ in 0..MOST_ROUNDS {
        let changes = join(graph) + unfold(graph)? + sink(graph);
        if changes == 0 {
            break;
        }
        count += changes;
    }
    Ok(count)
}

/// A transpose moves behind at most so many nodes in a run of the pass.
const MOST_ROUNDS: usize = 64;

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

/// Transposes of transposes become one, or none.
fn join(graph: &mut Graph) -> usize {
    let look = Look::at(graph);
    let mut joined = HashMap::new();
    let mut gone = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        let Some(second) = order_of(node) else { continue };
        let inner = node.input(0).and_then(|input| look.maker(input));
        let Some((inner, first)) = inner.and_then(|inner| Some((inner, order_of(inner)?))) else { continue };
        if first.len() != second.len() {
            continue;
        }
        let both: Vec<i64> =
            second.iter().filter_map(|axis| first.get(usize::try_from(*axis).ok()?).copied()).collect();
        let (Some(from), Some(to)) = (inner.input(0), node.output(0)) else { continue };
        if is_identity(&both) && !graph.outputs.contains(&to) {
            gone.insert(to, from);
        } else if !is_identity(&both) {
            joined.insert(at, vec![transpose(from, to, both)]);
        }
    }
    let count = joined.len() + gone.len();
    graph.nodes.retain(|node| !(node.is("Transpose") && node.output(0).is_some_and(|to| gone.contains_key(&to))));
    // Places have moved, but a node that is joined is known by what it makes.
    let joined: HashMap<Option<ValueId>, Node> =
        joined.into_values().flatten().map(|node| (node.output(0), node)).collect();
    for node in &mut graph.nodes {
        if let Some(new) = joined.get(&node.output(0)).filter(|_| node.is("Transpose")) {
            *node = new.clone();
        }
    }
    graph.replace_uses(&gone);
    count
}

/// A transpose that moves only dimensions of one element is another view of the same memory.
fn unfold(graph: &mut Graph) -> Result<usize> {
    let mut found = HashMap::new();
    for at in 0..graph.nodes.len() {
        let node = &graph.nodes[at];
        let Some(order) = order_of(node) else { continue };
        let dims = node.input(0).and_then(|input| graph.value(input).dims());
        let made = node.output(0).and_then(|output| graph.value(output).dims());
        let (Some(dims), Some(made)) = (dims, made) else { continue };
        let moved = order.iter().copied().filter(|axis| {
            usize::try_from(*axis).ok().and_then(|axis| dims.get(axis)).is_some_and(|dim| *dim != 1)
        });
        if !moved.is_sorted() || made.contains(&0) {
            continue;
        }
        let node = node.clone();
        let shape = Value::constant("a shape", Weight::Numbers(Constant::of_ints(&made)));
        let shape = graph.add(shape);
        found.insert(at, vec![Node::new("", "Reshape", 13, [node.input(0), Some(shape)], node.outputs)]);
    }
    Ok(replace(graph, found))
}

/// What a node does with the order of dimensions of its inputs.
enum Minds {
    /// Nothing: it treats each element by itself. All inputs of more than one element must be in the same order.
    Nothing,
    /// It has an attribute that says a dimension.
    Axis(&'static str, i64),
    /// It has an attribute that lists dimensions, and keeps them.
    Axes(&'static str),
}

fn minds(node: &Node) -> Option<Minds> {
    if &*node.domain == OARLOCK || !node.subgraphs.is_empty() {
        return None;
    }
    Some(match &*node.op {
        "Relu" | "Clip" | "LeakyRelu" | "Sigmoid" | "HardSigmoid" | "HardSwish" | "Tanh" | "Elu" | "Selu" | "Celu"
        | "Softplus" | "Softsign" | "Mish" | "Swish" | "Gelu" | "Erf" | "Exp" | "Log" | "Sqrt" | "Abs" | "Neg"
        | "Reciprocal" | "Floor" | "Ceil" | "Round" | "Sign" | "Not" | "Cast" | "Identity" | "Add" | "Sub" | "Mul"
        | "Div" | "Pow" | "Max" | "Min" | "Sum" | "Mean" | "ThresholdedRelu" => Minds::Nothing,
        "Concat" => Minds::Axis("axis", 0),
        "Softmax" | "LogSoftmax" if node.opset >= 13 => Minds::Axis("axis", -1),
        "ReduceMean" | "ReduceSum" | "ReduceMax" | "ReduceMin"
            if node.inputs.len() == 1 && node.attributes.int("keepdims").ok()?.unwrap_or(1) == 1 =>
        {
            Minds::Axes("axes")
        }
        _ => return None,
    })
}

/// Puts transposes behind nodes that do not mind.
fn sink(graph: &mut Graph) -> usize {
    let mut sunk = HashMap::new();
    let plans: Vec<(usize, Vec<i64>)> = {
        let look = Look::at(graph);
        let nodes = graph.nodes.iter().enumerate();
        nodes.filter_map(|(at, node)| Some((at, order_behind(&look, node)?))).collect()
    };
    for (at, order) in plans {
        let node = graph.nodes[at].clone();
        if let Some(nodes) = behind(graph, node, &order) {
            sunk.insert(at, nodes);
        }
    }
    replace(graph, sunk)
}

/// The order that all inputs of a node are put into, if it can be done behind the node as well.
fn order_behind(look: &Look<'_>, node: &Node) -> Option<Vec<i64>> {
    let minds = minds(node)?;
    let mut order: Option<&[i64]> = None;
    let rank = look.dims(node.output(0)?)?.len();
    for input in node.inputs.iter().flatten() {
        let dims = look.dims(*input)?;
        if let Some(own) = look.maker(*input).and_then(order_of) {
            // A transpose that others read too stays for them, and there would be two.
            let is_same = order.is_none_or(|order| order == own);
            if !is_same || dims.len() != rank {
                return None;
            }
            order = Some(own);
        } else {
            let is_one = dims.iter().all(|dim| *dim == 1);
            let is_constant = look.graph.value(*input).weight.is_some() && dims.len() == rank;
            if !matches!(minds, Minds::Nothing) || !(is_one || is_constant) || dims.len() > rank {
                return None;
            }
        }
    }
    order.filter(|order| order.len() == rank).map(<[i64]>::to_vec)
}

/// A node with the transposes of its inputs behind it.
fn behind(graph: &mut Graph, mut node: Node, order: &[i64]) -> Option<Vec<Node>> {
    let back = inverse(order);
    let mut nodes = Vec::new();
    let makers = graph.makers();
    for input in node.inputs.iter_mut().flatten() {
        let maker = makers.get(input.index()).copied().flatten().map(|at| &graph.nodes[at]);
        if let Some(before) = maker.filter(|maker| order_of(maker).is_some()).and_then(|maker| maker.input(0)) {
            *input = before;
        } else if graph.value(*input).dims()?.iter().any(|dim| *dim != 1) {
            let turned = add_turned(graph, *input, &back)?;
            nodes.push(transpose(*input, turned, back.clone()));
            *input = turned;
        }
    }
    let moved = |axis: i64| -> Option<i64> {
        let axis = oarlock_core::shape::axis(axis, order.len()).ok()?;
        order.get(axis).copied()
    };
    match minds(&node)? {
        Minds::Nothing => {}
        Minds::Axis(name, default) => {
            let axis = node.attributes.int(name).ok()?.unwrap_or(default);
            node.attributes.set(name, Attribute::Int(moved(axis)?));
        }
        Minds::Axes(name) => {
            let axes = node.attributes.ints(name).ok()??.iter().map(|axis| moved(*axis)).collect::<Option<_>>()?;
            node.attributes.set(name, Attribute::Ints(axes));
        }
    }
    let output = node.output(0)?;
    let turned = add_turned(graph, output, &back)?;
    node.outputs[0] = Some(turned);
    nodes.push(node);
    nodes.push(transpose(turned, output, order.to_vec()));
    Some(nodes)
}
