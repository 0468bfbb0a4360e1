//! Ops that read or write at indices which are data.

use super::DtypeKinds::{All, Numbers};
use super::OpDefinition::Whole;
use super::ToleranceClass::Exact;
use super::array::{ReferenceArray, indices, resolve_axis};
use super::case::AttributeValue::{Int, Text};
use super::case::{ReferenceCall, ReferenceCase, ReferenceOutput};
use super::samples::CaseMaker;
use super::{DtypeKinds, ReferenceOp, WholeFunction};

pub(super) const OPS: &[ReferenceOp] = &[
    at_indices("Gather", 1, All, "T, I -> T", gather_cases, gather),
    at_indices("GatherElements", 11, All, "T, I -> T", gather_elements_cases, gather_elements),
    at_indices("GatherND", 12, All, "T, i64 -> T", gather_nd_cases, gather_nd),
    at_indices("ScatterElements", 18, All, "T, I, T -> T", scatter_cases, scatter_elements),
    at_indices("ScatterND", 18, All, "T, i64, T -> T", scatter_nd_cases, scatter_nd),
    at_indices("OneHot", 11, Numbers, "i64, i64, T -> T", one_hot_cases, one_hot),
    at_indices("Range", 11, Numbers, "T, T, T -> T", range_cases, range),
    at_indices("ReverseSequence", 10, All, "T, i64 -> T", reverse_cases, reverse),
];

const fn at_indices(
    name: &'static str,
    since: u32,
    kinds: DtypeKinds,
    operands: &'static str,
    cases: fn(CaseMaker) -> Vec<ReferenceCase>,
    function: WholeFunction,
) -> ReferenceOp {
    ReferenceOp::new(name, since, (kinds, operands), Exact, Whole(cases, function))
}

/// An array of indices below a size, some counted from the end.
fn index_array(dims: &[usize], size: usize) -> ReferenceArray {
    let mut number = 0;
    ReferenceArray::from_fn(dims, |_| {
        number += 1;
        let index = (number * 5 % size) as f64;
        if number % 3 == 0 { index - size as f64 } else { index }
    })
}

fn axis_of(call: &ReferenceCall<'_>, rank: usize) -> usize {
    resolve_axis(call.int("axis").unwrap_or(0), rank)
}

fn gather_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let shapes: [(&[usize], &[usize], i64); 7] = [
        (&[4, 3], &[2, 2], 0),
        (&[2, 4, 3], &[3], 1),
        (&[2, 3, 4], &[2, 1], -1),
        (&[4, 3], &[], 0),
        (&[4, 3], &[0], 0),
        (&[1031], &[67], 0),
        (&[7, 129], &[5], 0),
    ];
    let case = |(dims, taken, axis): (&[usize], &[usize], i64)| {
        let size = dims[resolve_axis(axis, dims.len())];
        ReferenceCase::new(vec![make.small(1, dims), index_array(taken, size)])
            .with_attributes(vec![("axis", Int(axis))])
    };
    shapes.map(case).to_vec()
}

fn gather(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let (input, taken) = (call.input(0), call.input(1));
    let axis = axis_of(call, input.rank());
    let dims = [&input.dims[..axis], &taken.dims, &input.dims[axis + 1..]].concat();
    let element = |at: &[usize]| {
        let (before, after) = (&at[..axis], &at[axis + taken.rank()..]);
        let index = resolve_axis(taken.at(&at[axis..axis + taken.rank()]) as i64, input.dims[axis]);
        input.at(&[before, &[index], after].concat())
    };
    vec![ReferenceArray::from_fn(&dims, element).into()]
}

fn gather_elements_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let shapes: [(&[usize], &[usize], i64); 4] =
        [(&[4, 3], &[2, 3], 0), (&[2, 3, 5], &[2, 3, 7], -1), (&[101], &[37], 0), (&[3, 4], &[3, 0], 1)];
    let case = |(dims, taken, axis): (&[usize], &[usize], i64)| {
        let size = dims[resolve_axis(axis, dims.len())];
        ReferenceCase::new(vec![make.small(1, dims), index_array(taken, size)])
            .with_attributes(vec![("axis", Int(axis))])
    };
    shapes.map(case).to_vec()
}

fn gather_elements(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let (input, taken) = (call.input(0), call.input(1));
    let axis = axis_of(call, input.rank());
    let element = |at: &[usize]| {
        let mut place = at.to_vec();
        place[axis] = resolve_axis(taken.at(at) as i64, input.dims[axis]);
        input.at(&place)
    };
    vec![ReferenceArray::from_fn(&taken.dims, element).into()]
}

fn gather_nd_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let whole = ReferenceArray::new(&[3, 2], vec![0.0, 2.0, 1.0, 0.0, 1.0, -1.0]);
    let rows = ReferenceArray::new(&[2, 1], vec![1.0, 0.0]);
    let batched = ReferenceArray::new(&[2, 1], vec![2.0, 0.0]);
    let case = |dims: &[usize], taken: ReferenceArray, batch: i64| {
        ReferenceCase::new(vec![make.small(1, dims), taken]).with_attributes(vec![("batch_dims", Int(batch))])
    };
    vec![case(&[2, 3], whole, 0), case(&[2, 3, 5], rows, 0), case(&[2, 3, 4], batched, 1)]
}

fn gather_nd(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let (input, taken) = (call.input(0), call.input(1));
    let batch = call.int("batch_dims").unwrap_or(0) as usize;
    let (outer, depth) = (&taken.dims[..taken.rank() - 1], taken.dims[taken.rank() - 1]);
    let dims = [outer, &input.dims[batch + depth..]].concat();
    let element = |at: &[usize]| {
        let (tuple, inner) = at.split_at(outer.len());
        let index = (0..depth).map(|number| {
            resolve_axis(taken.at(&[tuple, &[number]].concat()) as i64, input.dims[batch + number])
        });
        input.at(&[&at[..batch], &index.collect::<Vec<_>>(), inner].concat())
    };
    vec![ReferenceArray::from_fn(&dims, element).into()]
}

/// Indices of which no two along the axis are equal, where the order of writes would be open.
fn distinct_indices(dims: &[usize], axis: usize, size: usize) -> ReferenceArray {
    ReferenceArray::from_fn(dims, |at| ((at[axis] * 3 + 1) % size) as f64)
}

fn scatter_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let shapes: [(&[usize], &[usize], i64); 3] =
        [(&[5, 3], &[2, 3], 0), (&[2, 3, 5], &[2, 3, 4], -1), (&[101], &[37], 0)];
    let case = |(dims, written, axis): (&[usize], &[usize], i64)| {
        let at = resolve_axis(axis, dims.len());
        let inputs =
            vec![make.small(1, dims), distinct_indices(written, at, dims[at]), make.small(2, written)];
        ReferenceCase::new(inputs).with_attributes(vec![("axis", Int(axis)), ("reduction", Text("none"))])
    };
    shapes.map(case).to_vec()
}

fn scatter_elements(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let (mut output, places, updates) = (call.input(0).clone(), call.input(1), call.input(2));
    let axis = axis_of(call, output.rank());
    for at in indices(&places.dims) {
        let mut place = at.clone();
        place[axis] = resolve_axis(places.at(&at) as i64, output.dims[axis]);
        let flat = place.iter().zip(&output.dims).fold(0, |flat, (index, dim)| flat * dim + index);
        output.values[flat] = updates.at(&at);
    }
    vec![output.into()]
}

fn scatter_nd_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let case = |dims: &[usize], places: ReferenceArray, written: &[usize]| {
        ReferenceCase::new(vec![make.small(1, dims), places, make.small(2, written)])
            .with_attributes(vec![("reduction", Text("none"))])
    };
    vec![
        case(&[8], ReferenceArray::new(&[3, 1], vec![4.0, 3.0, 1.0]), &[3]),
        case(&[4, 3], ReferenceArray::new(&[2, 1], vec![0.0, 2.0]), &[2, 3]),
        case(&[4, 3], ReferenceArray::new(&[2, 2], vec![0.0, 2.0, 3.0, 1.0]), &[2]),
    ]
}

fn scatter_nd(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let (mut output, places, updates) = (call.input(0).clone(), call.input(1), call.input(2));
    let (outer, depth) = (&places.dims[..places.rank() - 1], places.dims[places.rank() - 1]);
    let inner = &output.dims[depth..].to_vec();
    for tuple in indices(outer) {
        let index = (0..depth).map(|number| places.at(&[&*tuple, &[number]].concat()) as usize);
        let index: Vec<usize> = index.collect();
        for inside in indices(inner) {
            let place = [&*index, &inside].concat();
            let flat = place.iter().zip(&output.dims).fold(0, |flat, (index, dim)| flat * dim + index);
            output.values[flat] = updates.at(&[&*tuple, &inside].concat());
        }
    }
    vec![output.into()]
}

fn one_hot_cases(_: CaseMaker) -> Vec<ReferenceCase> {
    let case = |(dims, depth, axis): (&[usize], usize, i64)| {
        let values = ReferenceArray::from_list(&[2, 5]);
        ReferenceCase::new(vec![index_array(dims, depth), ReferenceArray::from_scalar(depth as f64), values])
            .with_attributes(vec![("axis", Int(axis))])
    };
    [(&[3][..], 4, -1), (&[2, 3], 5, 0), (&[2, 3], 3, 1)].map(case).to_vec()
}

fn one_hot(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let (places, depth, values) = (call.input(0), call.input(1).values[0] as usize, call.input(2));
    let axis = resolve_axis(call.int("axis").unwrap_or(-1), places.rank() + 1);
    let mut dims = places.dims.clone();
    dims.insert(axis, depth);
    let element = |at: &[usize]| {
        let mut place = at.to_vec();
        let index = place.remove(axis);
        values.values[usize::from(resolve_axis(places.at(&place) as i64, depth) == index)]
    };
    vec![ReferenceArray::from_fn(&dims, element).into()]
}

fn range_cases(_: CaseMaker) -> Vec<ReferenceCase> {
    let case = |(start, limit, step): (f64, f64, f64)| {
        ReferenceCase::new([start, limit, step].map(ReferenceArray::from_scalar).to_vec())
    };
    [(0.0, 7.0, 1.0), (2.0, 100.0, 7.0), (5.0, 5.0, 1.0)].map(case).to_vec()
}

fn range(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let [start, limit, step] = [0, 1, 2].map(|index| call.input(index).values[0]);
    let count = ((limit - start) / step).ceil().max(0.0) as usize;
    vec![ReferenceArray::from_fn(&[count], |at| start + at[0] as f64 * step).into()]
}

fn reverse_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let case = |batch: i64, lengths: &[i64]| {
        let attributes = vec![("batch_axis", Int(batch)), ("time_axis", Int(1 - batch))];
        ReferenceCase::new(vec![make.small(1, &[4, 4]), ReferenceArray::from_list(lengths)])
            .with_attributes(attributes)
    };
    vec![case(1, &[1, 2, 3, 4]), case(0, &[4, 1, 2, 3])]
}

fn reverse(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let (input, lengths) = (call.input(0), call.input(1));
    let (batch, time) =
        (call.int("batch_axis").unwrap_or(1) as usize, call.int("time_axis").unwrap_or(0) as usize);
    let element = |at: &[usize]| {
        let mut place = at.to_vec();
        let length = lengths.values[at[batch]] as usize;
        if place[time] < length {
            place[time] = length - 1 - place[time];
        }
        input.at(&place)
    };
    vec![ReferenceArray::from_fn(&input.dims, element).into()]
}
