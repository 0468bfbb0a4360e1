//! Fused ops: each is equivalent to a sequence of ONNX ops.

use super::context::InferenceContext;
use super::elementwise::expect_broadcasts_to;
use super::fact::{DisplayDims, PartialDim};
use super::output::{InferredOutput, PartialShape, broadcast_shapes, single_output};
use super::rule::{InferenceRule, LATEST, rule};
use crate::Result;

pub(super) const RULES: &[InferenceRule] = &[
    rule("MatMul", 1, LATEST, &[], infer_fused_matmul).in_oarlock_domain(),
    rule("SkipLayerNormalization", 1, LATEST, &[], infer_skip_layer_norm).in_oarlock_domain(),
];

struct MatrixStack<'a> {
    stack: &'a [PartialDim],
    rows: PartialDim,
    columns: PartialDim,
}

/// Reads an operand of matrices. The attribute named `transposed` specifies whether they are transposed.
fn read_matrix_stack<'a>(
    call: &InferenceContext<'a>,
    input: usize,
    transposed: &str,
) -> Result<Option<MatrixStack<'a>>> {
    let Some([stack @ .., rows, columns]) = call.dims_of_at_least(input, 2)? else { return Ok(None) };
    let (rows, columns) =
        if call.flag_attribute(transposed, false)? { (columns, rows) } else { (rows, columns) };
    Ok(Some(MatrixStack { stack, rows: *rows, columns: *columns }))
}

fn infer_fused_matmul(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let (Some(a), Some(b)) = (read_matrix_stack(call, 0, "transA")?, read_matrix_stack(call, 1, "transB")?)
    else {
        return single_output(None);
    };
    if !a.columns.may_equal(b.rows) {
        return Err(call.input_error(1, format!("{} rows, as many as A has columns", a.columns), b.rows));
    }
    let matrix = [a.rows, b.columns];
    expect_broadcasts_to(call, 2, &Some(matrix.as_slice().into()))?;
    let stack =
        broadcast_shapes(&Some(a.stack.into()), &Some(b.stack.into())).map_err(call.blame_input(1))?;
    let dims: PartialShape = stack.map(|stack| stack.into_iter().chain(matrix).collect());
    if let Some(dims) = &dims {
        call.expect_dims(3, dims)?;
    }
    single_output(dims)
}

fn infer_skip_layer_norm(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let shape = call.input_shape(0)?.or(call.input_shape(1)?);
    if let Some(dims) = &shape {
        let [.., last] = dims.as_slice() else {
            return Err(call.input_error(0, "at least 1 dimension", DisplayDims(dims)));
        };
        call.expect_dims(1, dims)?;
        call.input(2)?;
        (2..5).try_for_each(|input| call.expect_dims(input, &[*last]))?;
    }
    Ok(vec![shape.clone().into(), shape.into()])
}
