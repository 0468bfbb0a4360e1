//! Functions of two operands, of each pair of elements.

use oarlock_core::{Attributes, Dtype, Result};

use super::{TranslatorTable, add_scalar_like};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;
use crate::import::paddle::importer::PaddleImporter;
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::PaddleOperand;

pub(super) const ARITHMETIC_OPS: TranslatorTable = &[
    ("atan2", lower_angle),
    ("elementwise_add", |program, op| lower_elementwise(program, op, "Add")),
    ("elementwise_div", |program, op| lower_elementwise(program, op, "Div")),
    ("elementwise_floordiv", lower_floor_div),
    ("elementwise_fmax", |program, op| lower_nan_ignoring(program, op, "Max")),
    ("elementwise_fmin", |program, op| lower_nan_ignoring(program, op, "Min")),
    ("elementwise_max", |program, op| lower_elementwise(program, op, "Max")),
    ("elementwise_min", |program, op| lower_elementwise(program, op, "Min")),
    ("elementwise_mod", lower_modulo),
    ("elementwise_mul", |program, op| lower_elementwise(program, op, "Mul")),
    ("elementwise_pow", |program, op| lower_elementwise(program, op, "Pow")),
    ("elementwise_sub", |program, op| lower_elementwise(program, op, "Sub")),
    ("increment", lower_increment),
    ("lerp", lower_lerp),
    ("minus", |program, op| lower_elementwise(program, op, "Sub")),
    ("pow", lower_pow),
    ("scale", lower_scale),
    ("sum", lower_sum),
];

/// The second operand, aligned with an axis of the first: the last one, or one that the op names.
fn align_operand<'m>(
    program: &mut PaddleImporter<'m>,
    op: &OpDesc,
    x: PaddleOperand<'m>,
    y: PaddleOperand<'m>,
) -> Result<ValueId> {
    let axis = op.int_attribute("axis", -1);
    if axis == -1 {
        return Ok(y.id);
    }
    let (rank, second) = (x.rank()?, y.rank()?);
    if axis < 0 || axis > rank - second {
        return Err(invalid_model(
            format!("an axis from which on {second} of {rank} dimensions follow"),
            axis,
        ));
    }
    let missing = rank - axis - second;
    if missing == 0 {
        return Ok(y.id);
    }
    let axes: Vec<i64> = (second..second + missing).collect();
    let axes = program.add_ints(&axes);
    Ok(program.add_op_with("Unsqueeze", &[y.id, axes], Attributes::new()))
}

/// The two operands of an op, aligned.
pub(super) fn aligned_operands<'m>(
    program: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
) -> Result<(PaddleOperand<'m>, ValueId)> {
    let (x, y) = (program.input(op, "X")?, program.input(op, "Y")?);
    Ok((x, align_operand(program, op, x, y)?))
}

pub(super) fn lower_elementwise<'m>(
    program: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    name: &str,
) -> Result<()> {
    let (x, y) = aligned_operands(program, op)?;
    let made = program.add_op(name, &[x.id, y]);
    program.set_output(op, "Out", made)
}

/// A quotient rounded down. For integers ONNX rounds towards zero, unless the remainder is taken away before.
fn lower_floor_div<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y) = aligned_operands(program, op)?;
    let made = if x.dtype().is_float() {
        let quotient = program.add_op("Div", &[x.id, y]);
        program.add_op("Floor", &[quotient])
    } else {
        let rest = program.add_op("Mod", &[x.id, y]);
        let whole = program.add_op("Sub", &[x.id, rest]);
        program.add_op("Div", &[whole, y])
    };
    program.set_output(op, "Out", made)
}

/// What a division leaves, with the sign of the divisor.
fn lower_modulo<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y) = aligned_operands(program, op)?;
    let made = if x.dtype().is_float() {
        let quotient = program.add_op("Div", &[x.id, y]);
        let down = program.add_op("Floor", &[quotient]);
        let product = program.add_op("Mul", &[down, y]);
        program.add_op("Sub", &[x.id, product])
    } else {
        program.add_op("Mod", &[x.id, y])
    };
    program.set_output(op, "Out", made)
}

/// The larger or smaller one, or the one that is a number.
fn lower_nan_ignoring<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let (x, y) = aligned_operands(program, op)?;
    let mut made = program.add_op(name, &[x.id, y]);
    if x.dtype().is_float() {
        let (of_x, of_y) = (program.add_op("IsNaN", &[x.id]), program.add_op("IsNaN", &[y]));
        made = program.add_op("Where", &[of_x, y, made]);
        made = program.add_op("Where", &[of_y, x.id, made]);
    }
    program.set_output(op, "Out", made)
}

/// The angle of a point, from its quotient and the half that it lies in.
fn lower_angle<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (y, x) = (program.input(op, "X1")?, program.input(op, "X2")?);
    let zero = add_scalar_like(program, x, 0.0)?;
    let quotient = program.add_op("Div", &[y.id, x.id]);
    let angle = program.add_op("Atan", &[quotient]);
    let (half, whole) = (
        add_scalar_like(program, x, std::f64::consts::FRAC_PI_2)?,
        add_scalar_like(program, x, std::f64::consts::PI)?,
    );
    let is_left = program.add_op("Less", &[x.id, zero]);
    let is_below = program.add_op("Less", &[y.id, zero]);
    let (more, less) = (program.add_op("Add", &[angle, whole]), program.add_op("Sub", &[angle, whole]));
    let turned = program.add_op("Where", &[is_below, less, more]);
    let aside = program.add_op("Where", &[is_left, turned, angle]);
    let sign = program.add_op("Sign", &[y.id]);
    let upright = program.add_op("Mul", &[sign, half]);
    let is_upright = program.add_op("Equal", &[x.id, zero]);
    let made = program.add_op("Where", &[is_upright, upright, aside]);
    program.set_output(op, "Out", made)
}

/// `x + weight · (y − x)`.
fn lower_lerp<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y, weight) =
        (program.input(op, "X")?.id, program.input(op, "Y")?.id, program.input(op, "Weight")?.id);
    let distance = program.add_op("Sub", &[y, x]);
    let part = program.add_op("Mul", &[distance, weight]);
    let made = program.add_op("Add", &[x, part]);
    program.set_output(op, "Out", made)
}

/// `scale · x + bias`, or `scale · (x + bias)`.
fn lower_scale<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let dtype = program.input_dtype(op, "X").unwrap_or(Dtype::F32);
    let factor = match program.optional_input(op, "ScaleTensor")? {
        Some(given) => Some(given.id),
        None => match op.float_attribute("scale", 1.0) {
            1.0 => None,
            factor => Some(program.add_scalar(factor, dtype)?),
        },
    };
    let bias = match op.float_attribute("bias", 0.0) {
        0.0 => None,
        bias => Some(program.add_scalar(bias, dtype)?),
    };
    let (product, total) = (factor.map(|it| ("Mul", it)), bias.map(|it| ("Add", it)));
    let steps = if op.bool_attribute("bias_after_scale", true) { [product, total] } else { [total, product] };
    let step = |value, (name, with)| program.add_op_with(name, &[value, with], Attributes::new());
    let made = steps.into_iter().flatten().fold(x, step);
    program.set_output(op, "Out", made)
}

fn lower_pow<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let factor = match program.optional_input(op, "FactorTensor")? {
        Some(given) => given.id,
        None => {
            let dtype = program.input_dtype(op, "X").unwrap_or(Dtype::F32);
            program.add_scalar(op.float_attribute("factor", 1.0), dtype)?
        }
    };
    let made = program.add_op_with("Pow", &[x, factor], Attributes::new());
    program.set_output(op, "Out", made)
}

fn lower_sum<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let operands: Vec<ValueId> = program.inputs(op, "X")?.iter().map(|operand| operand.id).collect();
    let made = program.add_op_with("Sum", &operands, Attributes::new());
    program.set_output(op, "Out", made)
}

/// A number that becomes larger by a step.
fn lower_increment<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let step = add_scalar_like(program, x, op.float_attribute("step", 1.0))?;
    let made = program.add_op("Add", &[x.id, step]);
    program.set_output(op, "Out", made)
}
