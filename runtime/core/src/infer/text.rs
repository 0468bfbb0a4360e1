//! Ops on text, and ops that count n-grams.

use super::context::{InferenceContext, attribute_error};
use super::fact::{DisplayDims, PartialDim};
use super::output::{InferredOutput, PartialShape, single_output};
use super::rule::{InferenceRule, LATEST, rule};
use crate::{Dtype, Result};

pub(super) const RULES: &[InferenceRule] = &[
    rule("MurmurHash3", 1, LATEST, &[], infer_murmur_hash).in_oarlock_domain(),
    rule("StringNormalizer", 10, LATEST, &[], infer_string_normalizer),
    rule("StringSplit", 20, LATEST, &[], infer_string_split),
    rule("TfIdfVectorizer", 9, LATEST, &[], infer_tf_idf),
    rule("Tokenizer", 1, LATEST, &[], infer_tokenizer).in_oarlock_domain(),
];

fn infer_murmur_hash(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let dtype = if call.int_attribute("positive")? == Some(0) { Dtype::I32 } else { Dtype::U32 };
    single_output(InferredOutput::from(call.input_shape(0)?).with_dtype(dtype))
}

/// Stop words are removed, so the number of words that remain depends on the elements.
fn infer_string_normalizer(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    match call.input_dims(0)? {
        None => single_output(PartialShape::None),
        Some([_]) => single_output([PartialDim::Unknown].as_slice()),
        Some([rows, _]) if rows.may_equal(PartialDim::Known(1)) => {
            single_output([PartialDim::Known(1), PartialDim::Unknown].as_slice())
        }
        Some(dims) => Err(call.input_error(0, "one dimension, or a 1 and another one", DisplayDims(dims))),
    }
}

/// The last dimension has the size of the longest list of parts, which depends on the elements.
fn infer_string_split(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let counts = call.input_shape(0)?;
    let mut parts = counts.clone();
    if let Some(parts) = &mut parts {
        parts.push(PartialDim::Unknown);
    }
    Ok(vec![parts.into(), counts.into()])
}

/// The last dimension has the size of the row with most tokens.
fn infer_tokenizer(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let mut tokens = call.input_shape(0)?;
    if let Some(tokens) = &mut tokens {
        tokens.push(PartialDim::Unknown);
    }
    single_output(tokens)
}

fn infer_tf_idf(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let indexes = call.ints_attribute("ngram_indexes")?.unwrap_or_default();
    let Some(last) = indexes.iter().max().filter(|_| indexes.iter().all(|index| *index >= 0)) else {
        return Err(attribute_error("ngram_indexes", "places of at least 0", format!("{indexes:?}")));
    };
    let length = PartialDim::Known(*last).try_add(1)?;
    match call.input_dims(0)? {
        None => single_output(PartialShape::None),
        Some([_]) => single_output([length].as_slice()),
        Some([rows, _]) => single_output([*rows, length].as_slice()),
        Some(dims) => Err(call.input_error(0, "one or two dimensions", DisplayDims(dims))),
    }
}
