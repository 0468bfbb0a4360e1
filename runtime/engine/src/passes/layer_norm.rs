//! The ops that exporters write for layer normalisation become one.

use std::collections::HashMap;

use oarlock_core::{Attribute, Result};

use super::common::{Look, OARLOCK, pass, replace};
use super::{Pass, Scene};
use crate::graph::{Graph, Node, ValueId};

pub(super) const PASS: Pass = pass(
    "layer normalisation",
    "joins means, differences and roots into LayerNormalization, as older exporters write them apart",
    run,
);

pub(super) const SKIP: Pass = pass(
    "skip layer normalisation",
    "adds the residual within the normalisation that follows, so that the sum is read and written once",
    run_skip,
);

/// The opset in which ONNX got the op.
const OPSET: u32 = 17;

fn run(graph: &mut Graph, scene: &Scene<'_>) -> Result<usize> {
    let look = Look::at(graph, scene);
    let mut found = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        if let Some(norm) = node.is("Add").then(|| normalisation(&look, node)).flatten()
            && scene.takes(graph, &norm)
        {
            found.insert(at, vec![norm]);
        }
    }
    Ok(replace(graph, found))
}

/// The normalisation that ends in a sum: (x − mean) / √(variance + ε) · scale + bias.
fn normalisation(look: &Look<'_>, sum: &Node) -> Option<Node> {
    look.either_way(sum).into_iter().flatten().find_map(|(scaled, bias)| {
        let product = look.made_only_for(scaled, "Mul")?;
        look.either_way(product).into_iter().flatten().find_map(|(normal, scale)| {
            let (x, epsilon) = standardised(look, normal)?;
            let are_rows =
                move |graph: &Graph| {
                    let size = *graph.value(x).dims()?.last()?;
                    Some([scale, bias].iter().all(|value| {
                        graph.value(*value).dims().is_some_and(|dims| dims.as_slice() == [size])
                    }))
                };
            if !look.asks(are_rows) {
                return None;
            }
            let mut node = Node::new(
                "",
                "LayerNormalization",
                OPSET,
                [Some(x), Some(scale), Some(bias)],
                [sum.output(0)],
            );
            node.attributes.set("axis", Attribute::Int(-1));
            node.attributes.set("epsilon", Attribute::Float(epsilon));
            node.name = sum.name.clone();
            Some(node)
        })
    })
}

/// What is standardised along the last axis in a quotient, and what is added to its variance.
fn standardised(look: &Look<'_>, quotient: ValueId) -> Option<(ValueId, f64)> {
    let node = look.made_only_for(quotient, "Div")?;
    let (difference, root) = node.input(0).zip(node.input(1))?;
    let sum = look.made_only_for(look.made_only_for(root, "Sqrt")?.input(0)?, "Add")?;
    let (variance, epsilon) = look
        .either_way(sum)
        .into_iter()
        .flatten()
        .find_map(|(variance, epsilon)| Some((variance, look.scalar(epsilon)?)))?;
    let square = mean_of(look, variance)?;
    let squared = look.maker(square)?;
    let is_square = match &*squared.op {
        "Pow" => squared.input(0) == Some(difference) && look.scalar(squared.input(1)?)? == 2.0,
        "Mul" => squared.input(0) == Some(difference) && squared.input(1) == Some(difference),
        _ => false,
    };
    let less = look.made_by(difference, "Sub")?;
    let (x, mean) = less.input(0).zip(less.input(1))?;
    (is_square && mean_of(look, mean)? == x).then_some((x, epsilon))
}

/// What a mean along the last axis is of.
fn mean_of(look: &Look<'_>, mean: ValueId) -> Option<ValueId> {
    let node = look.made_by(mean, "ReduceMean")?;
    let x = node.input(0)?;
    let axes = match node.input(1) {
        Some(axes) => look.numbers(axes)?.ints().ok()?,
        None => node.attributes.ints("axes").ok()??.to_vec(),
    };
    let rank = i64::try_from(look.rank(x)?).ok()?;
    let keeps = node.attributes.int("keepdims").ok()?.unwrap_or(1) == 1;
    (keeps && (axes == [-1] || axes == [rank - 1])).then_some(x)
}

fn run_skip(graph: &mut Graph, scene: &Scene<'_>) -> Result<usize> {
    if !scene.has("SkipLayerNormalization") {
        return Ok(0);
    }
    let look = Look::at(graph, scene);
    let mut found = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        if let Some(joined) = node.is("LayerNormalization").then(|| with_skip(&look, node)).flatten()
            && scene.takes(graph, &joined)
        {
            found.insert(at, joined);
        }
    }
    // The sum is made by the joined node from now on, so whoever else reads it must stand behind that.
    let is_early = |graph: &Graph, at: usize, sum: ValueId| {
        graph.nodes[..at].iter().any(|node| node.uses().any(|value| value == sum))
    };
    found.retain(|at, node| node.output(1).is_none_or(|sum| !is_early(graph, *at, sum)));
    let count = found.len();
    for (at, node) in found {
        if let Some(sum) = node.output(1) {
            graph
                .nodes
                .iter_mut()
                .filter(|other| other.output(0) == Some(sum))
                .for_each(|add| add.outputs.clear());
        }
        graph.nodes[at] = node;
    }
    graph.nodes.retain(|node| !node.outputs.is_empty());
    Ok(count)
}

/// A normalisation of a sum, with the sum in it.
fn with_skip(look: &Look<'_>, node: &Node) -> Option<Node> {
    let sum = node.input(0)?;
    let add = look.made_by(sum, "Add")?;
    let (x, skip) = add.input(0).zip(add.input(1))?;
    let rank = i64::try_from(look.rank(sum)?).ok()?;
    let axis = node.attributes.int("axis").ok()?.unwrap_or(-1);
    let is_plain = look.has_same_shape(x, skip)
        && (axis == -1 || axis == rank - 1)
        && node.outputs.iter().skip(1).all(Option::is_none);
    if !is_plain || look.graph.value(x).weight.is_some() || look.graph.value(skip).weight.is_some() {
        return None;
    }
    let is_wanted = !look.is_read_once(sum);
    let outputs = std::iter::once(node.output(0)).chain(is_wanted.then_some(Some(sum)));
    let inputs = [Some(x), Some(skip), node.input(1), node.input(2)];
    let mut joined = Node::new(OARLOCK, "SkipLayerNormalization", 1, inputs, outputs);
    let epsilon = node.attributes.float("epsilon").ok()?.unwrap_or(1e-5);
    joined.attributes.set("epsilon", Attribute::Float(epsilon));
    joined.name = node.name.clone();
    Some(joined)
}
