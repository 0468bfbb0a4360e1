//! Attention in which several heads of the query share one of the keys, with places that are turned into them, and `RotaryEmbedding`.

use oarlock_core::{Attribute, Attributes, Dtype, Result};

use super::attention::{past, set_scale};
use super::lowering::{Lowering, named};
use super::row::{Row, unsupported};
use crate::graph::ValueId;
use crate::import::place::wrong;

pub(super) const OPS: &[Row] = &[
    Row {
        op: "GroupQueryAttention",
        inputs: "query key? value? past_key? past_value? seqlens_k total_sequence_length cos_cache? sin_cache? \
                 position_ids? attention_bias? !head_sink !k_scale !v_scale !q_norm_weight !k_norm_weight",
        attributes: "causal=1 do_rotary k_quant_type=NONE kv_cache_bit_width=0 kv_num_heads local_window_size \
                     num_heads qk_norm_epsilon qk_output=0 rotary_interleaved scale sliding_window_cache=0 \
                     smooth_softmax softcap v_quant_type=NONE",
        outputs: "output present_key present_value !output_qk",
        lower: grouped,
    },
    Row {
        op: "RotaryEmbedding",
        inputs: "input position_ids cos_cache sin_cache",
        attributes: "interleaved is_packed_batching=0 num_heads rotary_embedding_dim scale=1",
        outputs: "output",
        lower: rotary,
    },
];

fn rotary(op: &mut Lowering<'_>) -> Result<()> {
    let (mut x, mut places) = (op.input(0)?, op.input(1)?);
    let [cos, sin] = [op.input(2)?, op.input(3)?];
    let (heads, is_narrow) = (op.int("num_heads", 0)?, op.rank(x) != Some(4));
    if op.rank(places) == Some(1) {
        // The place of the first row; the others follow.
        let axis = if is_narrow { 1 } else { 2 };
        let (texts, rows) = (op.sizes(x, 0, Some(1)), op.sizes(x, axis, Some(axis + 1)));
        let count = op.reshape(rows, &[]);
        let steps = op.range(count)?;
        let all = op.apply("Add", &[steps, places]);
        let dims = op.join(&[texts, rows], 0);
        places = op.apply("Expand", &[all, dims]);
    }
    // Without a number of heads their size follows from the angles.
    let is_parted = is_narrow && heads == 0;
    if is_parted {
        let half = op.sizes(cos, 1, Some(2));
        let (size, rest) = (op.apply("Add", &[half, half]), op.ints(&[0, 0, -1]));
        x = op.reshape_to(x, &[rest, size]);
        x = op.transpose(x, &[0, 2, 1, 3]);
    }
    let mut attributes = op.copied(&["interleaved", "rotary_embedding_dim"]);
    if heads > 0 {
        attributes.set("num_heads", Attribute::Int(heads));
    }
    let mut made = op.of("RotaryEmbedding", &[x, cos, sin, places].map(Some), attributes, 1)[0];
    if is_parted {
        made = op.transpose(made, &[0, 2, 1, 3]);
        made = op.reshape(made, &[0, 0, -1]);
    }
    op.give(0, made);
    Ok(())
}

/// What the op is told, and what follows from it.
struct Call {
    heads: i64,
    shared: i64,
    /// How many keys before its own a row sees, or all.
    window: Option<i64>,
    attributes: Attributes,
}

fn grouped(op: &mut Lowering<'_>) -> Result<()> {
    let call = Call::new(op)?;
    let [mut query, mut key, value] = rows(op, &call)?;
    let lengths = op.cast(op.input(5)?, Dtype::I64);
    let (lengths, one) = (op.reshape(lengths, &[-1]), op.whole(1)?);
    let lengths = op.apply("Add", &[lengths, one]);
    let total = op.cast(op.input(6)?, Dtype::I64);
    let total = op.reshape(total, &[]);
    // What a text has of the past: nothing, where all that there is comes now.
    let (rows, zero) = (op.size(query, 1), op.whole(0)?);
    let is_first = op.apply("Equal", &[total, rows]);
    let before = op.apply("Sub", &[lengths, rows]);
    let before = op.apply("Where", &[is_first, zero, before]);
    if op.int("do_rotary", 0)? != 0 {
        let (Some(cos), Some(sin)) = (op.maybe(7), op.maybe(8)) else {
            return Err(wrong("`cos_cache` and `sin_cache` with `do_rotary`", "none"));
        };
        let places = match op.maybe(9) {
            Some(places) => places,
            None => {
                let (steps, starts) = (op.range(rows)?, op.unsqueeze(before, &[1]));
                op.apply("Add", &[starts, steps])
            }
        };
        let angles = [cos, sin, places];
        query = turned(op, query, call.heads, angles)?;
        key = turned(op, key, call.shared, angles)?;
    }
    let bias = op.maybe(10);
    let made = match past(op, 3)? {
        None => together(op, &call, [query, key, value], None, bias)?,
        Some([past_key, past_value]) => {
            let mut captures = vec![query, key, value, past_key, past_value, before, total];
            captures.extend(bias);
            let fits = fits(op, [query, past_key], [rows, total])?;
            let simple = |op: &mut Lowering<'_>, of: &[ValueId]| {
                together(op, &call, [of[0], of[1], of[2]], Some([of[3], of[4]]), of.get(7).copied())
            };
            let placed = |op: &mut Lowering<'_>, of: &[ValueId]| put_in_place(op, &call, of);
            op.choose(fits, &captures, 3, [("then_branch", &simple), ("else_branch", &placed)])?
        }
    };
    made.iter().enumerate().for_each(|(index, made)| op.give(index, *made));
    Ok(())
}

impl Call {
    fn new(op: &Lowering<'_>) -> Result<Self> {
        if op.int("smooth_softmax", -1)? > 0 {
            return Err(unsupported("no `smooth_softmax`, which is not supported", "one"));
        }
        let (heads, shared) = (op.count("num_heads")?, op.count("kv_num_heads")?);
        let mut attributes = named([
            ("q_num_heads", Attribute::Int(heads)),
            ("kv_num_heads", Attribute::Int(shared)),
            ("softcap", Attribute::Float(op.float("softcap", 0.0)?)),
        ]);
        set_scale(op, &mut attributes)?;
        let size = op.int("local_window_size", -1)?;
        Ok(Self { heads, shared, window: (size > 0).then_some(size - 1), attributes })
    }
}

/// The rows of the query, the keys and the values, which may lie side by side in the first.
fn rows(op: &mut Lowering<'_>, call: &Call) -> Result<[ValueId; 3]> {
    let query = op.input(0)?;
    match (op.maybe(1), op.maybe(2)) {
        (Some(key), Some(value)) => Ok([query, key, value]),
        (None, None) => {
            let Call { heads, shared, .. } = *call;
            let parted = op.reshape(query, &[0, 0, shared.saturating_mul(2).saturating_add(heads), -1]);
            let sizes = op.ints(&[heads, shared, shared]);
            let attributes = named([("axis", Attribute::Int(2))]);
            let parts = op.of("Split", &[Some(parted), Some(sizes)], attributes, 3);
            Ok([parts[0], parts[1], parts[2]].map(|part| op.reshape(part, &[0, 0, -1])))
        }
        _ => Err(wrong("`key` with `value`", "one of them")),
    }
}

fn turned(
    op: &mut Lowering<'_>,
    x: ValueId,
    heads: i64,
    [cos, sin, places]: [ValueId; 3],
) -> Result<ValueId> {
    // There are angles for half of what is turned of each head.
    let half = op.known(cos).and_then(|cos| cos.dims().get(1).copied()).unwrap_or(0);
    let attributes = named([
        ("num_heads", Attribute::Int(heads)),
        ("interleaved", Attribute::Int(op.int("rotary_interleaved", 0)?)),
        ("rotary_embedding_dim", Attribute::Int(half.saturating_mul(2))),
    ]);
    Ok(op.of("RotaryEmbedding", &[x, cos, sin, places].map(Some), attributes, 1)[0])
}

/// Whether the keys of the past are as many as there are, for each text, so that new ones come behind them.
fn fits(op: &mut Lowering<'_>, [query, past]: [ValueId; 2], [rows, total]: [ValueId; 2]) -> Result<ValueId> {
    let (texts, room) = (op.size(query, 0), op.size(past, 2));
    let (one, zero) = (op.whole(1)?, op.whole(0)?);
    let all = op.apply("Add", &[room, rows]);
    let is_full = op.apply("Equal", &[all, total]);
    let (is_one, is_empty) = (op.apply("Equal", &[texts, one]), op.apply("Equal", &[room, zero]));
    let is_same = op.apply("Or", &[is_one, is_empty]);
    Ok(op.apply("And", &[is_full, is_same]))
}

/// Attention of new keys behind those of the past.
fn together(
    op: &mut Lowering<'_>,
    call: &Call,
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
    Ok(op.of("Attention", &inputs, attributes, 3))
}

/// Attention of new keys that each text has at another place, in or behind the room of the past.
fn put_in_place(op: &mut Lowering<'_>, call: &Call, captures: &[ValueId]) -> Result<Vec<ValueId>> {
    let &[query, key, value, past_key, past_value, before, total, ref bias @ ..] = captures else {
        return Err(wrong("what the branch captures", "less"));
    };
    let (room, rows) = (op.size(past_key, 2), op.size(query, 1));
    let (count, all) = (op.apply("Max", &[room, total]), op.apply("Add", &[room, rows]));
    let (zero, one) = (op.whole(0)?, op.whole(1)?);
    // Where each row of the present comes from, of those of the past with the new ones behind them.
    let (places, starts) = (op.range(count)?, op.unsqueeze(before, &[1]));
    let offset = op.apply("Sub", &[places, starts]);
    let last = op.apply("Sub", &[all, one]);
    let (as_before, new) = (op.apply("Min", &[places, last]), op.apply("Add", &[offset, room]));
    let (is_behind, is_near) =
        (op.apply("GreaterOrEqual", &[offset, zero]), op.apply("Less", &[offset, rows]));
    let is_new = op.apply("And", &[is_behind, is_near]);
    let from = op.apply("Where", &[is_new, new, as_before]);
    let from = op.unsqueeze(from, &[2]);
    let (none, end) = (op.ints(&[0]), op.reshape(total, &[1]));
    let mut present = Vec::new();
    let mut seen = Vec::new();
    for (past, fresh) in [(past_key, key), (past_value, value)] {
        let (past, fresh) = (op.transpose(past, &[0, 2, 1, 3]), op.reshape(fresh, &[0, 0, call.shared, -1]));
        let both = op.join(&[past, fresh], 1);
        let now = op.with("GatherND", &[both, from], [("batch_dims", Attribute::Int(1))]);
        present.push(op.transpose(now, &[0, 2, 1, 3]));
        let now = op.slice(now, [none, end], 1);
        seen.push(op.reshape(now, &[0, 0, -1]));
    }
    let mask = seen_from(op, call, [rows, total], starts)?;
    let mask = match bias {
        [] => mask,
        [bias, ..] => {
            let (nothing, hidden) = (op.number(0.0, *bias)?, op.number(f64::NEG_INFINITY, *bias)?);
            let mask = op.apply("Where", &[mask, nothing, hidden]);
            op.apply("Add", &[mask, *bias])
        }
    };
    let inputs = [query, seen[0], seen[1], mask].map(Some);
    let made = op.of("Attention", &inputs, call.attributes.clone(), 1)[0];
    Ok(vec![made, present[0], present[1]])
}

/// Which keys the rows of each text see: those up to their own place, and not too far before it.
fn seen_from(
    op: &mut Lowering<'_>,
    call: &Call,
    [rows, total]: [ValueId; 2],
    starts: ValueId,
) -> Result<ValueId> {
    let (keys, steps) = (op.range(total)?, op.range(rows)?);
    let own = op.apply("Add", &[starts, steps]);
    let own = op.unsqueeze(own, &[1, 3]);
    let mut is_seen = op.apply("LessOrEqual", &[keys, own]);
    if let Some(window) = call.window {
        let window = op.whole(window)?;
        let first = op.apply("Sub", &[own, window]);
        let is_near = op.apply("GreaterOrEqual", &[keys, first]);
        is_seen = op.apply("And", &[is_seen, is_near]);
    }
    Ok(is_seen)
}
