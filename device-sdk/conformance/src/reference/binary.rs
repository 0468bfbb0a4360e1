//! Element-wise ops with several inputs.

use super::DtypeKinds::{All, Bool, Floats, Integers, Numbers, SignedNumbers, Unsigned};
use super::OpDefinition::{Binary, Comparison, Several, Whole};
use super::ToleranceClass::{Composed, Exact, Function, Rounded};
use super::array::{ReferenceArray, broadcast_dims};
use super::case::AttributeValue::{Int, Text};
use super::case::{ReferenceCase, ReferenceOutput, TermSum};
use super::samples::ValueDomain::{Counts, NonZero, Positive, Small};
use super::{BinaryFunction, CaseMaker, DtypeKinds, ReferenceCall, ReferenceOp, ToleranceClass};
use crate::elements::is_float;
use oarlock_abi::Dtype;

pub(super) const OPS: &[ReferenceOp] = &[
    same("Add", 7, Numbers, Rounded, |_, x, y| x + y).with_specials(),
    same("Sub", 7, SignedNumbers, Rounded, |_, x, y| x - y).with_specials(),
    same("Sub", 7, Unsigned, Exact, |_, x, y| x - y),
    same("Mul", 7, Numbers, Rounded, |_, x, y| x * y).with_specials(),
    ReferenceOp::new("Div", 7, (Numbers, "T, T -> T"), Rounded, Binary(Small, NonZero, divide)),
    ReferenceOp::new("Mod", 10, (Integers, "T, T -> T"), Exact, Binary(Small, NonZero, modulo))
        .with_attributes(|| vec![vec![("fmod", Int(1))], vec![("fmod", Int(0))]]),
    ReferenceOp::new("Mod", 10, (Floats, "T, T -> T"), Composed, Binary(Small, NonZero, modulo))
        .with_attributes(|| vec![vec![("fmod", Int(1))]]),
    ReferenceOp::new(
        "Pow",
        13,
        (Numbers, "T, T -> T"),
        Function,
        Binary(Positive, Counts, |_, x, y| x.powf(y)),
    ),
    same("PRelu", 7, SignedNumbers, Rounded, |_, x, slope| if x < 0.0 { x * slope } else { x }),
    ReferenceOp::new("BitShift", 11, (Unsigned, "T, T -> T"), Exact, Binary(Small, Counts, shift))
        .with_attributes(|| vec![vec![("direction", Text("LEFT"))], vec![("direction", Text("RIGHT"))]]),
    same("BitwiseAnd", 18, Integers, Exact, |_, x, y| (x as i64 & y as i64) as f64),
    same("BitwiseOr", 18, Integers, Exact, |_, x, y| (x as i64 | y as i64) as f64),
    same("BitwiseXor", 18, Integers, Exact, |_, x, y| (x as i64 ^ y as i64) as f64),
    same("And", 7, Bool, Exact, |_, x, y| x * y),
    same("Or", 7, Bool, Exact, |_, x, y| x.max(y)),
    same("Xor", 7, Bool, Exact, |_, x, y| (x - y).abs()),
    same("SwiGLU", 28, Floats, Composed, |_, gate, x| gate / (1.0 + (-gate).exp()) * x),
    compare("Equal", All, |x, y| x == y),
    compare("Greater", Numbers, |x, y| x > y),
    compare("Less", Numbers, |x, y| x < y),
    compare("GreaterOrEqual", Numbers, |x, y| x >= y),
    compare("LessOrEqual", Numbers, |x, y| x <= y),
    several("Max", Numbers, Exact, |terms| {
        fold_terms(terms, |x, y| if x.is_nan() || y <= x { x } else { y })
    }),
    several("Min", Numbers, Exact, |terms| {
        fold_terms(terms, |x, y| if x.is_nan() || y >= x { x } else { y })
    }),
    several("Sum", Floats, Rounded, TermSum::of_terms),
    several("Mean", Floats, Composed, |terms| {
        let (count, sum) = (terms.len() as f64, TermSum::of_terms(terms));
        TermSum { value: sum.value / count, magnitude: sum.magnitude / count }
    }),
    ReferenceOp::new("Where", 9, (All, "bool, T, T -> T"), Exact, Whole(where_cases, select)),
    ReferenceOp::new("Clip", 11, (Numbers, "T, T, T -> T"), Exact, Whole(clip_cases, clip)),
];

const fn same(
    name: &'static str,
    since: u32,
    kinds: DtypeKinds,
    tolerance: ToleranceClass,
    function: BinaryFunction,
) -> ReferenceOp {
    ReferenceOp::new(name, since, (kinds, "T, T -> T"), tolerance, Binary(Small, Small, function))
}

const fn compare(name: &'static str, kinds: DtypeKinds, function: fn(f64, f64) -> bool) -> ReferenceOp {
    ReferenceOp::new(name, 7, (kinds, "T, T -> bool"), Exact, Comparison(function)).with_specials()
}

/// An op of any number of inputs.
const fn several(
    name: &'static str,
    kinds: DtypeKinds,
    tolerance: ToleranceClass,
    function: fn(Vec<f64>) -> TermSum,
) -> ReferenceOp {
    ReferenceOp::new(name, 8, (kinds, "T* -> T"), tolerance, Several(function))
}

fn fold_terms(terms: Vec<f64>, choose: fn(f64, f64) -> f64) -> TermSum {
    let value = terms.into_iter().reduce(choose).unwrap_or_default();
    TermSum { value, magnitude: value.abs() }
}

fn divide(call: &ReferenceCall<'_>, x: f64, y: f64) -> f64 {
    if is_float(call.dtype) { x / y } else { (x / y).trunc() }
}

/// The remainder with the sign of the dividend (`fmod`), or of the divisor, which is for integers alone.
fn modulo(call: &ReferenceCall<'_>, x: f64, y: f64) -> f64 {
    if call.int("fmod") == Some(1) { x % y } else { x - y * (x / y).floor() }
}

fn shift(call: &ReferenceCall<'_>, x: f64, distance: f64) -> f64 {
    if call.text("direction") == "LEFT" { x * distance.exp2() } else { (x / distance.exp2()).floor() }
}

/// Calls of an op with one, two, three and five inputs that are broadcast.
pub(super) fn several_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    const SEVEN: &[usize] = &[7];
    let shapes: [&[&[usize]]; 6] = [
        &[&[2, 3, 5]],
        &[&[1031], &[1031]],
        &[&[4, 1, 3], &[2, 1], &[1]],
        &[&[0, 2], &[2]],
        &[&[], &[]],
        &[SEVEN; 5],
    ];
    let arrays = |dims: &[&[usize]]| (1u64..).zip(dims).map(|(seed, dims)| make.small(seed, dims)).collect();
    shapes.into_iter().map(|dims| ReferenceCase::new(arrays(dims))).collect()
}

pub(super) fn compute_several(
    call: &ReferenceCall<'_>,
    function: fn(Vec<f64>) -> TermSum,
) -> ReferenceOutput {
    let inputs: Vec<&ReferenceArray> = call.inputs.iter().flatten().collect();
    let dims = broadcast_dims(inputs.iter().map(|input| &*input.dims));
    ReferenceOutput::from_fn(&dims, |at| {
        let sum = function(inputs.iter().map(|input| input.broadcast_at(at)).collect());
        (sum.value, sum.magnitude)
    })
}

fn where_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let shapes: [[&[usize]; 3]; 6] = [
        [&[2, 3, 5]; 3],
        [&[1031]; 3],
        [&[4, 1, 3], &[2, 1], &[1]],
        [&[1], &[3, 5], &[3, 1]],
        [&[0, 3], &[3], &[1, 1]],
        [&[]; 3],
    ];
    let condition = |dims: &[usize]| CaseMaker { dtype: Dtype::BOOL }.small(3, dims);
    let inputs = |[first, second, third]: [&[usize]; 3]| {
        ReferenceCase::new(vec![condition(first), make.small(1, second), make.small(2, third)])
    };
    shapes.into_iter().map(inputs).collect()
}

fn select(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let [condition, chosen, other] = [0, 1, 2].map(|index| call.input(index));
    let dims = broadcast_dims([condition, chosen, other].map(|input| &*input.dims));
    let element =
        |at: &[usize]| if condition.broadcast_at(at) != 0.0 { chosen } else { other }.broadcast_at(at);
    vec![ReferenceArray::from_fn(&dims, element).into()]
}

fn clip_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let [low, high] = [1.0, 3.0].map(ReferenceArray::from_scalar);
    let case = |dims: &[usize]| ReferenceCase::new(vec![make.small(1, dims)]);
    vec![
        case(&[2, 3, 5]).with_input(low.clone()).with_input(high.clone()),
        case(&[1031]).with_input(low.clone()).with_input(high.clone()),
        case(&[2, 3, 5]).with_absent_input().with_input(high.clone()),
        case(&[2, 3, 5]).with_input(low.clone()),
        case(&[0]).with_input(low.clone()).with_input(high.clone()),
        case(&[7]).with_input(high).with_input(low).named("the lower limit is above the upper"),
        case(&[2, 3, 5]),
    ]
}

fn clip(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let limit = |index, none| call.optional(index).map_or(none, |limit| limit.values[0]);
    let (low, high) = (limit(1, f64::NEG_INFINITY), limit(2, f64::INFINITY));
    let input = call.input(0);
    let values = input.values.iter().map(|x| x.max(low).min(high)).collect();
    vec![ReferenceArray::new(&input.dims, values).into()]
}
