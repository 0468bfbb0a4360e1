//! Functions of two operands: of each pair of elements, and products of matrices.

use oarlock_core::{Attributes, Dtype, Error, Result};

use super::{Translate, int, ints};
use crate::graph::ValueId;
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::program::{Operand, Program, with};
use crate::import::place::wrong;

pub(super) fn find(name: &str) -> Option<Translate> {
    Some(match name {
        "elementwise_add" => |program, op| pairs(program, op, "Add"),
        "elementwise_div" => |program, op| pairs(program, op, "Div"),
        "elementwise_max" => |program, op| pairs(program, op, "Max"),
        "elementwise_min" => |program, op| pairs(program, op, "Min"),
        "elementwise_mul" => |program, op| pairs(program, op, "Mul"),
        "elementwise_pow" => |program, op| pairs(program, op, "Pow"),
        "elementwise_sub" => |program, op| pairs(program, op, "Sub"),
        "bmm" => |program, op| matmul(program, op, "", ""),
        "elementwise_floordiv" => floor_div,
        "elementwise_mod" => modulo,
        "equal" => |program, op| pairs(program, op, "Equal"),
        "greater_equal" => |program, op| pairs(program, op, "GreaterOrEqual"),
        "greater_than" => |program, op| pairs(program, op, "Greater"),
        "less_equal" => |program, op| pairs(program, op, "LessOrEqual"),
        "less_than" => |program, op| pairs(program, op, "Less"),
        "logical_and" => |program, op| pairs(program, op, "And"),
        "logical_or" => |program, op| pairs(program, op, "Or"),
        "logical_xor" => |program, op| pairs(program, op, "Xor"),
        "not_equal" => not_equal,
        "fc" => fc,
        "matmul" => |program, op| matmul(program, op, "transpose_X", "transpose_Y"),
        "matmul_v2" => |program, op| matmul(program, op, "trans_x", "trans_y"),
        "mul" => mul,
        "pow" => pow,
        "scale" => scale,
        "sum" => sum,
        _ => return None,
    })
}

/// The second operand, aligned with an axis of the first: the last one, or one that the op names.
fn aligned<'m>(program: &mut Program<'m>, op: &OpDesc, x: Operand<'m>, y: Operand<'m>) -> Result<ValueId> {
    let axis = op.int("axis", -1);
    if axis == -1 {
        return Ok(y.id);
    }
    let (rank, second) = (x.rank()?, y.rank()?);
    if axis < 0 || axis > rank - second {
        return Err(wrong(format!("an axis from which on {second} of {rank} dimensions follow"), axis));
    }
    let missing = rank - axis - second;
    if missing == 0 {
        return Ok(y.id);
    }
    let axes: Vec<i64> = (second..second + missing).collect();
    let axes = program.ints(&axes);
    Ok(program.node("Unsqueeze", &[y.id, axes], Attributes::new()))
}

fn pairs<'m>(program: &mut Program<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let (x, y) = (program.input(op, "X")?, program.input(op, "Y")?);
    let y = aligned(program, op, x, y)?;
    let made = program.node(name, &[x.id, y], Attributes::new());
    program.give(op, "Out", made)
}

fn not_equal<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y) = (program.input(op, "X")?, program.input(op, "Y")?);
    let y = aligned(program, op, x, y)?;
    let equal = program.node("Equal", &[x.id, y], Attributes::new());
    let made = program.node("Not", &[equal], Attributes::new());
    program.give(op, "Out", made)
}

/// A quotient rounded down, which is what a division of integers is.
fn floor_div<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y) = (program.input(op, "X")?, program.input(op, "Y")?);
    let y = aligned(program, op, x, y)?;
    let mut made = program.node("Div", &[x.id, y], Attributes::new());
    match program.input_dtype(op, "X") {
        Some(dtype) if dtype.is_float() => made = program.node("Floor", &[made], Attributes::new()),
        Some(Dtype::U8) => {}
        // For a negative quotient ONNX rounds up.
        _ => return Err(Error::unimplemented("expected numbers with a fraction, found signed ones without")),
    }
    program.give(op, "Out", made)
}

/// What a division leaves, with the sign of the divisor.
fn modulo<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    if program.input_dtype(op, "X").is_none_or(Dtype::is_float) {
        return Err(Error::unimplemented("expected whole numbers, found others"));
    }
    pairs(program, op, "Mod")
}

/// `scale · x + bias`, or `scale · (x + bias)`.
fn scale<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let dtype = program.input_dtype(op, "X").unwrap_or(Dtype::F32);
    let factor = match program.maybe(op, "ScaleTensor")? {
        Some(given) => Some(given.id),
        None => match op.float("scale", 1.0) {
            1.0 => None,
            factor => Some(program.number(factor, dtype)?),
        },
    };
    let bias = match op.float("bias", 0.0) {
        0.0 => None,
        bias => Some(program.number(bias, dtype)?),
    };
    let (product, total) = (factor.map(|it| ("Mul", it)), bias.map(|it| ("Add", it)));
    let steps = if op.flag("bias_after_scale", true) { [product, total] } else { [total, product] };
    let step = |value, (name, with)| program.node(name, &[value, with], Attributes::new());
    let made = steps.into_iter().flatten().fold(x, step);
    program.give(op, "Out", made)
}

fn pow<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let factor = match program.maybe(op, "FactorTensor")? {
        Some(given) => given.id,
        None => {
            let dtype = program.input_dtype(op, "X").unwrap_or(Dtype::F32);
            program.number(op.float("factor", 1.0), dtype)?
        }
    };
    let made = program.node("Pow", &[x, factor], Attributes::new());
    program.give(op, "Out", made)
}

fn sum<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let operands: Vec<ValueId> = program.inputs(op, "X")?.iter().map(|operand| operand.id).collect();
    let made = program.node("Sum", &operands, Attributes::new());
    program.give(op, "Out", made)
}

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
    let x = transposed(program, x, op.flag(first, false))?;
    let y = transposed(program, y, op.flag(second, false))?;
    let mut made = program.node("MatMul", &[x, y], Attributes::new());
    let alpha = op.float("alpha", 1.0);
    if alpha != 1.0 {
        let alpha = program.number(alpha, program.input_dtype(op, "X").unwrap_or(Dtype::F32))?;
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
        return Ok(program.node("MatMul", &[x.id, weight.id], Attributes::new()));
    }
    if rows != 1 {
        let message = format!(
            "expected the last dimension alone, or all but the first, to be columns, found {rows} rows"
        );
        return Err(Error::unimplemented(message));
    }
    let flat = program.node("Flatten", &[x.id], with([("axis", int(1))]));
    Ok(program.node("MatMul", &[flat, weight.id], Attributes::new()))
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
