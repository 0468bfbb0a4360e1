//! Grouped-query attention, in which several query heads share a key head, with rotary embeddings; and `RotaryEmbedding`.

use oarlock_core::{Attribute, Attributes, Dtype, Result};

use super::attention::{past_inputs, set_scale};
use super::contrib_op::{ContribOp, unsupported_error};
use super::lowering::{ContribLowering, build_attributes};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;

pub(super) const GROUPED_ATTENTION_OPS: &[ContribOp] = &[
    ContribOp {
        op: "GroupQueryAttention",
        inputs: "query key? value? past_key? past_value? seqlens_k total_sequence_length cos_cache? sin_cache? \
                 position_ids? attention_bias? !head_sink !k_scale !v_scale !q_norm_weight !k_norm_weight",
        attributes: "causal=1 do_rotary k_quant_type=NONE kv_cache_bit_width=0 kv_num_heads local_window_size \
                     num_heads qk_norm_epsilon qk_output=0 rotary_interleaved scale sliding_window_cache=0 \
                     smooth_softmax softcap v_quant_type=NONE",
        outputs: "output present_key present_value !output_qk",
        lower: lower_grouped_attention,
    },
    ContribOp {
        op: "RotaryEmbedding",
        inputs: "input position_ids cos_cache sin_cache",
        attributes: "interleaved is_packed_batching=0 num_heads rotary_embedding_dim scale=1",
        outputs: "output",
        lower: lower_rotary_embedding,
    },
];

fn lower_rotary_embedding(op: &mut ContribLowering<'_>) -> Result<()> {
    let (mut x, mut places) = (op.input(0)?, op.input(1)?);
    let [cos, sin] = [op.input(2)?, op.input(3)?];
    let (heads, is_narrow) = (op.int_attribute("num_heads", 0)?, op.rank(x) != Some(4));
    if op.rank(places) == Some(1) {
        // The position of the first row only; the others follow.
        let axis = if is_narrow { 1 } else { 2 };
        let (texts, rows) = (op.slice_shape(x, 0, Some(1)), op.slice_shape(x, axis, Some(axis + 1)));
        let count = op.add_reshape(rows, &[]);
        let steps = op.add_range(count)?;
        let all = op.add_op("Add", &[steps, places]);
        let dims = op.add_concat(&[texts, rows], 0);
        places = op.add_op("Expand", &[all, dims]);
    }
    // Without a number of heads, their size follows from the angles.
    let is_parted = is_narrow && heads == 0;
    if is_parted {
        let half = op.slice_shape(cos, 1, Some(2));
        let (size, rest) = (op.add_op("Add", &[half, half]), op.add_ints(&[0, 0, -1]));
        x = op.add_reshape_to(x, &[rest, size]);
        x = op.add_transpose(x, &[0, 2, 1, 3]);
    }
    let mut attributes = op.copy_attributes(&["interleaved", "rotary_embedding_dim"]);
    if heads > 0 {
        attributes.set("num_heads", Attribute::Int(heads));
    }
    let mut result = op.add_node("RotaryEmbedding", &[x, cos, sin, places].map(Some), attributes, 1)[0];
    if is_parted {
        result = op.add_transpose(result, &[0, 2, 1, 3]);
        result = op.add_reshape(result, &[0, 0, -1]);
    }
    op.set_output(0, result);
    Ok(())
}

/// Attributes of the op, and what follows from them.
struct GroupedAttention {
    heads: i64,
    shared: i64,
    /// Number of keys before its own that a row sees; `None` means all.
    window: Option<i64>,
    attributes: Attributes,
}

fn lower_grouped_attention(op: &mut ContribLowering<'_>) -> Result<()> {
    let call = GroupedAttention::new(op)?;
    let [mut query, mut key, value] = grouped_rows(op, &call)?;
    let lengths = op.add_cast(op.input(5)?, Dtype::I64);
    let (lengths, one) = (op.add_reshape(lengths, &[-1]), op.add_int_scalar(1)?);
    let lengths = op.add_op("Add", &[lengths, one]);
    let total = op.add_cast(op.input(6)?, Dtype::I64);
    let total = op.add_reshape(total, &[]);
    // Past length of each sequence: 0 if all of its tokens are new.
    let (rows, zero) = (op.dimension_size(query, 1), op.add_int_scalar(0)?);
    let is_first = op.add_op("Equal", &[total, rows]);
    let before = op.add_op("Sub", &[lengths, rows]);
    let before = op.add_op("Where", &[is_first, zero, before]);
    if op.int_attribute("do_rotary", 0)? != 0 {
        let (Some(cos), Some(sin)) = (op.optional_input(7), op.optional_input(8)) else {
            return Err(invalid_model("`cos_cache` and `sin_cache` with `do_rotary`", "none"));
        };
        let places = match op.optional_input(9) {
            Some(places) => places,
            None => {
                let (steps, starts) = (op.add_range(rows)?, op.add_unsqueeze(before, &[1]));
                op.add_op("Add", &[starts, steps])
            }
        };
        let angles = [cos, sin, places];
        query = rotate_rows(op, query, call.heads, angles)?;
        key = rotate_rows(op, key, call.shared, angles)?;
    }
    let bias = op.optional_input(10);
    let result = match past_inputs(op, 3)? {
        None => attend_appended(op, &call, [query, key, value], None, bias)?,
        Some([past_key, past_value]) => {
            let mut captures = vec![query, key, value, past_key, past_value, before, total];
            captures.extend(bias);
            let fits = is_past_full(op, [query, past_key], [rows, total])?;
            let simple = |op: &mut ContribLowering<'_>, of: &[ValueId]| {
                attend_appended(op, &call, [of[0], of[1], of[2]], Some([of[3], of[4]]), of.get(7).copied())
            };
            let placed = |op: &mut ContribLowering<'_>, of: &[ValueId]| attend_scattered(op, &call, of);
            op.add_if(fits, &captures, 3, [("then_branch", &simple), ("else_branch", &placed)])?
        }
    };
    result.iter().enumerate().for_each(|(index, result)| op.set_output(index, *result));
    Ok(())
}

impl GroupedAttention {
    fn new(op: &ContribLowering<'_>) -> Result<Self> {
        if op.int_attribute("smooth_softmax", -1)? > 0 {
            return Err(unsupported_error("no `smooth_softmax`, which is not supported", "one"));
        }
        let (heads, shared) = (op.positive_attribute("num_heads")?, op.positive_attribute("kv_num_heads")?);
        let mut attributes = build_attributes([
            ("q_num_heads", Attribute::Int(heads)),
            ("kv_num_heads", Attribute::Int(shared)),
            ("softcap", Attribute::Float(op.float_attribute("softcap", 0.0)?)),
        ]);
        set_scale(op, &mut attributes)?;
        let size = op.int_attribute("local_window_size", -1)?;
        Ok(Self { heads, shared, window: (size > 0).then_some(size - 1), attributes })
    }
}

/// Query, keys and values, which may all be packed in the query.
fn grouped_rows(op: &mut ContribLowering<'_>, call: &GroupedAttention) -> Result<[ValueId; 3]> {
    let query = op.input(0)?;
    match (op.optional_input(1), op.optional_input(2)) {
        (Some(key), Some(value)) => Ok([query, key, value]),
        (None, None) => {
            let GroupedAttention { heads, shared, .. } = *call;
            let parted = op.add_reshape(query, &[0, 0, shared.saturating_mul(2).saturating_add(heads), -1]);
            let sizes = op.add_ints(&[heads, shared, shared]);
            let attributes = build_attributes([("axis", Attribute::Int(2))]);
            let parts = op.add_node("Split", &[Some(parted), Some(sizes)], attributes, 3);
            Ok([parts[0], parts[1], parts[2]].map(|part| op.add_reshape(part, &[0, 0, -1])))
        }
        _ => Err(invalid_model("`key` with `value`", "one of them")),
    }
}

fn rotate_rows(
    op: &mut ContribLowering<'_>,
    x: ValueId,
    heads: i64,
    [cos, sin, places]: [ValueId; 3],
) -> Result<ValueId> {
    // The angles cover half of the part of each head that is rotated.
    let half = op.known_constant(cos).and_then(|cos| cos.dims().get(1).copied()).unwrap_or(0);
    let attributes = build_attributes([
        ("num_heads", Attribute::Int(heads)),
        ("interleaved", Attribute::Int(op.int_attribute("rotary_interleaved", 0)?)),
        ("rotary_embedding_dim", Attribute::Int(half.saturating_mul(2))),
    ]);
    Ok(op.add_node("RotaryEmbedding", &[x, cos, sin, places].map(Some), attributes, 1)[0])
}

/// True if every sequence fills the past, as a single one does and any number do if it is empty. New keys are then appended.
fn is_past_full(
    op: &mut ContribLowering<'_>,
    [query, past]: [ValueId; 2],
    [rows, total]: [ValueId; 2],
) -> Result<ValueId> {
    let (texts, room) = (op.dimension_size(query, 0), op.dimension_size(past, 2));
    let (one, zero) = (op.add_int_scalar(1)?, op.add_int_scalar(0)?);
    let all = op.add_op("Add", &[room, rows]);
    let is_full = op.add_op("Equal", &[all, total]);
    let (is_one, is_empty) = (op.add_op("Equal", &[texts, one]), op.add_op("Equal", &[room, zero]));
    let is_same = op.add_op("Or", &[is_one, is_empty]);
    Ok(op.add_op("And", &[is_full, is_same]))
}

/// Attention with new keys appended to the past.
fn attend_appended(
    op: &mut ContribLowering<'_>,
    call: &GroupedAttention,
    [query, key, value]: [ValueId; 3],
    past: Option<[ValueId; 2]>,
    bias: Option<ValueId>,
) -> Result<Vec<ValueId>> {
    let mut attributes = call.attributes.clone();
    attributes.set("is_causal", Attribute::Int(1));
    if let Some(window) = call.window {
        attributes.set("left_window_size", Attribute::Int(window));
    }
    let [past_key, past_value] = past.map_or([None; 2], |past| past.map(Some));
    let inputs = [Some(query), Some(key), Some(value), bias, past_key, past_value];
    Ok(op.add_node("Attention", &inputs, attributes, 3))
}

/// Attention with new keys at a different position for each sequence, within the past buffer or behind it.
fn attend_scattered(
    op: &mut ContribLowering<'_>,
    call: &GroupedAttention,
    captures: &[ValueId],
) -> Result<Vec<ValueId>> {
    let &[query, key, value, past_key, past_value, before, total, ref bias @ ..] = captures else {
        return Err(invalid_model("what the branch captures", "less"));
    };
    let (room, rows) = (op.dimension_size(past_key, 2), op.dimension_size(query, 1));
    let (count, all) = (op.add_op("Max", &[room, total]), op.add_op("Add", &[room, rows]));
    let (zero, one) = (op.add_int_scalar(0)?, op.add_int_scalar(1)?);
    // Source index of each present row, within the past followed by the new rows.
    let (places, starts) = (op.add_range(count)?, op.add_unsqueeze(before, &[1]));
    let offset = op.add_op("Sub", &[places, starts]);
    let last = op.add_op("Sub", &[all, one]);
    let (as_before, new) = (op.add_op("Min", &[places, last]), op.add_op("Add", &[offset, room]));
    let (is_behind, is_near) =
        (op.add_op("GreaterOrEqual", &[offset, zero]), op.add_op("Less", &[offset, rows]));
    let is_new = op.add_op("And", &[is_behind, is_near]);
    let from = op.add_op("Where", &[is_new, new, as_before]);
    let from = op.add_unsqueeze(from, &[2]);
    let (none, end) = (op.add_ints(&[0]), op.add_reshape(total, &[1]));
    let mut present = Vec::new();
    let mut seen = Vec::new();
    for (past, fresh) in [(past_key, key), (past_value, value)] {
        let (past, fresh) =
            (op.add_transpose(past, &[0, 2, 1, 3]), op.add_reshape(fresh, &[0, 0, call.shared, -1]));
        let both = op.add_concat(&[past, fresh], 1);
        let now = op.add_op_with("GatherND", &[both, from], [("batch_dims", Attribute::Int(1))]);
        present.push(op.add_transpose(now, &[0, 2, 1, 3]));
        let now = op.add_slice(now, [none, end], 1);
        seen.push(op.add_reshape(now, &[0, 0, -1]));
    }
    let mask = visible_keys(op, call, [rows, total], starts)?;
    let mask = match bias {
        [] => mask,
        [bias, ..] => {
            let (nothing, hidden) =
                (op.add_scalar_like(0.0, *bias)?, op.add_scalar_like(f64::NEG_INFINITY, *bias)?);
            let mask = op.add_op("Where", &[mask, nothing, hidden]);
            op.add_op("Add", &[mask, *bias])
        }
    };
    let inputs = [query, seen[0], seen[1], mask].map(Some);
    let result = op.add_node("Attention", &inputs, call.attributes.clone(), 1)[0];
    Ok(vec![result, present[0], present[1]])
}

/// The keys that rows of each sequence see: up to their own position, and within the window.
fn visible_keys(
    op: &mut ContribLowering<'_>,
    call: &GroupedAttention,
    [rows, total]: [ValueId; 2],
    starts: ValueId,
) -> Result<ValueId> {
    let (keys, steps) = (op.add_range(total)?, op.add_range(rows)?);
    let own = op.add_op("Add", &[starts, steps]);
    let own = op.add_unsqueeze(own, &[1, 3]);
    let mut is_seen = op.add_op("LessOrEqual", &[keys, own]);
    if let Some(window) = call.window {
        let window = op.add_int_scalar(window)?;
        let first = op.add_op("Sub", &[own, window]);
        let is_near = op.add_op("GreaterOrEqual", &[keys, first]);
        is_seen = op.add_op("And", &[is_seen, is_near]);
    }
    Ok(is_seen)
}
