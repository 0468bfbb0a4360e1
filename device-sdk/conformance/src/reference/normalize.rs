//! Normalizations.

use super::DtypeKinds::Floats;
use super::OpDefinition::Whole;
use super::ToleranceClass::Sum;
use super::array::{ReferenceArray, indices, resolve_axis};
use super::case::AttributeValue::{Float, Int, Ints};
use super::case::{ReferenceCall, ReferenceCase, ReferenceOutput};
use super::samples::{CaseMaker, ValueDomain};
use super::{ReferenceOp, WholeFunction};

pub(super) const OPS: &[ReferenceOp] = &[
    float_op("LayerNormalization", 17, "T, T, T -> T", layer_cases, layer_norm),
    float_op("RMSNormalization", 23, "T, T -> T", rms_cases, rms_norm),
    float_op("BatchNormalization", 14, "T, T, T, T, T -> T", batch_cases, batch_norm),
    float_op("InstanceNormalization", 1, "T, T, T -> T", instance_cases, |call| {
        group_norm(call, call.input(0).dims[1])
    }),
    float_op("GroupNormalization", 21, "T, T, T -> T", group_cases, |call| {
        group_norm(call, call.int("num_groups").unwrap_or(1) as usize)
    }),
    float_op("MeanVarianceNormalization", 9, "T -> T", mean_variance_cases, mean_variance),
    float_op("LRN", 1, "T -> T", response_cases, local_response),
];

const fn float_op(
    name: &'static str,
    since: u32,
    operands: &'static str,
    cases: fn(CaseMaker) -> Vec<ReferenceCase>,
    function: WholeFunction,
) -> ReferenceOp {
    ReferenceOp::new(name, since, (Floats, operands), Sum, Whole(cases, function))
}

/// Mean and variance of numbers.
fn moments(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    (mean, values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count)
}

/// A normalized element, scaled and shifted, and its magnitude.
fn scaled(value: f64, (mean, variance): (f64, f64), epsilon: f64, scale: f64, bias: f64) -> (f64, f64) {
    let deviation = (variance + epsilon).sqrt();
    let normal = (value - mean) / deviation * scale;
    (normal + bias, (value.abs() + mean.abs()) / deviation * scale.abs() + bias.abs())
}

/// Takes the elements whose index agrees with `at` in the dimensions that are not in `axes`.
fn neighbors(input: &ReferenceArray, at: &[usize], axes: &[usize]) -> Vec<f64> {
    let inner: Vec<usize> = axes.iter().map(|axis| input.dims[*axis]).collect();
    let element = |inside: &Vec<usize>| {
        let mut place = at.to_vec();
        axes.iter().zip(inside).for_each(|(axis, index)| place[*axis] = *index);
        input.at(&place)
    };
    indices(&inner).iter().map(element).collect()
}

fn layer_shapes() -> [(&'static [usize], i64); 5] {
    [(&[2, 3, 5], -1), (&[2, 3, 5], 1), (&[3, 257], -1), (&[0, 3], -1), (&[2, 1031], 1)]
}

fn layer_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let case = |(dims, axis): (&[usize], i64)| {
        let inner = &dims[resolve_axis(axis, dims.len())..];
        let attributes = vec![("axis", Int(axis)), ("epsilon", Float(1e-5)), ("stash_type", Int(1))];
        ReferenceCase::new(vec![make.small(1, dims), make.small(2, inner)]).with_attributes(attributes)
    };
    let bias = make.small(3, &[5]);
    let shapes = layer_shapes();
    let with_bias = case(shapes[0]).with_input(bias).named("with a bias");
    shapes.into_iter().map(case).chain([with_bias]).collect()
}

fn layer_norm(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let (input, scale) = (call.input(0), call.input(1));
    let axes: Vec<usize> =
        (resolve_axis(call.int("axis").unwrap_or(-1), input.rank())..input.rank()).collect();
    vec![ReferenceOutput::from_fn(&input.dims, |at| {
        let statistics = moments(&neighbors(input, at, &axes));
        let bias = call.optional(2).map_or(0.0, |bias| bias.broadcast_at(at));
        scaled(input.at(at), statistics, call.float("epsilon"), scale.broadcast_at(at), bias)
    })]
}

fn rms_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let case = |(dims, axis): (&[usize], i64)| {
        let inner = &dims[resolve_axis(axis, dims.len())..];
        let attributes = vec![("axis", Int(axis)), ("epsilon", Float(1e-5)), ("stash_type", Int(1))];
        ReferenceCase::new(vec![make.small(1, dims), make.small(2, inner)]).with_attributes(attributes)
    };
    layer_shapes().map(case).to_vec()
}

fn rms_norm(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let (input, scale) = (call.input(0), call.input(1));
    let axes: Vec<usize> =
        (resolve_axis(call.int("axis").unwrap_or(-1), input.rank())..input.rank()).collect();
    let element = |at: &[usize]| {
        let all = neighbors(input, at, &axes);
        let square = all.iter().map(|value| value * value).sum::<f64>() / all.len() as f64;
        input.at(at) / (square + call.float("epsilon")).sqrt() * scale.broadcast_at(at)
    };
    vec![ReferenceArray::from_fn(&input.dims, element).into()]
}

const IMAGE_SHAPES: [&[usize]; 4] = [&[2, 4, 5], &[1, 6, 3, 7], &[3, 2, 1, 1], &[2, 8, 11, 13]];

fn batch_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let case = |dims: &[usize]| {
        let channels = &dims[1..2];
        let variance = make.array(5, channels, ValueDomain::Positive);
        let inputs = vec![
            make.small(1, dims),
            make.small(2, channels),
            make.small(3, channels),
            make.small(4, channels),
        ];
        let attributes = vec![("epsilon", Float(1e-5)), ("momentum", Float(0.9)), ("training_mode", Int(0))];
        ReferenceCase::new(inputs).with_input(variance).with_attributes(attributes)
    };
    IMAGE_SHAPES.into_iter().chain([&[0, 3, 2][..], &[5, 3]]).map(case).collect()
}

fn batch_norm(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let [input, scale, bias, mean, variance] = [0, 1, 2, 3, 4].map(|index| call.input(index));
    vec![ReferenceOutput::from_fn(&input.dims, |at| {
        let channel = &at[1..2];
        let statistics = (mean.at(channel), variance.at(channel));
        scaled(input.at(at), statistics, call.float("epsilon"), scale.at(channel), bias.at(channel))
    })]
}

fn channel_case(make: CaseMaker, dims: &[usize]) -> ReferenceCase {
    let channels = &dims[1..2];
    ReferenceCase::new(vec![make.small(1, dims), make.small(2, channels), make.small(3, channels)])
}

fn instance_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let case = |dims: &[usize]| channel_case(make, dims).with_attributes(vec![("epsilon", Float(1e-5))]);
    [&[2, 4, 5][..], &[1, 6, 3, 7], &[2, 3, 11, 13]].map(case).to_vec()
}

fn group_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let case = |(dims, groups): (&[usize], i64)| {
        let attributes = vec![("epsilon", Float(1e-5)), ("num_groups", Int(groups)), ("stash_type", Int(1))];
        channel_case(make, dims).with_attributes(attributes)
    };
    [(&[2, 4, 5][..], 2), (&[1, 6, 3, 7], 3), (&[2, 8, 5], 1)].map(case).to_vec()
}

fn group_norm(call: &ReferenceCall<'_>, groups: usize) -> Vec<ReferenceOutput> {
    let [input, scale, bias] = [0, 1, 2].map(|index| call.input(index));
    let channels = input.dims[1] / groups;
    vec![ReferenceOutput::from_fn(&input.dims, |at| {
        let first = at[1] / channels * channels;
        let spatial: Vec<usize> = (2..input.rank()).collect();
        let mut all = Vec::new();
        for channel in first..first + channels {
            let mut place = at.to_vec();
            place[1] = channel;
            all.extend(neighbors(input, &place, &spatial));
        }
        let channel = &at[1..2];
        scaled(input.at(at), moments(&all), call.float("epsilon"), scale.at(channel), bias.at(channel))
    })]
}

fn mean_variance_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let case = |dims: &[usize]| {
        ReferenceCase::new(vec![make.small(1, dims)]).with_attributes(vec![("axes", Ints(vec![0, 2, 3]))])
    };
    [&[2, 4, 5, 3][..], &[3, 2, 7, 1]].map(case).to_vec()
}

fn mean_variance(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let input = call.input(0);
    vec![ReferenceOutput::from_fn(&input.dims, |at| {
        let (mean, variance) = moments(&neighbors(input, at, &[0, 2, 3]));
        // ONNX adds this to the deviation, not to the variance.
        let deviation = variance.sqrt() + 1e-9;
        ((input.at(at) - mean) / deviation, (input.at(at).abs() + mean.abs()) / deviation)
    })]
}

fn response_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let case = |(dims, size): (&[usize], i64)| {
        let attributes =
            vec![("alpha", Float(0.01)), ("beta", Float(0.75)), ("bias", Float(1.0)), ("size", Int(size))];
        ReferenceCase::new(vec![make.small(1, dims)]).with_attributes(attributes)
    };
    [(&[2, 7, 3, 5][..], 3), (&[1, 5, 2, 2], 5), (&[1, 4, 3, 3], 1)].map(case).to_vec()
}

fn local_response(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let (input, size) = (call.input(0), call.int("size").unwrap_or(1) as usize);
    let element = |at: &[usize]| {
        let first = at[1].saturating_sub((size - 1) / 2);
        let last = (at[1] + size / 2).min(input.dims[1] - 1);
        let square: f64 = (first..=last)
            .map(|channel| {
                let mut place = at.to_vec();
                place[1] = channel;
                input.at(&place) * input.at(&place)
            })
            .sum();
        input.at(at)
            / (call.float("bias") + call.float("alpha") / size as f64 * square).powf(call.float("beta"))
    };
    vec![ReferenceArray::from_fn(&input.dims, element).into()]
}
