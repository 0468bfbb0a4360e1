//! Products of matrices.

use oarlock_abi::Dtype;

use super::DtypeKinds::{Integers, Numbers};
use super::OpDefinition::Whole;
use super::ReferenceOp;
use super::ToleranceClass::{Exact, Sum};
use super::array::{ReferenceArray, broadcast_dims};
use super::case::AttributeValue::{Float, Int};
use super::case::{ReferenceCall, ReferenceCase, ReferenceOutput, TermSum};
use super::samples::CaseMaker;

pub(super) const OPS: &[ReferenceOp] = &[
    ReferenceOp::new("MatMul", 1, (Numbers, "T, T -> T"), Sum, Whole(product_cases, multiply)),
    ReferenceOp::new("Gemm", 7, (Numbers, "T, T, T -> T"), Sum, Whole(gemm_cases, multiply_and_add)),
    ReferenceOp::new(
        "MatMulInteger",
        10,
        (Integers, "T, T, T, T -> i32"),
        Exact,
        Whole(integer_cases, multiply_shifted),
    ),
];

const PRODUCT_SHAPES: [[&[usize]; 2]; 16] = [
    [&[2, 3], &[3, 5]],
    [&[1, 1], &[1, 1]],
    [&[17, 31], &[31, 13]],
    [&[1, 67], &[67, 5]],
    [&[7, 67], &[67, 1]],
    [&[33, 1], &[1, 19]],
    [&[64, 64], &[64, 64]],
    [&[2, 3, 4, 5], &[2, 3, 5, 6]],
    [&[3, 1, 4, 5], &[2, 5, 6]],
    [&[4, 5], &[3, 5, 2]],
    [&[5], &[5, 3]],
    [&[3, 5], &[5]],
    [&[7], &[7]],
    [&[0, 3], &[3, 5]],
    [&[2, 0], &[0, 3]],
    [&[2, 3], &[3, 0]],
];

fn product_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    PRODUCT_SHAPES
        .map(|[left, right]| ReferenceCase::new(vec![make.small(1, left), make.small(2, right)]))
        .to_vec()
}

/// A product with the rules of `MatMul`: vectors are rows or columns, further dimensions are broadcast.
fn multiply_arrays(left: &ReferenceArray, right: &ReferenceArray) -> ReferenceOutput {
    let (is_row, is_column) = (left.rank() == 1, right.rank() == 1);
    let mut left = left.clone();
    let mut right = right.clone();
    if is_row {
        left.dims.insert(0, 1);
    }
    if is_column {
        right.dims.push(1);
    }
    let (left_batch, rows) = left.dims.split_at(left.rank() - 2);
    let (right_batch, columns) = right.dims.split_at(right.rank() - 2);
    let mut dims = broadcast_dims([left_batch, right_batch]);
    let batch_rank = dims.len();
    dims.extend([rows[0], columns[1]]);
    let place = |array: &ReferenceArray, batch: &[usize], last: [usize; 2]| {
        let own = &batch[batch.len() - (array.rank() - 2)..];
        let own = own.iter().zip(&array.dims).map(|(index, dim)| if *dim == 1 { 0 } else { *index });
        array.at(&own.chain(last).collect::<Vec<_>>())
    };
    let mut output = ReferenceOutput::from_fn(&dims, |at| {
        let (batch, last) = at.split_at(batch_rank);
        let terms = (0..rows[1])
            .map(|inner| place(&left, batch, [last[0], inner]) * place(&right, batch, [inner, last[1]]));
        let sum = TermSum::of_terms(terms);
        (sum.value, sum.magnitude)
    });
    if is_column {
        output.array.dims.pop();
    }
    if is_row {
        output.array.dims.remove(batch_rank);
    }
    output
}

fn multiply(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    vec![multiply_arrays(call.input(0), call.input(1))]
}

fn gemm_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    type GemmShape = ([&'static [usize]; 2], Option<&'static [usize]>, (i64, i64), (f64, f64));
    let shapes: [GemmShape; 9] = [
        ([&[2, 3], &[3, 5]], Some(&[2, 5]), (0, 0), (1.0, 1.0)),
        ([&[3, 2], &[5, 3]], Some(&[5]), (1, 1), (1.0, 1.0)),
        ([&[17, 31], &[13, 31]], Some(&[17, 1]), (0, 1), (1.0, 1.0)),
        ([&[31, 7], &[31, 13]], Some(&[]), (1, 0), (1.0, 1.0)),
        ([&[4, 67], &[67, 9]], None, (0, 0), (1.0, 1.0)),
        ([&[4, 5], &[5, 3]], Some(&[1, 3]), (0, 0), (0.5, 2.0)),
        ([&[4, 5], &[5, 3]], Some(&[3]), (0, 0), (2.0, 0.0)),
        ([&[0, 3], &[3, 5]], Some(&[5]), (0, 0), (1.0, 1.0)),
        ([&[2, 0], &[0, 5]], Some(&[5]), (0, 0), (1.0, 1.0)),
    ];
    let case = |(factors, addend, (left, right), (alpha, beta)): GemmShape| {
        let attributes = vec![
            ("alpha", Float(alpha)),
            ("beta", Float(beta)),
            ("transA", Int(left)),
            ("transB", Int(right)),
        ];
        let case = ReferenceCase::new(vec![make.small(1, factors[0]), make.small(2, factors[1])]);
        let case = case.with_attributes(attributes);
        match addend {
            Some(dims) => case.with_input(make.small(3, dims)),
            None => case,
        }
    };
    // Integers have no halves.
    let is_whole = |shape: &GemmShape| super::is_float(make.dtype) || shape.3.0.fract() == 0.0;
    shapes.into_iter().filter(is_whole).map(case).collect()
}

fn transposed(array: &ReferenceArray, is_transposed: bool) -> ReferenceArray {
    if !is_transposed {
        return array.clone();
    }
    ReferenceArray::from_fn(&[array.dims[1], array.dims[0]], |at| array.at(&[at[1], at[0]]))
}

fn multiply_and_add(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let factor = |index, name| transposed(call.input(index), call.int(name) == Some(1));
    let mut output = multiply_arrays(&factor(0, "transA"), &factor(1, "transB"));
    let (alpha, beta) = (call.float("alpha"), call.float("beta"));
    let added = |at: &[usize]| call.optional(2).map_or(0.0, |addend| beta * addend.broadcast_at(at));
    let dims = output.array.dims.clone();
    for (place, at) in super::array::indices(&dims).iter().enumerate() {
        let addend = added(at);
        output.array.values[place] = alpha * output.array.values[place] + addend;
        output.magnitudes[place] = alpha.abs() * output.magnitudes[place] + addend.abs();
    }
    vec![output]
}

/// Bytes, whose sums fit into 32 bits.
fn integer_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    if ![Dtype::I8, Dtype::U8].contains(&make.dtype) {
        return Vec::new();
    }
    let case =
        |[left, right]: [&[usize]; 2]| ReferenceCase::new(vec![make.small(1, left), make.small(2, right)]);
    let shifted = case([&[4, 67], &[67, 9]])
        .with_input(ReferenceArray::from_scalar(3.0))
        .with_input(ReferenceArray::from_scalar(2.0))
        .named("with zero points");
    PRODUCT_SHAPES[..8].iter().map(|shapes| case(*shapes)).chain([shifted]).collect()
}

fn multiply_shifted(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let shifted = |index: usize| {
        let zero_point = call.optional(index + 2).map_or(0.0, |point| point.values[0]);
        let input = call.input(index);
        ReferenceArray::new(&input.dims, input.values.iter().map(|value| value - zero_point).collect())
    };
    vec![multiply_arrays(&shifted(0), &shifted(1))]
}
