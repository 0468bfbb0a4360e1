//! Elementwise functions of two operands.

use oarlock_core::{Attributes, Dtype, Error, Result};

use super::{TranslatorTable, add_scalar_like};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;
use crate::import::paddle::importer::PaddleImporter;
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::PaddleOperand;

pub(super) const ARITHMETIC_OPS: TranslatorTable = &[
    ("atan2", lower_angle),
    ("bitwise_left_shift", |importer, op| lower_shift(importer, op, "ShiftLeft")),
    ("bitwise_right_shift", |importer, op| lower_shift(importer, op, "ShiftRight")),
    ("elementwise_add", |importer, op| lower_elementwise(importer, op, "Add")),
    ("elementwise_div", |importer, op| lower_elementwise(importer, op, "Div")),
    ("elementwise_floordiv", lower_floor_div),
    ("elementwise_fmax", |importer, op| lower_nan_ignoring(importer, op, "Max")),
    ("elementwise_fmin", |importer, op| lower_nan_ignoring(importer, op, "Min")),
    ("elementwise_heaviside", lower_heaviside),
    ("elementwise_max", |importer, op| lower_elementwise(importer, op, "Max")),
    ("elementwise_min", |importer, op| lower_elementwise(importer, op, "Min")),
    ("elementwise_mod", lower_modulo),
    ("elementwise_mul", |importer, op| lower_elementwise(importer, op, "Mul")),
    ("elementwise_pow", |importer, op| lower_elementwise(importer, op, "Pow")),
    ("elementwise_sub", |importer, op| lower_elementwise(importer, op, "Sub")),
    ("increment", lower_increment),
    ("label_smooth", lower_label_smooth),
    ("lerp", lower_lerp),
    ("minus", |importer, op| lower_elementwise(importer, op, "Sub")),
    ("nextafter", |importer, op| {
        let (x, y) = (importer.input(op, "x")?.id, importer.input(op, "y")?.id);
        let result = importer.add_oarlock_op("NextAfter", &[x, y], Attributes::new());
        importer.set_output(op, "out", result)
    }),
    ("pow", lower_pow),
    ("scale", lower_scale),
    ("sum", lower_sum),
];

/// Aligns the second operand for broadcasting: at the last axis of the first, or at the one that the op names.
fn align_operand<'m>(
    importer: &mut PaddleImporter<'m>,
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
    let axes = importer.add_ints(&axes);
    Ok(importer.add_op_with("Unsqueeze", &[y.id, axes], Attributes::new()))
}

/// Both operands of an op, aligned for broadcasting.
pub(super) fn aligned_operands<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
) -> Result<(PaddleOperand<'m>, ValueId)> {
    let (x, y) = (importer.input(op, "X")?, importer.input(op, "Y")?);
    Ok((x, align_operand(importer, op, x, y)?))
}

pub(super) fn lower_elementwise<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    name: &str,
) -> Result<()> {
    let (x, y) = aligned_operands(importer, op)?;
    let result = importer.add_op(name, &[x.id, y]);
    importer.set_output(op, "Out", result)
}

/// Shifts signed numbers with their sign, which ONNX does not.
fn lower_shift<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    if !op.bool_attribute("is_arithmetic", true) {
        return Err(Error::unimplemented("expected an arithmetic shift, found a logical one"));
    }
    let (x, y) = (importer.input(op, "X")?.id, importer.input(op, "Y")?.id);
    let result = importer.add_oarlock_op(name, &[x, y], Attributes::new());
    importer.set_output(op, "Out", result)
}

/// 0 below 0, 1 above, and the second operand at 0.
fn lower_heaviside<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y) = aligned_operands(importer, op)?;
    let zero = add_scalar_like(importer, x, 0.0)?;
    let is_above = importer.add_op("Greater", &[x.id, zero]);
    let step = importer.add_cast(is_above, x.dtype());
    let is_zero = importer.add_op("Equal", &[x.id, zero]);
    let result = importer.add_op("Where", &[is_zero, y, step]);
    importer.set_output(op, "Out", result)
}

/// Mixes labels with the same share of every class, or with those of a distribution.
fn lower_label_smooth<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, share) = (importer.input(op, "X")?, op.float_attribute("epsilon", 0.0));
    let kept = add_scalar_like(importer, x, 1.0 - share)?;
    let kept = importer.add_op("Mul", &[x.id, kept]);
    let share = add_scalar_like(importer, x, share)?;
    let added = match importer.optional_input(op, "PriorDist")? {
        Some(prior) => importer.add_op("Mul", &[prior.id, share]),
        None => {
            let rank = x.rank()?;
            let classes = super::slice_shape(importer, x, rank - 1, rank);
            let classes = importer.add_cast(classes, x.dtype());
            importer.add_op("Div", &[share, classes])
        }
    };
    let result = importer.add_op("Add", &[kept, added]);
    importer.set_output(op, "Out", result)
}

/// Floor division. ONNX divides integers towards zero, so the remainder is subtracted first.
fn lower_floor_div<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y) = aligned_operands(importer, op)?;
    let result = if x.dtype().is_float() {
        let quotient = importer.add_op("Div", &[x.id, y]);
        importer.add_op("Floor", &[quotient])
    } else {
        let rest = importer.add_op("Mod", &[x.id, y]);
        let whole = importer.add_op("Sub", &[x.id, rest]);
        importer.add_op("Div", &[whole, y])
    };
    importer.set_output(op, "Out", result)
}

/// The remainder with the sign of the divisor.
fn lower_modulo<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y) = aligned_operands(importer, op)?;
    let result = if x.dtype().is_float() {
        let quotient = importer.add_op("Div", &[x.id, y]);
        let down = importer.add_op("Floor", &[quotient]);
        let product = importer.add_op("Mul", &[down, y]);
        importer.add_op("Sub", &[x.id, product])
    } else {
        importer.add_op("Mod", &[x.id, y])
    };
    importer.set_output(op, "Out", result)
}

/// Minimum or maximum that ignores a NaN operand.
fn lower_nan_ignoring<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let (x, y) = aligned_operands(importer, op)?;
    let mut result = importer.add_op(name, &[x.id, y]);
    if x.dtype().is_float() {
        let (of_x, of_y) = (importer.add_op("IsNaN", &[x.id]), importer.add_op("IsNaN", &[y]));
        result = importer.add_op("Where", &[of_x, y, result]);
        result = importer.add_op("Where", &[of_y, x.id, result]);
    }
    importer.set_output(op, "Out", result)
}

/// `atan2`, from the quotient and the half-plane of the point.
fn lower_angle<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (y, x) = (importer.input(op, "X1")?, importer.input(op, "X2")?);
    let zero = add_scalar_like(importer, x, 0.0)?;
    let quotient = importer.add_op("Div", &[y.id, x.id]);
    let angle = importer.add_op("Atan", &[quotient]);
    let (half, whole) = (
        add_scalar_like(importer, x, std::f64::consts::FRAC_PI_2)?,
        add_scalar_like(importer, x, std::f64::consts::PI)?,
    );
    let is_left = importer.add_op("Less", &[x.id, zero]);
    let is_below = importer.add_op("Less", &[y.id, zero]);
    let (more, less) = (importer.add_op("Add", &[angle, whole]), importer.add_op("Sub", &[angle, whole]));
    let turned = importer.add_op("Where", &[is_below, less, more]);
    let aside = importer.add_op("Where", &[is_left, turned, angle]);
    let sign = importer.add_op("Sign", &[y.id]);
    let upright = importer.add_op("Mul", &[sign, half]);
    let is_upright = importer.add_op("Equal", &[x.id, zero]);
    let result = importer.add_op("Where", &[is_upright, upright, aside]);
    importer.set_output(op, "Out", result)
}

/// `x + weight · (y − x)`.
fn lower_lerp<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y, weight) =
        (importer.input(op, "X")?.id, importer.input(op, "Y")?.id, importer.input(op, "Weight")?.id);
    let distance = importer.add_op("Sub", &[y, x]);
    let part = importer.add_op("Mul", &[distance, weight]);
    let result = importer.add_op("Add", &[x, part]);
    importer.set_output(op, "Out", result)
}

/// `scale · x + bias`, or `scale · (x + bias)`.
fn lower_scale<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?.id;
    let dtype = importer.input_dtype(op, "X").unwrap_or(Dtype::F32);
    let factor = match importer.optional_input(op, "ScaleTensor")? {
        Some(given) => Some(given.id),
        None => match op.float_attribute("scale", 1.0) {
            1.0 => None,
            factor => Some(importer.add_scalar(factor, dtype)?),
        },
    };
    let bias = match op.float_attribute("bias", 0.0) {
        0.0 => None,
        bias => Some(importer.add_scalar(bias, dtype)?),
    };
    let (product, total) = (factor.map(|it| ("Mul", it)), bias.map(|it| ("Add", it)));
    let steps = if op.bool_attribute("bias_after_scale", true) { [product, total] } else { [total, product] };
    let step = |value, (name, with)| importer.add_op_with(name, &[value, with], Attributes::new());
    let result = steps.into_iter().flatten().fold(x, step);
    importer.set_output(op, "Out", result)
}

fn lower_pow<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?.id;
    let factor = match importer.optional_input(op, "FactorTensor")? {
        Some(given) => given.id,
        None => {
            let dtype = importer.input_dtype(op, "X").unwrap_or(Dtype::F32);
            importer.add_scalar(op.float_attribute("factor", 1.0), dtype)?
        }
    };
    let result = importer.add_op_with("Pow", &[x, factor], Attributes::new());
    importer.set_output(op, "Out", result)
}

fn lower_sum<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let operands: Vec<ValueId> = importer.inputs(op, "X")?.iter().map(|operand| operand.id).collect();
    let result = importer.add_op_with("Sum", &operands, Attributes::new());
    importer.set_output(op, "Out", result)
}

/// Adds a constant step.
fn lower_increment<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?;
    let step = add_scalar_like(importer, x, op.float_attribute("step", 1.0))?;
    let result = importer.add_op("Add", &[x.id, step]);
    importer.set_output(op, "Out", result)
}
