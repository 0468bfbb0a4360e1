//! Attention, and the embedding of positions that goes before it.

use super::call::{Call, wrong_attribute};
use super::elementwise::same;
use super::fact::{Dim, Listed};
use super::output::{Output, one};
use super::table::{LATEST, Rule, rule};
use crate::Result;

pub(super) const RULES: &[Rule] = &[
    rule("Attention", 23, LATEST, &[], attention),
    rule("FlexAttention", 1, LATEST, &[], flexible).of_domain("ai.onnx.preview"),
    rule("LinearAttention", 27, LATEST, &[], linear),
    rule("RotaryEmbedding", 23, LATEST, &[], rotate),
];

/// Batches, heads, the length of the sequence, and the size of a head.
type Heads = [Dim; 4];

/// Reads an operand whose heads have a dimension of their own, or lie one behind the other in the last one.
fn heads(call: &Call<'_>, input: usize, count: &str) -> Result<Option<Heads>> {
    match call.dims(input)? {
        None => Ok(None),
        Some([batches, heads, length, size]) => Ok(Some([*batches, *heads, *length, *size])),
        Some([batches, length, together]) => {
            let heads = call.positive(count)?;
            if !together.may_divide_by(heads) {
                return Err(call.wrong(
                    input,
                    format!("a last dimension that {heads} heads divide"),
                    together,
                ));
            }
            Ok(Some([*batches, Dim::Known(heads), *length, together.over(heads)?]))
        }
        Some(dims) => Err(call.wrong(input, "3 or 4 dimensions", Listed(dims))),
    }
}

/// Checks that sizes of an operand are those of another.
fn expect<const COUNT: usize>(
    call: &Call<'_>,
    input: usize,
    what: &str,
    pairs: [(Dim, Dim); COUNT],
) -> Result<()> {
    match pairs.into_iter().find(|(expected, found)| !expected.agrees(*found)) {
        Some((expected, found)) => Err(call.wrong(input, format!("{what} to agree with {expected}"), found)),
        None => Ok(()),
    }
}

/// The query, the key and the value.
fn operands(call: &Call<'_>) -> Result<[Heads; 3]> {
    let unknown = [Dim::Unknown; 4];
    let q = heads(call, 0, "q_num_heads")?.unwrap_or(unknown);
    let k = heads(call, 1, "kv_num_heads")?.unwrap_or(unknown);
    let v = heads(call, 2, "kv_num_heads")?.unwrap_or(unknown);
    expect(call, 1, "the batch and the size of a head", [(q[0], k[0]), (q[3], k[3])])?;
    expect(call, 2, "the batch, the heads and the length", [(k[0], v[0]), (k[1], v[1]), (k[2], v[2])])?;
    expect(call, 2, "the batch", [(q[0], v[0])])?;
    let shared = k[1].or(v[1]);
    if !q[1].may_divide_by(shared) {
        return Err(call.wrong(
            1,
            format!("a number of heads that divides the {} of the query", q[1]),
            shared,
        ));
    }
    Ok([q, k, v])
}

fn attention(call: &Call<'_>) -> Result<Vec<Output>> {
    let [q, k, v] = operands(call)?;
    let shared = [q[0].or(k[0]).or(v[0]), k[1].or(v[1])];
    let past = match call.given(4) {
        Some(_) => call.dims_of_rank::<4>(4)?.map_or(Dim::Unknown, |past| past[2]),
        None => Dim::Known(0),
    };
    call.expect_dims(4, &[shared[0], shared[1], Dim::Unknown, k[3]])?;
    call.expect_dims(5, &[shared[0], shared[1], past, v[3]])?;
    call.expect_dims(6, &[shared[0]])?;
    let total = k[2].or(v[2]).plus(past)?;
    check_mask(call, [shared[0], q[1], q[2], total])?;
    let output = match call.dims(0)?.map(<[_]>::len) {
        Some(3) => Output::from([shared[0], q[2], q[1].times(v[3])?].as_slice()),
        Some(_) => Output::from([shared[0], q[1], q[2], v[3]].as_slice()),
        None => None.into(),
    };
    let cache = |size| Output::from([shared[0], shared[1], total, size].as_slice());
    let scores = Output::from([shared[0], q[1], q[2], total].as_slice()).of_dtype(call.input(0)?.dtype);
    Ok(vec![output, cache(k[3]), cache(v[3]), scores])
}

/// The mask repeats to the scores, and may be too short for the last positions.
fn check_mask(call: &Call<'_>, scores: Heads) -> Result<()> {
    let Some(mask) = call.given(3).and_then(|fact| fact.dims.as_deref()) else { return Ok(()) };
    let fits = |(at, (found, expected)): (usize, (&Dim, &Dim))| match (found, expected) {
        (Dim::Known(found), Dim::Known(expected)) => {
            *found == 1 || found == expected || at == 0 && found < expected
        }
        _ => true,
    };
    let pairs = mask.iter().rev().zip(scores.iter().rev()).enumerate();
    if mask.len() <= scores.len() && { pairs }.all(fits) {
        return Ok(());
    }
    Err(call.wrong(3, format!("a shape that repeats to {}", Listed(&scores)), Listed(mask)))
}

fn flexible(call: &Call<'_>) -> Result<Vec<Output>> {
    (0..3).try_for_each(|input| call.dims_of_rank::<4>(input).map(|_| ()))?;
    let [q, k, v] = operands(call)?;
    one([q[0].or(k[0]).or(v[0]), q[1], q[2], v[3]].as_slice())
}

/// Keeps a state of fixed size instead of all keys and values.
fn linear(call: &Call<'_>) -> Result<Vec<Output>> {
    (0..3).try_for_each(|input| call.dims_of_rank::<3>(input).map(|_| ()))?;
    let [q, k, v] = operands(call)?;
    let (batches, length) = (q[0].or(k[0]).or(v[0]), q[2].or(k[2]).or(v[2]));
    expect(call, 1, "the length", [(q[2], k[2])])?;
    expect(call, 2, "the length", [(q[2], v[2])])?;
    let state = [batches, Dim::Known(call.positive("kv_num_heads")?), q[3].or(k[3]), v[3]];
    call.expect_dims(3, &state)?;
    for gate in 4..6 {
        call.expect_dims(gate, &[batches, length, Dim::Unknown])?;
    }
    let output = [batches, length, v[3].times(call.positive("q_num_heads")?)?];
    let dtype = call.given(3).map_or(call.input(0)?.dtype, |state| state.dtype);
    Ok(vec![output.as_slice().into(), Output::from(state.as_slice()).of_dtype(dtype)])
}

fn rotate(call: &Call<'_>) -> Result<Vec<Output>> {
    let [batches, _, length, size] = heads(call, 0, "num_heads")?.unwrap_or([Dim::Unknown; 4]);
    let rotated = match call.int_or("rotary_embedding_dim", 0)? {
        0 => size,
        stated if stated > 0 && size.known().is_none_or(|size| stated <= size) => Dim::Known(stated),
        stated => {
            return Err(wrong_attribute(
                "rotary_embedding_dim",
                format!("0 to {size}, the size of a head"),
                stated,
            ));
        }
    };
    if !rotated.may_divide_by(2) {
        return Err(call.wrong(0, "heads of which an even part is rotated", rotated));
    }
    let half = rotated.over(2)?;
    for cache in 1..3 {
        call.input(cache)?;
        match call.given(3) {
            Some(_) => call.expect_dims(cache, &[Dim::Unknown, half])?,
            None => call.expect_dims(cache, &[batches, length, half])?,
        }
    }
    call.expect_dims(3, &[batches, length])?;
    same(call)
}
