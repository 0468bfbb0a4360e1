//! Reductions, and ops that work along an axis: softmax, running sums, the largest elements.

use super::DtypeKinds::{Floats, Numbers};
use super::OpDefinition::Whole;
use super::ToleranceClass::{Composed, Exact, Sum};
use super::array::{ReferenceArray, indices, resolve_axis};
use super::case::AttributeValue::{Int, Ints};
use super::case::{AttributeSet, ReferenceCall, ReferenceCase, ReferenceOutput, TermSum};
use super::samples::CaseMaker;
use super::{DtypeKinds, ReferenceOp, ToleranceClass, WholeFunction};

pub(super) const OPS: &[ReferenceOp] = &[
    reduce("ReduceSum", Numbers, Sum, |call| reduce_with(call, sum)),
    reduce_old("ReduceSum", 12, Numbers, Sum, |call| reduce_with(call, sum)),
    reduce("ReduceMean", Floats, Sum, |call| reduce_with(call, mean)),
    reduce_old("ReduceMean", 17, Floats, Sum, |call| reduce_with(call, mean)),
    reduce_few("ReduceMax", Numbers, Exact, |call| reduce_with(call, largest)),
    reduce_old("ReduceMax", 17, Numbers, Exact, |call| reduce_with(call, largest)),
    reduce_few("ReduceMin", Numbers, Exact, |call| reduce_with(call, smallest)),
    reduce_old("ReduceMin", 17, Numbers, Exact, |call| reduce_with(call, smallest)),
    reduce_few("ReduceProd", Floats, Sum, |call| reduce_with(call, product)),
    reduce_old("ReduceProd", 17, Floats, Sum, |call| reduce_with(call, product)),
    reduce("ReduceL1", Numbers, Sum, |call| reduce_with(call, sum_of_sizes)),
    reduce_old("ReduceL1", 17, Numbers, Sum, |call| reduce_with(call, sum_of_sizes)),
    reduce("ReduceL2", Floats, Sum, |call| reduce_with(call, length)),
    reduce_old("ReduceL2", 17, Floats, Sum, |call| reduce_with(call, length)),
    reduce("ReduceSumSquare", Numbers, Sum, |call| reduce_with(call, sum_of_squares)),
    reduce_old("ReduceSumSquare", 17, Numbers, Sum, |call| reduce_with(call, sum_of_squares)),
    reduce("ReduceLogSumExp", Floats, Sum, |call| reduce_with(call, log_sum_exp)),
    reduce_old("ReduceLogSumExp", 17, Floats, Sum, |call| reduce_with(call, log_sum_exp)),
    ReferenceOp::new(
        "ArgMax",
        12,
        (Numbers, "T -> i64"),
        Exact,
        Whole(arg_cases, |call| arg_best(call, 1.0)),
    ),
    ReferenceOp::new(
        "ArgMin",
        12,
        (Numbers, "T -> i64"),
        Exact,
        Whole(arg_cases, |call| arg_best(call, -1.0)),
    ),
    along_axis("Softmax", 13, 0, axis_cases, |call| along_lines(call, softmax)),
    along_axis("Softmax", 1, 12, flat_cases, |call| along_flat(call, softmax)),
    along_axis("LogSoftmax", 13, 0, axis_cases, |call| along_lines(call, log_softmax)),
    along_axis("LogSoftmax", 1, 12, flat_cases, |call| along_flat(call, log_softmax)),
    along_axis("Hardmax", 13, 0, axis_cases, |call| along_lines(call, hardmax)),
    along_axis("Hardmax", 1, 12, flat_cases, |call| along_flat(call, hardmax)),
    along_axis("LpNormalization", 1, 0, norm_cases, |call| {
        let order = call.int("p");
        along_lines(call, if order == Some(1) { divide_by_sum } else { divide_by_length })
    }),
    ReferenceOp::new(
        "CumSum",
        11,
        (Numbers, "T, I -> T"),
        Sum,
        Whole(running_cases, |call| run_along(call, sum)),
    ),
    ReferenceOp::new(
        "CumProd",
        26,
        (Floats, "T, I -> T"),
        Sum,
        Whole(running_cases, |call| run_along(call, product)),
    ),
    ReferenceOp::new("TopK", 11, (Numbers, "T, i64 -> T, i64"), Exact, Whole(top_cases, take_best)),
];

const fn reduce(
    name: &'static str,
    kinds: DtypeKinds,
    tolerance: ToleranceClass,
    function: WholeFunction,
) -> ReferenceOp {
    ReferenceOp::new(name, 13, (kinds, "T, i64 -> T"), tolerance, Whole(all_reductions, function))
}

/// A reduction that has no result without elements, or grows too large with many.
const fn reduce_few(
    name: &'static str,
    kinds: DtypeKinds,
    tolerance: ToleranceClass,
    function: WholeFunction,
) -> ReferenceOp {
    ReferenceOp::new(name, 18, (kinds, "T, i64 -> T"), tolerance, Whole(few_reductions, function))
}

/// The version whose axes are an attribute.
const fn reduce_old(
    name: &'static str,
    last: u32,
    kinds: DtypeKinds,
    tolerance: ToleranceClass,
    function: WholeFunction,
) -> ReferenceOp {
    ReferenceOp::new(name, 1, (kinds, "T -> T"), tolerance, Whole(old_reductions, function)).until(last)
}

const fn along_axis(
    name: &'static str,
    since: u32,
    last: u32,
    cases: fn(CaseMaker) -> Vec<ReferenceCase>,
    function: WholeFunction,
) -> ReferenceOp {
    ReferenceOp::new(name, since, (Floats, "T -> T"), Composed, Whole(cases, function)).until(last)
}

/// Shape, axes and whether reduced dimensions are kept.
type ReductionShape = (&'static [usize], Option<&'static [i64]>, i64);

const FEW_REDUCTIONS: [ReductionShape; 4] = [
    (&[2, 3, 5], Some(&[1]), 1),
    (&[2, 3, 5], Some(&[-1]), 0),
    (&[2, 3, 2], Some(&[0, 2]), 1),
    (&[0, 3], Some(&[1]), 1),
];
const MORE_REDUCTIONS: [ReductionShape; 4] = [
    (&[2, 3, 5], None, 1),
    (&[1031], Some(&[0]), 0),
    (&[4, 7, 9, 2], Some(&[1, 2]), 0),
    (&[3, 0], Some(&[1]), 1),
];

fn reduction_case(make: CaseMaker, (dims, axes, kept): ReductionShape) -> ReferenceCase {
    let attributes = vec![("keepdims", Int(kept)), ("noop_with_empty_axes", Int(0))];
    let case = ReferenceCase::new(vec![make.small(1, dims)]).with_attributes(attributes);
    match axes {
        Some(axes) => case.with_input(ReferenceArray::from_list(axes)),
        None => case,
    }
}

fn few_reductions(make: CaseMaker) -> Vec<ReferenceCase> {
    FEW_REDUCTIONS.into_iter().map(|shape| reduction_case(make, shape)).collect()
}

fn all_reductions(make: CaseMaker) -> Vec<ReferenceCase> {
    FEW_REDUCTIONS.into_iter().chain(MORE_REDUCTIONS).map(|shape| reduction_case(make, shape)).collect()
}

fn old_reductions(make: CaseMaker) -> Vec<ReferenceCase> {
    let case = |(dims, axes, kept): ReductionShape| {
        let axes = axes.map(|axes| ("axes", Ints(axes.to_vec())));
        let attributes = [("keepdims", Int(kept))].into_iter().chain(axes).collect();
        ReferenceCase::new(vec![make.small(1, dims)]).with_attributes(attributes)
    };
    FEW_REDUCTIONS.into_iter().map(case).collect()
}

fn reduce_with(call: &ReferenceCall<'_>, function: fn(&[f64]) -> TermSum) -> Vec<ReferenceOutput> {
    let input = call.input(0);
    let named =
        call.optional(1).map(ReferenceArray::to_ints).or_else(|| call.ints("axes").map(<[i64]>::to_vec));
    let axes: Vec<usize> = match named {
        Some(axes) => axes.iter().map(|axis| resolve_axis(*axis, input.rank())).collect(),
        None => (0..input.rank()).collect(),
    };
    let is_reduced = |axis: usize| axes.contains(&axis);
    let size = |axis: usize| if is_reduced(axis) { 1 } else { input.dims[axis] };
    let kept: Vec<usize> = (0..input.rank()).map(size).collect();
    let inner: Vec<usize> = axes.iter().map(|axis| input.dims[*axis]).collect();
    let mut output = ReferenceOutput::from_fn(&kept, |at| {
        let terms: Vec<f64> = indices(&inner)
            .iter()
            .map(|inside| {
                let mut place = at.to_vec();
                axes.iter().zip(inside).for_each(|(axis, index)| place[*axis] = *index);
                input.at(&place)
            })
            .collect();
        let sum = function(&terms);
        (sum.value, sum.magnitude)
    });
    if call.int("keepdims") == Some(0) {
        output.array.dims = (0..input.rank()).filter(|axis| !is_reduced(*axis)).map(size).collect();
    }
    vec![output]
}

fn sum(terms: &[f64]) -> TermSum {
    TermSum::of_terms(terms.iter().copied())
}

fn sum_of_sizes(terms: &[f64]) -> TermSum {
    TermSum::of_terms(terms.iter().map(|term| term.abs()))
}

fn sum_of_squares(terms: &[f64]) -> TermSum {
    TermSum::of_terms(terms.iter().map(|term| term * term))
}

fn mean(terms: &[f64]) -> TermSum {
    let (count, sum) = (terms.len() as f64, sum(terms));
    TermSum { value: sum.value / count, magnitude: sum.magnitude / count }
}

fn of_value(value: f64) -> TermSum {
    TermSum { value, magnitude: value.abs() }
}

fn length(terms: &[f64]) -> TermSum {
    of_value(sum_of_squares(terms).value.sqrt())
}

fn product(terms: &[f64]) -> TermSum {
    of_value(terms.iter().product())
}

fn largest(terms: &[f64]) -> TermSum {
    of_value(terms.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}

fn smallest(terms: &[f64]) -> TermSum {
    of_value(terms.iter().copied().fold(f64::INFINITY, f64::min))
}

fn log_sum_exp(terms: &[f64]) -> TermSum {
    let top = largest(terms).value;
    if terms.is_empty() {
        return of_value(f64::NEG_INFINITY);
    }
    let value = top + terms.iter().map(|term| (term - top).exp()).sum::<f64>().ln();
    TermSum { value, magnitude: value.abs().max(top.abs()) + 1.0 }
}

/// Takes each line along the axis of the call.
fn lines_of(dims: &[usize], axis: usize) -> Vec<Vec<Vec<usize>>> {
    let mut outer = dims.to_vec();
    outer[axis] = usize::from(dims[axis] > 0);
    let line = |start: &Vec<usize>| {
        (0..dims[axis])
            .map(|index| {
                let mut place = start.clone();
                place[axis] = index;
                place
            })
            .collect()
    };
    indices(&outer).iter().map(line).collect()
}

fn place_of(dims: &[usize], index: &[usize]) -> usize {
    index.iter().zip(dims).fold(0, |place, (index, dim)| place * dim + index)
}

/// Replaces the elements of each line; the function gives values and magnitudes.
fn map_lines(input: &ReferenceArray, axis: usize, function: LineFunction) -> Vec<ReferenceOutput> {
    let (mut array, mut magnitudes) = (input.clone(), vec![0.0; input.values.len()]);
    for line in lines_of(&input.dims, axis) {
        let terms: Vec<f64> = line.iter().map(|index| input.at(index)).collect();
        for (index, (value, magnitude)) in line.iter().zip(function(&terms)) {
            let place = place_of(&input.dims, index);
            (array.values[place], magnitudes[place]) = (value, magnitude);
        }
    }
    vec![ReferenceOutput { array, magnitudes }]
}

type LineFunction = fn(&[f64]) -> Vec<(f64, f64)>;

fn along_lines(call: &ReferenceCall<'_>, function: LineFunction) -> Vec<ReferenceOutput> {
    let input = call.input(0);
    map_lines(input, resolve_axis(call.int("axis").unwrap_or(-1), input.rank()), function)
}

/// The old form: all dimensions from the axis on are one line.
fn along_flat(call: &ReferenceCall<'_>, function: LineFunction) -> Vec<ReferenceOutput> {
    let input = call.input(0);
    let axis = resolve_axis(call.int("axis").unwrap_or(1), input.rank());
    let (outer, inner) = input.dims.split_at(axis);
    let flat = ReferenceArray::new(&[outer.iter().product(), inner.iter().product()], input.values.clone());
    let mut outputs = map_lines(&flat, 1, function);
    outputs[0].array.dims.clone_from(&input.dims);
    outputs
}

fn axis_attribute(axis: i64) -> AttributeSet {
    vec![("axis", Int(axis))]
}

fn axis_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let shapes: [(&[usize], i64); 7] = [
        (&[2, 3, 5], -1),
        (&[2, 3, 5], 1),
        (&[2, 3, 5], 0),
        (&[1031], 0),
        (&[4, 1], 1),
        (&[0, 3], 1),
        (&[7, 257], -1),
    ];
    shapes
        .map(|(dims, axis)| {
            ReferenceCase::new(vec![make.small(1, dims)]).with_attributes(axis_attribute(axis))
        })
        .to_vec()
}

fn flat_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let shapes: [(&[usize], i64); 3] = [(&[2, 3, 5], 1), (&[2, 3, 5], 2), (&[4, 257], 1)];
    shapes
        .map(|(dims, axis)| {
            ReferenceCase::new(vec![make.small(1, dims)]).with_attributes(axis_attribute(axis))
        })
        .to_vec()
}

fn norm_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let case = |(dims, axis, order): (&[usize], i64, i64)| {
        let attributes = vec![("axis", Int(axis)), ("p", Int(order))];
        ReferenceCase::new(vec![make.small(1, dims)]).with_attributes(attributes)
    };
    [(&[2, 3, 5][..], -1, 2), (&[2, 3, 5], 1, 1), (&[1031], 0, 2)].map(case).to_vec()
}

fn softmax(terms: &[f64]) -> Vec<(f64, f64)> {
    log_softmax(terms).into_iter().map(|(value, _)| (value.exp(), value.exp())).collect()
}

fn log_softmax(terms: &[f64]) -> Vec<(f64, f64)> {
    let sum = log_sum_exp(terms);
    terms.iter().map(|term| (term - sum.value, term.abs() + sum.magnitude)).collect()
}

fn hardmax(terms: &[f64]) -> Vec<(f64, f64)> {
    let best = best_of(terms, |one, other| one > other);
    (0..terms.len()).map(|index| if index == best { (1.0, 0.0) } else { (0.0, 0.0) }).collect()
}

fn divide_by_sum(terms: &[f64]) -> Vec<(f64, f64)> {
    let whole = sum_of_sizes(terms).value;
    terms.iter().map(|term| (term / whole, 0.0)).collect()
}

fn divide_by_length(terms: &[f64]) -> Vec<(f64, f64)> {
    let whole = length(terms).value;
    terms.iter().map(|term| (term / whole, 0.0)).collect()
}

/// The index of the first element that no other one is better than.
fn best_of(terms: &[f64], is_better: impl Fn(f64, f64) -> bool) -> usize {
    (0..terms.len()).fold(0, |best, index| if is_better(terms[index], terms[best]) { index } else { best })
}

fn arg_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let case = |(dims, axis, kept, last): (&[usize], i64, i64, i64)| {
        let attributes = vec![("axis", Int(axis)), ("keepdims", Int(kept)), ("select_last_index", Int(last))];
        ReferenceCase::new(vec![make.small(1, dims)]).with_attributes(attributes)
    };
    [
        (&[2, 3, 5][..], 1, 1, 0),
        (&[2, 3, 5], -1, 0, 1),
        (&[1031], 0, 0, 0),
        (&[1031], 0, 1, 1),
        (&[0, 3], 1, 1, 0),
    ]
    .map(case)
    .to_vec()
}

fn arg_best(call: &ReferenceCall<'_>, sign: f64) -> Vec<ReferenceOutput> {
    let input = call.input(0);
    let axis = resolve_axis(call.int("axis").unwrap_or(0), input.rank());
    let is_last = call.int("select_last_index") == Some(1);
    let mut dims = input.dims.clone();
    dims[axis] = 1;
    let values = lines_of(&input.dims, axis)
        .iter()
        .map(|line| {
            let terms: Vec<f64> = line.iter().map(|index| sign * input.at(index)).collect();
            best_of(&terms, |one, other| one > other || is_last && one == other) as f64
        })
        .collect();
    if call.int("keepdims") == Some(0) {
        dims.remove(axis);
    }
    vec![ReferenceArray::new(&dims, values).into()]
}

fn running_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let case = |(dims, axis, exclusive, reverse): (&[usize], i64, i64, i64)| {
        let attributes = vec![("exclusive", Int(exclusive)), ("reverse", Int(reverse))];
        let input = make.array(1, dims, super::ValueDomain::Unit);
        ReferenceCase::new(vec![input, ReferenceArray::from_scalar(axis as f64)]).with_attributes(attributes)
    };
    [
        (&[2, 3, 5][..], 1, 0, 0),
        (&[2, 3, 5], -1, 1, 0),
        (&[2, 3, 5], 0, 0, 1),
        (&[37], 0, 1, 1),
        (&[0, 3], 1, 0, 0),
    ]
    .map(case)
    .to_vec()
}

fn run_along(call: &ReferenceCall<'_>, function: fn(&[f64]) -> TermSum) -> Vec<ReferenceOutput> {
    let input = call.input(0);
    let axis = resolve_axis(call.input(1).to_ints()[0], input.rank());
    let (is_exclusive, is_reversed) = (call.int("exclusive") == Some(1), call.int("reverse") == Some(1));
    vec![ReferenceOutput::from_fn(&input.dims, |at| {
        let taken = |index: &usize| match (is_reversed, is_exclusive) {
            (false, false) => *index <= at[axis],
            (false, true) => *index < at[axis],
            (true, false) => *index >= at[axis],
            (true, true) => *index > at[axis],
        };
        let terms: Vec<f64> = (0..input.dims[axis])
            .filter(taken)
            .map(|index| {
                let mut place = at.to_vec();
                place[axis] = index;
                input.at(&place)
            })
            .collect();
        let sum = function(&terms);
        (sum.value, sum.magnitude)
    })]
}

/// Lines without equal elements, whose order would be open.
fn top_cases(_: CaseMaker) -> Vec<ReferenceCase> {
    let case = |(dims, axis, count, is_largest): (&[usize], i64, i64, i64)| {
        let size = dims[resolve_axis(axis, dims.len())];
        let input = ReferenceArray::from_fn(dims, |at| {
            // Multiplying by a number prime to the size permutes a line.
            let index = at[resolve_axis(axis, dims.len())];
            ((index * 7 + at.iter().sum::<usize>() - index) % size) as f64
        });
        let attributes = vec![("axis", Int(axis)), ("largest", Int(is_largest)), ("sorted", Int(1))];
        ReferenceCase::new(vec![input, ReferenceArray::from_list(&[count])]).with_attributes(attributes)
    };
    [
        (&[2, 3, 5][..], -1, 3, 1),
        (&[2, 5, 3], 1, 2, 0),
        (&[101], 0, 101, 1),
        (&[101], 0, 1, 0),
        (&[2, 5], 1, 0, 1),
    ]
    .map(case)
    .to_vec()
}

fn take_best(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let input = call.input(0);
    let axis = resolve_axis(call.int("axis").unwrap_or(-1), input.rank());
    let count = call.input(1).to_ints()[0] as usize;
    let mut dims = input.dims.clone();
    dims[axis] = count;
    let empty = ReferenceArray::from_fn(&dims, |_| 0.0);
    let (mut values, mut places) = (empty.clone(), empty);
    for line in lines_of(&input.dims, axis) {
        let mut order: Vec<usize> = (0..line.len()).collect();
        order.sort_by(|one, other| input.at(&line[*one]).total_cmp(&input.at(&line[*other])));
        if call.int("largest") != Some(0) {
            order.reverse();
        }
        for (rank, index) in order.into_iter().take(count).enumerate() {
            let mut at = line[index].clone();
            let value = input.at(&at);
            at[axis] = rank;
            let place = place_of(&dims, &at);
            (values.values[place], places.values[place]) = (value, index as f64);
        }
    }
    vec![values.into(), places.into()]
}
