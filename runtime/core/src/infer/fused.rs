//! Ops that do at once what several ops of ONNX do one after the other.

use super::call::Call;
use super::elementwise::expect_repeats_to;
use super::fact::{Dim, Listed};
use super::output::{Output, Shape, broadcast, one};
use super::table::{LATEST, Rule, rule};
use crate::Result;

pub(super) const RULES: &[Rule] = &[
    rule("MatMul", 1, LATEST, &[], product).of_domain("oarlock"),
    rule("SkipLayerNormalization", 1, LATEST, &[], skip_layer).of_domain("oarlock"),
];

/// A stack of matrices.
struct Matrices<'a> {
    stack: &'a [Dim],
    rows: Dim,
    columns: Dim,
}

/// An operand of matrices, seen turned where the attribute says so.
fn matrices<'a>(call: &Call<'a>, input: usize, turned: &str) -> Result<Option<Matrices<'a>>> {
    let Some([stack @ .., rows, columns]) = call.dims_of_at_least(input, 2)? else { return Ok(None) };
    let (rows, columns) = if call.flag(turned, false)? { (columns, rows) } else { (rows, columns) };
    Ok(Some(Matrices { stack, rows: *rows, columns: *columns }))
}

fn product(call: &Call<'_>) -> Result<Vec<Output>> {
    let (Some(a), Some(b)) = (matrices(call, 0, "transA")?, matrices(call, 1, "transB")?) else {
        return one(None);
    };
    if !a.columns.agrees(b.rows) {
        return Err(call.wrong(1, format!("{} rows, as many as A has columns", a.columns), b.rows));
    }
    let matrix = [a.rows, b.columns];
    expect_repeats_to(call, 2, &Some(matrix.as_slice().into()))?;
    let stack = broadcast(&Some(a.stack.into()), &Some(b.stack.into())).map_err(call.blame(1))?;
    let dims: Shape = stack.map(|stack| stack.into_iter().chain(matrix).collect());
    if let Some(dims) = &dims {
        call.expect_dims(3, dims)?;
    }
    one(dims)
}

fn skip_layer(call: &Call<'_>) -> Result<Vec<Output>> {
    let shape = call.shape(0)?.or(call.shape(1)?);
    if let Some(dims) = &shape {
        let [.., last] = dims.as_slice() else {
            return Err(call.wrong(0, "at least 1 dimension", Listed(dims)));
        };
        call.expect_dims(1, dims)?;
        call.input(2)?;
        (2..5).try_for_each(|input| call.expect_dims(input, &[*last]))?;
    }
    Ok(vec![shape.clone().into(), shape.into()])
}
