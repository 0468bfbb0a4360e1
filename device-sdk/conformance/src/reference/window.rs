//! Convolutions and pooling: ops that look at an image through a window.

use super::DtypeKinds::{Floats, Numbers};
use super::OpDefinition::Whole;
use super::ReferenceOp;
use super::ToleranceClass::{Exact, Sum};
use super::array::{ReferenceArray, indices};
use super::case::AttributeValue::{Int, Ints, Text};
use super::case::{AttributeSet, ReferenceCall, ReferenceCase, ReferenceOutput, TermSum};
use super::samples::CaseMaker;

pub(super) const OPS: &[ReferenceOp] = &[
    ReferenceOp::new("Conv", 1, (Floats, "T, T, T -> T"), Sum, Whole(convolution_cases, convolve)),
    ReferenceOp::new(
        "ConvTranspose",
        1,
        (Floats, "T, T, T -> T"),
        Sum,
        Whole(transposed_cases, convolve_transposed),
    ),
    ReferenceOp::new(
        "MaxPool",
        12,
        (Numbers, "T -> T"),
        Exact,
        Whole(max_cases, |call| pool(call, PoolingKind::Max)),
    ),
    ReferenceOp::new(
        "AveragePool",
        19,
        (Floats, "T -> T"),
        Sum,
        Whole(average_cases, |call| pool(call, PoolingKind::Mean)),
    ),
    ReferenceOp::new(
        "GlobalAveragePool",
        1,
        (Floats, "T -> T"),
        Sum,
        Whole(global_cases, |call| pool_all(call, PoolingKind::Mean)),
    ),
    ReferenceOp::new(
        "GlobalMaxPool",
        1,
        (Floats, "T -> T"),
        Exact,
        Whole(global_cases, |call| pool_all(call, PoolingKind::Max)),
    ),
];

/// Shape, channels of the output, window, strides, dilations, pads and groups of a convolution.
struct WindowShape {
    image: &'static [usize],
    channels: usize,
    window: &'static [i64],
    strides: &'static [i64],
    dilations: &'static [i64],
    pads: &'static [i64],
    groups: usize,
}

const CONVOLUTIONS: [WindowShape; 12] = [
    plain_shape(&[1, 3, 5, 5], 4, &[3, 3], &[0, 0, 0, 0]),
    plain_shape(&[2, 3, 7, 6], 5, &[3, 3], &[1, 1, 1, 1]),
    plain_shape(&[1, 16, 9, 9], 16, &[1, 1], &[0, 0, 0, 0]),
    plain_shape(&[2, 4, 11], 3, &[3], &[1, 0]),
    plain_shape(&[1, 2, 4, 5, 3], 3, &[2, 3, 1], &[0, 1, 0, 0, 1, 0]),
    plain_shape(&[1, 1, 1, 1], 1, &[1, 1], &[0, 0, 0, 0]),
    WindowShape { strides: &[2, 1], ..plain_shape(&[1, 3, 9, 8], 4, &[3, 2], &[1, 0, 1, 1]) },
    WindowShape { dilations: &[2, 2], ..plain_shape(&[1, 2, 9, 10], 3, &[3, 3], &[2, 2, 2, 2]) },
    WindowShape { groups: 2, ..plain_shape(&[1, 4, 6, 6], 6, &[3, 3], &[1, 1, 1, 1]) },
    WindowShape { groups: 8, ..plain_shape(&[1, 8, 7, 7], 8, &[3, 3], &[1, 1, 1, 1]) },
    WindowShape { strides: &[2, 2], ..plain_shape(&[1, 3, 17, 17], 16, &[7, 7], &[3, 3, 3, 3]) },
    plain_shape(&[1, 32, 8, 8], 32, &[3, 3], &[1, 1, 1, 1]),
];

const fn plain_shape(
    image: &'static [usize],
    channels: usize,
    window: &'static [i64],
    pads: &'static [i64],
) -> WindowShape {
    const ONES: &[i64] = &[1, 1, 1];
    let (ones, _) = ONES.split_at(window.len());
    WindowShape { image, channels, window, strides: ones, dilations: ones, pads, groups: 1 }
}

impl WindowShape {
    fn attributes(&self) -> AttributeSet {
        vec![
            ("auto_pad", Text("NOTSET")),
            ("dilations", Ints(self.dilations.to_vec())),
            ("group", Int(self.groups as i64)),
            ("kernel_shape", Ints(self.window.to_vec())),
            ("pads", Ints(self.pads.to_vec())),
            ("strides", Ints(self.strides.to_vec())),
        ]
    }
}

/// The window of a call: how far it moves, and the distance of what it sees.
struct WindowSteps {
    sizes: Vec<i64>,
    strides: Vec<i64>,
    dilations: Vec<i64>,
    pads: Vec<i64>,
}

impl WindowSteps {
    fn of_call(call: &ReferenceCall<'_>) -> Self {
        let ints = |name| call.ints(name).unwrap_or_default().to_vec();
        let sizes = ints("kernel_shape");
        let or_ones = |values: Vec<i64>| if values.is_empty() { vec![1; sizes.len()] } else { values };
        let strides = or_ones(ints("strides"));
        let dilations = or_ones(ints("dilations"));
        Self { strides, dilations, pads: ints("pads"), sizes }
    }

    fn window(&self) -> Vec<Vec<usize>> {
        indices(&self.sizes.iter().map(|size| *size as usize).collect::<Vec<_>>())
    }

    /// The number of places of the window along each dimension.
    fn places(&self, image: &[usize], is_rounded_up: bool) -> Vec<usize> {
        let axes = self.sizes.len();
        let along = |axis: usize| {
            let size = image[axis] as i64 + self.pads[axis] + self.pads[axis + axes];
            let room = size - self.dilations[axis] * (self.sizes[axis] - 1) - 1;
            let stride = self.strides[axis];
            let mut count = room.div_euclid(stride) + 1;
            // A last place that begins beyond the image and its first padding does not count.
            if is_rounded_up && room % stride != 0 && count * stride < image[axis] as i64 + self.pads[axis] {
                count += 1;
            }
            count as usize
        };
        (0..axes).map(along).collect()
    }

    /// Where in the image the window looks.
    fn seen(&self, place: &[usize], inside: &[usize]) -> Vec<i64> {
        let along = |axis: usize| {
            place[axis] as i64 * self.strides[axis] + inside[axis] as i64 * self.dilations[axis]
                - self.pads[axis]
        };
        (0..self.sizes.len()).map(along).collect()
    }
}

fn convolution_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let case = |shape: &WindowShape| {
        let mut weights = vec![shape.channels, shape.image[1] / shape.groups];
        weights.extend(shape.window.iter().map(|size| *size as usize));
        ReferenceCase::new(vec![make.small(1, shape.image), make.small(2, &weights)])
            .with_attributes(shape.attributes())
    };
    let with_bias = CONVOLUTIONS.iter().map(|shape| case(shape).with_input(make.small(3, &[shape.channels])));
    CONVOLUTIONS.iter().map(case).chain(with_bias).collect()
}

fn convolve(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let (image, weights, steps) = (call.input(0), call.input(1), WindowSteps::of_call(call));
    let groups = call.int("group").unwrap_or(1) as usize;
    let (channels, per_group) = (weights.dims[0], weights.dims[1]);
    let mut dims = vec![image.dims[0], channels];
    dims.extend(steps.places(&image.dims[2..], false));
    let window = steps.window();
    vec![ReferenceOutput::from_fn(&dims, |at| {
        let first = at[1] / (channels / groups) * per_group;
        let mut sum = TermSum::default();
        sum.add_term(call.optional(2).map_or(0.0, |bias| bias.values[at[1]]));
        for channel in 0..per_group {
            for inside in &window {
                let seen =
                    [at[0] as i64, (first + channel) as i64].into_iter().chain(steps.seen(&at[2..], inside));
                let weight: Vec<usize> = [at[1], channel].into_iter().chain(inside.iter().copied()).collect();
                sum.add_term(image.at_or(&seen.collect::<Vec<_>>(), 0.0) * weights.at(&weight));
            }
        }
        (sum.value, sum.magnitude)
    })]
}

fn transposed_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let shapes = [
        plain_shape(&[1, 3, 4, 5], 2, &[3, 3], &[0, 0, 0, 0]),
        plain_shape(&[2, 2, 5], 3, &[3], &[1, 1]),
        WindowShape { strides: &[2, 2], ..plain_shape(&[1, 3, 4, 3], 4, &[3, 2], &[1, 0, 1, 0]) },
        WindowShape { dilations: &[2, 2], ..plain_shape(&[1, 2, 4, 4], 2, &[2, 2], &[0, 0, 0, 0]) },
        WindowShape { groups: 2, strides: &[2, 2], ..plain_shape(&[1, 4, 3, 3], 4, &[2, 2], &[0, 0, 0, 0]) },
    ];
    let case = |shape: &WindowShape| {
        let mut weights = vec![shape.image[1], shape.channels / shape.groups];
        weights.extend(shape.window.iter().map(|size| *size as usize));
        let mut attributes = shape.attributes();
        attributes.push(("output_padding", Ints(vec![0; shape.window.len()])));
        ReferenceCase::new(vec![make.small(1, shape.image), make.small(2, &weights)])
            .with_attributes(attributes)
    };
    let with_bias = shapes.iter().map(|shape| case(shape).with_input(make.small(3, &[shape.channels])));
    shapes.iter().map(case).chain(with_bias).collect()
}

/// Each element of the image adds the weights, times its value, to a window of the output.
fn convolve_transposed(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let (image, weights, steps) = (call.input(0), call.input(1), WindowSteps::of_call(call));
    let groups = call.int("group").unwrap_or(1) as usize;
    let (per_group, axes) = (weights.dims[1], steps.sizes.len());
    let size = |axis: usize| {
        let whole = steps.strides[axis] * (image.dims[axis + 2] as i64 - 1)
            + steps.dilations[axis] * (steps.sizes[axis] - 1)
            + 1;
        (whole - steps.pads[axis] - steps.pads[axis + axes]) as usize
    };
    let mut dims = vec![image.dims[0], per_group * groups];
    dims.extend((0..axes).map(size));
    let mut sums = vec![TermSum::default(); dims.iter().product()];
    let all = indices(&dims);
    if let Some(bias) = call.optional(2) {
        all.iter().zip(&mut sums).for_each(|(at, sum)| sum.add_term(bias.values[at[1]]));
    }
    for from in indices(&image.dims) {
        let group = from[1] / (image.dims[1] / groups);
        for inside in steps.window() {
            let to = steps.seen(&from[2..], &inside);
            let is_inside = to.iter().zip(&dims[2..]).all(|(index, dim)| (0..*dim as i64).contains(index));
            for channel in (0..per_group).filter(|_| is_inside) {
                let weight: Vec<usize> =
                    [from[1], channel].into_iter().chain(inside.iter().copied()).collect();
                let at = [from[0], group * per_group + channel]
                    .into_iter()
                    .chain(to.iter().map(|index| *index as usize));
                let place = at.zip(&dims).fold(0, |place, (index, dim)| place * dim + index);
                sums[place].add_term(image.at(&from) * weights.at(&weight));
            }
        }
    }
    let values = sums.iter().map(|sum| sum.value).collect();
    let magnitudes = sums.iter().map(|sum| sum.magnitude).collect();
    vec![ReferenceOutput { array: ReferenceArray::new(&dims, values), magnitudes }]
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PoolingKind {
    Max,
    Mean,
}

const POOLS: [WindowShape; 7] = [
    plain_shape(&[1, 3, 5, 5], 0, &[2, 2], &[0, 0, 0, 0]),
    plain_shape(&[2, 2, 7, 6], 0, &[3, 3], &[1, 1, 1, 1]),
    plain_shape(&[2, 3, 11], 0, &[3], &[1, 0]),
    plain_shape(&[1, 2, 4, 5, 3], 0, &[2, 3, 1], &[0, 1, 0, 0, 1, 0]),
    WindowShape { strides: &[2, 2], ..plain_shape(&[1, 3, 9, 8], 0, &[3, 3], &[1, 1, 1, 1]) },
    WindowShape { strides: &[2, 3], ..plain_shape(&[1, 1, 7, 11], 0, &[2, 2], &[0, 0, 0, 0]) },
    WindowShape { dilations: &[2, 2], ..plain_shape(&[1, 2, 9, 10], 0, &[3, 2], &[1, 1, 1, 1]) },
];

fn pool_cases(make: CaseMaker, more: &[AttributeSet]) -> Vec<ReferenceCase> {
    let mut cases = Vec::new();
    for extra in more {
        for shape in &POOLS {
            let mut attributes = shape.attributes();
            attributes.retain(|(name, _)| *name != "group");
            attributes.extend(extra.iter().cloned());
            cases.push(ReferenceCase::new(vec![make.small(1, shape.image)]).with_attributes(attributes));
        }
    }
    cases
}

fn max_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let attributes = [0, 1].map(|up| vec![("ceil_mode", Int(up)), ("storage_order", Int(0))]);
    pool_cases(make, &attributes)
}

fn average_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    let attributes = [(0, 0), (0, 1), (1, 0)]
        .map(|(up, padding)| vec![("ceil_mode", Int(up)), ("count_include_pad", Int(padding))]);
    pool_cases(make, &attributes)
}

fn pool(call: &ReferenceCall<'_>, pooling: PoolingKind) -> Vec<ReferenceOutput> {
    let (image, steps) = (call.input(0), WindowSteps::of_call(call));
    let counts_padding = call.int("count_include_pad") == Some(1);
    let mut dims = image.dims[..2].to_vec();
    dims.extend(steps.places(&image.dims[2..], call.int("ceil_mode") == Some(1)));
    let window = steps.window();
    vec![ReferenceOutput::from_fn(&dims, |at| {
        let seen = |inside: &Vec<usize>| {
            let index: Vec<i64> =
                at[..2].iter().map(|index| *index as i64).chain(steps.seen(&at[2..], inside)).collect();
            image.at_or(&index, f64::NAN)
        };
        let terms: Vec<f64> = window.iter().map(seen).filter(|value| !value.is_nan()).collect();
        pooled(&terms, if counts_padding { window.len() } else { terms.len() }, pooling)
    })]
}

fn pooled(terms: &[f64], count: usize, pooling: PoolingKind) -> (f64, f64) {
    if pooling == PoolingKind::Max {
        return (terms.iter().copied().fold(f64::NEG_INFINITY, f64::max), 0.0);
    }
    let sum = TermSum::of_terms(terms.iter().copied());
    (sum.value / count as f64, sum.magnitude / count as f64)
}

fn global_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    [&[2, 3, 5, 5][..], &[1, 7, 1, 1], &[2, 2, 37], &[1, 2, 3, 4, 5]]
        .map(|dims| ReferenceCase::new(vec![make.small(1, dims)]))
        .to_vec()
}

fn pool_all(call: &ReferenceCall<'_>, pooling: PoolingKind) -> Vec<ReferenceOutput> {
    let image = call.input(0);
    let mut dims = image.dims[..2].to_vec();
    dims.resize(image.rank(), 1);
    vec![ReferenceOutput::from_fn(&dims, |at| {
        let terms: Vec<f64> = indices(&image.dims[2..])
            .iter()
            .map(|inside| image.at(&at[..2].iter().chain(inside).copied().collect::<Vec<_>>()))
            .collect();
        pooled(&terms, terms.len(), pooling)
    })]
}
