//! The formulas of the ops in terms of ONNX ops. They agree with the kernels up to rounding, infinities and NaN included.

use std::f64::consts::{LN_2, LN_10, PI};

use oarlock_core::{Attribute, Dtype, Result};

use super::decomposition::NodeDecomposition;
use crate::graph::{Node, ValueId};

/// The result of a node by other ops, the last of which makes it; `None` if ONNX has no way to compute it.
pub(super) fn decompose_node(parts: &mut NodeDecomposition<'_>, node: &Node) -> Result<Option<ValueId>> {
    let (Some(a), b) = (node.input(0), node.input(1)) else { return Ok(None) };
    if matches!(parts.dtype, Dtype::C64 | Dtype::C128) {
        return Ok(None);
    }
    let is_float = parts.dtype.is_float();
    Ok(Some(match (&*node.op, b) {
        ("Swish", None)
            if node
                .attributes
                .get_float("alpha")?
                .is_none_or(|alpha| alpha.to_bits() == 1.0_f64.to_bits()) =>
        {
            let gate = parts.op("Sigmoid", [a]);
            parts.op("Mul", [a, gate])
        }
        ("Remainder", Some(b)) if is_float => float_remainder(parts, a, b)?,
        // For integers, `Mod` has the sign of the divisor.
        ("Remainder", Some(b)) => parts.op("Mod", [a, b]),
        ("FloorDivide", Some(b)) if is_float => float_quotient(parts, a, b)?,
        ("FloorDivide", Some(b)) => integer_quotient(parts, a, b)?,
        ("Log1p", None) => log1p(parts, a)?,
        ("Expm1", None) => expm1(parts, a)?,
        ("Log2", None) => log_by(parts, a, LN_2)?,
        ("Log10", None) => log_by(parts, a, LN_10)?,
        ("LogAddExp", Some(b)) => log_add_exp(parts, a, b)?,
        ("Atan2", Some(b)) => atan2(parts, a, b)?,
        ("Hypot", Some(b)) => hypot(parts, a, b)?,
        ("CopySign", Some(b)) => copy_sign(parts, a, b)?,
        ("SignBit", None) if is_float => is_negative(parts, a)?,
        ("IsFinite", None) => {
            let (magnitude, infinity) = (parts.op("Abs", [a]), parts.number(f64::INFINITY)?);
            parts.op("Less", [magnitude, infinity])
        }
        ("Trunc", None) if is_float => truncated(parts, a)?,
        ("ShiftLeft", Some(b)) => shift_left(parts, a, b),
        ("ShiftRight", Some(b)) => shift_right(parts, a, b)?,
        _ => return Ok(None),
    }))
}

/// The remainder as C has it, with the sign of the dividend, and where that of the divisor differs.
fn truncated_remainder(parts: &mut NodeDecomposition<'_>, a: ValueId, b: ValueId) -> Result<[ValueId; 2]> {
    let remainder = parts.op_with("Mod", [a, b], Some(("fmod", Attribute::Int(1))));
    Ok([remainder, signs_differ(parts, remainder, b)?])
}

/// The remainder with the sign of the divisor.
fn float_remainder(parts: &mut NodeDecomposition<'_>, a: ValueId, b: ValueId) -> Result<ValueId> {
    let [truncated, is_off] = truncated_remainder(parts, a, b)?;
    let moved = parts.op("Add", [truncated, b]);
    Ok(parts.op("Where", [is_off, moved, truncated]))
}

/// The quotient of what is left without the remainder, which is nearly an integer.
fn float_quotient(parts: &mut NodeDecomposition<'_>, a: ValueId, b: ValueId) -> Result<ValueId> {
    let (zero, one) = (parts.number(0.0)?, parts.number(1.0)?);
    let [truncated, is_off] = truncated_remainder(parts, a, b)?;
    let rest = parts.op("Sub", [a, truncated]);
    let towards_zero = parts.op("Div", [rest, b]);
    let below = parts.op("Sub", [towards_zero, one]);
    let chosen = parts.op("Where", [is_off, below, towards_zero]);
    let rounded = parts.op("Round", [chosen]);
    // These have no remainder.
    let (is_infinite, is_zero) = (parts.op("IsInf", [a]), parts.op("Equal", [b, zero]));
    let (is_plain, plain) = (parts.op("Or", [is_infinite, is_zero]), parts.op("Div", [a, b]));
    Ok(parts.op("Where", [is_plain, plain, rounded]))
}

/// `Div` rounds towards zero, so negative quotients that are not exact are one too large.
fn integer_quotient(parts: &mut NodeDecomposition<'_>, a: ValueId, b: ValueId) -> Result<ValueId> {
    let towards_zero = parts.op("Div", [a, b]);
    if matches!(parts.dtype, Dtype::U8 | Dtype::U16 | Dtype::U32 | Dtype::U64) {
        return Ok(towards_zero);
    }
    let product = parts.op("Mul", [towards_zero, b]);
    let rest = parts.op("Sub", [a, product]);
    let is_off = signs_differ(parts, rest, b)?;
    let one = parts.cast(is_off, parts.dtype);
    Ok(parts.op("Sub", [towards_zero, one]))
}

/// True where a remainder is not zero and has another sign than the divisor.
fn signs_differ(parts: &mut NodeDecomposition<'_>, remainder: ValueId, divisor: ValueId) -> Result<ValueId> {
    let zero = parts.number(0.0)?;
    let is_exact = parts.op("Equal", [remainder, zero]);
    let signs = [remainder, divisor].map(|value| parts.op("Less", [value, zero]));
    let (is_inexact, differ) = (parts.op("Not", [is_exact]), parts.op("Xor", signs));
    Ok(parts.op("And", [is_inexact, differ]))
}

/// `log(u) · x / (u − 1)` with `u = 1 + x`: the rounding errors of `u` cancel.
fn log1p(parts: &mut NodeDecomposition<'_>, x: ValueId) -> Result<ValueId> {
    let (zero, one) = (parts.number(0.0)?, parts.number(1.0)?);
    let sum = parts.op("Add", [x, one]);
    let log = parts.op("Log", [sum]);
    let rounded = parts.op("Sub", [sum, one]);
    let ratio = parts.op("Div", [x, rounded]);
    let corrected = parts.op("Mul", [log, ratio]);
    let is_tiny = parts.op("Equal", [rounded, zero]);
    let small = parts.op("Where", [is_tiny, x, corrected]);
    // Also where both are infinite.
    let is_exact = parts.op("Equal", [rounded, x]);
    Ok(parts.op("Where", [is_exact, log, small]))
}

/// `(u − 1) · x / log(u)` with `u = exp(x)`: the rounding errors of `u` cancel.
fn expm1(parts: &mut NodeDecomposition<'_>, x: ValueId) -> Result<ValueId> {
    let one = parts.number(1.0)?;
    let power = parts.op("Exp", [x]);
    let rounded = parts.op("Sub", [power, one]);
    let log = parts.op("Log", [power]);
    let ratio = parts.op("Div", [x, log]);
    let corrected = parts.op("Mul", [rounded, ratio]);
    let is_one = parts.op("Equal", [power, one]);
    let small = parts.op("Where", [is_one, x, corrected]);
    let magnitude = parts.op("Abs", [x]);
    let is_large = parts.op("Greater", [magnitude, one]);
    Ok(parts.op("Where", [is_large, rounded, small]))
}

/// The logarithm for the base whose natural logarithm is given.
fn log_by(parts: &mut NodeDecomposition<'_>, x: ValueId, log_of_base: f64) -> Result<ValueId> {
    let (log, by) = (parts.op("Log", [x]), parts.number(log_of_base)?);
    Ok(parts.op("Div", [log, by]))
}

/// `max(a, b) + log1p(exp(−|a − b|))`; equal infinities have no difference.
fn log_add_exp(parts: &mut NodeDecomposition<'_>, a: ValueId, b: ValueId) -> Result<ValueId> {
    let ln_2 = parts.number(LN_2)?;
    let larger = parts.op("Max", [a, b]);
    let difference = parts.op("Sub", [a, b]);
    let distance = parts.op("Abs", [difference]);
    let negative = parts.op("Neg", [distance]);
    let power = parts.op("Exp", [negative]);
    let rest = log1p(parts, power)?;
    let sum = parts.op("Add", [larger, rest]);
    let twice = parts.op("Add", [a, ln_2]);
    let is_equal = parts.op("Equal", [a, b]);
    Ok(parts.op("Where", [is_equal, twice, sum]))
}

/// The angle of the point (x, y): that of its slope, plus half a turn to the left of the axis.
fn atan2(parts: &mut NodeDecomposition<'_>, y: ValueId, x: ValueId) -> Result<ValueId> {
    let (zero, half_turn) = (parts.number(0.0)?, parts.number(PI)?);
    // Two infinities have the slope 1.
    let infinite = [y, x].map(|value| parts.op("IsInf", [value]));
    let both = parts.op("And", infinite);
    let slope_of = [y, x].map(|value| {
        let sign = parts.op("Sign", [value]);
        parts.op("Where", [both, sign, value])
    });
    let slope = parts.op("Div", slope_of);
    let angle = parts.op("Atan", [slope]);
    let is_flat = parts.op("Equal", [y, zero]);
    let right = parts.op("Where", [is_flat, y, angle]);
    let turn = copy_sign(parts, half_turn, y)?;
    let left = parts.op("Add", [right, turn]);
    let is_left = is_negative(parts, x)?;
    let turned = parts.op("Where", [is_left, left, right]);
    let sum = parts.op("Add", [x, y]);
    let is_nan = parts.op("IsNaN", [x]);
    Ok(parts.op("Where", [is_nan, sum, turned]))
}

/// The larger magnitude times `sqrt(1 + (smaller / larger)²)`, so that no square overflows.
fn hypot(parts: &mut NodeDecomposition<'_>, a: ValueId, b: ValueId) -> Result<ValueId> {
    let (zero, one, infinity) = (parts.number(0.0)?, parts.number(1.0)?, parts.number(f64::INFINITY)?);
    let magnitudes = [a, b].map(|value| parts.op("Abs", [value]));
    let (larger, smaller) = (parts.op("Max", magnitudes), parts.op("Min", magnitudes));
    let ratio = parts.op("Div", [smaller, larger]);
    let square = parts.op("Mul", [ratio, ratio]);
    let sum = parts.op("Add", [square, one]);
    let root = parts.op("Sqrt", [sum]);
    let product = parts.op("Mul", [larger, root]);
    let is_zero = parts.op("Equal", [larger, zero]);
    let length = parts.op("Where", [is_zero, zero, product]);
    // An infinite side makes an infinite length, whatever the other one is.
    let infinite = magnitudes.map(|value| parts.op("Equal", [value, infinity]));
    let is_infinite = parts.op("Or", infinite);
    Ok(parts.op("Where", [is_infinite, infinity, length]))
}

fn copy_sign(parts: &mut NodeDecomposition<'_>, magnitude: ValueId, sign: ValueId) -> Result<ValueId> {
    let positive = parts.op("Abs", [magnitude]);
    let negative = parts.op("Neg", [positive]);
    let is_negative = is_negative(parts, sign)?;
    Ok(parts.op("Where", [is_negative, negative, positive]))
}

/// True for negative numbers and for -0, whose reciprocal is negative.
fn is_negative(parts: &mut NodeDecomposition<'_>, x: ValueId) -> Result<ValueId> {
    let zero = parts.number(0.0)?;
    let reciprocal = parts.op("Reciprocal", [x]);
    let either = [x, reciprocal].map(|value| parts.op("Less", [value, zero]));
    Ok(parts.op("Or", either))
}

/// Rounds towards zero.
fn truncated(parts: &mut NodeDecomposition<'_>, x: ValueId) -> Result<ValueId> {
    let zero = parts.number(0.0)?;
    let is_negative = parts.op("Less", [x, zero]);
    let (up, down) = (parts.op("Ceil", [x]), parts.op("Floor", [x]));
    Ok(parts.op("Where", [is_negative, up, down]))
}

/// ONNX shifts only unsigned integers; the lower bits of others are the same.
fn shift_left(parts: &mut NodeDecomposition<'_>, a: ValueId, b: ValueId) -> ValueId {
    bit_shift(parts, a, b, "LEFT")
}

/// Negative numbers are shifted as their complement, so that ones come in.
fn shift_right(parts: &mut NodeDecomposition<'_>, a: ValueId, b: ValueId) -> Result<ValueId> {
    let zero = parts.number(0.0)?;
    let is_negative = parts.op("Less", [a, zero]);
    let complement = parts.op("BitwiseNot", [a]);
    let positive = parts.op("Where", [is_negative, complement, a]);
    let shifted = bit_shift(parts, positive, b, "RIGHT");
    let back = parts.op("BitwiseNot", [shifted]);
    Ok(parts.op("Where", [is_negative, back, shifted]))
}

fn bit_shift(parts: &mut NodeDecomposition<'_>, a: ValueId, b: ValueId, direction: &str) -> ValueId {
    let dtype = parts.dtype;
    let bits = [a, b].map(|value| parts.cast(value, Dtype::U64));
    let shifted = parts.op_with("BitShift", bits, Some(("direction", Attribute::String(direction.into()))));
    parts.cast(shifted, dtype)
}
