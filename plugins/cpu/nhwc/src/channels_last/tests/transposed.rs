//! Compares transposed convolutions with a naive scatter of the inputs, and with the ONNX kernel.

use oarlock_cpu_base::fused_activation::FusedActivation;
use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::window::WindowAxis;
use oarlock_cpu_testing::isa_levels::isa_levels;
use oarlock_cpu_testing::runner::{TestArray, TestAttribute};
use oarlock_cpu_testing::test_team::TestTeam;
use oarlock_sdk::Dtype;

use super::super::epilogue::{ConvEpilogue, ResidualSource};
use super::super::transposed::transposed_conv::TransposedConv;
use super::super::transposed::transposed_depthwise::TransposedDepthwise;
use super::super::transposed::transposed_shape::NhwcTransposedShape;
use super::RELU;
use super::onnx_parity::{ISA_LEVELS, check_against_onnx};
use super::reference::RandomNumbers;
use crate::KERNELS;

struct TransposedConvCase {
    sizes: NhwcTransposedShape,
    x: Vec<f32>,
    w: Vec<f32>,
    bias: Vec<f32>,
    residual: Vec<f32>,
}

/// An axis whose windows slide over the output, extended at its end; `None` if the pads leave no output.
fn transposed_axis(
    inputs: usize,
    (kernel, stride, dilation): (usize, usize, usize),
    pad: (usize, usize),
    more: usize,
) -> Option<WindowAxis> {
    let all = inputs.checked_sub(1)? * stride + (kernel - 1) * dilation + 1 + more;
    let input = all.checked_sub(pad.0 + pad.1)?;
    Some(WindowAxis { input, output: inputs, kernel, stride, dilation, pad })
}

impl TransposedConvCase {
    fn new(numbers: &mut RandomNumbers, sizes: NhwcTransposedShape) -> Self {
        let NhwcTransposedShape { images, channels, outputs, groups, vertical, horizontal } = &sizes;
        let results = images * vertical.input * horizontal.input * outputs;
        Self {
            x: numbers.small_integers(images * vertical.output * horizontal.output * channels),
            w: numbers.small_integers(channels * outputs / groups * vertical.kernel * horizontal.kernel),
            bias: numbers.small_integers(*outputs),
            residual: numbers.small_integers(results),
            sizes,
        }
    }

    fn random(numbers: &mut RandomNumbers) -> Self {
        let mut any = || {
            loop {
                let (kernel, dilation) = (1 + numbers.next(5), [1, 1, 2, 3][numbers.next(4)]);
                // Often the stride equals the kernel size: then, without dilation, all remainders read the same inputs and share a
                // product.
                let stride = if numbers.next(3) == 0 { kernel } else { 1 + numbers.next(3) };
                let pad = (numbers.next(4), numbers.next(4));
                let more = numbers.next(stride.max(dilation));
                if let Some(axis) =
                    transposed_axis(1 + numbers.next(20), (kernel, stride, dilation), pad, more)
                {
                    return axis;
                }
            }
        };
        let (vertical, horizontal) = (any(), any());
        let groups = [1, 1, 1, 2, 5][numbers.next(5)];
        let outputs = groups * [1, 1, 3, 4, 8, 17, 24, 40][numbers.next(8)];
        let (channels, images) = (groups * (1 + numbers.next(9)), 1 + numbers.next(2));
        Self::new(numbers, NhwcTransposedShape { images, channels, outputs, groups, vertical, horizontal })
    }

    fn square_case(numbers: &mut RandomNumbers, axis: WindowAxis, channels: usize, outputs: usize) -> Self {
        Self::new(
            numbers,
            NhwcTransposedShape { images: 1, channels, outputs, groups: 1, vertical: axis, horizontal: axis },
        )
    }

    fn compute_output(
        &self,
        isa: Isa,
        threads: usize,
        epilogue: &ConvEpilogue<'_>,
        as_products: bool,
    ) -> Vec<f32> {
        let team = TestTeam { isa, count: threads };
        // Output and scratch memory are not initialized: NaN reveals reads of either.
        let mut y = vec![f32::NAN; self.residual.len()];
        if let ResidualSource::InPlace = epilogue.residual {
            y.copy_from_slice(&self.residual);
        }
        if let Some(channels) = TransposedDepthwise::new(&self.sizes).filter(|_| !as_products) {
            channels.compute(&team, (&self.x, &channels.pack_weights(&self.w)), epilogue, &mut y);
            return y;
        }
        let products = TransposedConv::new(&team, &self.sizes);
        let packed = products.pack_weights(&team, &self.w);
        let mut scratch = vec![f32::NAN; products.scratch_size()];
        products.compute(&team, (&self.x, &packed), epilogue, &mut y, &mut scratch);
        y
    }

    /// The expected results: each input is added to the outputs that it reaches.
    fn expected_output(&self, epilogue: &ConvEpilogue<'_>) -> Vec<f32> {
        let NhwcTransposedShape { images, channels, outputs, groups, vertical, horizontal } = self.sizes;
        let (depth, rows) = (channels / groups, outputs / groups);
        let mut y: Vec<f32> =
            (0..self.residual.len()).map(|at| epilogue.bias.map_or(0.0, |bias| bias[at % outputs])).collect();
        for pixel in 0..images * vertical.output * horizontal.output {
            let (line, column) = (pixel / horizontal.output, pixel % horizontal.output);
            let (image, line) = (line / vertical.output, line % vertical.output);
            for step in 0..vertical.kernel * horizontal.kernel {
                let place = vertical.input_position(line, step / horizontal.kernel);
                let Some((to_line, to_column)) =
                    place.zip(horizontal.input_position(column, step % horizontal.kernel))
                else {
                    continue;
                };
                let target = ((image * vertical.input + to_line) * horizontal.input + to_column) * outputs;
                for channel in 0..channels {
                    for row in 0..rows {
                        let weight =
                            self.w[(channel * rows + row) * vertical.kernel * horizontal.kernel + step];
                        y[target + channel / depth * rows + row] +=
                            self.x[pixel * channels + channel] * weight;
                    }
                }
            }
        }
        if let ResidualSource::Apart(residual) = epilogue.residual {
            y.iter_mut().zip(residual).for_each(|(y, residual)| *y += residual);
        }
        epilogue.activation.apply_with_isa(Isa::Scalar, &mut y);
        y
    }

    fn check_algorithms(&self, levels: impl IntoIterator<Item = Isa>, epilogue: &ConvEpilogue<'_>) {
        let expected = self.expected_output(epilogue);
        for isa in levels {
            self.check_output(isa, epilogue, true, &expected);
            if self.sizes.groups == self.sizes.channels {
                self.check_output(isa, epilogue, false, &expected);
            }
        }
    }

    fn check_output(&self, isa: Isa, epilogue: &ConvEpilogue<'_>, as_products: bool, expected: &[f32]) {
        let found = self.compute_output(isa, 1, epilogue, as_products);
        let same = |(a, b): (&f32, &f32)| {
            // Sums of integers are exact, but their activations may be rounded.
            a == b
                || a.is_nan() && b.is_nan()
                || epilogue.has_remaining() && (a - b).abs() <= 1e-5 * b.abs().max(1.0)
        };
        assert!(
            found.iter().zip(expected).all(same),
            "{:?} on {isa}: {found:?}, not {expected:?}",
            self.sizes
        );
        let bits = |list: &[f32]| list.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        let shared = self.compute_output(isa, 2, epilogue, as_products);
        assert!(bits(&shared) == bits(&found), "{:?} on {isa}: other bits with two threads", self.sizes);
        if let ResidualSource::Apart(_) = epilogue.residual {
            let in_place = ConvEpilogue { residual: ResidualSource::InPlace, ..*epilogue };
            let in_place = self.compute_output(isa, 2, &in_place, as_products);
            assert!(bits(&in_place) == bits(&found), "{:?} on {isa}: other bits in place", self.sizes);
        }
    }
}

const PLAIN_EPILOGUE: ConvEpilogue<'_> =
    ConvEpilogue { bias: None, residual: ResidualSource::None, activation: FusedActivation::NONE };

#[test]
fn transposed_convolutions_are_the_sums_they_should_be() {
    let mut numbers = RandomNumbers(21);
    for index in 0..72 {
        let case = TransposedConvCase::random(&mut numbers);
        let epilogue = ConvEpilogue {
            bias: (index % 2 == 0).then_some(&case.bias),
            residual: if index % 3 == 0 {
                ResidualSource::Apart(&case.residual)
            } else {
                ResidualSource::None
            },
            activation: [FusedActivation::NONE, RELU, FusedActivation::Sigmoid][index / 2 % 3],
        };
        case.check_algorithms(isa_levels(), &epilogue);
    }
}

#[test]
fn transposed_convolutions_of_each_channel_are_sums_of_it_alone() {
    let mut numbers = RandomNumbers(25);
    for index in 0..36 {
        let case = TransposedConvCase::random(&mut numbers);
        let channels = [2, 8, 16, 19, 40, 64][index % 6];
        let sizes = NhwcTransposedShape { channels, outputs: channels, groups: channels, ..case.sizes };
        let case = TransposedConvCase::new(&mut numbers, sizes);
        let epilogue = ConvEpilogue {
            bias: (index % 2 == 0).then_some(&case.bias),
            residual: if index % 3 == 0 {
                ResidualSource::Apart(&case.residual)
            } else {
                ResidualSource::None
            },
            activation: [FusedActivation::NONE, RELU, FusedActivation::Sigmoid][index / 2 % 3],
        };
        case.check_algorithms(isa_levels(), &epilogue);
    }
}

#[test]
fn each_activation_follows_a_transposed_convolution() {
    let mut numbers = RandomNumbers(22);
    let activations = [
        RELU,
        FusedActivation::Bounds([-3.0, 6.0]),
        FusedActivation::LeakyRelu { alpha: 0.1, low: -2.0 },
        FusedActivation::HardSigmoid { alpha: 0.2, beta: 0.5 },
        FusedActivation::HardSwish,
        FusedActivation::Sigmoid,
        FusedActivation::Silu,
        FusedActivation::Tanh,
        FusedActivation::Gelu,
        FusedActivation::GeluTanh,
    ];
    for activation in activations {
        for (kernel, pad, outputs) in [(2, (0, 0), 1), (2, (0, 0), 24), (4, (1, 1), 3), (3, (1, 1), 33)] {
            let axis = transposed_axis(9, (kernel, 2, 1), pad, 0).unwrap();
            let case = TransposedConvCase::square_case(&mut numbers, axis, 4, outputs);
            let residual = ResidualSource::Apart(&case.residual);
            let epilogue = ConvEpilogue { bias: Some(&case.bias), residual, activation };
            case.check_algorithms(isa_levels(), &epilogue);
        }
    }
}

/// Enough work for two threads, rows with and without a remainder after whole tiles, few channels and many.
#[test]
fn large_transposed_convolutions_are_shared_between_threads() {
    let mut numbers = RandomNumbers(23);
    for (size, kernel, pad, channels, outputs) in
        [(40, 2, 0, 24, 24), (60, 2, 0, 24, 1), (30, 4, 1, 16, 40), (17, 4, 1, 64, 3), (29, 3, 1, 16, 16)]
    {
        let axis = transposed_axis(size, (kernel, 2, 1), (pad, pad), 0).unwrap();
        let case = TransposedConvCase::square_case(&mut numbers, axis, channels, outputs);
        let epilogue =
            ConvEpilogue { bias: Some(&case.bias), residual: ResidualSource::None, activation: RELU };
        case.check_algorithms(isa_levels(), &epilogue);
    }
}

#[test]
fn nothing_is_computed_of_or_from_nothing() {
    let mut numbers = RandomNumbers(24);
    let some = transposed_axis(3, (2, 2, 1), (0, 0), 0).unwrap();
    let gone = transposed_axis(2, (2, 2, 1), (2, 2), 0).unwrap();
    let no_inputs = WindowAxis { output: 0, ..transposed_axis(1, (3, 2, 1), (0, 0), 0).unwrap() };
    for (images, channels, outputs, vertical) in
        [(0, 2, 3, some), (1, 0, 3, some), (1, 2, 0, some), (1, 2, 3, gone), (1, 2, 3, no_inputs)]
    {
        let sizes = NhwcTransposedShape { images, channels, outputs, groups: 1, vertical, horizontal: some };
        let case = TransposedConvCase::new(&mut numbers, sizes);
        let residual = ResidualSource::Apart(&case.residual);
        case.check_algorithms(
            [oarlock_cpu_testing::isa_levels::best_isa()],
            &ConvEpilogue { bias: Some(&case.bias), residual, activation: RELU },
        );
    }
}

#[test]
fn what_is_no_number_only_gets_to_the_outputs_it_reaches() {
    let mut numbers = RandomNumbers(25);
    for value in [f32::NAN, f32::INFINITY] {
        for (kernel, pad, outputs) in [(2, 0, 1), (4, 1, 2), (3, 1, 20), (1, 0, 3)] {
            let axis = transposed_axis(9, (kernel, 2, 1), (pad, pad), 0).unwrap();
            let mut case = TransposedConvCase::square_case(&mut numbers, axis, 2, outputs);
            case.x[2 * (4 * 9 + 5)] = value;
            case.check_algorithms(isa_levels(), &PLAIN_EPILOGUE);
        }
    }
}

#[test]
fn the_row_computes_what_that_of_onnx_does() {
    let mut numbers = RandomNumbers(26);
    for index in 0..60 {
        let TransposedConvCase { sizes, x, w, bias, .. } = TransposedConvCase::random(&mut numbers);
        let is_flat = index % 4 == 0;
        let axes = if is_flat { vec![sizes.horizontal] } else { vec![sizes.vertical, sizes.horizontal] };
        let list = |of: fn(&WindowAxis) -> usize| axes.iter().map(|axis| of(axis) as i64).collect::<Vec<_>>();
        let dims = |outer: [usize; 2], of| {
            outer.into_iter().map(|dim| dim as i64).chain(list(of)).collect::<Vec<_>>()
        };
        let pads: Vec<_> = list(|axis| axis.pad.0).into_iter().chain(list(|axis| axis.pad.1)).collect();
        let (strides, dilations) = (list(|axis| axis.stride), list(|axis| axis.dilation));
        let more = list(|axis| {
            axis.input + axis.pad.0 + axis.pad.1 - (axis.output - 1) * axis.stride - axis.extent()
        });
        let attributes = [
            ("group", TestAttribute::Int(sizes.groups as i64)),
            ("strides", TestAttribute::Ints(&strides)),
            ("dilations", TestAttribute::Ints(&dilations)),
            ("pads", TestAttribute::Ints(&pads)),
            ("output_padding", TestAttribute::Ints(&more)),
        ];
        let x_dims = dims([sizes.images, sizes.channels], |axis| axis.output);
        let w_dims = dims([sizes.channels, sizes.outputs / sizes.groups], |axis| axis.kernel);
        let y_dims = dims([sizes.images, sizes.outputs], |axis| axis.input);
        let count = |dims: &[i64]| dims.iter().product::<i64>() as usize;
        let w = TestArray::from_values(&w_dims, &w[..count(&w_dims)]).into_constant();
        let b = TestArray::from_values(&[sizes.outputs as i64], &bias);
        let others = if index % 3 == 0 { vec![&w] } else { vec![&w, &b] };
        let x = &x[..count(&x_dims)];
        check_against_onnx(
            ISA_LEVELS[index % ISA_LEVELS.len()],
            "ConvTranspose",
            &attributes,
            (&x_dims, x),
            &others,
            &y_dims,
        );
    }
}

#[test]
fn what_the_row_does_not_do_is_refused_with_a_reason() {
    let x = TestArray::from_values(&[1, 4, 4, 2], &[0f32; 32]);
    let w = TestArray::from_values(&[2, 3, 2, 2], &[0f32; 24]);
    let message = |attributes: &[(&str, TestAttribute<'_>)], inputs: &[Option<&TestArray>], size: i64| {
        let output = [Some((Dtype::F32, &[1, size, size, 3][..]))];
        KERNELS.run_kernel("oarlock:ConvTranspose", 1, attributes, inputs, &output).unwrap_err()
    };
    let strides = ("strides", TestAttribute::Ints(&[2, 2]));
    assert!(message(&[strides], &[Some(&x), Some(&w)], 8).contains("weights that are constant"));
    let w = w.into_constant();
    let wrong = message(&[strides], &[Some(&x), Some(&w)], 7);
    assert!(wrong.contains("expected an output of size 8 for an input of 4, found 7"), "{wrong}");
    let far = message(&[("strides", TestAttribute::Ints(&[65, 1]))], &[Some(&x), Some(&w)], 8);
    assert!(far.contains("strides of at most 64, found 65"), "{far}");
    let long = message(&[strides, ("output_padding", TestAttribute::Ints(&[1]))], &[Some(&x), Some(&w)], 8);
    assert!(long.contains("`output_padding` of 2 values"), "{long}");
    let groups = message(&[strides, ("group", TestAttribute::Int(2))], &[Some(&x), Some(&w)], 8);
    assert!(groups.contains("for 2 groups"), "{groups}");
    let residual = message(&[strides], &[Some(&x), Some(&w), None, Some(&x)], 8);
    assert!(residual.contains("expected `Z` of the shape [1, 8, 8, 3]"), "{residual}");
}
