//! Elementwise ops: outputs have the shape of the input, or the shape to which all inputs broadcast.

use super::context::{InferenceContext, attribute_error};
use super::fact::{DisplayDims, PartialDim, PartialDims};
use super::output::{InferredOutput, PartialShape, broadcast_shapes, single_output};
use super::rule::{InferenceRule, LATEST, rule};
use crate::{Dtype, Result};

pub(super) const RULES: &[InferenceRule] = &[
    rule(
        "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Cos Cosh Erf Exp Floor Neg Not",
        1,
        LATEST,
        &[],
        infer_same_shape,
    ),
    rule(
        "Reciprocal Round Sign Sin Sinh Sqrt Tan Tanh Log IsNaN IsInf Identity",
        1,
        LATEST,
        &[],
        infer_same_shape,
    ),
    rule(
        "Celu Elu Gelu HardSigmoid HardSwish LeakyRelu Mish Relu Selu Shrink Sigmoid",
        1,
        LATEST,
        &[],
        infer_same_shape,
    ),
    rule("Softplus Softsign Swish ThresholdedRelu RegexFullMatch", 1, LATEST, &[], infer_same_shape),
    rule("Softmax LogSoftmax Hardmax LpNormalization", 1, LATEST, &[], infer_along_axis),
    rule("CumSum CumProd", 11, LATEST, &[], infer_cumulative),
    rule("OptionalGetElement", 15, LATEST, &[], infer_optional_element),
    rule("OptionalHasElement", 15, LATEST, &[], |_| single_output(PartialDims::new())),
    rule("Clip", 1, LATEST, &[], infer_clip),
    rule("Dropout", 1, LATEST, &[], infer_dropout),
    rule("Trilu", 14, LATEST, &[], infer_trilu),
    rule("Add Sub Mul Div And Or Xor Equal Greater Less Pow", 1, 6, &[], infer_broadcast_from_axis),
    rule("Add Sub Mul Div And Or Xor Equal Greater Less Pow", 7, LATEST, &[], infer_broadcast),
    rule("GreaterOrEqual LessOrEqual Mod BitwiseAnd BitwiseOr BitwiseXor", 10, LATEST, &[], infer_broadcast),
    rule("BitShift StringConcat", 11, LATEST, &[], infer_broadcast),
    rule("Where", 9, LATEST, &[], infer_broadcast),
    rule("SwiGLU", 28, LATEST, &[], infer_equal_shapes),
    rule("Max Min Mean Sum", 1, 7, &[], infer_equal_shapes),
    rule("Max Min Mean Sum", 8, LATEST, &[], infer_broadcast),
    rule(
        "Neg Conj Reciprocal Sign Sqrt Exp Log Sin Cos Tan Sinh Cosh Tanh IsInf IsNaN",
        1,
        LATEST,
        &[],
        infer_same_shape,
    )
    .in_oarlock_domain(),
    rule("Asin Acos Atan Asinh Acosh Atanh", 1, LATEST, &[], infer_same_shape).in_oarlock_domain(),
    rule("Add Sub Mul Div Pow Equal FusedElementwise", 1, LATEST, &[], infer_broadcast).in_oarlock_domain(),
    rule("Abs Real Imag", 1, LATEST, &[], infer_complex_part).in_oarlock_domain(),
    rule("Complex", 1, LATEST, &[], infer_complex).in_oarlock_domain(),
    rule("Expm1 IsFinite Log10 Log1p Log2 SignBit Trunc", 1, LATEST, &[], infer_same_shape)
        .in_oarlock_domain(),
    rule("Atan2 CopySign FloorDivide Hypot LogAddExp NextAfter Remainder", 1, LATEST, &[], infer_broadcast)
        .in_oarlock_domain(),
    rule("ShiftLeft ShiftRight", 1, LATEST, &[], infer_broadcast).in_oarlock_domain(),
    rule("PRelu", 1, 6, &[], infer_same_shape),
    rule("PRelu", 7, LATEST, &[], infer_broadcast_to_first),
];

pub(super) fn infer_same_shape(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    single_output(call.input_shape(0)?)
}

/// The real or imaginary part, or the magnitude: the dtype becomes real.
fn infer_complex_part(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let dtype = if call.input(0)?.dtype == Dtype::C64 { Dtype::F32 } else { Dtype::F64 };
    single_output(InferredOutput::from(call.input_shape(0)?).with_dtype(dtype))
}

/// Two real inputs become one complex output.
fn infer_complex(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let dtype = if call.input(0)?.dtype == Dtype::F32 { Dtype::C64 } else { Dtype::C128 };
    Ok(infer_broadcast(call)?.into_iter().map(|output| output.with_dtype(dtype)).collect())
}

/// An optional that reaches inference is always a tensor.
fn infer_optional_element(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    single_output(InferredOutput::from(call.input_shape(0)?).with_dtype(call.input(0)?.dtype))
}

/// The output has the shape of the input; the axis is only checked.
fn infer_along_axis(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    if let Some(dims) = call.input_dims(0)? {
        // Before version 11, the axis is where to flatten, so it may be one past the last dimension.
        let places = if call.version() < 11 { dims.len() + 1 } else { dims.len().max(1) };
        call.axis_attribute("axis", -1, places)?;
    }
    infer_same_shape(call)
}

fn infer_cumulative(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    if let (Some(dims), PartialDim::Known(axis)) = (call.input_dims(0)?, call.input_int(1)?) {
        crate::shape::resolve_axis(axis, dims.len()).map_err(call.blame_input(1))?;
    }
    infer_same_shape(call)
}

fn infer_clip(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    call.expect_one_element(1)?;
    call.expect_one_element(2)?;
    infer_same_shape(call)
}

fn infer_dropout(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    call.expect_one_element(1)?;
    call.expect_one_element(2)?;
    Ok(vec![call.input_shape(0)?.into(), call.input_shape(0)?.into()])
}

fn infer_trilu(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    call.dims_of_at_least(0, 2)?;
    call.expect_one_element(1)?;
    infer_same_shape(call)
}

fn infer_broadcast(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let mut all: PartialShape = call.input_shape(0)?;
    for input in 1..call.input_count() {
        all = broadcast_shapes(&all, &call.input_shape(input)?).map_err(call.blame_input(input))?;
    }
    single_output(all)
}

/// All inputs must have the same shape.
fn infer_equal_shapes(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let mut all: PartialShape = call.input_shape(0)?;
    for input in 1..call.input_count() {
        let next = call.input_shape(input)?;
        all = match all {
            Some(dims) => {
                call.expect_dims(input, &dims)?;
                let next = next.unwrap_or_else(|| dims.clone());
                Some(dims.into_iter().zip(next).map(|(a, b)| a.refine_with(b)).collect())
            }
            None => next,
        };
    }
    single_output(all)
}

/// The second input broadcasts to the first, but not the first to the second.
fn infer_broadcast_to_first(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    expect_broadcasts_to(call, 1, &call.input_shape(0)?)?;
    infer_same_shape(call)
}

/// Checks that an input broadcasts to a shape. A left-out input passes.
pub(super) fn expect_broadcasts_to(
    call: &InferenceContext<'_>,
    input: usize,
    target: &PartialShape,
) -> Result<()> {
    let (Some(fact), Some(target)) = (call.optional_input(input), target) else { return Ok(()) };
    let Some(dims) = &fact.dims else { return Ok(()) };
    let fits =
        |(dim, target): (&PartialDim, &PartialDim)| *dim == PartialDim::Known(1) || dim.may_equal(*target);
    if dims.len() <= target.len() && dims.iter().rev().zip(target.iter().rev()).all(fits) {
        return Ok(());
    }
    Err(call.input_error(
        input,
        format!("a shape that repeats to {}", DisplayDims(target)),
        DisplayDims(dims),
    ))
}

/// The old broadcasting rule: if `broadcast` is set, the second input's dimensions match those of the first from
/// `axis` on, or the last ones.
fn infer_broadcast_from_axis(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let (Some(left), Some(right)) = (call.input_dims(0)?, call.input_dims(1)?) else {
        return infer_same_shape(call);
    };
    if !call.flag_attribute("broadcast", false)? {
        return infer_equal_shapes(call);
    }
    if right.len() > left.len() {
        return Err(call.input_error(1, format!("at most {} dimensions", left.len()), DisplayDims(right)));
    }
    let last_start = left.len() - right.len();
    let start = match call.int_attribute("axis")? {
        None => last_start,
        Some(axis) => {
            // Negative axes count from the end.
            let from_start = if axis < 0 { axis.saturating_add_unsigned(left.len() as u64) } else { axis };
            let start = usize::try_from(from_start).ok().filter(|start| *start <= last_start);
            start.ok_or_else(|| attribute_error("axis", format!("at most {last_start}"), axis))?
        }
    };
    let expected = &left[start..start + right.len()];
    if right.iter().zip(expected).all(|(dim, target)| *dim == PartialDim::Known(1) || dim.may_equal(*target))
    {
        return infer_same_shape(call);
    }
    Err(call.input_error(1, format!("the shape {}", DisplayDims(expected)), DisplayDims(right)))
}
