//! Attention whose heads are as many for keys as for the query, as ONNX's own.

use oarlock_core::{Attribute, Attributes, Result};

use super::integers::{Factors, product};
use super::lowering::{Lowering, named};
use super::mask::{Scores, added};
use super::row::Row;
use crate::graph::ValueId;
use crate::import::place::wrong;

pub(super) const OPS: &[Row] = &[
    Row {
        op: "Attention",
        inputs: "input weights bias? mask_index? past? attention_bias? !past_sequence_length",
        attributes: "do_rotary=0 mask_filter_value num_heads past_present_share_buffer=0 qkv_hidden_sizes \
                     rotary_embedding_dim=0 scale unidirectional",
        outputs: "output present",
        lower: projected,
    },
    Row {
        op: "QAttention",
        inputs: "input weight bias input_scale weight_scale mask_index? input_zero_point? weight_zero_point? past?",
        attributes: "do_rotary=0 mask_filter_value num_heads past_present_share_buffer=0 scale unidirectional",
        outputs: "output present",
        lower: quantized,
    },
    Row {
        op: "MultiHeadAttention",
        inputs: "query key? value? bias? key_padding_mask? attention_bias? past_key? past_value? \
                 !past_sequence_length !cache_indirection",
        attributes: "mask_filter_value num_heads scale unidirectional",
        outputs: "output present_key present_value qk",
        lower: multi_head,
    },
];

/// The score of what is not to be seen, unless the op says another.
const HIDDEN: f64 = -10000.0;

/// What attention is computed of.
struct Operands {
    /// The query, the keys and the values, with heads side by side in rows; the latter two may have them apart.
    rows: [ValueId; 3],
    are_apart: bool,
    past: Option<[ValueId; 2]>,
    /// The places of what is told about keys that are not to be seen, and of numbers that are added to scores.
    mask: Option<ValueId>,
    bias: Option<ValueId>,
}

/// Adds attention: what comes out, the keys and values with those of the past, and the scores.
fn attend(op: &mut Lowering<'_>, operands: &Operands) -> Result<Vec<ValueId>> {
    let Operands { rows: [mut query, key, value], are_apart, past, mask, bias } = *operands;
    let heads = op.count("num_heads")?;
    let mut keys = if are_apart { op.sizes(key, 2, Some(3)) } else { op.sizes(key, 1, Some(2)) };
    if let Some([past_key, _]) = past {
        let before = op.sizes(past_key, 2, Some(3));
        keys = op.apply("Add", &[before, keys]);
    }
    let hidden = op.float("mask_filter_value", HIDDEN)?;
    let mask = mask.map(|mask| added(op, mask, &Scores { rows: query, keys, hidden })).transpose()?;
    let mask = match (mask, bias) {
        (Some(mask), Some(bias)) => Some(op.apply("Add", &[mask, bias])),
        (mask, bias) => mask.or(bias),
    };
    let mut attributes = named([
        ("q_num_heads", Attribute::Int(heads)),
        ("kv_num_heads", Attribute::Int(heads)),
        ("is_causal", Attribute::Int(op.int("unidirectional", 0)?)),
    ]);
    set_scale(op, &mut attributes)?;
    if are_apart {
        query = op.reshape(query, &[0, 0, heads, -1]);
        query = op.transpose(query, &[0, 2, 1, 3]);
    }
    let [past_key, past_value] = past.map_or([None; 2], |past| past.map(Some));
    // Scores that are wanted are those before softmax, with the mask.
    let count = if op.wants(3) { 4 } else { 3 };
    if count == 4 {
        attributes.set("qk_matmul_output_mode", Attribute::Int(2));
    }
    let inputs = [Some(query), Some(key), Some(value), mask, past_key, past_value];
    let mut made = op.of("Attention", &inputs, attributes, count);
    if are_apart {
        let turned = op.transpose(made[0], &[0, 2, 1, 3]);
        made[0] = op.reshape(turned, &[0, 0, -1]);
    }
    Ok(made)
}

/// Says what scores are multiplied by, where it is not what it is by default.
pub(super) fn set_scale(op: &Lowering<'_>, attributes: &mut Attributes) -> Result<()> {
    let scale = op.float("scale", 0.0)?;
    if scale != 0.0 {
        attributes.set("scale", Attribute::Float(scale));
    }
    Ok(())
}

fn projected(op: &mut Lowering<'_>) -> Result<()> {
    let mut all = op.apply("MatMul", &[op.input(0)?, op.input(1)?]);
    if let Some(bias) = op.maybe(2) {
        all = op.apply("Add", &[all, bias]);
    }
    of_projection(op, all, [3, 4, 5])
}

fn quantized(op: &mut Lowering<'_>) -> Result<()> {
    let factors = Factors {
        values: [op.input(0)?, op.input(1)?],
        zeros: [op.maybe(6), op.maybe(7)],
        scales: [op.input(3)?, op.input(4)?],
    };
    let all = product(op, &factors)?;
    let all = op.cast_like(all, factors.scales[0]);
    let all = op.apply("Add", &[all, op.input(2)?]);
    of_projection(op, all, [5, 8, usize::MAX])
}

/// Attention of rows in which those of the query, the keys and the values lie side by side, with a mask, a past and numbers
/// to add at places of the inputs.
fn of_projection(op: &mut Lowering<'_>, all: ValueId, [mask, past, bias]: [usize; 3]) -> Result<()> {
    let rows = match op.node.attributes.ints("qkv_hidden_sizes")? {
        None | Some([]) => op.parts(all, -1, 3),
        Some(sizes) => {
            let sizes = op.ints(sizes);
            op.of("Split", &[Some(all), Some(sizes)], named([("axis", Attribute::Int(-1))]), 3)
        }
    };
    let past = match op.maybe(past) {
        None => None,
        Some(both) => {
            let (both, axes) = (op.parts(both, 0, 2), op.ints(&[0]));
            let past = [both[0], both[1]].map(|past| op.apply("Squeeze", &[past, axes]));
            Some(past)
        }
    };
    let operands = Operands {
        rows: [rows[0], rows[1], rows[2]],
        are_apart: false,
        past,
        mask: op.maybe(mask),
        bias: op.maybe(bias),
    };
    let made = attend(op, &operands)?;
    op.give(0, made[0]);
    if op.wants(1) {
        let present = [made[1], made[2]].map(|present| op.unsqueeze(present, &[0]));
        let present = op.join(&present, 0);
        op.give(1, present);
    }
    Ok(())
}

fn multi_head(op: &mut Lowering<'_>) -> Result<()> {
    let (rows, are_apart) = rows(op)?;
    let (past, mask, bias) = (past(op, 6)?, op.maybe(4), op.maybe(5));
    let made = attend(op, &Operands { rows, are_apart, past, mask, bias })?;
    made.iter().enumerate().for_each(|(index, made)| op.give(index, *made));
    Ok(())
}

/// The keys and values of the past, at two places of the inputs.
pub(super) fn past(op: &Lowering<'_>, at: usize) -> Result<Option<[ValueId; 2]>> {
    match (op.maybe(at), op.maybe(at + 1)) {
        (None, None) => Ok(None),
        (Some(key), Some(value)) => Ok(Some([key, value])),
        _ => Err(wrong("`past_key` with `past_value`", "one of them")),
    }
}

/// The rows of the query, the keys and the values with their biases, and whether the latter two have heads apart.
fn rows(op: &mut Lowering<'_>) -> Result<([ValueId; 3], bool)> {
    let query = op.input(0)?;
    let (mut rows, are_apart) = match (op.maybe(1), op.maybe(2)) {
        // All three lie in the query, head by head.
        (None, None) => (of_heads::<3>(op, query), false),
        (Some(both), None) => {
            let [key, value] = of_heads::<2>(op, both);
            ([query, key, value], false)
        }
        (Some(key), Some(value)) => ([query, key, value], op.rank(key) == Some(4)),
        (None, Some(_)) => return Err(wrong("the input `key` with `value`", "none")),
    };
    let Some(bias) = op.maybe(3) else { return Ok((rows, are_apart)) };
    let width = op.sizes(rows[0], 2, Some(3));
    let twice = op.apply("Add", &[width, width]);
    let (none, end) = (op.ints(&[0]), op.ints(&[i64::MAX]));
    let bounds = [[none, width], [width, twice], [twice, end]];
    // Keys and values with heads apart are those of another op, which has added theirs.
    let count = if are_apart { 1 } else { 3 };
    for (row, bounds) in rows.iter_mut().zip(bounds).take(count) {
        let own = op.slice(bias, bounds, 0);
        *row = op.apply("Add", &[*row, own]);
    }
    Ok((rows, are_apart))
}

/// Rows of heads that lie in turns: [texts, rows, heads, COUNT, size].
fn of_heads<const COUNT: usize>(op: &mut Lowering<'_>, value: ValueId) -> [ValueId; COUNT] {
    let parts = op.parts(value, 3, COUNT);
    std::array::from_fn(|index| op.reshape(parts[index], &[0, 0, -1]))
}
