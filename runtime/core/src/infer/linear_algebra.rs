//! Linear algebra on stacks of matrices: decompositions, solvers and determinants.

use super::context::InferenceContext;
use super::fact::{DisplayDims, PartialDim, PartialDims};
use super::output::{InferredOutput, single_output};
use super::rule::{InferenceRule, LATEST, rule};
use crate::{Dtype, Result};

pub(super) const RULES: &[InferenceRule] = &[
    rule("Cholesky Eigenvectors", 1, LATEST, &[], |call| {
        square_matrices(call)?;
        single_output(call.input_shape(0)?)
    })
    .in_oarlock_domain(),
    rule("Eigh", 1, LATEST, &[], infer_eigh).in_oarlock_domain(),
    rule("Eigvalsh", 1, LATEST, &[], |call| Ok(vec![eigenvalue_output(call)?])).in_oarlock_domain(),
    rule("Qr", 1, LATEST, &[], infer_qr).in_oarlock_domain(),
    rule("SlogDet", 1, LATEST, &[], infer_slog_det).in_oarlock_domain(),
    rule("Solve", 1, LATEST, &[], infer_solve).in_oarlock_domain(),
    rule("Svd", 1, LATEST, &[], infer_svd).in_oarlock_domain(),
    rule("Svdvals", 1, LATEST, &[], |call| Ok(vec![singular_value_output(call)?])).in_oarlock_domain(),
];

/// The dimensions of the stack, and the rows and columns of its matrices; `None` if they are unknown.
fn matrix_stack<'a>(
    call: &InferenceContext<'a>,
    input: usize,
) -> Result<Option<(&'a [PartialDim], PartialDim, PartialDim)>> {
    let Some([stack @ .., rows, columns]) = call.dims_of_at_least(input, 2)? else { return Ok(None) };
    Ok(Some((stack, *rows, *columns)))
}

fn square_matrices<'a>(call: &InferenceContext<'a>) -> Result<Option<(&'a [PartialDim], PartialDim)>> {
    let Some((stack, rows, columns)) = matrix_stack(call, 0)? else { return Ok(None) };
    if !rows.may_equal(columns) {
        return Err(call.input_error(
            0,
            "square matrices",
            DisplayDims(call.input_dims(0)?.unwrap_or_default()),
        ));
    }
    Ok(Some((stack, rows)))
}

fn stack_dims(stack: &[PartialDim], sizes: &[PartialDim]) -> PartialDims {
    stack.iter().chain(sizes).copied().collect()
}

/// The dtype of magnitudes: real, even for complex inputs.
fn real_dtype(call: &InferenceContext<'_>) -> Result<Dtype> {
    Ok(match call.input(0)?.dtype {
        Dtype::C64 => Dtype::F32,
        Dtype::C128 => Dtype::F64,
        other => other,
    })
}

fn eigenvalue_output(call: &InferenceContext<'_>) -> Result<InferredOutput> {
    let values = square_matrices(call)?.map(|(stack, size)| stack_dims(stack, &[size]));
    Ok(InferredOutput::from(values).with_dtype(real_dtype(call)?))
}

fn infer_eigh(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    Ok(vec![eigenvalue_output(call)?, call.input_shape(0)?.into()])
}

fn infer_slog_det(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let stack = square_matrices(call)?.map(|(stack, _)| stack_dims(stack, &[]));
    Ok(vec![stack.clone().into(), InferredOutput::from(stack).with_dtype(real_dtype(call)?)])
}

fn smaller_dim(rows: PartialDim, columns: PartialDim) -> PartialDim {
    match (rows, columns) {
        (PartialDim::Known(rows), PartialDim::Known(columns)) => PartialDim::Known(rows.min(columns)),
        _ => PartialDim::Unknown,
    }
}

fn infer_qr(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let Some((stack, rows, columns)) = matrix_stack(call, 0)? else {
        return Ok(vec![None.into(), None.into()]);
    };
    let inner = if call.flag_attribute("complete", false)? { rows } else { smaller_dim(rows, columns) };
    Ok(vec![
        Some(stack_dims(stack, &[rows, inner])).into(),
        Some(stack_dims(stack, &[inner, columns])).into(),
    ])
}

fn singular_value_output(call: &InferenceContext<'_>) -> Result<InferredOutput> {
    let values =
        matrix_stack(call, 0)?.map(|(stack, rows, columns)| stack_dims(stack, &[smaller_dim(rows, columns)]));
    Ok(InferredOutput::from(values).with_dtype(real_dtype(call)?))
}

fn infer_svd(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let values = singular_value_output(call)?;
    let Some((stack, rows, columns)) = matrix_stack(call, 0)? else {
        return Ok(vec![None.into(), values, None.into()]);
    };
    let inner = smaller_dim(rows, columns);
    let (left, right) =
        if call.flag_attribute("complete", false)? { (rows, columns) } else { (inner, inner) };
    Ok(vec![
        Some(stack_dims(stack, &[rows, left])).into(),
        values,
        Some(stack_dims(stack, &[right, columns])).into(),
    ])
}

fn infer_solve(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    if let (Some((stack, size)), Some((other, rows, _))) = (square_matrices(call)?, matrix_stack(call, 1)?) {
        let is_same =
            stack.len() == other.len() && stack.iter().zip(other).all(|(one, other)| one.may_equal(*other));
        if !is_same || !rows.may_equal(size) {
            let expected = format!("right sides of {size} rows, as many as matrices");
            return Err(call.input_error(1, expected, DisplayDims(call.input_dims(1)?.unwrap_or_default())));
        }
    }
    single_output(call.input_shape(1)?)
}
