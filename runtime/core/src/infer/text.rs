//! Ops on text, and those that count pieces of it.

use super::call::{Call, wrong_attribute};
use super::fact::{Dim, Listed};
use super::output::{Output, Shape, one};
use super::table::{LATEST, Rule, rule};
use crate::{Dtype, Result};

pub(super) const RULES: &[Rule] = &[
    rule("MurmurHash3", 1, LATEST, &[], hash).of_domain("oarlock"),
    rule("StringNormalizer", 10, LATEST, &[], normalize),
    rule("StringSplit", 20, LATEST, &[], split),
    rule("TfIdfVectorizer", 9, LATEST, &[], weigh),
];

fn hash(call: &Call<'_>) -> Result<Vec<Output>> {
    let dtype = if call.int("positive")? == Some(0) { Dtype::I32 } else { Dtype::U32 };
    one(Output::from(call.shape(0)?).of_dtype(dtype))
}

/// Words may go, so how many are left depends on them.
fn normalize(call: &Call<'_>) -> Result<Vec<Output>> {
    match call.dims(0)? {
        None => one(Shape::None),
        Some([_]) => one([Dim::Unknown].as_slice()),
        Some([rows, _]) if rows.agrees(Dim::Known(1)) => one([Dim::Known(1), Dim::Unknown].as_slice()),
        Some(dims) => Err(call.wrong(0, "one dimension, or a 1 and another one", Listed(dims))),
    }
}

/// The longest list of parts says how many places there are.
fn split(call: &Call<'_>) -> Result<Vec<Output>> {
    let counts = call.shape(0)?;
    let mut parts = counts.clone();
    if let Some(parts) = &mut parts {
        parts.push(Dim::Unknown);
    }
    Ok(vec![parts.into(), counts.into()])
}

fn weigh(call: &Call<'_>) -> Result<Vec<Output>> {
    let indexes = call.int_list("ngram_indexes")?.unwrap_or_default();
    let Some(last) = indexes.iter().max().filter(|_| indexes.iter().all(|index| *index >= 0)) else {
        return Err(wrong_attribute("ngram_indexes", "places of at least 0", format!("{indexes:?}")));
    };
    let length = Dim::Known(*last).plus(1)?;
    match call.dims(0)? {
        None => one(Shape::None),
        Some([_]) => one([length].as_slice()),
        Some([rows, _]) => one([*rows, length].as_slice()),
        Some(dims) => Err(call.wrong(0, "one or two dimensions", Listed(dims))),
    }
}
