//! Ops that work element by element: each output has the shape of the input, or of all inputs repeated to one another.

use super::call::{Call, wrong_attribute};
use super::fact::{Dim, Listed, PartialDims};
use super::output::{Output, Shape, broadcast, one};
use super::table::{LATEST, Rule, rule};
use crate::{Dtype, Result};

pub(super) const RULES: &[Rule] = &[
    rule(
        "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Cos Cosh Erf Exp Floor Neg Not",
        1,
        LATEST,
        &[],
        same,
    ),
    rule("Reciprocal Round Sign Sin Sinh Sqrt Tan Tanh Log IsNaN IsInf Identity", 1, LATEST, &[], same),
    rule("Celu Elu Gelu HardSigmoid HardSwish LeakyRelu Mish Relu Selu Shrink Sigmoid", 1, LATEST, &[], same),
    rule("Softplus Softsign Swish ThresholdedRelu RegexFullMatch", 1, LATEST, &[], same),
    rule("Softmax LogSoftmax Hardmax LpNormalization", 1, LATEST, &[], along_axis),
    rule("CumSum CumProd", 11, LATEST, &[], cumulative),
    rule("OptionalGetElement", 15, LATEST, &[], element),
    rule("OptionalHasElement", 15, LATEST, &[], |_| one(PartialDims::new())),
    rule("Clip", 1, LATEST, &[], clip),
    rule("Dropout", 1, LATEST, &[], dropout),
    rule("Trilu", 14, LATEST, &[], trilu),
    rule("Add Sub Mul Div And Or Xor Equal Greater Less Pow", 1, 6, &[], repeated_from_axis),
    rule("Add Sub Mul Div And Or Xor Equal Greater Less Pow", 7, LATEST, &[], repeated),
    rule("GreaterOrEqual LessOrEqual Mod BitwiseAnd BitwiseOr BitwiseXor", 10, LATEST, &[], repeated),
    rule("BitShift StringConcat", 11, LATEST, &[], repeated),
    rule("Where", 9, LATEST, &[], repeated),
    rule("SwiGLU", 28, LATEST, &[], equal),
    rule("Max Min Mean Sum", 1, 7, &[], equal),
    rule("Max Min Mean Sum", 8, LATEST, &[], repeated),
    rule(
        "Neg Conj Reciprocal Sign Sqrt Exp Log Sin Cos Tan Sinh Cosh Tanh IsInf IsNaN",
        1,
        LATEST,
        &[],
        same,
    )
    .of_domain("oarlock"),
    rule("Asin Acos Atan Asinh Acosh Atanh", 1, LATEST, &[], same).of_domain("oarlock"),
    rule("Add Sub Mul Div Pow Equal", 1, LATEST, &[], repeated).of_domain("oarlock"),
    rule("Abs Real Imag", 1, LATEST, &[], part).of_domain("oarlock"),
    rule("Complex", 1, LATEST, &[], whole).of_domain("oarlock"),
    rule("Expm1 IsFinite Log10 Log1p Log2 SignBit Trunc", 1, LATEST, &[], same).of_domain("oarlock"),
    rule("Atan2 CopySign FloorDivide Hypot LogAddExp NextAfter Remainder", 1, LATEST, &[], repeated)
        .of_domain("oarlock"),
    rule("ShiftLeft ShiftRight", 1, LATEST, &[], repeated).of_domain("oarlock"),
    rule("PRelu", 1, 6, &[], same),
    rule("PRelu", 7, LATEST, &[], repeated_to_first),
];

/// The shape of the input.
pub(super) fn same(call: &Call<'_>) -> Result<Vec<Output>> {
    one(call.shape(0)?)
}

/// A part of complex numbers.
fn part(call: &Call<'_>) -> Result<Vec<Output>> {
    let dtype = if call.input(0)?.dtype == Dtype::C64 { Dtype::F32 } else { Dtype::F64 };
    one(Output::from(call.shape(0)?).of_dtype(dtype))
}

/// Complex numbers of their parts.
fn whole(call: &Call<'_>) -> Result<Vec<Output>> {
    let dtype = if call.input(0)?.dtype == Dtype::F32 { Dtype::C64 } else { Dtype::C128 };
    Ok(repeated(call)?.into_iter().map(|output| output.of_dtype(dtype)).collect())
}

/// What may be there is a tensor that is.
fn element(call: &Call<'_>) -> Result<Vec<Output>> {
    one(Output::from(call.shape(0)?).of_dtype(call.input(0)?.dtype))
}

/// The shape of the input, which has the axis that the attribute names.
fn along_axis(call: &Call<'_>) -> Result<Vec<Output>> {
    if let Some(dims) = call.dims(0)? {
        // Before version 11 the axis was where to flatten, and that may be behind the last dimension.
        let places = if call.version() < 11 { dims.len() + 1 } else { dims.len().max(1) };
        call.axis("axis", -1, places)?;
    }
    same(call)
}

fn cumulative(call: &Call<'_>) -> Result<Vec<Output>> {
    if let (Some(dims), Dim::Known(axis)) = (call.dims(0)?, call.int_value(1)?) {
        crate::shape::axis(axis, dims.len()).map_err(call.blame(1))?;
    }
    same(call)
}

fn clip(call: &Call<'_>) -> Result<Vec<Output>> {
    call.expect_one_element(1)?;
    call.expect_one_element(2)?;
    same(call)
}

fn dropout(call: &Call<'_>) -> Result<Vec<Output>> {
    call.expect_one_element(1)?;
    call.expect_one_element(2)?;
    Ok(vec![call.shape(0)?.into(), call.shape(0)?.into()])
}

fn trilu(call: &Call<'_>) -> Result<Vec<Output>> {
    call.dims_of_at_least(0, 2)?;
    call.expect_one_element(1)?;
    same(call)
}

/// The shape that all inputs are repeated to.
fn repeated(call: &Call<'_>) -> Result<Vec<Output>> {
    let mut all: Shape = call.shape(0)?;
    for input in 1..call.input_count() {
        all = broadcast(&all, &call.shape(input)?).map_err(call.blame(input))?;
    }
    one(all)
}

/// The shape of the first input, which the others have too.
fn equal(call: &Call<'_>) -> Result<Vec<Output>> {
    let mut all: Shape = call.shape(0)?;
    for input in 1..call.input_count() {
        let next = call.shape(input)?;
        all = match all {
            Some(dims) => {
                call.expect_dims(input, &dims)?;
                let next = next.unwrap_or_else(|| dims.clone());
                Some(dims.into_iter().zip(next).map(|(a, b)| a.or(b)).collect())
            }
            None => next,
        };
    }
    one(all)
}

/// The shape of the first input, which the second one is repeated to.
fn repeated_to_first(call: &Call<'_>) -> Result<Vec<Output>> {
    expect_repeats_to(call, 1, &call.shape(0)?)?;
    same(call)
}

/// Checks that an input, where it is given, can be repeated to a shape.
pub(super) fn expect_repeats_to(call: &Call<'_>, input: usize, target: &Shape) -> Result<()> {
    let (Some(fact), Some(target)) = (call.given(input), target) else { return Ok(()) };
    let Some(dims) = &fact.dims else { return Ok(()) };
    let fits = |(dim, target): (&Dim, &Dim)| *dim == Dim::Known(1) || dim.agrees(*target);
    if dims.len() <= target.len() && dims.iter().rev().zip(target.iter().rev()).all(fits) {
        return Ok(());
    }
    Err(call.wrong(input, format!("a shape that repeats to {}", Listed(target)), Listed(dims)))
}

/// The shape of the first input. The second one's dimensions are some of its, from `axis` on or the last ones, and it
/// is repeated only where `broadcast` says so.
fn repeated_from_axis(call: &Call<'_>) -> Result<Vec<Output>> {
    let (Some(left), Some(right)) = (call.dims(0)?, call.dims(1)?) else { return same(call) };
    if !call.flag("broadcast", false)? {
        return equal(call);
    }
    if right.len() > left.len() {
        return Err(call.wrong(1, format!("at most {} dimensions", left.len()), Listed(right)));
    }
    let last_start = left.len() - right.len();
    let start = match call.int("axis")? {
        None => last_start,
        Some(axis) => {
            // The same count from the end that the axis has from the start.
            let from_start = if axis < 0 { axis.saturating_add_unsigned(left.len() as u64) } else { axis };
            let start = usize::try_from(from_start).ok().filter(|start| *start <= last_start);
            start.ok_or_else(|| wrong_attribute("axis", format!("at most {last_start}"), axis))?
        }
    };
    let expected = &left[start..start + right.len()];
    if right.iter().zip(expected).all(|(dim, target)| *dim == Dim::Known(1) || dim.agrees(*target)) {
        return same(call);
    }
    Err(call.wrong(1, format!("the shape {}", Listed(expected)), Listed(right)))
}
