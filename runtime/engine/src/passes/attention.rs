//! The ops of attention become one.
//!
//! Exporters write softmax(Q·Kᵀ · scale + mask)·V as half a dozen ops around two products. Joined, the scores never leave
//! the cache. First the products become ONNX's `Attention` on heads apart; then, where heads are taken out of rows of a
//! projection and put back, it reads and writes these rows as they are; and where keys and values are the past and the
//! present put together, it takes them apart and hands on what it puts together itself.

use std::collections::HashMap;

use oarlock_core::{Attribute, Dtype, Result};

use super::channels_last::transpose;
use super::common::{Look, pass, replace};
use super::{Pass, Scene};
use crate::graph::{Graph, Node, ValueId};

pub(super) const PASS: Pass = pass(
    "attention",
    "joins the two products of attention with the softmax between them, so that scores stay in the cache",
    run,
);

pub(super) const PAST: Pass = pass(
    "past keys and values",
    "has attention put the keys and values of the past before the new ones itself",
    run_past,
);

pub(super) const ROWS: Pass = pass(
    "heads in rows",
    "has attention read heads where a projection wrote them, without transposes before and after",
    run_rows,
);

/// The opset in which ONNX got the op.
const OPSET: u32 = 23;

/// The places of inputs.
const PAST_KEY: usize = 4;

fn run(graph: &mut Graph, scene: &Scene<'_>) -> Result<usize> {
    let found: Vec<(usize, Scores)> = {
        let look = Look::at(graph, scene);
        let nodes = graph.nodes.iter().enumerate();
        nodes.filter_map(|(at, node)| Some((at, scores(&look, node)?))).collect()
    };
    let mut replacements = HashMap::new();
    for (at, scores) in found {
        let output = graph.nodes[at].output(0);
        let mut nodes = Vec::new();
        let key = match scores.key {
            Key::Turned(key) => key,
            // The transpose that puts the parts of keys before their rows does more; what it does otherwise stays.
            Key::By { from, order } => {
                let Some(key) = scene.add_turned(graph, from, &order) else { continue };
                nodes.push(transpose(from, key, order));
                key
            }
            Key::Plain(key) => {
                let order = [0, 1, 3, 2];
                let Some(turned) = scene.add_turned(graph, key, &order) else { continue };
                nodes.push(transpose(key, turned, order.to_vec()));
                turned
            }
        };
        let inputs = [Some(scores.query), Some(key), Some(scores.value)].into_iter();
        let inputs = inputs.chain(scores.mask.map(Some));
        let mut attention = Node::new("", "Attention", OPSET, inputs, [output]);
        attention.attributes.set("scale", Attribute::Float(scores.scale));
        attention.name = graph.nodes[at].name.clone();
        if scene.takes(graph, &attention) {
            nodes.push(attention);
            replacements.insert(at, nodes);
        }
    }
    Ok(replace(graph, replacements))
}

/// What attention is computed of.
struct Scores {
    query: ValueId,
    key: Key,
    value: ValueId,
    mask: Option<ValueId>,
    scale: f64,
}

/// How the keys get to the product.
enum Key {
    /// Their last two dimensions were exchanged, and this is what they were before.
    Turned(ValueId),
    /// They are this with its dimensions in another order, which puts them rightly together.
    By { from: ValueId, order: Vec<i64> },
    /// Nobody knows: they must be turned back.
    Plain(ValueId),
}

/// What a product of softmax and values is attention of.
fn scores(look: &Look<'_>, product: &Node) -> Option<Scores> {
    let (weights, value) = product.is("MatMul").then(|| product.input(0).zip(product.input(1)))??;
    let softmax = look.made_only_for(weights, "Softmax")?;
    let rank = look.rank(weights)?;
    let axis = softmax.attributes.int("axis").ok()?.unwrap_or(if softmax.opset >= 13 { -1 } else { 1 });
    let is_last = axis == -1 || usize::try_from(axis) == Ok(rank - 1);
    if rank != 4 || !is_last || look.dtype(weights)? != Dtype::F32 {
        return None;
    }
    let mut scaled = softmax.input(0)?;
    let mut mask = None;
    if let Some(add) = look.made_only_for(scaled, "Add") {
        // The scores have the shape of the sum; the mask repeats to it.
        let (own, other) = look
            .either_way(add)
            .into_iter()
            .flatten()
            .find(|(own, _)| product_of(look, *own).is_some() && look.has_same_shape(*own, scaled))?;
        // A mask that is shorter than the keys hides those that are left, where the sum would repeat it.
        let has_all_keys =
            move |graph: &Graph| Some(graph.value(other).dims()?.last() == graph.value(own).dims()?.last());
        if !look.asks(has_all_keys) {
            return None;
        }
        (scaled, mask) = (own, Some(other));
    }
    let (product, scale) = product_of(look, scaled)?;
    let (query, key) = product.input(0).zip(product.input(1))?;
    let have_same_heads = move |graph: &Graph| {
        let heads = |value: ValueId| {
            graph.value(value).dims().filter(|dims| dims.len() == 4).map(|dims| (dims[0], dims[1]))
        };
        Some(heads(query)? == heads(key)? && heads(query)? == heads(value)?)
    };
    if !look.asks(have_same_heads) {
        return None;
    }
    Some(Scores { query, key: key_of(look, key), value, mask, scale })
}

/// The product that a value is, with what it is multiplied by.
fn product_of<'a>(look: &Look<'a>, value: ValueId) -> Option<(&'a Node, f64)> {
    if let Some(product) = look.made_only_for(value, "MatMul") {
        return Some((product, 1.0));
    }
    let node = look.made_only_for(value, "Div").or_else(|| look.made_only_for(value, "Mul"))?;
    let (a, b) = node.input(0).zip(node.input(1))?;
    let (inner, factor) = match (&*node.op, look.scalar(b), look.scalar(a)) {
        ("Div", Some(factor), _) => (a, 1.0 / factor),
        ("Mul", Some(factor), _) => (a, factor),
        ("Mul", None, Some(factor)) => (b, factor),
        _ => return None,
    };
    Some((look.made_only_for(inner, "MatMul")?, factor))
}

fn key_of(look: &Look<'_>, key: ValueId) -> Key {
    let find = || {
        let node = look.made_by(key, "Transpose")?;
        let order = node.attributes.ints("perm").ok()??;
        let from = node.input(0)?;
        Some(match order {
            [0, 1, 3, 2] => Key::Turned(from),
            [a, b, c, d] => Key::By { from, order: vec![*a, *b, *d, *c] },
            _ => return None,
        })
    };
    find().unwrap_or(Key::Plain(key))
}

fn run_past(graph: &mut Graph, scene: &Scene<'_>) -> Result<usize> {
    let found: Vec<(usize, Node, [ValueId; 2])> = {
        let look = Look::at(graph, scene);
        let nodes = graph.nodes.iter().enumerate();
        nodes.filter_map(|(at, node)| with_past(&look, at, node)).collect()
    };
    let mut count = 0;
    for (at, node, present) in found {
        if scene.takes(graph, &node) {
            // Attention makes what the concatenations made.
            let is_made = |other: &Node| {
                other.is("Concat") && present.iter().any(|made| other.output(0) == Some(*made))
            };
            graph.nodes[at] = node;
            graph.nodes.iter_mut().filter(|other| is_made(other)).for_each(|other| other.outputs.clear());
            count += 1;
        }
    }
    graph.nodes.retain(|node| !node.outputs.is_empty());
    Ok(count)
}

/// Attention that puts past and present together itself.
fn with_past(look: &Look<'_>, at: usize, node: &Node) -> Option<(usize, Node, [ValueId; 2])> {
    if !node.is("Attention") || node.inputs.len() > PAST_KEY || node.outputs.len() > 1 {
        return None;
    }
    // How far a query sees depends on how much of the keys is the past.
    if node.attributes.int("is_causal").ok()?.unwrap_or(0) != 0 {
        return None;
    }
    let (key, value) = node.input(1).zip(node.input(2))?;
    let parts = |joined: ValueId| {
        let concat = look.made_by(joined, "Concat").filter(|concat| concat.inputs.len() == 2)?;
        let axis = concat.attributes.int("axis").ok()??;
        (axis == 2 || axis == -2).then(|| concat.input(0).zip(concat.input(1)))?
    };
    let (past_key, new_key) = parts(key)?;
    let (past_value, new_value) = parts(value)?;
    // Whoever else reads what is put together must stand behind attention.
    let is_read_before =
        |made: ValueId| look.graph.nodes[..at].iter().any(|other| other.uses().any(|read| read == made));
    if key == value || is_read_before(key) || is_read_before(value) {
        return None;
    }
    let mut joined = node.clone();
    joined.inputs[1] = Some(new_key);
    joined.inputs[2] = Some(new_value);
    joined.inputs.resize(PAST_KEY, None);
    joined.inputs.extend([Some(past_key), Some(past_value)]);
    joined.outputs.extend([Some(key), Some(value)]);
    Some((at, joined, [key, value]))
}

fn run_rows(graph: &mut Graph, scene: &Scene<'_>) -> Result<usize> {
    let found: Vec<(usize, InRows)> = {
        let look = Look::at(graph, scene);
        let nodes = graph.nodes.iter().enumerate();
        nodes.filter_map(|(at, node)| Some((at, in_rows(&look, at, node)?))).collect()
    };
    let mut replacements = HashMap::new();
    let mut count = 0;
    for (at, InRows { node, replaced }) in found {
        if scene.takes(graph, &node) {
            replacements.insert(at, vec![node]);
            replacements.extend(replaced.map(|at| (at, Vec::new())));
            count += 1;
        }
    }
    replace(graph, replacements);
    Ok(count)
}

/// Attention on rows.
struct InRows {
    node: Node,
    /// The places of what it makes needless: the transpose and the reshape behind it.
    replaced: [usize; 2],
}

/// Attention on rows: its output is put together where its heads were.
fn in_rows(look: &Look<'_>, at: usize, node: &Node) -> Option<InRows> {
    if !node.is("Attention") {
        return None;
    }
    let made = node.output(0)?;
    let rows: Vec<ValueId> = (0..3).map(|index| rows_of(look, node.input(index)?)).collect::<Option<_>>()?;
    // The readers of the output: a transpose that puts heads side by side, and a reshape that joins them.
    let behind = || look.graph.nodes.iter().enumerate().skip(at + 1);
    let (turning, reader) = behind().find(|(_, other)| other.input(0) == Some(made))?;
    let turned = reader.output(0)?;
    let is_back = reader.is("Transpose") && reader.attributes.ints("perm").ok()?? == [0, 2, 1, 3];
    if !is_back || !look.is_read_once(made) || !look.is_read_once(turned) {
        return None;
    }
    let (joining, joined) = behind().find(|(_, other)| other.input(0) == Some(turned))?;
    let output = joined.output(0)?;
    let (heads, key_heads) = (look.size(node.input(0)?, 1)?, look.size(node.input(1)?, 1)?);
    let is_joined = move |graph: &Graph| {
        let dims = graph.value(made).dims().filter(|dims| dims.len() == 4)?;
        let rows = [dims[0], dims[2], dims[1].saturating_mul(dims[3])];
        Some(graph.value(output).dims()?.as_slice() == rows)
    };
    if !joined.is("Reshape") || !look.asks(is_joined) {
        return None;
    }
    let mut own = node.clone();
    for (input, rows) in own.inputs.iter_mut().zip(rows) {
        *input = Some(rows);
    }
    own.outputs[0] = Some(output);
    own.attributes.set("q_num_heads", Attribute::Int(heads));
    own.attributes.set("kv_num_heads", Attribute::Int(key_heads));
    // The node stays at its place: what it reads is made before what it read, and what it makes is read after it.
    Some(InRows { node: own, replaced: [turning, joining] })
}

/// The rows in which heads lie side by side, of which a value has the heads apart.
fn rows_of(look: &Look<'_>, value: ValueId) -> Option<ValueId> {
    let turned = look.made_by(value, "Transpose")?;
    if turned.attributes.ints("perm").ok()?? != [0, 2, 1, 3] {
        return None;
    }
    let parted = look.made_by(turned.input(0)?, "Reshape")?;
    let (rows, heads) = parted.input(0).zip(parted.output(0))?;
    let is_parted = move |graph: &Graph| {
        let (rows, dims) = (graph.value(rows).dims()?, graph.value(heads).dims()?);
        let are_ranks_right = rows.len() == 3 && dims.len() == 4;
        Some(are_ranks_right && rows[..2] == dims[..2] && rows[2] == dims[2].saturating_mul(dims[3]))
    };
    look.asks(is_parted).then_some(rows)
}
