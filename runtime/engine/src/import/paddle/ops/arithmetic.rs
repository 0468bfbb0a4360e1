//! Functions of two operands, of each pair of elements.

use oarlock_core::{Attributes, Dtype, Result};

use super::{Table, like};
use crate::graph::ValueId;
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::Operand;
use crate::import::paddle::program::Program;
use crate::import::place::wrong;

pub(super) const OPS: Table = &[
    ("atan2", angle),
    ("elementwise_add", |program, op| pairs(program, op, "Add")),
    ("elementwise_div", |program, op| pairs(program, op, "Div")),
    ("elementwise_floordiv", floor_div),
    ("elementwise_fmax", |program, op| of_numbers(program, op, "Max")),
    ("elementwise_fmin", |program, op| of_numbers(program, op, "Min")),
    ("elementwise_max", |program, op| pairs(program, op, "Max")),
    ("elementwise_min", |program, op| pairs(program, op, "Min")),
    ("elementwise_mod", modulo),
    ("elementwise_mul", |program, op| pairs(program, op, "Mul")),
    ("elementwise_pow", |program, op| pairs(program, op, "Pow")),
    ("elementwise_sub", |program, op| pairs(program, op, "Sub")),
    ("increment", increment),
    ("lerp", between),
    ("minus", |program, op| pairs(program, op, "Sub")),
    ("pow", pow),
    ("scale", scale),
    ("sum", sum),
];

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

/// The two operands of an op, aligned.
pub(super) fn operands<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<(Operand<'m>, ValueId)> {
    let (x, y) = (program.input(op, "X")?, program.input(op, "Y")?);
    Ok((x, aligned(program, op, x, y)?))
}

pub(super) fn pairs<'m>(program: &mut Program<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let (x, y) = operands(program, op)?;
    let made = program.apply(name, &[x.id, y]);
    program.give(op, "Out", made)
}

/// A quotient rounded down. For integers ONNX rounds towards zero, unless the remainder is taken away before.
fn floor_div<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y) = operands(program, op)?;
    let made = if x.dtype().is_float() {
        let quotient = program.apply("Div", &[x.id, y]);
        program.apply("Floor", &[quotient])
    } else {
        let rest = program.apply("Mod", &[x.id, y]);
        let whole = program.apply("Sub", &[x.id, rest]);
        program.apply("Div", &[whole, y])
    };
    program.give(op, "Out", made)
}

/// What a division leaves, with the sign of the divisor.
fn modulo<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y) = operands(program, op)?;
    let made = if x.dtype().is_float() {
        let quotient = program.apply("Div", &[x.id, y]);
        let down = program.apply("Floor", &[quotient]);
        let product = program.apply("Mul", &[down, y]);
        program.apply("Sub", &[x.id, product])
    } else {
        program.apply("Mod", &[x.id, y])
    };
    program.give(op, "Out", made)
}

/// The larger or smaller one, or the one that is a number.
fn of_numbers<'m>(program: &mut Program<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let (x, y) = operands(program, op)?;
    let mut made = program.apply(name, &[x.id, y]);
    if x.dtype().is_float() {
        let (of_x, of_y) = (program.apply("IsNaN", &[x.id]), program.apply("IsNaN", &[y]));
        made = program.apply("Where", &[of_x, y, made]);
        made = program.apply("Where", &[of_y, x.id, made]);
    }
    program.give(op, "Out", made)
}

/// The angle of a point, from its quotient and the half that it lies in.
fn angle<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (y, x) = (program.input(op, "X1")?, program.input(op, "X2")?);
    let zero = like(program, x, 0.0)?;
    let quotient = program.apply("Div", &[y.id, x.id]);
    let angle = program.apply("Atan", &[quotient]);
    let (half, whole) =
        (like(program, x, std::f64::consts::FRAC_PI_2)?, like(program, x, std::f64::consts::PI)?);
    let is_left = program.apply("Less", &[x.id, zero]);
    let is_below = program.apply("Less", &[y.id, zero]);
    let (more, less) = (program.apply("Add", &[angle, whole]), program.apply("Sub", &[angle, whole]));
    let turned = program.apply("Where", &[is_below, less, more]);
    let aside = program.apply("Where", &[is_left, turned, angle]);
    let sign = program.apply("Sign", &[y.id]);
    let upright = program.apply("Mul", &[sign, half]);
    let is_upright = program.apply("Equal", &[x.id, zero]);
    let made = program.apply("Where", &[is_upright, upright, aside]);
    program.give(op, "Out", made)
}

/// `x + weight · (y − x)`.
fn between<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y, weight) =
        (program.input(op, "X")?.id, program.input(op, "Y")?.id, program.input(op, "Weight")?.id);
    let distance = program.apply("Sub", &[y, x]);
    let part = program.apply("Mul", &[distance, weight]);
    let made = program.apply("Add", &[x, part]);
    program.give(op, "Out", made)
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

/// A number that becomes larger by a step.
fn increment<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let step = like(program, x, op.float("step", 1.0))?;
    let made = program.apply("Add", &[x.id, step]);
    program.give(op, "Out", made)
}
