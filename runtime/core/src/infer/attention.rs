//! Attention, and the position embeddings applied before it.

use super::context::{InferenceContext, attribute_error};
use super::elementwise::infer_same_shape;
use super::fact::{DisplayDims, PartialDim};
use super::output::{InferredOutput, single_output};
use super::rule::{InferenceRule, LATEST, rule};
use crate::Result;

pub(super) const RULES: &[InferenceRule] = &[
    rule("Attention", 23, LATEST, &[], infer_attention),
    rule("FlexAttention", 1, LATEST, &[], infer_flex_attention).in_domain("ai.onnx.preview"),
    rule("LinearAttention", 27, LATEST, &[], infer_linear_attention),
    rule("RotaryEmbedding", 23, LATEST, &[], infer_rotary_embedding),
];

/// Batch, heads, sequence length, and head size.
type HeadDims = [PartialDim; 4];

/// Reads an operand in either form: with a dimension for the heads, or with all heads packed into the last dimension.
fn head_dims(call: &InferenceContext<'_>, input: usize, count: &str) -> Result<Option<HeadDims>> {
    match call.input_dims(input)? {
        None => Ok(None),
        Some([batches, heads, length, size]) => Ok(Some([*batches, *heads, *length, *size])),
        Some([batches, length, together]) => {
            let heads = call.positive_attribute(count)?;
            if !together.may_divide_by(heads) {
                return Err(call.input_error(
                    input,
                    format!("a last dimension that {heads} heads divide"),
                    together,
                ));
            }
            Ok(Some([*batches, PartialDim::Known(heads), *length, together.try_div(heads)?]))
        }
        Some(dims) => Err(call.input_error(input, "3 or 4 dimensions", DisplayDims(dims))),
    }
}

/// Checks that dimensions of two operands agree.
fn expect_sizes<const COUNT: usize>(
    call: &InferenceContext<'_>,
    input: usize,
    what: &str,
    pairs: [(PartialDim, PartialDim); COUNT],
) -> Result<()> {
    match pairs.into_iter().find(|(expected, found)| !expected.may_equal(*found)) {
        Some((expected, found)) => {
            Err(call.input_error(input, format!("{what} to agree with {expected}"), found))
        }
        None => Ok(()),
    }
}

fn query_key_value(call: &InferenceContext<'_>) -> Result<[HeadDims; 3]> {
    let unknown = [PartialDim::Unknown; 4];
    let q = head_dims(call, 0, "q_num_heads")?.unwrap_or(unknown);
    let k = head_dims(call, 1, "kv_num_heads")?.unwrap_or(unknown);
    let v = head_dims(call, 2, "kv_num_heads")?.unwrap_or(unknown);
    expect_sizes(call, 1, "the batch and the size of a head", [(q[0], k[0]), (q[3], k[3])])?;
    expect_sizes(call, 2, "the batch, the heads and the length", [(k[0], v[0]), (k[1], v[1]), (k[2], v[2])])?;
    expect_sizes(call, 2, "the batch", [(q[0], v[0])])?;
    let shared = k[1].refine_with(v[1]);
    if !q[1].may_divide_by(shared) {
        return Err(call.input_error(
            1,
            format!("a number of heads that divides the {} of the query", q[1]),
            shared,
        ));
    }
    Ok([q, k, v])
}

fn infer_attention(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let [q, k, v] = query_key_value(call)?;
    let shared = [q[0].refine_with(k[0]).refine_with(v[0]), k[1].refine_with(v[1])];
    let past = match call.optional_input(4) {
        Some(_) => call.dims_of_rank::<4>(4)?.map_or(PartialDim::Unknown, |past| past[2]),
        None => PartialDim::Known(0),
    };
    call.expect_dims(4, &[shared[0], shared[1], PartialDim::Unknown, k[3]])?;
    call.expect_dims(5, &[shared[0], shared[1], past, v[3]])?;
    call.expect_dims(6, &[shared[0]])?;
    let total = k[2].refine_with(v[2]).try_add(past)?;
    check_mask(call, [shared[0], q[1], q[2], total])?;
    let output = match call.input_dims(0)?.map(<[_]>::len) {
        Some(3) => InferredOutput::from([shared[0], q[2], q[1].try_mul(v[3])?].as_slice()),
        Some(_) => InferredOutput::from([shared[0], q[1], q[2], v[3]].as_slice()),
        None => None.into(),
    };
    let cache = |size| InferredOutput::from([shared[0], shared[1], total, size].as_slice());
    let scores =
        InferredOutput::from([shared[0], q[1], q[2], total].as_slice()).with_dtype(call.input(0)?.dtype);
    Ok(vec![output, cache(k[3]), cache(v[3]), scores])
}

/// The mask broadcasts to the scores, except that its last dimension may be shorter.
fn check_mask(call: &InferenceContext<'_>, scores: HeadDims) -> Result<()> {
    let Some(mask) = call.optional_input(3).and_then(|fact| fact.dims.as_deref()) else { return Ok(()) };
    let fits = |(at, (found, expected)): (usize, (&PartialDim, &PartialDim))| match (found, expected) {
        (PartialDim::Known(found), PartialDim::Known(expected)) => {
            *found == 1 || found == expected || at == 0 && found < expected
        }
        _ => true,
    };
    let pairs = mask.iter().rev().zip(scores.iter().rev()).enumerate();
    if mask.len() <= scores.len() && { pairs }.all(fits) {
        return Ok(());
    }
    Err(call.input_error(3, format!("a shape that repeats to {}", DisplayDims(&scores)), DisplayDims(mask)))
}

fn infer_flex_attention(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    (0..3).try_for_each(|input| call.dims_of_rank::<4>(input).map(|_| ()))?;
    let [q, k, v] = query_key_value(call)?;
    single_output([q[0].refine_with(k[0]).refine_with(v[0]), q[1], q[2], v[3]].as_slice())
}

/// Linear attention keeps a state of fixed size instead of all keys and values.
fn infer_linear_attention(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    (0..3).try_for_each(|input| call.dims_of_rank::<3>(input).map(|_| ()))?;
    let [q, k, v] = query_key_value(call)?;
    let (batches, length) =
        (q[0].refine_with(k[0]).refine_with(v[0]), q[2].refine_with(k[2]).refine_with(v[2]));
    expect_sizes(call, 1, "the length", [(q[2], k[2])])?;
    expect_sizes(call, 2, "the length", [(q[2], v[2])])?;
    let state =
        [batches, PartialDim::Known(call.positive_attribute("kv_num_heads")?), q[3].refine_with(k[3]), v[3]];
    call.expect_dims(3, &state)?;
    for gate in 4..6 {
        call.expect_dims(gate, &[batches, length, PartialDim::Unknown])?;
    }
    let output = [batches, length, v[3].try_mul(call.positive_attribute("q_num_heads")?)?];
    let dtype = call.optional_input(3).map_or(call.input(0)?.dtype, |state| state.dtype);
    Ok(vec![output.as_slice().into(), InferredOutput::from(state.as_slice()).with_dtype(dtype)])
}

fn infer_rotary_embedding(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let [batches, _, length, size] = head_dims(call, 0, "num_heads")?.unwrap_or([PartialDim::Unknown; 4]);
    let rotated = match call.int_attribute_or("rotary_embedding_dim", 0)? {
        0 => size,
        stated if stated > 0 && size.known_size().is_none_or(|size| stated <= size) => {
            PartialDim::Known(stated)
        }
        stated => {
            return Err(attribute_error(
                "rotary_embedding_dim",
                format!("0 to {size}, the size of a head"),
                stated,
            ));
        }
    };
    if !rotated.may_divide_by(2) {
        return Err(call.input_error(0, "heads of which an even part is rotated", rotated));
    }
    let half = rotated.try_div(2)?;
    for cache in 1..3 {
        call.input(cache)?;
        match call.optional_input(3) {
            Some(_) => call.expect_dims(cache, &[PartialDim::Unknown, half])?,
            None => call.expect_dims(cache, &[batches, length, half])?,
        }
    }
    call.expect_dims(3, &[batches, length])?;
    infer_same_shape(call)
}
