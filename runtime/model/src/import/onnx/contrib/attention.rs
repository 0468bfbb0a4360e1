//! Attention with as many key heads as query heads, which ONNX's `Attention` covers.

use oarlock_core::{Attribute, Attributes, Result};

use super::contrib_op::ContribOp;
use super::integer_matmul::{IntegerFactors, add_integer_product};
use super::lowering::{ContribLowering, build_attributes};
use super::mask::{MaskedScores, additive_mask};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;

pub(super) const ATTENTION_OPS: &[ContribOp] = &[
    ContribOp {
        op: "Attention",
        inputs: "input weights bias? mask_index? past? attention_bias? !past_sequence_length",
        attributes: "do_rotary=0 mask_filter_value num_heads past_present_share_buffer=0 qkv_hidden_sizes \
                     rotary_embedding_dim=0 scale unidirectional",
        outputs: "output present",
        lower: lower_attention,
    },
    ContribOp {
        op: "QAttention",
        inputs: "input weight bias input_scale weight_scale mask_index? input_zero_point? weight_zero_point? past?",
        attributes: "do_rotary=0 mask_filter_value num_heads past_present_share_buffer=0 scale unidirectional",
        outputs: "output present",
        lower: lower_quantized_attention,
    },
    ContribOp {
        op: "MultiHeadAttention",
        inputs: "query key? value? bias? key_padding_mask? attention_bias? past_key? past_value? \
                 !past_sequence_length !cache_indirection",
        attributes: "mask_filter_value num_heads scale unidirectional",
        outputs: "output present_key present_value qk",
        lower: lower_multi_head_attention,
    },
];

/// Default score of a masked key.
const MASKED_SCORE: f64 = -10000.0;

/// Operands of attention.
struct ContribAttention {
    /// Query, keys and values as rows, with heads side by side; keys and values may have separate heads instead.
    rows: [ValueId; 3],
    are_apart: bool,
    past: Option<[ValueId; 2]>,
    /// Key mask, and an additive bias for the scores.
    mask: Option<ValueId>,
    bias: Option<ValueId>,
}

/// Adds an `Attention` node; returns the output, present keys and values, and the scores.
fn add_attention(op: &mut ContribLowering<'_>, operands: &ContribAttention) -> Result<Vec<ValueId>> {
    let ContribAttention { rows: [mut query, key, value], are_apart, past, mask, bias } = *operands;
    let heads = op.positive_attribute("num_heads")?;
    let mut keys = if are_apart { op.slice_shape(key, 2, Some(3)) } else { op.slice_shape(key, 1, Some(2)) };
    if let Some([past_key, _]) = past {
        let before = op.slice_shape(past_key, 2, Some(3));
        keys = op.add_op("Add", &[before, keys]);
    }
    let hidden = op.float_attribute("mask_filter_value", MASKED_SCORE)?;
    let mask =
        mask.map(|mask| additive_mask(op, mask, &MaskedScores { rows: query, keys, hidden })).transpose()?;
    let mask = match (mask, bias) {
        (Some(mask), Some(bias)) => Some(op.add_op("Add", &[mask, bias])),
        (mask, bias) => mask.or(bias),
    };
    let mut attributes = build_attributes([
        ("q_num_heads", Attribute::Int(heads)),
        ("kv_num_heads", Attribute::Int(heads)),
        ("is_causal", Attribute::Int(op.int_attribute("unidirectional", 0)?)),
    ]);
    set_scale(op, &mut attributes)?;
    if are_apart {
        query = op.add_reshape(query, &[0, 0, heads, -1]);
        query = op.add_transpose(query, &[0, 2, 1, 3]);
    }
    let [past_key, past_value] = past.map_or([None; 2], |past| past.map(Some));
    // The contrib op outputs scores after masking and before softmax.
    let count = if op.wants_output(3) { 4 } else { 3 };
    if count == 4 {
        attributes.set("qk_matmul_output_mode", Attribute::Int(2));
    }
    let inputs = [Some(query), Some(key), Some(value), mask, past_key, past_value];
    let mut result = op.add_node("Attention", &inputs, attributes, count);
    if are_apart {
        let transposed = op.add_transpose(result[0], &[0, 2, 1, 3]);
        result[0] = op.add_reshape(transposed, &[0, 0, -1]);
    }
    Ok(result)
}

/// Sets the scale, unless it is the default.
pub(super) fn set_scale(op: &ContribLowering<'_>, attributes: &mut Attributes) -> Result<()> {
    let scale = op.float_attribute("scale", 0.0)?;
    if scale != 0.0 {
        attributes.set("scale", Attribute::Float(scale));
    }
    Ok(())
}

fn lower_attention(op: &mut ContribLowering<'_>) -> Result<()> {
    let mut all = op.add_op("MatMul", &[op.input(0)?, op.input(1)?]);
    if let Some(bias) = op.optional_input(2) {
        all = op.add_op("Add", &[all, bias]);
    }
    lower_projected_attention(op, all, [3, 4, 5])
}

fn lower_quantized_attention(op: &mut ContribLowering<'_>) -> Result<()> {
    let factors = IntegerFactors {
        values: [op.input(0)?, op.input(1)?],
        zeros: [op.optional_input(6), op.optional_input(7)],
        scales: [op.input(3)?, op.input(4)?],
    };
    let all = add_integer_product(op, &factors)?;
    let all = op.add_cast_like(all, factors.scales[0]);
    let all = op.add_op("Add", &[all, op.input(2)?]);
    lower_projected_attention(op, all, [5, 8, usize::MAX])
}

/// Lowers attention on rows that contain query, keys and values side by side. The array has the input positions of mask, past
/// and bias.
fn lower_projected_attention(
    op: &mut ContribLowering<'_>,
    all: ValueId,
    [mask, past, bias]: [usize; 3],
) -> Result<()> {
    let rows = match op.node.attributes.get_ints("qkv_hidden_sizes")? {
        None | Some([]) => op.add_split(all, -1, 3),
        Some(sizes) => {
            let sizes = op.add_ints(sizes);
            op.add_node(
                "Split",
                &[Some(all), Some(sizes)],
                build_attributes([("axis", Attribute::Int(-1))]),
                3,
            )
        }
    };
    let past = match op.optional_input(past) {
        None => None,
        Some(both) => {
            let (both, axes) = (op.add_split(both, 0, 2), op.add_ints(&[0]));
            let past = [both[0], both[1]].map(|past| op.add_op("Squeeze", &[past, axes]));
            Some(past)
        }
    };
    let operands = ContribAttention {
        rows: [rows[0], rows[1], rows[2]],
        are_apart: false,
        past,
        mask: op.optional_input(mask),
        bias: op.optional_input(bias),
    };
    let result = add_attention(op, &operands)?;
    op.set_output(0, result[0]);
    if op.wants_output(1) {
        let present = [result[1], result[2]].map(|present| op.add_unsqueeze(present, &[0]));
        let present = op.add_concat(&present, 0);
        op.set_output(1, present);
    }
    Ok(())
}

fn lower_multi_head_attention(op: &mut ContribLowering<'_>) -> Result<()> {
    let (rows, are_apart) = attention_rows(op)?;
    let (past, mask, bias) = (past_inputs(op, 6)?, op.optional_input(4), op.optional_input(5));
    let result = add_attention(op, &ContribAttention { rows, are_apart, past, mask, bias })?;
    result.iter().enumerate().for_each(|(index, result)| op.set_output(index, *result));
    Ok(())
}

/// The past keys and values, at two consecutive input positions.
pub(super) fn past_inputs(op: &ContribLowering<'_>, at: usize) -> Result<Option<[ValueId; 2]>> {
    match (op.optional_input(at), op.optional_input(at + 1)) {
        (None, None) => Ok(None),
        (Some(key), Some(value)) => Ok(Some([key, value])),
        _ => Err(invalid_model("`past_key` with `past_value`", "one of them")),
    }
}

/// Query, keys and values with their biases; true if keys and values have separate heads.
fn attention_rows(op: &mut ContribLowering<'_>) -> Result<([ValueId; 3], bool)> {
    let query = op.input(0)?;
    let (mut rows, are_apart) = match (op.optional_input(1), op.optional_input(2)) {
        // All three are in the query, interleaved by head.
        (None, None) => (split_interleaved_heads::<3>(op, query), false),
        (Some(both), None) => {
            let [key, value] = split_interleaved_heads::<2>(op, both);
            ([query, key, value], false)
        }
        (Some(key), Some(value)) => ([query, key, value], op.rank(key) == Some(4)),
        (None, Some(_)) => return Err(invalid_model("the input `key` with `value`", "none")),
    };
    let Some(bias) = op.optional_input(3) else { return Ok((rows, are_apart)) };
    let width = op.slice_shape(rows[0], 2, Some(3));
    let twice = op.add_op("Add", &[width, width]);
    let (none, end) = (op.add_ints(&[0]), op.add_ints(&[i64::MAX]));
    let bounds = [[none, width], [width, twice], [twice, end]];
    // Keys and values with separate heads come from another op, which has added their biases.
    let count = if are_apart { 1 } else { 3 };
    for (row, bounds) in rows.iter_mut().zip(bounds).take(count) {
        let own = op.add_slice(bias, bounds, 0);
        *row = op.add_op("Add", &[*row, own]);
    }
    Ok((rows, are_apart))
}

/// Splits interleaved heads of shape [batch, rows, heads, COUNT, size].
fn split_interleaved_heads<const COUNT: usize>(
    op: &mut ContribLowering<'_>,
    value: ValueId,
) -> [ValueId; COUNT] {
    let parts = op.add_split(value, 3, COUNT);
    std::array::from_fn(|index| op.add_reshape(parts[index], &[0, 0, -1]))
}
