//! From real numbers to 8 bits and back.

use super::DtypeKinds::Integers;
use super::OpDefinition::Whole;
use super::ReferenceOp;
use super::ToleranceClass::{Exact, Rounded};
use super::array::ReferenceArray;
use super::case::AttributeValue::Int;
use super::case::{ReferenceCall, ReferenceCase, ReferenceOutput};
use super::samples::{CaseMaker, ValueDomain};
use oarlock_abi::Dtype;

pub(super) const OPS: &[ReferenceOp] = &[
    ReferenceOp::new(
        "QuantizeLinear",
        10,
        (Integers, "f32, f32, T -> T"),
        Exact,
        Whole(quantize_cases, quantize),
    ),
    ReferenceOp::new(
        "DequantizeLinear",
        10,
        (Integers, "T, f32, T -> f32"),
        Rounded,
        Whole(dequantize_cases, dequantize),
    ),
];

const BYTES: [Dtype; 2] = [Dtype::I8, Dtype::U8];

/// Input shape, axis, and the shape of the scale: one number, or one along the axis.
const SHAPES: [(&[usize], i64, &[usize]); 4] =
    [(&[2, 3, 5], 1, &[]), (&[2, 3, 5], 1, &[3]), (&[1031], 0, &[]), (&[0, 3], 0, &[])];

/// Scales are powers of 2, so that no division rounds.
fn scales(dims: &[usize]) -> ReferenceArray {
    ReferenceArray::from_fn(dims, |at| 0.25 * 2.0f64.powi(at.first().map_or(0, |index| *index as i32)))
}

fn quantize_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    if !BYTES.contains(&make.dtype) {
        return Vec::new();
    }
    let reals = CaseMaker { dtype: Dtype::F32 };
    let case = |(dims, axis, scale): (&[usize], i64, &[usize])| {
        let inputs = vec![
            reals.array(1, dims, ValueDomain::Small),
            scales(scale),
            make.array(2, scale, ValueDomain::Positive),
        ];
        ReferenceCase::new(inputs)
            .with_attributes(attributes(axis, [("saturate", Int(1)), ("precision", Int(0))]))
    };
    SHAPES.map(case).to_vec()
}

fn attributes<const N: usize>(
    axis: i64,
    more: [(&'static str, super::AttributeValue); N],
) -> Vec<(&'static str, super::AttributeValue)> {
    let common = [("axis", Int(axis)), ("block_size", Int(0)), ("output_dtype", Int(0))];
    common.into_iter().chain(more).collect()
}

/// The scale or zero point for an element.
fn along_axis(call: &ReferenceCall<'_>, index: usize, at: &[usize]) -> f64 {
    let values = call.input(index);
    let axis = call.int("axis").unwrap_or(1) as usize;
    if values.rank() == 0 { values.values[0] } else { values.at(&[at[axis]]) }
}

fn quantize(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let input = call.input(0);
    let (least, most) = if call.dtype == Dtype::I8 { (-128.0, 127.0) } else { (0.0, 255.0) };
    let element = |at: &[usize]| {
        let steps = (input.at(at) / along_axis(call, 1, at)).round_ties_even();
        (steps + along_axis(call, 2, at)).clamp(least, most)
    };
    vec![ReferenceArray::from_fn(&input.dims, element).into()]
}

fn dequantize_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    if !BYTES.contains(&make.dtype) {
        return Vec::new();
    }
    let case = |(dims, axis, scale): (&[usize], i64, &[usize])| {
        let inputs = vec![make.small(1, dims), scales(scale), make.array(2, scale, ValueDomain::Positive)];
        ReferenceCase::new(inputs).with_attributes(attributes(axis, []))
    };
    SHAPES.map(case).to_vec()
}

fn dequantize(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let input = call.input(0);
    let element = |at: &[usize]| (input.at(at) - along_axis(call, 2, at)) * along_axis(call, 1, at);
    vec![ReferenceArray::from_fn(&input.dims, element).into()]
}
