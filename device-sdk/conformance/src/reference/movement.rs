//! Ops that only move elements by shape: transpose, join, cut, repeat, pad.

use super::DtypeKinds::All;
use super::OpDefinition::Whole;
use super::ToleranceClass::Exact;
use super::array::{ReferenceArray, broadcast_dims, resolve_axis};
use super::case::AttributeValue::{Int, Ints, Text};
use super::case::{ReferenceCall, ReferenceCase, ReferenceOutput};
use super::samples::CaseMaker;
use super::{ReferenceOp, WholeFunction};

pub(super) const OPS: &[ReferenceOp] = &[
    moves("Transpose", 1, "T -> T", transpose_cases, transpose),
    moves("Concat", 4, "T* -> T", concat_cases, concat),
    moves("Split", 18, "T, i64 -> T*", split_cases, split),
    moves("Slice", 10, "T, i64, i64, i64, i64 -> T", slice_cases, slice),
    moves("Expand", 8, "T, i64 -> T", expand_cases, expand),
    moves("Reshape", 5, "T, i64 -> T", reshape_cases, reshape),
    moves("Flatten", 1, "T -> T", flatten_cases, flatten),
    moves("Squeeze", 13, "T, i64 -> T", squeeze_cases, squeeze),
    moves("Unsqueeze", 13, "T, i64 -> T", unsqueeze_cases, unsqueeze),
    moves("Tile", 6, "T, i64 -> T", tile_cases, tile),
    moves("Pad", 18, "T, i64, T, i64 -> T", pad_cases, pad),
    moves("DepthToSpace", 11, "T -> T", depth_cases, depth_to_space),
    moves("SpaceToDepth", 1, "T -> T", space_cases, space_to_depth),
    moves("Trilu", 14, "T, i64 -> T", triangle_cases, triangle),
    ReferenceOp::new("Shape", 15, (All, "T -> i64"), Exact, Whole(shape_cases, shape_of)),
    ReferenceOp::new("Size", 1, (All, "T -> i64"), Exact, Whole(size_cases, size_of)),
];

const fn moves(
    name: &'static str,
    since: u32,
    operands: &'static str,
    cases: fn(CaseMaker) -> Vec<ReferenceCase>,
    function: WholeFunction,
) -> ReferenceOp {
    ReferenceOp::new(name, since, (All, operands), Exact, Whole(cases, function))
}

fn axis_of(call: &ReferenceCall<'_>, rank: usize) -> usize {
    resolve_axis(call.int("axis").unwrap_or(0), rank)
}

fn transpose_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let orders: [(&[usize], &[i64]); 8] = [
        (&[2, 3, 5], &[2, 0, 1]),
        (&[2, 3, 5], &[0, 2, 1]),
        (&[2, 3, 4, 5], &[0, 3, 1, 2]),
        (&[2, 3, 4, 5], &[2, 1, 0, 3]),
        (&[37, 41], &[1, 0]),
        (&[1031], &[0]),
        (&[3, 0], &[1, 0]),
        (&[], &[]),
    ];
    let case = |(dims, order): (&[usize], &[i64])| {
        ReferenceCase::new(vec![make.small(1, dims)]).with_attributes(vec![("perm", Ints(order.to_vec()))])
    };
    orders.map(case).to_vec()
}

fn transpose(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let input = call.input(0);
    let order: Vec<usize> = call.ints("perm").unwrap_or_default().iter().map(|axis| *axis as usize).collect();
    let dims: Vec<usize> = order.iter().map(|axis| input.dims[*axis]).collect();
    let element = |at: &[usize]| {
        let mut place = vec![0; at.len()];
        order.iter().zip(at).for_each(|(axis, index)| place[*axis] = *index);
        input.at(&place)
    };
    vec![ReferenceArray::from_fn(&dims, element).into()]
}

fn concat_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let joined: [(&[&[usize]], i64); 6] = [
        (&[&[2, 3], &[2, 5]], 1),
        (&[&[2, 3], &[1, 3], &[4, 3]], 0),
        (&[&[7]], 0),
        (&[&[2, 3, 5], &[2, 1, 5]], -2),
        (&[&[2, 0], &[2, 3]], 1),
        (&[&[101], &[103], &[107]], 0),
    ];
    let case = |(shapes, axis): (&[&[usize]], i64)| {
        let arrays = (1u64..).zip(shapes).map(|(seed, dims)| make.small(seed, dims)).collect();
        ReferenceCase::new(arrays).with_attributes(vec![("axis", Int(axis))])
    };
    joined.map(case).to_vec()
}

fn concat(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let inputs: Vec<&ReferenceArray> = call.inputs.iter().flatten().collect();
    let axis = axis_of(call, inputs[0].rank());
    let mut dims = inputs[0].dims.clone();
    dims[axis] = inputs.iter().map(|input| input.dims[axis]).sum();
    let element = |at: &[usize]| {
        let mut place = at.to_vec();
        for input in &inputs {
            if place[axis] < input.dims[axis] {
                return input.at(&place);
            }
            place[axis] -= input.dims[axis];
        }
        0.0
    };
    vec![ReferenceArray::from_fn(&dims, element).into()]
}

fn split_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let parts: [(&[usize], i64, &[i64]); 4] =
        [(&[2, 6], 1, &[1, 2, 3]), (&[6, 3], 0, &[3, 3]), (&[2, 6, 5], -2, &[6]), (&[101], 0, &[0, 100, 1])];
    let case = |(dims, axis, sizes): (&[usize], i64, &[i64])| {
        ReferenceCase::new(vec![make.small(1, dims), ReferenceArray::from_list(sizes)])
            .with_attributes(vec![("axis", Int(axis))])
    };
    parts.map(case).to_vec()
}

fn split(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let input = call.input(0);
    let axis = axis_of(call, input.rank());
    let mut start = 0;
    let part = |size: &i64| {
        let mut dims = input.dims.clone();
        dims[axis] = *size as usize;
        let output = ReferenceArray::from_fn(&dims, |at| {
            let mut place = at.to_vec();
            place[axis] += start;
            input.at(&place)
        });
        start += *size as usize;
        output.into()
    };
    call.input(1).to_ints().iter().map(part).collect()
}

fn slice_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    type Cut = (&'static [usize], &'static [i64], &'static [i64], &'static [i64], &'static [i64]);
    let cuts: [Cut; 7] = [
        (&[4, 5], &[1, 0], &[3, 4], &[0, 1], &[1, 2]),
        (&[4, 5], &[-1], &[-5], &[1], &[-2]),
        (&[2, 3, 5], &[1], &[1000], &[-1], &[1]),
        (&[2, 3, 5], &[2], &[1], &[1], &[1]),
        (&[1031], &[1030], &[-2000], &[0], &[-1]),
        (&[1031], &[5], &[1000], &[0], &[7]),
        (&[0, 3], &[0], &[2], &[1], &[1]),
    ];
    let case = |(dims, starts, ends, axes, steps): Cut| {
        let lists = [starts, ends, axes, steps].map(ReferenceArray::from_list);
        lists.into_iter().fold(ReferenceCase::new(vec![make.small(1, dims)]), ReferenceCase::with_input)
    };
    cuts.map(case).to_vec()
}

fn slice(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let input = call.input(0);
    let [starts, ends, axes, steps] = [1, 2, 3, 4].map(|index| call.input(index).to_ints());
    let mut dims = input.dims.clone();
    let mut taken = vec![(0i64, 1i64); dims.len()];
    for (number, axis) in axes.iter().enumerate() {
        let axis = resolve_axis(*axis, input.rank());
        let (size, step) = (input.dims[axis] as i64, steps[number]);
        let from_front = |index: i64| if index < 0 { index + size } else { index };
        let (start, count) = if step > 0 {
            let (start, end) =
                (from_front(starts[number]).clamp(0, size), from_front(ends[number]).clamp(0, size));
            (start, (end - start + step - 1).div_euclid(step))
        } else {
            let start = from_front(starts[number]).clamp(-1, size - 1);
            let end = from_front(ends[number]).clamp(-1, size - 1);
            (start, (start - end - step - 1).div_euclid(-step))
        };
        dims[axis] = count.max(0) as usize;
        taken[axis] = (start, step);
    }
    let element = |at: &[usize]| {
        let place =
            at.iter().zip(&taken).map(|(index, (start, step))| (start + *index as i64 * step) as usize);
        input.at(&place.collect::<Vec<_>>())
    };
    vec![ReferenceArray::from_fn(&dims, element).into()]
}

fn shaped_case(make: CaseMaker, dims: &[usize], list: &[i64]) -> ReferenceCase {
    ReferenceCase::new(vec![make.small(1, dims), ReferenceArray::from_list(list)])
}

fn expand_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let shapes: [(&[usize], &[i64]); 6] = [
        (&[3, 1], &[2, 3, 5]),
        (&[1], &[1031]),
        (&[2, 3], &[1, 1]),
        (&[], &[2, 2]),
        (&[1, 3], &[0, 3]),
        (&[4, 1, 5], &[3, 1]),
    ];
    shapes.map(|(dims, list)| shaped_case(make, dims, list)).to_vec()
}

fn expand(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let (input, asked) = (call.input(0), call.input(1).to_ints());
    let asked: Vec<usize> = asked.iter().map(|size| *size as usize).collect();
    let dims = broadcast_dims([&*input.dims, &asked]);
    vec![ReferenceArray::from_fn(&dims, |at| input.broadcast_at(at)).into()]
}

fn reshape_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let shapes: [(&[usize], &[i64]); 6] = [
        (&[2, 3, 5], &[5, 6]),
        (&[2, 3, 5], &[-1]),
        (&[2, 3, 5], &[0, -1]),
        (&[1], &[]),
        (&[0, 3], &[3, 0]),
        (&[1031], &[1, 1031, 1]),
    ];
    let case = |(dims, list): (&[usize], &[i64])| {
        let keeps_zero = i64::from(dims.contains(&0));
        shaped_case(make, dims, list).with_attributes(vec![("allowzero", Int(keeps_zero))])
    };
    shapes.map(case).to_vec()
}

fn reshape(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let input = call.input(0);
    let keeps_zero = call.int("allowzero") == Some(1);
    let asked = call.input(1).to_ints();
    let mut dims: Vec<usize> = asked
        .iter()
        .enumerate()
        .map(|(axis, size)| {
            if *size == 0 && !keeps_zero {
                input.dims[axis]
            } else {
                (*size).max(1) as usize * usize::from(*size != 0)
            }
        })
        .collect();
    if let Some(open) = asked.iter().position(|size| *size == -1) {
        dims[open] = input.values.len() / dims.iter().product::<usize>().max(1);
    }
    vec![ReferenceArray::new(&dims, input.values.clone()).into()]
}

fn flatten_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let shapes: [(&[usize], i64); 5] =
        [(&[2, 3, 5], 1), (&[2, 3, 5], 0), (&[2, 3, 5], -1), (&[7], 1), (&[0, 3], 1)];
    shapes
        .map(|(dims, axis)| {
            ReferenceCase::new(vec![make.small(1, dims)]).with_attributes(vec![("axis", Int(axis))])
        })
        .to_vec()
}

fn flatten(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let input = call.input(0);
    let (outer, inner) = input.dims.split_at(axis_of(call, input.rank()));
    let dims = [outer.iter().product(), inner.iter().product()];
    vec![ReferenceArray::new(&dims, input.values.clone()).into()]
}

fn squeeze_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let shapes: [(&[usize], &[i64]); 4] =
        [(&[1, 3, 1], &[0]), (&[1, 3, 1], &[-1, 0]), (&[3, 1, 5], &[1]), (&[0, 1], &[1])];
    shapes.map(|(dims, axes)| shaped_case(make, dims, axes)).to_vec()
}

fn squeeze(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let input = call.input(0);
    let axes: Vec<usize> =
        call.input(1).to_ints().iter().map(|axis| resolve_axis(*axis, input.rank())).collect();
    let kept = (0..input.rank()).filter(|axis| !axes.contains(axis)).map(|axis| input.dims[axis]);
    vec![ReferenceArray::new(&kept.collect::<Vec<_>>(), input.values.clone()).into()]
}

fn unsqueeze_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let shapes: [(&[usize], &[i64]); 4] =
        [(&[3], &[0]), (&[2, 3], &[-1, 0]), (&[2, 3, 5], &[2]), (&[], &[0])];
    shapes.map(|(dims, axes)| shaped_case(make, dims, axes)).to_vec()
}

fn unsqueeze(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let input = call.input(0);
    let list = call.input(1).to_ints();
    let rank = input.rank() + list.len();
    let axes: Vec<usize> = list.iter().map(|axis| resolve_axis(*axis, rank)).collect();
    let mut own = input.dims.iter();
    let size = |axis: usize| if axes.contains(&axis) { 1 } else { own.next().copied().unwrap_or(1) };
    let dims: Vec<usize> = (0..rank).map(size).collect();
    vec![ReferenceArray::new(&dims, input.values.clone()).into()]
}

fn tile_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let shapes: [(&[usize], &[i64]); 5] = [
        (&[2, 3], &[2, 2]),
        (&[2, 3, 5], &[1, 3, 1]),
        (&[101], &[7]),
        (&[2, 3], &[0, 1]),
        (&[1, 1], &[5, 3]),
    ];
    shapes.map(|(dims, counts)| shaped_case(make, dims, counts)).to_vec()
}

fn tile(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let (input, counts) = (call.input(0), call.input(1).to_ints());
    let dims: Vec<usize> = input.dims.iter().zip(&counts).map(|(dim, count)| dim * *count as usize).collect();
    let element = |at: &[usize]| {
        input.at(&at.iter().zip(&input.dims).map(|(index, dim)| index % dim).collect::<Vec<_>>())
    };
    vec![ReferenceArray::from_fn(&dims, element).into()]
}

fn pad_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let pads: [(&[usize], &[i64], &str); 8] = [
        (&[2, 3], &[1, 2, 0, 1], "constant"),
        (&[4, 5], &[-1, 0, 2, -2], "constant"),
        (&[4, 5], &[2, 1, 3, 0], "reflect"),
        (&[4, 5], &[2, 1, 3, 0], "edge"),
        (&[4, 5], &[2, 1, 3, 0], "wrap"),
        (&[101], &[7, 13], "constant"),
        (&[1, 2, 3, 4], &[0, 0, 1, 1, 0, 0, 1, 1], "constant"),
        (&[0, 3], &[1, 0, 1, 0], "constant"),
    ];
    let case = |(dims, pads, mode): (&[usize], &[i64], &'static str)| {
        let case = shaped_case(make, dims, pads).with_attributes(vec![("mode", Text(mode))]);
        if mode == "constant" { case.with_input(ReferenceArray::from_scalar(1.0)) } else { case }
    };
    pads.map(case).to_vec()
}

fn pad(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let (input, pads, mode) = (call.input(0), call.input(1).to_ints(), call.text("mode"));
    let rank = input.rank();
    let beyond = call.optional(2).map_or(0.0, |value| value.values[0]);
    let size = |axis: usize| (input.dims[axis] as i64 + pads[axis] + pads[axis + rank]) as usize;
    let dims: Vec<usize> = (0..rank).map(size).collect();
    let source = |axis: usize, index: usize| {
        let (index, size) = (index as i64 - pads[axis], input.dims[axis] as i64);
        match mode {
            "edge" => index.clamp(0, size - 1),
            "wrap" => index.rem_euclid(size),
            "reflect" => {
                let turned = index.rem_euclid(2 * (size - 1).max(1));
                turned.min(2 * (size - 1) - turned)
            }
            _ => index,
        }
    };
    let element = |at: &[usize]| {
        let place: Vec<i64> = at.iter().enumerate().map(|(axis, index)| source(axis, *index)).collect();
        input.at_or(&place, beyond)
    };
    vec![ReferenceArray::from_fn(&dims, element).into()]
}

fn depth_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let case = |(dims, size, mode): (&[usize], i64, &'static str)| {
        ReferenceCase::new(vec![make.small(1, dims)])
            .with_attributes(vec![("blocksize", Int(size)), ("mode", Text(mode))])
    };
    [(&[1, 8, 2, 3][..], 2, "DCR"), (&[2, 8, 2, 3], 2, "CRD"), (&[1, 9, 1, 1], 3, "DCR")].map(case).to_vec()
}

fn depth_to_space(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let (input, size) = (call.input(0), call.int("blocksize").unwrap_or(1) as usize);
    let channels = input.dims[1] / (size * size);
    let dims = [input.dims[0], channels, input.dims[2] * size, input.dims[3] * size];
    let element = |at: &[usize]| {
        let inside = at[2] % size * size + at[3] % size;
        let depth =
            if call.text("mode") == "CRD" { at[1] * size * size + inside } else { inside * channels + at[1] };
        input.at(&[at[0], depth, at[2] / size, at[3] / size])
    };
    vec![ReferenceArray::from_fn(&dims, element).into()]
}

fn space_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let case = |(dims, size): (&[usize], i64)| {
        ReferenceCase::new(vec![make.small(1, dims)]).with_attributes(vec![("blocksize", Int(size))])
    };
    [(&[1, 2, 4, 6][..], 2), (&[2, 1, 3, 3], 3)].map(case).to_vec()
}

fn space_to_depth(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let (input, size) = (call.input(0), call.int("blocksize").unwrap_or(1) as usize);
    let channels = input.dims[1];
    let dims = [input.dims[0], channels * size * size, input.dims[2] / size, input.dims[3] / size];
    let element = |at: &[usize]| {
        let (inside, channel) = (at[1] / channels, at[1] % channels);
        input.at(&[at[0], channel, at[2] * size + inside / size, at[3] * size + inside % size])
    };
    vec![ReferenceArray::from_fn(&dims, element).into()]
}

fn triangle_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let case = |(dims, upper, diagonal): (&[usize], i64, i64)| {
        ReferenceCase::new(vec![make.small(1, dims)])
            .with_input(ReferenceArray::from_scalar(diagonal as f64))
            .with_attributes(vec![("upper", Int(upper))])
    };
    [(&[4, 5][..], 1, 0), (&[4, 5], 0, 0), (&[2, 5, 3], 1, -2), (&[5, 5], 0, 2), (&[3, 3], 1, 100)]
        .map(case)
        .to_vec()
}

fn triangle(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let input = call.input(0);
    let diagonal = call.optional(1).map_or(0, |diagonal| diagonal.to_ints()[0]);
    let is_upper = call.int("upper") != Some(0);
    let element = |at: &[usize]| {
        let distance = at[at.len() - 1] as i64 - at[at.len() - 2] as i64;
        let is_kept = if is_upper { distance >= diagonal } else { distance <= diagonal };
        if is_kept { input.at(at) } else { 0.0 }
    };
    vec![ReferenceArray::from_fn(&input.dims, element).into()]
}

fn shape_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    [&[2, 3, 5][..], &[0, 3], &[]]
        .map(|dims| ReferenceCase::new(vec![make.small(1, dims)]).with_attributes(vec![("start", Int(0))]))
        .to_vec()
}

fn shape_of(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let sizes: Vec<i64> = call.input(0).dims.iter().map(|size| *size as i64).collect();
    vec![ReferenceArray::from_list(&sizes).into()]
}

fn size_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    [&[2, 3, 5][..], &[0, 3], &[]].map(|dims| ReferenceCase::new(vec![make.small(1, dims)])).to_vec()
}

fn size_of(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    vec![ReferenceArray::from_scalar(call.input(0).values.len() as f64).into()]
}
