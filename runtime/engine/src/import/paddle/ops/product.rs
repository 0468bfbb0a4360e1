//! Products of matrices and vectors.

use oarlock_core::{Attributes, Error, Result};

use super::{TranslatorTable, add_scalar_like, int_attribute, ints_attribute, text_attribute};
use crate::graph::ValueId;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::PaddleOperand;

pub(super) const PRODUCT_OPS: TranslatorTable = &[
    ("addmm", lower_addmm),
    ("bmm", |program, op| lower_matmul(program, op, "", "")),
    ("dot", lower_dot),
    ("einsum", lower_einsum),
    ("fc", lower_fully_connected),
    ("matmul", |program, op| lower_matmul(program, op, "transpose_X", "transpose_Y")),
    ("matmul_v2", |program, op| lower_matmul(program, op, "trans_x", "trans_y")),
    ("mul", lower_mul),
    ("mv", |program, op| {
        let (x, vector) = (program.input(op, "X")?.id, program.input(op, "Vec")?.id);
        let made = program.add_op("MatMul", &[x, vector]);
        program.set_output(op, "Out", made)
    }),
];

/// A matrix with its last two dimensions exchanged; a vector as it is.
fn transpose_matrix<'m>(
    program: &mut PaddleImporter<'m>,
    operand: PaddleOperand<'m>,
    is_transposed: bool,
) -> Result<ValueId> {
    if !is_transposed || operand.rank()? < 2 {
        return Ok(operand.id);
    }
    let rank = operand.rank()?;
    let order: Vec<i64> = (0..rank - 2).chain([rank - 1, rank - 2]).collect();
    Ok(program.add_op_with("Transpose", &[operand.id], build_attributes([("perm", ints_attribute(&order))])))
}

fn lower_matmul<'m>(
    program: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    first: &str,
    second: &str,
) -> Result<()> {
    let (x, y) = (program.input(op, "X")?, program.input(op, "Y")?);
    let dtype = x.dtype();
    let x = transpose_matrix(program, x, op.bool_attribute(first, false))?;
    let y = transpose_matrix(program, y, op.bool_attribute(second, false))?;
    let mut made = program.add_op_with("MatMul", &[x, y], Attributes::new());
    let alpha = op.float_attribute("alpha", 1.0);
    if alpha != 1.0 {
        let alpha = program.add_scalar(alpha, dtype)?;
        made = program.add_op_with("Mul", &[made, alpha], Attributes::new());
    }
    program.set_output(op, "Out", made)
}

/// The product of an operand, of which the dimensions before an axis are rows and the others columns, and a matrix.
fn flatten_and_multiply<'m>(
    program: &mut PaddleImporter<'m>,
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
        return Ok(program.add_op("MatMul", &[x.id, weight.id]));
    }
    let flat = program.add_op_with("Flatten", &[x.id], build_attributes([("axis", int_attribute(rows))]));
    let product = program.add_op("MatMul", &[flat, weight.id]);
    if rows == 1 {
        return Ok(product);
    }
    let kept = super::slice_shape(program, x, 0, rows);
    let columns = super::slice_shape(program, weight, 1, 2);
    let shape =
        program.add_op_with("Concat", &[kept, columns], build_attributes([("axis", int_attribute(0))]));
    Ok(program.add_op("Reshape", &[product, shape]))
}

fn lower_mul<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y) = (program.input(op, "X")?, program.input(op, "Y")?);
    let made = flatten_and_multiply(program, x, y, op.int_attribute("x_num_col_dims", 1))?;
    program.set_output(op, "Out", made)
}

/// A layer: a product, what is added to it, and a function of the sum.
fn lower_fully_connected<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, weight) = (program.input(op, "Input")?, program.input(op, "W")?);
    op.expect_attribute("activation_type", &["relu"])?;
    let mut made = flatten_and_multiply(program, x, weight, op.int_attribute("in_num_col_dims", 1))?;
    if let Some(bias) = program.optional_input(op, "Bias")? {
        made = program.add_op_with("Add", &[made, bias.id], Attributes::new());
    }
    if op.text_attribute("activation_type") == "relu" {
        made = program.add_op_with("Relu", &[made], Attributes::new());
    }
    program.set_output(op, "Out", made)
}

/// The sum of the products of the elements of two vectors, or of each row of two matrices.
fn lower_dot<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y) = (program.input(op, "X")?.id, program.input(op, "Y")?.id);
    let product = program.add_op("Mul", &[x, y]);
    let last = program.add_ints(&[-1]);
    let made = program.add_op_with(
        "ReduceSum",
        &[product, last],
        build_attributes([("keepdims", int_attribute(0))]),
    );
    super::set_scalar_output(program, op, "Out", made)
}

/// `beta · input + alpha · x · y`.
fn lower_addmm<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (input, x, y) = (program.input(op, "Input")?, program.input(op, "X")?, program.input(op, "Y")?);
    let product = program.add_op("MatMul", &[x.id, y.id]);
    let (alpha, beta) = (op.float_attribute("Alpha", 1.0), op.float_attribute("Beta", 1.0));
    let (alpha, beta) = (add_scalar_like(program, x, alpha)?, add_scalar_like(program, x, beta)?);
    let (product, input) =
        (program.add_op("Mul", &[product, alpha]), program.add_op("Mul", &[input.id, beta]));
    let made = program.add_op("Add", &[input, product]);
    program.set_output(op, "Out", made)
}

fn lower_einsum<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let operands: Vec<ValueId> = program.inputs(op, "Operands")?.iter().map(|operand| operand.id).collect();
    let made = program.add_op_with(
        "Einsum",
        &operands,
        build_attributes([("equation", text_attribute(op.text_attribute("equation")))]),
    );
    program.set_output(op, "Out", made)
}
