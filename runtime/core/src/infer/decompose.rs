//! Linear algebra: stacks of matrices, and what they are products of.

use super::call::Call;
use super::fact::{Dim, Listed, PartialDims};
use super::output::{Output, one};
use super::table::{LATEST, Rule, rule};
use crate::{Dtype, Result};

pub(super) const RULES: &[Rule] = &[
    rule("Cholesky", 1, LATEST, &[], |call| {
        square(call)?;
        one(call.shape(0)?)
    })
    .of_domain("oarlock"),
    rule("Eigh", 1, LATEST, &[], eigh).of_domain("oarlock"),
    rule("Eigvalsh", 1, LATEST, &[], |call| Ok(vec![eigenvalues(call)?])).of_domain("oarlock"),
    rule("Qr", 1, LATEST, &[], qr).of_domain("oarlock"),
    rule("SlogDet", 1, LATEST, &[], slog_det).of_domain("oarlock"),
    rule("Solve", 1, LATEST, &[], solve).of_domain("oarlock"),
    rule("Svd", 1, LATEST, &[], svd).of_domain("oarlock"),
    rule("Svdvals", 1, LATEST, &[], |call| Ok(vec![singular_values(call)?])).of_domain("oarlock"),
];

/// A stack and the sizes of its matrices; nothing where they are not known.
fn matrices<'a>(call: &Call<'a>, input: usize) -> Result<Option<(&'a [Dim], Dim, Dim)>> {
    let Some([stack @ .., rows, columns]) = call.dims_of_at_least(input, 2)? else { return Ok(None) };
    Ok(Some((stack, *rows, *columns)))
}

fn square<'a>(call: &Call<'a>) -> Result<Option<(&'a [Dim], Dim)>> {
    let Some((stack, rows, columns)) = matrices(call, 0)? else { return Ok(None) };
    if !rows.agrees(columns) {
        return Err(call.wrong(0, "square matrices", Listed(call.dims(0)?.unwrap_or_default())));
    }
    Ok(Some((stack, rows)))
}

fn stacked(stack: &[Dim], sizes: &[Dim]) -> PartialDims {
    stack.iter().chain(sizes).copied().collect()
}

/// What magnitudes of an input are.
fn part(call: &Call<'_>) -> Result<Dtype> {
    Ok(match call.input(0)?.dtype {
        Dtype::C64 => Dtype::F32,
        Dtype::C128 => Dtype::F64,
        other => other,
    })
}

fn eigenvalues(call: &Call<'_>) -> Result<Output> {
    let values = square(call)?.map(|(stack, size)| stacked(stack, &[size]));
    Ok(Output::from(values).of_dtype(part(call)?))
}

fn eigh(call: &Call<'_>) -> Result<Vec<Output>> {
    Ok(vec![eigenvalues(call)?, call.shape(0)?.into()])
}

fn slog_det(call: &Call<'_>) -> Result<Vec<Output>> {
    let stack = square(call)?.map(|(stack, _)| stacked(stack, &[]));
    Ok(vec![stack.clone().into(), Output::from(stack).of_dtype(part(call)?)])
}

fn smaller(rows: Dim, columns: Dim) -> Dim {
    match (rows, columns) {
        (Dim::Known(rows), Dim::Known(columns)) => Dim::Known(rows.min(columns)),
        _ => Dim::Unknown,
    }
}

fn qr(call: &Call<'_>) -> Result<Vec<Output>> {
    let Some((stack, rows, columns)) = matrices(call, 0)? else { return Ok(vec![None.into(), None.into()]) };
    let inner = if call.flag("complete", false)? { rows } else { smaller(rows, columns) };
    Ok(vec![Some(stacked(stack, &[rows, inner])).into(), Some(stacked(stack, &[inner, columns])).into()])
}

fn singular_values(call: &Call<'_>) -> Result<Output> {
    let values = matrices(call, 0)?.map(|(stack, rows, columns)| stacked(stack, &[smaller(rows, columns)]));
    Ok(Output::from(values).of_dtype(part(call)?))
}

fn svd(call: &Call<'_>) -> Result<Vec<Output>> {
    let values = singular_values(call)?;
    let Some((stack, rows, columns)) = matrices(call, 0)? else {
        return Ok(vec![None.into(), values, None.into()]);
    };
    let inner = smaller(rows, columns);
    let (left, right) = if call.flag("complete", false)? { (rows, columns) } else { (inner, inner) };
    Ok(vec![
        Some(stacked(stack, &[rows, left])).into(),
        values,
        Some(stacked(stack, &[right, columns])).into(),
    ])
}

fn solve(call: &Call<'_>) -> Result<Vec<Output>> {
    if let (Some((stack, size)), Some((other, rows, _))) = (square(call)?, matrices(call, 1)?) {
        let is_same =
            stack.len() == other.len() && stack.iter().zip(other).all(|(one, other)| one.agrees(*other));
        if !is_same || !rows.agrees(size) {
            let expected = format!("right sides of {size} rows, as many as matrices");
            return Err(call.wrong(1, expected, Listed(call.dims(1)?.unwrap_or_default())));
        }
    }
    one(call.shape(1)?)
}
