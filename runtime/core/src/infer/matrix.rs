//! Products of matrices, and what is defined for matrices only.

use super::call::Call;
use super::elementwise::expect_repeats_to;
use super::fact::{Dim, Listed};
use super::output::{Output, Shape, broadcast, one};
use super::table::{LATEST, Rule, rule};
use crate::Result;

pub(super) const RULES: &[Rule] = &[
    rule("MatMul", 1, LATEST, &[], |call| one(product(call, 0, 1)?)),
    rule("MatMulInteger", 10, LATEST, &[], |call| one(product(call, 0, 1)?)),
    rule("QLinearMatMul", 10, LATEST, &[], |call| one(product(call, 0, 3)?)),
    rule("Gemm", 1, LATEST, &[], gemm),
    rule("Det", 11, LATEST, &[], determinant),
];

/// The product of two stacks of matrices. A vector on the left is a row, one on the right a column.
fn product(call: &Call<'_>, left: usize, right: usize) -> Result<Shape> {
    let (a, b) = (call.dims_of_at_least(left, 1)?, call.dims_of_at_least(right, 1)?);
    let (Some(a), Some(b)) = (a, b) else { return Ok(None) };
    let (a_stack, rows, inner) = match a {
        [stack @ .., rows, inner] => (stack, Some(*rows), *inner),
        [inner] => (&[][..], None, *inner),
        [] => return Ok(None),
    };
    let (b_stack, found, columns) = match b {
        [stack @ .., inner, columns] => (stack, *inner, Some(*columns)),
        [inner] => (&[][..], *inner, None),
        [] => return Ok(None),
    };
    if !inner.agrees(found) {
        let axis = if columns.is_some() { "the last dimension but one" } else { "its dimension" };
        return Err(call.wrong(right, format!("{axis} to be {inner}, the last of {}", Listed(a)), Listed(b)));
    }
    let stack = broadcast(&Some(a_stack.into()), &Some(b_stack.into())).map_err(call.blame(right))?;
    Ok(stack.map(|stack| stack.into_iter().chain(rows).chain(columns).collect()))
}

fn gemm(call: &Call<'_>) -> Result<Vec<Output>> {
    let oriented = |input, transposed| -> Result<[Dim; 2]> {
        let [rows, columns] = call.dims_of_rank(input)?.unwrap_or([Dim::Unknown; 2]);
        Ok(if call.flag(transposed, false)? { [columns, rows] } else { [rows, columns] })
    };
    let [rows, inner] = oriented(0, "transA")?;
    let [found, columns] = oriented(1, "transB")?;
    if !inner.agrees(found) {
        return Err(call.wrong(1, format!("{inner} rows, as many as A has columns"), found));
    }
    let target = [rows, columns];
    expect_repeats_to(call, 2, &Some(target.as_slice().into()))?;
    one(target.as_slice())
}

fn determinant(call: &Call<'_>) -> Result<Vec<Output>> {
    let Some(dims) = call.dims_of_at_least(0, 2)? else { return one(None) };
    let [stack @ .., rows, columns] = dims else { return one(None) };
    if !rows.agrees(*columns) {
        return Err(call.wrong(0, "square matrices", Listed(dims)));
    }
    one(stack)
}
