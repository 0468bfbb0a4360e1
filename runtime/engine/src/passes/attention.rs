//! The ops of attention become one.
//!
//! Exporters write softmax(Q·Kᵀ · scale + mask)·V as half a dozen ops around two products. Joined, the scores never leave
//! the cache. First the products become ONNX's `Attention` on heads apart; then, where heads are taken out of rows of a
//! projection and put back, it reads and writes these rows as they are; and where keys and values are the past and the
//! present put together, it takes them apart and hands on what it puts together itself.

use std::collections::HashMap;

use oarlock_core::{Attribute, Dtype, Result};

use super::channels_last::transpose_node;
use super::graph_view::{GraphView, define_pass, replace_nodes};
use super::{GraphPass, PassContext};
use crate::graph::{Graph, Node, ValueId};

pub(super) const FUSE_ATTENTION: GraphPass = define_pass(
    "attention",
    "joins the two products of attention with the softmax between them, so that scores stay in the cache",
    fuse_attention,
);

pub(super) const FUSE_ATTENTION_PAST: GraphPass = define_pass(
    "past keys and values",
    "has attention put the keys and values of the past before the new ones itself",
    fuse_attention_past,
);

pub(super) const FUSE_ROW_ATTENTION: GraphPass = define_pass(
    "heads in rows",
    "has attention read heads where a projection wrote them, without transposes before and after",
    fuse_row_attention,
);

/// The opset in which ONNX got the op.
const ATTENTION_OPSET: u32 = 23;

/// The places of inputs.
const PAST_KEY_INPUT: usize = 4;

fn fuse_attention(graph: &mut Graph, scene: &PassContext<'_>) -> Result<usize> {
    let found: Vec<(usize, AttentionMatch)> = {
        let look = GraphView::of_graph(graph, scene);
        let nodes = graph.nodes.iter().enumerate();
        nodes.filter_map(|(at, node)| Some((at, match_attention(&look, node)?))).collect()
    };
    let mut replacements = HashMap::new();
    for (at, scores) in found {
        let output = graph.nodes[at].output(0);
        let mut nodes = Vec::new();
        let key = match scores.key {
            AttentionKey::Turned(key) => key,
            // The transpose that puts the parts of keys before their rows does more; what it does otherwise stays.
            AttentionKey::By { from, order } => {
                let Some(key) = scene.add_transposed_value(graph, from, &order) else { continue };
                nodes.push(transpose_node(from, key, order));
                key
            }
            AttentionKey::Plain(key) => {
                let order = [0, 1, 3, 2];
                let Some(turned) = scene.add_transposed_value(graph, key, &order) else { continue };
                nodes.push(transpose_node(key, turned, order.to_vec()));
                turned
            }
        };
        let inputs = [Some(scores.query), Some(key), Some(scores.value)].into_iter();
        let inputs = inputs.chain(scores.mask.map(Some));
        let mut attention = Node::new("", "Attention", ATTENTION_OPSET, inputs, [output]);
        attention.attributes.set("scale", Attribute::Float(scores.scale));
        attention.name = graph.nodes[at].name.clone();
        if scene.supports_node(graph, &attention) {
            nodes.push(attention);
            replacements.insert(at, nodes);
        }
    }
    Ok(replace_nodes(graph, replacements))
}

/// What attention is computed of.
struct AttentionMatch {
    query: ValueId,
    key: AttentionKey,
    value: ValueId,
    mask: Option<ValueId>,
    scale: f64,
}

/// How the keys get to the product.
enum AttentionKey {
    /// Their last two dimensions were exchanged, and this is what they were before.
    Turned(ValueId),
    /// They are this with its dimensions in another order, which puts them rightly together.
    By { from: ValueId, order: Vec<i64> },
    /// Nobody knows: they must be turned back.
    Plain(ValueId),
}

/// What a product of softmax and values is attention of.
fn match_attention(look: &GraphView<'_>, product: &Node) -> Option<AttentionMatch> {
    let (weights, value) = product.is_op("MatMul").then(|| product.input(0).zip(product.input(1)))??;
    let softmax = look.fusable_producer(weights, "Softmax")?;
    let rank = look.rank(weights)?;
    let axis = softmax.attributes.get_int("axis").ok()?.unwrap_or(if softmax.opset >= 13 { -1 } else { 1 });
    let is_last = axis == -1 || usize::try_from(axis) == Ok(rank - 1);
    if rank != 4 || !is_last || look.dtype(weights)? != Dtype::F32 {
        return None;
    }
    let mut scaled = softmax.input(0)?;
    let mut mask = None;
    if let Some(add) = look.fusable_producer(scaled, "Add") {
        // The scores have the shape of the sum; the mask repeats to it.
        let (own, other) = look.operand_orders(add).into_iter().flatten().find(|(own, _)| {
            match_scaled_product(look, *own).is_some() && look.has_same_shape(*own, scaled)
        })?;
        // A mask that is shorter than the keys hides those that are left, where the sum would repeat it.
        let has_all_keys =
            move |graph: &Graph| Some(graph.value(other).dims()?.last() == graph.value(own).dims()?.last());
        if !look.check_shapes(has_all_keys) {
            return None;
        }
        (scaled, mask) = (own, Some(other));
    }
    let (product, scale) = match_scaled_product(look, scaled)?;
    let (query, key) = product.input(0).zip(product.input(1))?;
    let have_same_heads = move |graph: &Graph| {
        let heads = |value: ValueId| {
            graph.value(value).dims().filter(|dims| dims.len() == 4).map(|dims| (dims[0], dims[1]))
        };
        Some(heads(query)? == heads(key)? && heads(query)? == heads(value)?)
    };
    if !look.check_shapes(have_same_heads) {
        return None;
    }
    Some(AttentionMatch { query, key: classify_key(look, key), value, mask, scale })
}

/// The product that a value is, with what it is multiplied by.
fn match_scaled_product<'a>(look: &GraphView<'a>, value: ValueId) -> Option<(&'a Node, f64)> {
    if let Some(product) = look.fusable_producer(value, "MatMul") {
        return Some((product, 1.0));
    }
    let node = look.fusable_producer(value, "Div").or_else(|| look.fusable_producer(value, "Mul"))?;
    let (a, b) = node.input(0).zip(node.input(1))?;
    let (inner, factor) = match (&*node.op, look.scalar_constant(b), look.scalar_constant(a)) {
        ("Div", Some(factor), _) => (a, 1.0 / factor),
        ("Mul", Some(factor), _) => (a, factor),
        ("Mul", None, Some(factor)) => (b, factor),
        _ => return None,
    };
    Some((look.fusable_producer(inner, "MatMul")?, factor))
}

fn classify_key(look: &GraphView<'_>, key: ValueId) -> AttentionKey {
    let find = || {
        let node = look.producer_with_op(key, "Transpose")?;
        let order = node.attributes.get_ints("perm").ok()??;
        let from = node.input(0)?;
        Some(match order {
            [0, 1, 3, 2] => AttentionKey::Turned(from),
            [a, b, c, d] => AttentionKey::By { from, order: vec![*a, *b, *d, *c] },
            _ => return None,
        })
    };
    find().unwrap_or(AttentionKey::Plain(key))
}

fn fuse_attention_past(graph: &mut Graph, scene: &PassContext<'_>) -> Result<usize> {
    let found: Vec<(usize, Node, [ValueId; 2])> = {
        let look = GraphView::of_graph(graph, scene);
        let nodes = graph.nodes.iter().enumerate();
        nodes.filter_map(|(at, node)| match_past(&look, at, node)).collect()
    };
    let mut count = 0;
    for (at, node, present) in found {
        if scene.supports_node(graph, &node) {
            // Attention makes what the concatenations made.
            let is_made = |other: &Node| {
                other.is_op("Concat") && present.iter().any(|made| other.output(0) == Some(*made))
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
fn match_past(look: &GraphView<'_>, at: usize, node: &Node) -> Option<(usize, Node, [ValueId; 2])> {
    if !node.is_op("Attention") || node.inputs.len() > PAST_KEY_INPUT || node.outputs.len() > 1 {
        return None;
    }
    // How far a query sees depends on how much of the keys is the past.
    if node.attributes.get_int("is_causal").ok()?.unwrap_or(0) != 0 {
        return None;
    }
    let (key, value) = node.input(1).zip(node.input(2))?;
    let parts = |joined: ValueId| {
        let concat = look.producer_with_op(joined, "Concat").filter(|concat| concat.inputs.len() == 2)?;
        let axis = concat.attributes.get_int("axis").ok()??;
        (axis == 2 || axis == -2).then(|| concat.input(0).zip(concat.input(1)))?
    };
    let (past_key, new_key) = parts(key)?;
    let (past_value, new_value) = parts(value)?;
    // Whoever else reads what is put together must stand behind attention.
    let is_read_before = |made: ValueId| {
        look.graph.nodes[..at].iter().any(|other| other.read_values().any(|read| read == made))
    };
    if key == value || is_read_before(key) || is_read_before(value) {
        return None;
    }
    let mut joined = node.clone();
    joined.inputs[1] = Some(new_key);
    joined.inputs[2] = Some(new_value);
    joined.inputs.resize(PAST_KEY_INPUT, None);
    joined.inputs.extend([Some(past_key), Some(past_value)]);
    joined.outputs.extend([Some(key), Some(value)]);
    Some((at, joined, [key, value]))
}

fn fuse_row_attention(graph: &mut Graph, scene: &PassContext<'_>) -> Result<usize> {
    let found: Vec<(usize, RowAttention)> = {
        let look = GraphView::of_graph(graph, scene);
        let nodes = graph.nodes.iter().enumerate();
        nodes.filter_map(|(at, node)| Some((at, match_row_attention(&look, at, node)?))).collect()
    };
    let mut replacements = HashMap::new();
    let mut count = 0;
    for (at, RowAttention { node, replaced }) in found {
        if scene.supports_node(graph, &node) {
            replacements.insert(at, vec![node]);
            replacements.extend(replaced.map(|at| (at, Vec::new())));
            count += 1;
        }
    }
    replace_nodes(graph, replacements);
    Ok(count)
}

/// Attention on rows.
struct RowAttention {
    node: Node,
    /// The places of what it makes needless: the transpose and the reshape behind it.
    replaced: [usize; 2],
}

/// Attention on rows: its output is put together where its heads were.
fn match_row_attention(look: &GraphView<'_>, at: usize, node: &Node) -> Option<RowAttention> {
    if !node.is_op("Attention") {
        return None;
    }
    let made = node.output(0)?;
    let rows: Vec<ValueId> =
        (0..3).map(|index| match_split_heads(look, node.input(index)?)).collect::<Option<_>>()?;
    // The readers of the output: a transpose that puts heads side by side, and a reshape that joins them.
    let behind = || look.graph.nodes.iter().enumerate().skip(at + 1);
    let (turning, reader) = behind().find(|(_, other)| other.input(0) == Some(made))?;
    let turned = reader.output(0)?;
    let is_back = reader.is_op("Transpose") && reader.attributes.get_ints("perm").ok()?? == [0, 2, 1, 3];
    if !is_back || !look.is_read_once(made) || !look.is_read_once(turned) {
        return None;
    }
    let (joining, joined) = behind().find(|(_, other)| other.input(0) == Some(turned))?;
    let output = joined.output(0)?;
    let (heads, key_heads) =
        (look.dimension_size(node.input(0)?, 1)?, look.dimension_size(node.input(1)?, 1)?);
    let is_joined = move |graph: &Graph| {
        let dims = graph.value(made).dims().filter(|dims| dims.len() == 4)?;
        let rows = [dims[0], dims[2], dims[1].saturating_mul(dims[3])];
        Some(graph.value(output).dims()?.as_slice() == rows)
    };
    if !joined.is_op("Reshape") || !look.check_shapes(is_joined) {
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
    Some(RowAttention { node: own, replaced: [turning, joining] })
}

/// The rows in which heads lie side by side, of which a value has the heads apart.
fn match_split_heads(look: &GraphView<'_>, value: ValueId) -> Option<ValueId> {
    let turned = look.producer_with_op(value, "Transpose")?;
    if turned.attributes.get_ints("perm").ok()?? != [0, 2, 1, 3] {
        return None;
    }
    let parted = look.producer_with_op(turned.input(0)?, "Reshape")?;
    let (rows, heads) = parted.input(0).zip(parted.output(0))?;
    let is_parted = move |graph: &Graph| {
        let (rows, dims) = (graph.value(rows).dims()?, graph.value(heads).dims()?);
        let are_ranks_right = rows.len() == 3 && dims.len() == 4;
        Some(are_ranks_right && rows[..2] == dims[..2] && rows[2] == dims[2].saturating_mul(dims[3]))
    };
    look.check_shapes(is_parted).then_some(rows)
}
