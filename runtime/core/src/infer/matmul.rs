//! Matrix products, and other ops that are defined only for matrices.

use super::context::InferenceContext;
use super::elementwise::expect_broadcasts_to;
use super::fact::{DisplayDims, PartialDim};
use super::output::{InferredOutput, PartialShape, broadcast_shapes, single_output};
use super::rule::{InferenceRule, LATEST, rule};
use crate::Result;

pub(super) const RULES: &[InferenceRule] = &[
    rule("MatMul", 1, LATEST, &[], |call| single_output(matmul_shape(call, 0, 1)?)),
    rule("MatMulInteger", 10, LATEST, &[], |call| single_output(matmul_shape(call, 0, 1)?)),
    rule("QLinearMatMul", 10, LATEST, &[], |call| single_output(matmul_shape(call, 0, 3)?)),
    rule("Gemm", 1, LATEST, &[], infer_gemm),
    rule("Det", 11, LATEST, &[], infer_determinant),
];

/// The shape of a batched product. A vector is a row on the left and a column on the right.
fn matmul_shape(call: &InferenceContext<'_>, left: usize, right: usize) -> Result<PartialShape> {
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
    if !inner.may_equal(found) {
        let axis = if columns.is_some() { "the last dimension but one" } else { "its dimension" };
        return Err(call.input_error(
            right,
            format!("{axis} to be {inner}, the last of {}", DisplayDims(a)),
            DisplayDims(b),
        ));
    }
    let stack =
        broadcast_shapes(&Some(a_stack.into()), &Some(b_stack.into())).map_err(call.blame_input(right))?;
    Ok(stack.map(|stack| stack.into_iter().chain(rows).chain(columns).collect()))
}

fn infer_gemm(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let oriented = |input, transposed| -> Result<[PartialDim; 2]> {
        let [rows, columns] = call.dims_of_rank(input)?.unwrap_or([PartialDim::Unknown; 2]);
        Ok(if call.flag_attribute(transposed, false)? { [columns, rows] } else { [rows, columns] })
    };
    let [rows, inner] = oriented(0, "transA")?;
    let [found, columns] = oriented(1, "transB")?;
    if !inner.may_equal(found) {
        return Err(call.input_error(1, format!("{inner} rows, as many as A has columns"), found));
    }
    let target = [rows, columns];
    expect_broadcasts_to(call, 2, &Some(target.as_slice().into()))?;
    single_output(target.as_slice())
}

fn infer_determinant(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let Some(dims) = call.dims_of_at_least(0, 2)? else { return single_output(None) };
    let [stack @ .., rows, columns] = dims else { return single_output(None) };
    if !rows.may_equal(*columns) {
        return Err(call.input_error(0, "square matrices", DisplayDims(dims)));
    }
    single_output(stack)
}
