//! Fuses the ops of attention into one.
//!
//! Exporters write softmax(Q·Kᵀ · scale + mask)·V as half a dozen ops around two products. Fused, the scores never leave the
//! cache. There are three passes. One turns the products into ONNX's `Attention` on separate heads. Another handles heads
//! that are split from rows of a projection and merged again: attention then reads and writes the rows as they are. One more
//! handles keys and values that concatenate past and present: attention then takes both apart and outputs the concatenation.

use std::collections::HashMap;

use oarlock_core::{Attribute, Dtype, Result};

use super::channels_last::transpose_node;
use super::graph_view::{GraphView, define_pass, replace_nodes};
use super::{GraphPass, PassContext};
use crate::graph::{Graph, Node, ValueId};

pub(super) const FUSE_ATTENTION: GraphPass = define_pass(
    "attention fusion",
    "fuses the two products of attention with the softmax between them, so that scores stay in the \
     cache",
    fuse_attention,
);

pub(super) const FUSE_ATTENTION_PAST: GraphPass = define_pass(
    "KV-cache fusion",
    "has attention append the new keys and values to those of the past itself",
    fuse_attention_past,
);

pub(super) const FUSE_ROW_ATTENTION: GraphPass = define_pass(
    "attention transpose elimination",
    "has attention read heads where the projection wrote them, without transposes before and after",
    fuse_row_attention,
);

/// The opset that added `Attention` to ONNX.
const ATTENTION_OPSET: u32 = 23;

/// Position of the past key among the inputs of `Attention`.
const PAST_KEY_INPUT: usize = 4;

fn fuse_attention(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    let found: Vec<(usize, AttentionMatch)> = {
        let view = GraphView::of_graph(graph, context);
        let nodes = graph.nodes.iter().enumerate();
        nodes.filter_map(|(at, node)| Some((at, match_attention(&view, node)?))).collect()
    };
    let mut replacements = HashMap::new();
    for (at, scores) in found {
        let output = graph.nodes[at].output(0);
        let mut nodes = Vec::new();
        let key = match scores.key {
            AttentionKey::Turned(key) => key,
            // This transpose also splits the heads. Only the exchange of the last two dimensions is fused, so the rest stays.
            AttentionKey::By { from, order } => {
                let Some(key) = context.add_transposed_value(graph, from, &order) else { continue };
                nodes.push(transpose_node(from, key, order));
                key
            }
            AttentionKey::Plain(key) => {
                let order = [0, 1, 3, 2];
                let Some(transposed) = context.add_transposed_value(graph, key, &order) else { continue };
                nodes.push(transpose_node(key, transposed, order.to_vec()));
                transposed
            }
        };
        let inputs = [Some(scores.query), Some(key), Some(scores.value)].into_iter();
        let inputs = inputs.chain(scores.mask.map(Some));
        let mut attention = Node::new("", "Attention", ATTENTION_OPSET, inputs, [output]);
        attention.attributes.set("scale", Attribute::Float(scores.scale));
        attention.name = graph.nodes[at].name.clone();
        if context.supports_node(graph, &attention) {
            nodes.push(attention);
            replacements.insert(at, nodes);
        }
    }
    Ok(replace_nodes(graph, replacements))
}

/// Operands of a matched attention.
struct AttentionMatch {
    query: ValueId,
    key: AttentionKey,
    value: ValueId,
    mask: Option<ValueId>,
    scale: f64,
}

/// The form in which the key operand reaches the product.
enum AttentionKey {
    /// Its last two dimensions were exchanged; this is the value before that.
    Turned(ValueId),
    /// It is this value transposed by `order`, which also produces the layout that attention expects.
    By { from: ValueId, order: Vec<i64> },
    /// Unknown origin: it has to be transposed back.
    Plain(ValueId),
}

/// Matches a product of softmax and values.
fn match_attention(view: &GraphView<'_>, product: &Node) -> Option<AttentionMatch> {
    let (weights, value) = product.is_op("MatMul").then(|| product.input(0).zip(product.input(1)))??;
    let softmax = view.fusable_producer(weights, "Softmax")?;
    let rank = view.rank(weights)?;
    let axis = softmax.attributes.get_int("axis").ok()?.unwrap_or(if softmax.opset >= 13 { -1 } else { 1 });
    let is_last = axis == -1 || usize::try_from(axis) == Ok(rank - 1);
    if rank != 4 || !is_last || view.dtype(weights)? != Dtype::F32 {
        return None;
    }
    let mut scaled = softmax.input(0)?;
    let mut mask = None;
    if let Some(add) = view.fusable_producer(scaled, "Add") {
        // The scores have the shape of the sum, and the mask broadcasts to it.
        let (own, other) = view.operand_orders(add).into_iter().flatten().find(|(own, _)| {
            match_scaled_product(view, *own).is_some() && view.has_same_shape(*own, scaled)
        })?;
        // `Attention` masks out keys beyond a shorter mask, whereas `Add` would broadcast it.
        let has_all_keys =
            move |graph: &Graph| Some(graph.value(other).dims()?.last() == graph.value(own).dims()?.last());
        if !view.check_shapes(has_all_keys) {
            return None;
        }
        (scaled, mask) = (own, Some(other));
    }
    let (product, scale) = match_scaled_product(view, scaled)?;
    let (query, key) = product.input(0).zip(product.input(1))?;
    let have_same_heads = move |graph: &Graph| {
        let heads = |value: ValueId| {
            graph.value(value).dims().filter(|dims| dims.len() == 4).map(|dims| (dims[0], dims[1]))
        };
        Some(heads(query)? == heads(key)? && heads(query)? == heads(value)?)
    };
    if !view.check_shapes(have_same_heads) {
        return None;
    }
    Some(AttentionMatch { query, key: classify_key(view, key), value, mask, scale })
}

/// Matches a product, optionally scaled; returns the scale.
fn match_scaled_product<'a>(view: &GraphView<'a>, value: ValueId) -> Option<(&'a Node, f64)> {
    if let Some(product) = view.fusable_producer(value, "MatMul") {
        return Some((product, 1.0));
    }
    let node = view.fusable_producer(value, "Div").or_else(|| view.fusable_producer(value, "Mul"))?;
    let (a, b) = node.input(0).zip(node.input(1))?;
    let (inner, factor) = match (&*node.op, view.scalar_constant(b), view.scalar_constant(a)) {
        ("Div", Some(factor), _) => (a, 1.0 / factor),
        ("Mul", Some(factor), _) => (a, factor),
        ("Mul", None, Some(factor)) => (b, factor),
        _ => return None,
    };
    Some((view.fusable_producer(inner, "MatMul")?, factor))
}

fn classify_key(view: &GraphView<'_>, key: ValueId) -> AttentionKey {
    let find = || {
        let node = view.producer_with_op(key, "Transpose")?;
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

fn fuse_attention_past(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    let found: Vec<(usize, Node, [ValueId; 2])> = {
        let view = GraphView::of_graph(graph, context);
        let nodes = graph.nodes.iter().enumerate();
        nodes.filter_map(|(at, node)| match_past(&view, at, node)).collect()
    };
    let mut count = 0;
    for (at, node, present) in found {
        if context.supports_node(graph, &node) {
            // Attention writes the concatenated values itself now.
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

/// Matches attention whose keys and values are concatenated from past and present.
fn match_past(view: &GraphView<'_>, at: usize, node: &Node) -> Option<(usize, Node, [ValueId; 2])> {
    if !node.is_op("Attention") || node.inputs.len() > PAST_KEY_INPUT || node.outputs.len() > 1 {
        return None;
    }
    // With a causal mask, what a query sees depends on how many of the keys are past.
    if node.attributes.get_int("is_causal").ok()?.unwrap_or(0) != 0 {
        return None;
    }
    let (key, value) = node.input(1).zip(node.input(2))?;
    let parts = |joined: ValueId| {
        let concat = view.producer_with_op(joined, "Concat").filter(|concat| concat.inputs.len() == 2)?;
        let axis = concat.attributes.get_int("axis").ok()??;
        (axis == 2 || axis == -2).then(|| concat.input(0).zip(concat.input(1)))?
    };
    let (past_key, new_key) = parts(key)?;
    let (past_value, new_value) = parts(value)?;
    // The concatenations are now outputs of attention, so all their readers must come after it.
    let is_read_before = |made: ValueId| {
        view.graph.nodes[..at].iter().any(|other| other.read_values().any(|read| read == made))
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

fn fuse_row_attention(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    let found: Vec<(usize, RowAttention)> = {
        let view = GraphView::of_graph(graph, context);
        let nodes = graph.nodes.iter().enumerate();
        nodes.filter_map(|(at, node)| Some((at, match_row_attention(&view, at, node)?))).collect()
    };
    let mut replacements = HashMap::new();
    let mut count = 0;
    for (at, RowAttention { node, replaced }) in found {
        if context.supports_node(graph, &node) {
            replacements.insert(at, vec![node]);
            replacements.extend(replaced.map(|at| (at, Vec::new())));
            count += 1;
        }
    }
    replace_nodes(graph, replacements);
    Ok(count)
}

/// A match of attention on rows.
struct RowAttention {
    node: Node,
    /// Indices of the nodes that become unnecessary: the transpose and the reshape behind attention.
    replaced: [usize; 2],
}

/// Matches attention on separate heads whose output is merged into rows again.
fn match_row_attention(view: &GraphView<'_>, at: usize, node: &Node) -> Option<RowAttention> {
    if !node.is_op("Attention") {
        return None;
    }
    let made = node.output(0)?;
    let rows: Vec<ValueId> =
        (0..3).map(|index| match_split_heads(view, node.input(index)?)).collect::<Option<_>>()?;
    // Two nodes follow: a transpose that puts the heads side by side, and a reshape that merges them.
    let behind = || view.graph.nodes.iter().enumerate().skip(at + 1);
    let (turning, reader) = behind().find(|(_, other)| other.input(0) == Some(made))?;
    let transposed = reader.output(0)?;
    let is_back = reader.is_op("Transpose") && reader.attributes.get_ints("perm").ok()?? == [0, 2, 1, 3];
    if !is_back || !view.is_read_once(made) || !view.is_read_once(transposed) {
        return None;
    }
    let (joining, joined) = behind().find(|(_, other)| other.input(0) == Some(transposed))?;
    let output = joined.output(0)?;
    let (heads, key_heads) =
        (view.dimension_size(node.input(0)?, 1)?, view.dimension_size(node.input(1)?, 1)?);
    let is_joined = move |graph: &Graph| {
        let dims = graph.value(made).dims().filter(|dims| dims.len() == 4)?;
        let rows = [dims[0], dims[2], dims[1].saturating_mul(dims[3])];
        Some(graph.value(output).dims()?.as_slice() == rows)
    };
    if !joined.is_op("Reshape") || !view.check_shapes(is_joined) {
        return None;
    }
    let mut own = node.clone();
    for (input, rows) in own.inputs.iter_mut().zip(rows) {
        *input = Some(rows);
    }
    own.outputs[0] = Some(output);
    own.attributes.set("q_num_heads", Attribute::Int(heads));
    own.attributes.set("kv_num_heads", Attribute::Int(key_heads));
    // The node can keep its position: its new inputs are made before the old ones, and all readers of its new output come
    // later.
    Some(RowAttention { node: own, replaced: [turning, joining] })
}

/// Returns the rows from which a reshape and a transpose split the heads.
fn match_split_heads(view: &GraphView<'_>, value: ValueId) -> Option<ValueId> {
    let transposed = view.producer_with_op(value, "Transpose")?;
    if transposed.attributes.get_ints("perm").ok()?? != [0, 2, 1, 3] {
        return None;
    }
    let parted = view.producer_with_op(transposed.input(0)?, "Reshape")?;
    let (rows, heads) = parted.input(0).zip(parted.output(0))?;
    let is_parted = move |graph: &Graph| {
        let (rows, dims) = (graph.value(rows).dims()?, graph.value(heads).dims()?);
        let are_ranks_right = rows.len() == 3 && dims.len() == 4;
        Some(are_ranks_right && rows[..2] == dims[..2] && rows[2] == dims[2].saturating_mul(dims[3]))
    };
    view.check_shapes(is_parted).then_some(rows)
}
