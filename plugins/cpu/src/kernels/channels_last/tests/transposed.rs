//! Transposed convolutions against inputs that are spread out plainly, and against the row of ONNX.

use oarlock_sdk::Dtype;

use super::super::finish::{Finish, Residual};
use super::super::transposed::channels::Channels;
use super::super::transposed::products::{Products, Sizes};
use super::RELU;
use super::reference::{Numbers, Threads, levels};
use super::rows::{LEVELS, check};
use crate::isa::Isa;
use crate::kernels::activation::Activation;
use crate::kernels::conv::window::Axis;
use crate::testing::{Array, Attribute, run};

struct Case {
    sizes: Sizes,
    x: Vec<f32>,
    w: Vec<f32>,
    bias: Vec<f32>,
    residual: Vec<f32>,
}

/// An axis whose windows lie over the output, with so much more at its end; none where the pads leave nothing.
fn axis(
    inputs: usize,
    (kernel, stride, dilation): (usize, usize, usize),
    pad: (usize, usize),
    more: usize,
) -> Option<Axis> {
    let all = inputs.checked_sub(1)? * stride + (kernel - 1) * dilation + 1 + more;
    let input = all.checked_sub(pad.0 + pad.1)?;
    Some(Axis { input, output: inputs, kernel, stride, dilation, pad })
}

impl Case {
    fn new(numbers: &mut Numbers, sizes: Sizes) -> Self {
        let Sizes { images, channels, outputs, groups, down, along } = &sizes;
        let results = images * down.input * along.input * outputs;
        Self {
            x: numbers.values(images * down.output * along.output * channels),
            w: numbers.values(channels * outputs / groups * down.kernel * along.kernel),
            bias: numbers.values(*outputs),
            residual: numbers.values(results),
            sizes,
        }
    }

    fn random(numbers: &mut Numbers) -> Self {
        let mut any = || {
            loop {
                let (kernel, dilation) = (1 + numbers.next(5), [1, 1, 2, 3][numbers.next(4)]);
                let stride = if numbers.next(3) == 0 { kernel } else { 1 + numbers.next(3) };
                let pad = (numbers.next(4), numbers.next(4));
                let more = numbers.next(stride.max(dilation));
                if let Some(axis) = axis(1 + numbers.next(20), (kernel, stride, dilation), pad, more) {
                    return axis;
                }
            }
        };
        let (down, along) = (any(), any());
        let groups = [1, 1, 1, 2, 5][numbers.next(5)];
        let outputs = groups * [1, 1, 3, 4, 8, 17, 24, 40][numbers.next(8)];
        let (channels, images) = (groups * (1 + numbers.next(9)), 1 + numbers.next(2));
        Self::new(numbers, Sizes { images, channels, outputs, groups, down, along })
    }

    fn square(numbers: &mut Numbers, axis: Axis, channels: usize, outputs: usize) -> Self {
        Self::new(numbers, Sizes { images: 1, channels, outputs, groups: 1, down: axis, along: axis })
    }

    fn compute(&self, isa: Isa, threads: usize, finish: &Finish<'_>, as_products: bool) -> Vec<f32> {
        let team = Threads { isa, count: threads };
        // What stands in the output and in scratch memory does not matter.
        let mut y = vec![f32::NAN; self.residual.len()];
        if let Residual::InPlace = finish.residual {
            y.copy_from_slice(&self.residual);
        }
        if let Some(channels) = Channels::new(&self.sizes).filter(|_| !as_products) {
            channels.compute(&team, (&self.x, &channels.pack(&self.w)), finish, &mut y);
            return y;
        }
        let products = Products::new(&team, &self.sizes);
        let packed = products.pack(&team, &self.w);
        let mut scratch = vec![f32::NAN; products.scratch_size()];
        products.compute(&team, (&self.x, &packed), finish, &mut y, &mut scratch);
        y
    }

    /// The results: each input is added to the outputs that it reaches.
    fn expected(&self, finish: &Finish<'_>) -> Vec<f32> {
        let Sizes { images, channels, outputs, groups, down, along } = self.sizes;
        let (depth, rows) = (channels / groups, outputs / groups);
        let mut y: Vec<f32> =
            (0..self.residual.len()).map(|at| finish.bias.map_or(0.0, |bias| bias[at % outputs])).collect();
        for pixel in 0..images * down.output * along.output {
            let (line, column) = (pixel / along.output, pixel % along.output);
            let (image, line) = (line / down.output, line % down.output);
            for step in 0..down.kernel * along.kernel {
                let place = down.place(line, step / along.kernel);
                let Some((to_line, to_column)) = place.zip(along.place(column, step % along.kernel)) else {
                    continue;
                };
                let target = ((image * down.input + to_line) * along.input + to_column) * outputs;
                for channel in 0..channels {
                    for row in 0..rows {
                        let weight = self.w[(channel * rows + row) * down.kernel * along.kernel + step];
                        y[target + channel / depth * rows + row] +=
                            self.x[pixel * channels + channel] * weight;
                    }
                }
            }
        }
        if let Residual::Apart(residual) = finish.residual {
            y.iter_mut().zip(residual).for_each(|(y, residual)| *y += residual);
        }
        finish.activation.apply(Isa::Scalar, &mut y);
        y
    }

    fn check(&self, isa: Isa, finish: &Finish<'_>) {
        self.check_as(isa, finish, true);
        if self.sizes.groups == self.sizes.channels {
            self.check_as(isa, finish, false);
        }
    }

    fn check_as(&self, isa: Isa, finish: &Finish<'_>, as_products: bool) {
        let found = self.compute(isa, 1, finish, as_products);
        let expected = self.expected(finish);
        let same = |(a, b): (&f32, &f32)| {
            // Whole numbers are computed exactly, activations of them almost so.
            a == b || a.is_nan() && b.is_nan() || finish.is_left() && (a - b).abs() <= 1e-5 * b.abs().max(1.0)
        };
        assert!(
            found.iter().zip(&expected).all(same),
            "{:?} on {isa}: {found:?}, not {expected:?}",
            self.sizes
        );
        let bits = |list: &[f32]| list.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        let shared = self.compute(isa, 2, finish, as_products);
        assert!(bits(&shared) == bits(&found), "{:?} on {isa}: other bits with two threads", self.sizes);
        if let Residual::Apart(_) = finish.residual {
            let in_place = Finish { residual: Residual::InPlace, ..*finish };
            let in_place = self.compute(isa, 2, &in_place, as_products);
            assert!(bits(&in_place) == bits(&found), "{:?} on {isa}: other bits in place", self.sizes);
        }
    }
}

const PLAIN: Finish<'_> = Finish { bias: None, residual: Residual::None, activation: Activation::NONE };

#[test]
fn transposed_convolutions_are_the_sums_they_should_be() {
    let mut numbers = Numbers(21);
    for index in 0..120 {
        let case = Case::random(&mut numbers);
        let finish = Finish {
            bias: (index % 2 == 0).then_some(&case.bias),
            residual: if index % 3 == 0 { Residual::Apart(&case.residual) } else { Residual::None },
            activation: [Activation::NONE, RELU, Activation::Sigmoid][index / 2 % 3],
        };
        levels().for_each(|isa| case.check(isa, &finish));
    }
}

#[test]
fn transposed_convolutions_of_each_channel_are_sums_of_it_alone() {
    let mut numbers = Numbers(25);
    for index in 0..60 {
        let case = Case::random(&mut numbers);
        let channels = [2, 8, 16, 19, 40, 64][index % 6];
        let sizes = Sizes { channels, outputs: channels, groups: channels, ..case.sizes };
        let case = Case::new(&mut numbers, sizes);
        let finish = Finish {
            bias: (index % 2 == 0).then_some(&case.bias),
            residual: if index % 3 == 0 { Residual::Apart(&case.residual) } else { Residual::None },
            activation: [Activation::NONE, RELU, Activation::Sigmoid][index / 2 % 3],
        };
        levels().for_each(|isa| case.check(isa, &finish));
    }
}

#[test]
fn each_activation_follows_a_transposed_convolution() {
    let mut numbers = Numbers(22);
    let activations = [
        RELU,
        Activation::Bounds([-3.0, 6.0]),
        Activation::LeakyRelu { alpha: 0.1 },
        Activation::HardSigmoid { alpha: 0.2, beta: 0.5 },
        Activation::HardSwish,
        Activation::Sigmoid,
        Activation::Silu,
        Activation::Tanh,
        Activation::Gelu,
        Activation::GeluTanh,
    ];
    for activation in activations {
        for (kernel, pad, outputs) in [(2, (0, 0), 1), (2, (0, 0), 24), (4, (1, 1), 3), (3, (1, 1), 33)] {
            let axis = axis(9, (kernel, 2, 1), pad, 0).unwrap();
            let case = Case::square(&mut numbers, axis, 4, outputs);
            let residual = Residual::Apart(&case.residual);
            levels().for_each(|isa| {
                case.check(isa, &Finish { bias: Some(&case.bias), residual, activation });
            });
        }
    }
}

/// Enough work for two threads, rows of whole tiles and with rests, few channels and many.
#[test]
fn large_transposed_convolutions_are_shared_between_threads() {
    let mut numbers = Numbers(23);
    for (size, kernel, pad, channels, outputs) in
        [(40, 2, 0, 24, 24), (60, 2, 0, 24, 1), (30, 4, 1, 16, 40), (17, 4, 1, 64, 3), (29, 3, 1, 16, 16)]
    {
        let axis = axis(size, (kernel, 2, 1), (pad, pad), 0).unwrap();
        let case = Case::square(&mut numbers, axis, channels, outputs);
        let finish = Finish { bias: Some(&case.bias), residual: Residual::None, activation: RELU };
        levels().for_each(|isa| case.check(isa, &finish));
    }
}

#[test]
fn nothing_is_computed_of_or_from_nothing() {
    let mut numbers = Numbers(24);
    let some = axis(3, (2, 2, 1), (0, 0), 0).unwrap();
    let gone = axis(2, (2, 2, 1), (2, 2), 0).unwrap();
    let no_inputs = Axis { output: 0, ..axis(1, (3, 2, 1), (0, 0), 0).unwrap() };
    for (images, channels, outputs, down) in
        [(0, 2, 3, some), (1, 0, 3, some), (1, 2, 0, some), (1, 2, 3, gone), (1, 2, 3, no_inputs)]
    {
        let sizes = Sizes { images, channels, outputs, groups: 1, down, along: some };
        let case = Case::new(&mut numbers, sizes);
        let residual = Residual::Apart(&case.residual);
        case.check(Isa::best(), &Finish { bias: Some(&case.bias), residual, activation: RELU });
    }
}

#[test]
fn what_is_no_number_only_gets_to_the_outputs_it_reaches() {
    let mut numbers = Numbers(25);
    for value in [f32::NAN, f32::INFINITY] {
        for (kernel, pad, outputs) in [(2, 0, 1), (4, 1, 2), (3, 1, 20), (1, 0, 3)] {
            let axis = axis(9, (kernel, 2, 1), (pad, pad), 0).unwrap();
            let mut case = Case::square(&mut numbers, axis, 2, outputs);
            case.x[2 * (4 * 9 + 5)] = value;
            levels().for_each(|isa| case.check(isa, &PLAIN));
        }
    }
}

#[test]
fn the_row_computes_what_that_of_onnx_does() {
    let mut numbers = Numbers(26);
    for index in 0..60 {
        let Case { sizes, x, w, bias, .. } = Case::random(&mut numbers);
        let is_flat = index % 4 == 0;
        let axes = if is_flat { vec![sizes.along] } else { vec![sizes.down, sizes.along] };
        let list = |of: fn(&Axis) -> usize| axes.iter().map(|axis| of(axis) as i64).collect::<Vec<_>>();
        let dims = |outer: [usize; 2], of| {
            outer.into_iter().map(|dim| dim as i64).chain(list(of)).collect::<Vec<_>>()
        };
        let pads: Vec<_> = list(|axis| axis.pad.0).into_iter().chain(list(|axis| axis.pad.1)).collect();
        let (strides, dilations) = (list(|axis| axis.stride), list(|axis| axis.dilation));
        let more = list(|axis| {
            axis.input + axis.pad.0 + axis.pad.1 - (axis.output - 1) * axis.stride - axis.extent()
        });
        let attributes = [
            ("group", Attribute::Int(sizes.groups as i64)),
            ("strides", Attribute::Ints(&strides)),
            ("dilations", Attribute::Ints(&dilations)),
            ("pads", Attribute::Ints(&pads)),
            ("output_padding", Attribute::Ints(&more)),
        ];
        let x_dims = dims([sizes.images, sizes.channels], |axis| axis.output);
        let w_dims = dims([sizes.channels, sizes.outputs / sizes.groups], |axis| axis.kernel);
        let y_dims = dims([sizes.images, sizes.outputs], |axis| axis.input);
        let count = |dims: &[i64]| dims.iter().product::<i64>() as usize;
        let w = Array::of(&w_dims, &w[..count(&w_dims)]).constant();
        let b = Array::of(&[sizes.outputs as i64], &bias);
        let others = if index % 3 == 0 { vec![&w] } else { vec![&w, &b] };
        let x = &x[..count(&x_dims)];
        check(LEVELS[index % 3], "ConvTranspose", &attributes, (&x_dims, x), &others, &y_dims);
    }
}

#[test]
fn what_the_row_does_not_do_is_refused_with_a_reason() {
    let x = Array::of(&[1, 4, 4, 2], &[0f32; 32]);
    let w = Array::of(&[2, 3, 2, 2], &[0f32; 24]);
    let message = |attributes: &[(&str, Attribute<'_>)], inputs: &[Option<&Array>], size: i64| {
        let output = [Some((Dtype::F32, &[1, size, size, 3][..]))];
        run("oarlock:ConvTranspose", 1, attributes, inputs, &output).unwrap_err()
    };
    let strides = ("strides", Attribute::Ints(&[2, 2]));
    assert!(message(&[strides], &[Some(&x), Some(&w)], 8).contains("weights that are constant"));
    let w = w.constant();
    let wrong = message(&[strides], &[Some(&x), Some(&w)], 7);
    assert!(wrong.contains("expected an output of size 8 for an input of 4, found 7"), "{wrong}");
    let far = message(&[("strides", Attribute::Ints(&[65, 1]))], &[Some(&x), Some(&w)], 8);
    assert!(far.contains("strides of at most 64, found 65"), "{far}");
    let long = message(&[strides, ("output_padding", Attribute::Ints(&[1]))], &[Some(&x), Some(&w)], 8);
    assert!(long.contains("`output_padding` of 2 values"), "{long}");
    let groups = message(&[strides, ("group", Attribute::Int(2))], &[Some(&x), Some(&w)], 8);
    assert!(groups.contains("for 2 groups"), "{groups}");
    let residual = message(&[strides], &[Some(&x), Some(&w), None, Some(&x)], 8);
    assert!(residual.contains("expected `Z` of the shape [1, 8, 8, 3]"), "{residual}");
}
