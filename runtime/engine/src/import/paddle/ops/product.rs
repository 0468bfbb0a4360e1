//! Products of matrices and vectors.

use oarlock_core::{Attributes, Error, Result};

use super::{Table, int, ints, like, text};
use crate::graph::ValueId;
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::Operand;
use crate::import::paddle::program::{Program, with};

pub(super) const OPS: Table = &[
    ("addmm", add_product),
    ("bmm", |program, op| matmul(program, op, "", "")),
    ("dot", dot),
    ("einsum", einsum),
    ("fc", fc),
    ("matmul", |program, op| matmul(program, op, "transpose_X", "transpose_Y")),
    ("matmul_v2", |program, op| matmul(program, op, "trans_x", "trans_y")),
    ("mul", mul),
    ("mv", |program, op| {
        let (x, vector) = (program.input(op, "X")?.id, program.input(op, "Vec")?.id);
        let made = program.apply("MatMul", &[x, vector]);
        program.give(op, "Out", made)
    }),
];

/// A matrix with its last two dimensions exchanged; a vector as it is.
fn transposed<'m>(program: &mut Program<'m>, operand: Operand<'m>, is_transposed: bool) -> Result<ValueId> {
    if !is_transposed || operand.rank()? < 2 {
        return Ok(operand.id);
    }
    let rank = operand.rank()?;
    let order: Vec<i64> = (0..rank - 2).chain([rank - 1, rank - 2]).collect();
    Ok(program.node("Transpose", &[operand.id], with([("perm", ints(&order))])))
}

fn matmul<'m>(program: &mut Program<'m>, op: &'m OpDesc, first: &str, second: &str) -> Result<()> {
    let (x, y) = (program.input(op, "X")?, program.input(op, "Y")?);
    let dtype = x.dtype();
    let x = transposed(program, x, op.flag(first, false))?;
    let y = transposed(program, y, op.flag(second, false))?;
    let mut made = program.node("MatMul", &[x, y], Attributes::new());
    let alpha = op.float("alpha", 1.0);
    if alpha != 1.0 {
        let alpha = program.number(alpha, dtype)?;
        made = program.node("Mul", &[made, alpha], Attributes::new());
    }
    program.give(op, "Out", made)
}

/// The product of an operand, of which the dimensions before an axis are rows and the others columns, and a matrix.
fn product<'m>(program: &mut Program<'m>, x: Operand<'m>, weight: Operand<'m>, rows: i64) -> Result<ValueId> {
    let (rank, of_weight) = (x.rank()?, weight.rank()?);
    if of_weight != 2 {
        let found = format!("one of {of_weight} dimensions");
        return Err(Error::unimplemented(format!("expected a matrix as second operand, found {found}")));
    }
    if rows == rank - 1 {
        return Ok(program.apply("MatMul", &[x.id, weight.id]));
    }
    let flat = program.node("Flatten", &[x.id], with([("axis", int(rows))]));
    let product = program.apply("MatMul", &[flat, weight.id]);
    if rows == 1 {
        return Ok(product);
    }
    let kept = super::sizes(program, x, 0, rows);
    let columns = super::sizes(program, weight, 1, 2);
    let shape = program.node("Concat", &[kept, columns], with([("axis", int(0))]));
    Ok(program.apply("Reshape", &[product, shape]))
}

fn mul<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y) = (program.input(op, "X")?, program.input(op, "Y")?);
    let made = product(program, x, y, op.int("x_num_col_dims", 1))?;
    program.give(op, "Out", made)
}

/// A layer: a product, what is added to it, and a function of the sum.
fn fc<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, weight) = (program.input(op, "Input")?, program.input(op, "W")?);
    op.expect("activation_type", &["relu"])?;
    let mut made = product(program, x, weight, op.int("in_num_col_dims", 1))?;
    if let Some(bias) = program.maybe(op, "Bias")? {
        made = program.node("Add", &[made, bias.id], Attributes::new());
    }
    if op.text("activation_type") == "relu" {
        made = program.node("Relu", &[made], Attributes::new());
    }
    program.give(op, "Out", made)
}

/// The sum of the products of the elements of two vectors, or of each row of two matrices.
fn dot<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y) = (program.input(op, "X")?.id, program.input(op, "Y")?.id);
    let product = program.apply("Mul", &[x, y]);
    let last = program.ints(&[-1]);
    let made = program.node("ReduceSum", &[product, last], with([("keepdims", int(0))]));
    super::give_one(program, op, "Out", made)
}

/// `beta · input + alpha · x · y`.
fn add_product<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (input, x, y) = (program.input(op, "Input")?, program.input(op, "X")?, program.input(op, "Y")?);
    let product = program.apply("MatMul", &[x.id, y.id]);
    let (alpha, beta) = (op.float("Alpha", 1.0), op.float("Beta", 1.0));
    let (alpha, beta) = (like(program, x, alpha)?, like(program, x, beta)?);
    let (product, input) = (program.apply("Mul", &[product, alpha]), program.apply("Mul", &[input.id, beta]));
    let made = program.apply("Add", &[input, product]);
    program.give(op, "Out", made)
}

fn einsum<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let operands: Vec<ValueId> = program.inputs(op, "Operands")?.iter().map(|operand| operand.id).collect();
    let made = program.node("Einsum", &operands, with([("equation", text(op.text("equation")))]));
    program.give(op, "Out", made)
}
