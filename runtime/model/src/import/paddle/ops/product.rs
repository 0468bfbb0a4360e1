//! Products of matrices and vectors.

use oarlock_core::{Attributes, Error, Result};

use super::{TranslatorTable, add_scalar_like, int_attribute, ints_attribute, text_attribute};
use crate::graph::ValueId;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::PaddleOperand;

pub(super) const PRODUCT_OPS: TranslatorTable = &[
    ("addmm", lower_addmm),
    ("bmm", |importer, op| lower_matmul(importer, op, "", "")),
    ("dot", lower_dot),
    ("einsum", lower_einsum),
    ("fc", lower_fully_connected),
    ("matmul", |importer, op| lower_matmul(importer, op, "transpose_X", "transpose_Y")),
    ("matmul_v2", |importer, op| lower_matmul(importer, op, "trans_x", "trans_y")),
    ("mul", lower_mul),
    ("mv", |importer, op| {
        let (x, vector) = (importer.input(op, "X")?.id, importer.input(op, "Vec")?.id);
        let result = importer.add_op("MatMul", &[x, vector]);
        importer.set_output(op, "Out", result)
    }),
];

/// Transposes the last two dimensions of a matrix; vectors stay as they are.
fn transpose_matrix<'m>(
    importer: &mut PaddleImporter<'m>,
    operand: PaddleOperand<'m>,
    is_transposed: bool,
) -> Result<ValueId> {
    if !is_transposed || operand.rank()? < 2 {
        return Ok(operand.id);
    }
    let rank = operand.rank()?;
    let order: Vec<i64> = (0..rank - 2).chain([rank - 1, rank - 2]).collect();
    Ok(importer.add_op_with("Transpose", &[operand.id], build_attributes([("perm", ints_attribute(&order))])))
}

fn lower_matmul<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    first: &str,
    second: &str,
) -> Result<()> {
    let (x, y) = (importer.input(op, "X")?, importer.input(op, "Y")?);
    let dtype = x.dtype();
    let x = transpose_matrix(importer, x, op.bool_attribute(first, false))?;
    let y = transpose_matrix(importer, y, op.bool_attribute(second, false))?;
    let mut result = importer.add_op_with("MatMul", &[x, y], Attributes::new());
    let alpha = op.float_attribute("alpha", 1.0);
    if alpha != 1.0 {
        let alpha = importer.add_scalar(alpha, dtype)?;
        result = importer.add_op_with("Mul", &[result, alpha], Attributes::new());
    }
    importer.set_output(op, "Out", result)
}

/// Flattens an operand to a matrix, with the dimensions before `rows` as rows, and multiplies it by a weight.
fn flatten_and_multiply<'m>(
    importer: &mut PaddleImporter<'m>,
    x: PaddleOperand<'m>,
    weight: PaddleOperand<'m>,
    rows: i64,
) -> Result<ValueId> {
    let (rank, of_weight) = (x.rank()?, weight.rank()?);
    if of_weight != 2 {
        let found = format!("one of {of_weight} dimensions");
        return Err(Error::unimplemented(format!("expected a matrix as second operand, found {found}")));
    }
    if rows == rank - 1 {
        return Ok(importer.add_op("MatMul", &[x.id, weight.id]));
    }
    let flat = importer.add_op_with("Flatten", &[x.id], build_attributes([("axis", int_attribute(rows))]));
    let product = importer.add_op("MatMul", &[flat, weight.id]);
    if rows == 1 {
        return Ok(product);
    }
    let kept = super::slice_shape(importer, x, 0, rows);
    let columns = super::slice_shape(importer, weight, 1, 2);
    let shape =
        importer.add_op_with("Concat", &[kept, columns], build_attributes([("axis", int_attribute(0))]));
    Ok(importer.add_op("Reshape", &[product, shape]))
}

fn lower_mul<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y) = (importer.input(op, "X")?, importer.input(op, "Y")?);
    let result = flatten_and_multiply(importer, x, y, op.int_attribute("x_num_col_dims", 1))?;
    importer.set_output(op, "Out", result)
}

/// A fully connected layer: product, bias and activation.
fn lower_fully_connected<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, weight) = (importer.input(op, "Input")?, importer.input(op, "W")?);
    op.expect_attribute("activation_type", &["relu"])?;
    let mut result = flatten_and_multiply(importer, x, weight, op.int_attribute("in_num_col_dims", 1))?;
    if let Some(bias) = importer.optional_input(op, "Bias")? {
        result = importer.add_op_with("Add", &[result, bias.id], Attributes::new());
    }
    if op.text_attribute("activation_type") == "relu" {
        result = importer.add_op_with("Relu", &[result], Attributes::new());
    }
    importer.set_output(op, "Out", result)
}

/// Dot product of two vectors, or of corresponding rows.
fn lower_dot<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y) = (importer.input(op, "X")?.id, importer.input(op, "Y")?.id);
    let product = importer.add_op("Mul", &[x, y]);
    let last = importer.add_ints(&[-1]);
    let result = importer.add_op_with(
        "ReduceSum",
        &[product, last],
        build_attributes([("keepdims", int_attribute(0))]),
    );
    super::set_scalar_output(importer, op, "Out", result)
}

/// `beta · input + alpha · x · y`.
fn lower_addmm<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (input, x, y) = (importer.input(op, "Input")?, importer.input(op, "X")?, importer.input(op, "Y")?);
    let product = importer.add_op("MatMul", &[x.id, y.id]);
    let (alpha, beta) = (op.float_attribute("Alpha", 1.0), op.float_attribute("Beta", 1.0));
    let (alpha, beta) = (add_scalar_like(importer, x, alpha)?, add_scalar_like(importer, x, beta)?);
    let (product, input) =
        (importer.add_op("Mul", &[product, alpha]), importer.add_op("Mul", &[input.id, beta]));
    let result = importer.add_op("Add", &[input, product]);
    importer.set_output(op, "Out", result)
}

fn lower_einsum<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let operands: Vec<ValueId> = importer.inputs(op, "Operands")?.iter().map(|operand| operand.id).collect();
    let result = importer.add_op_with(
        "Einsum",
        &operands,
        build_attributes([("equation", text_attribute(op.text_attribute("equation")))]),
    );
    importer.set_output(op, "Out", result)
}
