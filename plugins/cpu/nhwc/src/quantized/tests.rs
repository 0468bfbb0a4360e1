//! Compares quantized layers with naive sums, for many sizes, with every instruction set, with one thread and with two. Results
//! must match exactly.

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::window::WindowAxis;
use oarlock_cpu_gemm::ScratchBuffer;
use oarlock_cpu_testing::isa_levels::isa_levels;
use oarlock_cpu_testing::runner::{TestArray, TestAttribute};
use oarlock_cpu_testing::test_team::TestTeam;
use oarlock_sdk::{Dtype, Element};

use super::byte_operands::QuantizedImages;
use super::dense::{QuantizedDenseConv, QuantizedOutput};
use super::depthwise;
use super::interleaved::{InterleavedDepthwise, InterleavedOperands};
use super::quantized_panels::{WeightOrder, WeightSource};
use super::requantize::{QuantizedEpilogue, RequantizeParameters, ResidualAddition};
use super::tile::QuantizedMicroKernels;
use crate::KERNELS;
use crate::channels_last::geometry::NhwcGeometry;
use crate::channels_last::tests::reference::{ConvCase, RandomNumbers, conv_axis};

/// A convolution with its epilogue.
pub(super) struct QuantizedLayerCase {
    pub(super) geometry: NhwcGeometry,
    pub(super) is_signed: bool,
    pub(super) x: Vec<u8>,
    pub(super) w: Vec<i8>,
    pub(super) scale: Vec<f32>,
    bias: Option<Vec<i32>>,
    z: Option<Vec<u8>>,
    pub(super) zeros: [i64; 3],
    bounds: [i64; 2],
    z_factor: f32,
    inner: Option<(f32, [i64; 2])>,
}

fn byte_value(byte: u8, is_signed: bool) -> i64 {
    if is_signed { byte.cast_signed().into() } else { byte.into() }
}

fn round_result(value: f32, bounds: [i64; 2]) -> f32 {
    value.round_ties_even().clamp(bounds[0] as f32, bounds[1] as f32)
}

impl QuantizedLayerCase {
    pub(super) fn random(numbers: &mut RandomNumbers, geometry: NhwcGeometry) -> Self {
        let NhwcGeometry { images, channels, outputs, vertical, horizontal, .. } = geometry;
        let mut bytes = |count: usize| (0..count).map(|_| numbers.next(256) as u8).collect::<Vec<_>>();
        let inputs = images * vertical.input * horizontal.input * channels;
        let steps = geometry.tap_count() * geometry.channels_per_group();
        let (x, w, z) = (bytes(inputs), bytes(outputs * steps), bytes(geometry.output_pixels() * outputs));
        let is_signed = numbers.next(2) == 0;
        let least = if is_signed { -128 } else { 0 };
        let mut zero = || least + numbers.next(256) as i64;
        let zeros = [zero(), zero(), zero()];
        let bounds = [[least, least + 255], [zeros[1].min(least + 200), least + 230]][numbers.next(2)];
        // Scales results to about the range of a byte, so that some reach the bounds and others do not.
        let size = 100.0 / (6000.0 * (steps.max(1) as f32).sqrt());
        let count = if numbers.next(4) == 0 { 1 } else { outputs };
        let scale = (0..count).map(|_| size * (1 + numbers.next(1000)) as f32 / 700.0).collect();
        let has_bias = numbers.next(2) == 0;
        let bias = (0..outputs).map(|_| numbers.next(80_000) as i32 - 40_000).collect();
        let inner = (numbers.next(2) == 0).then_some((0.61, [-90, 127]));
        Self {
            is_signed,
            x,
            w: w.into_iter().map(u8::cast_signed).collect(),
            scale,
            bias: has_bias.then_some(bias),
            z: (numbers.next(2) == 0).then_some(z),
            zeros,
            bounds,
            z_factor: 0.37,
            inner,
            geometry,
        }
    }

    pub(super) fn expected_bytes(&self) -> Vec<u8> {
        let NhwcGeometry { outputs, vertical, horizontal, .. } = self.geometry;
        let pixels = self.geometry.output_pixels();
        (0..pixels * outputs)
            .map(|place| self.expected_byte(place / outputs, place % outputs, vertical, horizontal))
            .collect()
    }

    fn expected_byte(&self, pixel: usize, output: usize, vertical: WindowAxis, horizontal: WindowAxis) -> u8 {
        let (depth, rows) = (self.geometry.channels_per_group(), self.geometry.outputs_per_group());
        let (image, row, column) = (
            pixel / horizontal.output / vertical.output,
            pixel / horizontal.output % vertical.output,
            pixel % horizontal.output,
        );
        let mut sum = self.bias.as_ref().map_or(0, |bias| i64::from(bias[output]));
        for tap in 0..self.geometry.tap_count() {
            let y = vertical.input_position(row, tap / horizontal.kernel);
            let x = horizontal.input_position(column, tap % horizontal.kernel);
            let Some((y, x)) = y.zip(x) else { continue };
            let line = image * vertical.input + y;
            let place = (line * horizontal.input + x) * self.geometry.channels + output / rows * depth;
            for channel in 0..depth {
                let weight = self.w[(output * depth + channel) * self.geometry.tap_count() + tap];
                sum +=
                    (byte_value(self.x[place + channel], self.is_signed) - self.zeros[0]) * i64::from(weight);
            }
        }
        let sum = i32::try_from(sum).expect("sums of 32 bits");
        let mut step = sum as f32 * self.scale[if self.scale.len() == 1 { 0 } else { output }];
        if let Some(z) = &self.z {
            if let Some((factor, bounds)) = self.inner {
                step = round_result(step, bounds) * factor;
            }
            let z = byte_value(z[pixel * self.geometry.outputs + output], self.is_signed);
            step += (z - self.zeros[2]) as f32 * self.z_factor;
        }
        let result = (step.round_ties_even() as i64).saturating_add(self.zeros[1]);
        result.clamp(self.bounds[0], self.bounds[1]) as u8
    }

    /// The results of `compute`, which gets the operands of a layer without bias and residual.
    pub(super) fn with_operands(
        &self,
        compute: impl FnOnce(&QuantizedImages<'_>, &QuantizedEpilogue<'_>, &mut [u8]),
    ) -> Vec<u8> {
        let bounds = self.bounds.map(|bound| (bound - self.zeros[1]) as f32);
        let none = ResidualAddition { factor: 0.0, zero: 0.0, sign_flip: 0, inner: None };
        let requantize = RequantizeParameters { bounds, zero: self.zeros[1] as i32, residual: none };
        let finish = QuantizedEpilogue { requantize: &requantize, factors: &self.scale, residual: None };
        let images = QuantizedImages { x: &self.x, is_signed: self.is_signed, zero: self.zeros[0] as u8 };
        let mut y = vec![77; self.geometry.output_pixels() * self.geometry.outputs];
        compute(&images, &finish, &mut y);
        y
    }

    /// Removes bias and residual, and gives each channel a factor.
    pub(super) fn without_addends(mut self) -> Self {
        (self.z, self.inner, self.bias) = (None, None, None);
        self.scale.resize(self.geometry.outputs, self.scale[0]);
        self
    }

    fn to_array(&self, dims: &[i64], bytes: &[u8]) -> TestArray {
        TestArray::from_bytes(if self.is_signed { i8::DTYPE } else { u8::DTYPE }, dims, bytes)
    }

    /// Runs the kernel of an op on operands of these shapes.
    fn run_op(
        &self,
        isa: Isa,
        op: &str,
        attributes: &[(&str, TestAttribute<'_>)],
        dims: [&[i64]; 3],
    ) -> Vec<u8> {
        let scale = if self.scale.len() == 1 { &[][..] } else { &[self.geometry.outputs as i64] };
        let (w, scale) = (
            TestArray::from_values(dims[1], &self.w).into_constant(),
            TestArray::from_values(scale, &self.scale).into_constant(),
        );
        let bias = |bias: &Vec<i32>| TestArray::from_values(&[bias.len() as i64], bias).into_constant();
        let (x, bias) = (self.to_array(dims[0], &self.x), self.bias.as_ref().map(bias));
        let z = self.z.as_ref().map(|z| self.to_array(dims[2], z));
        let mut attributes = attributes.to_vec();
        let names = ["x_zero", "y_zero", "z_zero"];
        attributes.extend(names.into_iter().zip(self.zeros.map(TestAttribute::Int)));
        attributes.push(("bounds", TestAttribute::Ints(&self.bounds)));
        attributes.push(("z_factor", TestAttribute::Float(self.z_factor.into())));
        if let Some((factor, bounds)) = &self.inner {
            attributes.push(("inner_factor", TestAttribute::Float((*factor).into())));
            attributes.push(("inner_bounds", TestAttribute::Ints(bounds)));
        }
        let inputs = [Some(&x), Some(&w), Some(&scale), bias.as_ref(), z.as_ref()];
        let op = format!("oarlock:{op}");
        let results =
            KERNELS.run_with_isa(&isa.to_string(), &op, 1, &attributes, &inputs, &[Some((x.dtype, dims[2]))]);
        results.unwrap()[0].as_ref().unwrap().bytes().to_vec()
    }

    fn check_convolution(&self) {
        let NhwcGeometry { images, channels, outputs, groups, vertical, horizontal } = self.geometry;
        let size = |value: usize| value as i64;
        let pair = |of: fn(&WindowAxis) -> usize| [size(of(&vertical)), size(of(&horizontal))];
        let [strides, dilations] = [pair(|axis| axis.stride), pair(|axis| axis.dilation)];
        let (begin, end) = (pair(|axis| axis.pad.0), pair(|axis| axis.pad.1));
        let pads = [begin[0], begin[1], end[0], end[1]];
        let attributes = [
            ("group", TestAttribute::Int(size(groups))),
            ("strides", TestAttribute::Ints(&strides)),
            ("dilations", TestAttribute::Ints(&dilations)),
            ("pads", TestAttribute::Ints(&pads)),
        ];
        let x = [images, vertical.input, horizontal.input, channels].map(size);
        let w = [outputs, self.geometry.channels_per_group(), vertical.kernel, horizontal.kernel].map(size);
        let y = [images, vertical.output, horizontal.output, outputs].map(size);
        let expected = self.expected_bytes();
        for isa in isa_levels() {
            let found = self.run_op(isa, "QuantizedConv", &attributes, [&x, &w, &y]);
            assert!(found == expected, "{:?} on {isa}", self.geometry);
        }
    }
}

#[test]
fn convolutions_are_exact() {
    let mut numbers = RandomNumbers(1);
    for _ in 0..50 {
        let geometry = ConvCase::random(&mut numbers).geometry;
        QuantizedLayerCase::random(&mut numbers, geometry).check_convolution();
    }
}

#[test]
fn sizes_around_the_edges_of_tiles_are_right() {
    let mut numbers = RandomNumbers(2);
    // Some have fewer pixels than a tile, and others leave a remainder.
    for size in [1, 3, 4, 5, 15] {
        for (channels, outputs) in [(1, 31), (3, 33), (4, 16), (17, 1), (32, 64), (40, 65), (64, 34)] {
            for window in [(3, 1, 1), (1, 1, 0), (7, 2, 3)] {
                let geometry =
                    ConvCase::with_window(&mut numbers, (size, size), (channels, outputs), window).geometry;
                QuantizedLayerCase::random(&mut numbers, geometry).check_convolution();
            }
        }
    }
}

#[test]
fn depthwise_convolutions_are_exact() {
    let mut numbers = RandomNumbers(3);
    for channels in [2, 8, 16, 33, 96] {
        for (step, dilation) in [((1, 1), 1), ((2, 1), 1), ((1, 5), 1), ((1, 2), 2)] {
            let geometry = ConvCase::with_groups(&mut numbers, (9, 10), channels, step, dilation).geometry;
            QuantizedLayerCase::random(&mut numbers, geometry).check_convolution();
        }
    }
}

#[test]
fn windows_side_by_side_share_what_they_read() {
    let mut numbers = RandomNumbers(9);
    for channels in [15, 17, 32, 48, 63, 64, 65, 112, 130] {
        for (kernel, stride, dilation) in
            [(3, 1, 1), (3, 2, 1), (1, 1, 1), (2, 1, 1), (4, 1, 1), (5, 1, 1), (7, 3, 1), (3, 1, 2)]
        {
            let pad = (numbers.next(kernel), numbers.next(kernel));
            let [vertical, horizontal] = [0, numbers.next(6)]
                .map(|more| conv_axis((kernel - 1) * dilation + 1 + more, kernel, stride, dilation, pad));
            let geometry = NhwcGeometry {
                images: 2,
                channels,
                outputs: channels,
                groups: channels,
                vertical,
                horizontal,
            };
            let mut layer = QuantizedLayerCase::random(&mut numbers, geometry);
            layer.z = None;
            layer.check_convolution();
        }
    }
}

#[test]
fn windows_that_are_too_large_to_share_are_right_as_well() {
    let mut numbers = RandomNumbers(10);
    let (vertical, horizontal) = (conv_axis(18, 33, 1, 1, (16, 16)), conv_axis(4, 9, 1, 1, (4, 4)));
    let geometry = NhwcGeometry { images: 1, channels: 20, outputs: 20, groups: 20, vertical, horizontal };
    let mut layer = QuantizedLayerCase::random(&mut numbers, geometry);
    layer.z = None;
    layer.check_convolution();
}

#[test]
fn the_largest_numbers_do_not_saturate_on_the_way() {
    let mut numbers = RandomNumbers(4);
    // Sums of two such products exceed 16 bits, in which some instructions would saturate.
    for (byte, weight) in [(255, 127), (255, -128), (0, -128)] {
        let geometry = ConvCase::with_window(&mut numbers, (3, 3), (512, 40), (3, 1, 1)).geometry;
        let mut layer = QuantizedLayerCase::random(&mut numbers, geometry);
        layer.x.fill(byte);
        layer.w.fill(weight);
        layer.scale = vec![1e-5];
        layer.check_convolution();
        layer.is_signed = !layer.is_signed;
        layer.zeros = [7; 3];
        layer.bounds = [3, 100];
        layer.check_convolution();
    }
}

#[test]
fn factors_of_any_size_end_at_the_bounds() {
    let mut numbers = RandomNumbers(5);
    // Scaled sums beyond the range of integers, and sums that vanish.
    for scale in [1e30, f32::MAX, 1e-30, 1e7] {
        let dense = ConvCase::with_window(&mut numbers, (5, 5), (20, 40), (3, 1, 1)).geometry;
        let depthwise = ConvCase::with_groups(&mut numbers, (5, 5), 40, (1, 1), 1).geometry;
        for geometry in [dense, depthwise] {
            let mut layer = QuantizedLayerCase::random(&mut numbers, geometry);
            layer.scale = vec![scale];
            layer.z = None;
            layer.check_convolution();
        }
    }
}

#[test]
fn ties_are_rounded_to_even_numbers() {
    let w = TestArray::from_values(&[1, 1], &[1i8]).into_constant();
    let scale = TestArray::from_values(&[], &[0.5f32]).into_constant();
    let x = TestArray::from_values(&[6, 1], &[1u8, 3, 5, 7, 9, 2]);
    for isa in isa_levels() {
        let inputs = [Some(&x), Some(&w), Some(&scale)];
        let attributes = [("x_zero", TestAttribute::Int(4)), ("y_zero", TestAttribute::Int(10))];
        let outputs = [Some((Dtype::U8, &[6, 1][..]))];
        let results = KERNELS.run_with_isa(
            &isa.to_string(),
            "oarlock:QuantizedMatMul",
            1,
            &attributes,
            &inputs,
            &outputs,
        );
        assert_eq!(results.unwrap()[0].as_ref().unwrap().values::<u8>(), [8, 10, 10, 12, 12, 9], "{isa}");
    }
}

#[test]
fn products_are_exact() {
    let mut numbers = RandomNumbers(6);
    let line = |size: usize| WindowAxis {
        input: size,
        output: size,
        kernel: 1,
        stride: 1,
        dilation: 1,
        pad: (0, 0),
    };
    for (rows, depth, outputs) in [(1, 64, 40), (7, 30, 33), (35, 4, 1), (3, 0, 5), (0, 3, 5), (20, 257, 96)]
    {
        let (vertical, horizontal) = (line(1), line(rows));
        let geometry = NhwcGeometry { images: 1, channels: depth, outputs, groups: 1, vertical, horizontal };
        let mut layer = QuantizedLayerCase::random(&mut numbers, geometry);
        let expected = layer.expected_bytes();
        let [rows, depth, columns] = [rows, depth, outputs].map(|size| size as i64);
        for isa in isa_levels() {
            let dims: [&[i64]; 3] = [&[rows, 1, depth], &[columns, depth], &[rows, 1, columns]];
            let transposed = layer.run_op(isa, "QuantizedMatMul", &[("transB", TestAttribute::Int(1))], dims);
            assert!(transposed == expected, "{:?} on {isa}, transposed", layer.geometry);
        }
        let inputs = depth as usize;
        layer.w = (0..inputs * outputs).map(|at| layer.w[at % outputs * inputs + at / outputs]).collect();
        for isa in isa_levels() {
            let found = layer.run_op(
                isa,
                "QuantizedMatMul",
                &[],
                [&[rows, depth], &[depth, columns], &[rows, columns]],
            );
            assert!(found == expected, "{:?} on {isa}", layer.geometry);
        }
    }
}

#[test]
fn threads_change_nothing() {
    let mut numbers = RandomNumbers(7);
    let cases = [
        ConvCase::with_window(&mut numbers, (24, 20), (24, 70), (3, 1, 1)),
        ConvCase::with_window(&mut numbers, (30, 33), (3, 40), (7, 2, 3)),
        ConvCase::with_window(&mut numbers, (4, 5), (2048, 70), (1, 1, 0)),
        ConvCase::with_groups(&mut numbers, (40, 40), 96, (1, 1), 1),
    ];
    for case in cases {
        let layer = QuantizedLayerCase::random(&mut numbers, case.geometry).without_addends();
        let expected = layer.expected_bytes();
        for isa in isa_levels() {
            for count in [1, 2] {
                assert!(
                    compute_layer(&layer, &TestTeam { isa, count }) == expected,
                    "{count} threads on {isa}"
                );
            }
        }
    }
}

/// The results of a layer without bias, computed by a team.
fn compute_layer(layer: &QuantizedLayerCase, team: &TestTeam) -> Vec<u8> {
    layer.with_operands(|images, finish, y| compute_operands(layer, team, images, finish, y))
}

fn compute_operands(
    layer: &QuantizedLayerCase,
    team: &TestTeam,
    images: &QuantizedImages<'_>,
    finish: &QuantizedEpilogue<'_>,
    y: &mut [u8],
) {
    if let Some(depthwise) =
        InterleavedDepthwise::new(team.isa, &layer.geometry).filter(|_| layer.geometry.is_depthwise())
    {
        let weights = depthwise.pack_weights(&layer.geometry, &layer.w);
        let zero = depthwise.zero_as_read(layer.zeros[0] as i32, layer.is_signed);
        let starts: Vec<i32> = weights.sums.iter().map(|sum| -zero * sum).collect();
        let (starts, factors) =
            (depthwise.reorder_channels(&starts), depthwise.reorder_channels(&layer.scale));
        let padding = vec![images.zero; layer.geometry.channels];
        let operands = InterleavedOperands {
            weights: &weights,
            starts: &starts,
            factors: &factors,
            padding: &padding,
            requantize: finish.requantize,
        };
        depthwise.compute(team, &layer.geometry, images, &operands, y);
        return;
    }
    if layer.geometry.is_depthwise() {
        let weights = depthwise::pack_quantized_depthwise(&layer.geometry, &layer.w);
        let starts = vec![0; layer.geometry.outputs];
        depthwise::compute_quantized_depthwise(team, &layer.geometry, images, (&weights, &starts), finish, y);
        return;
    }
    let dense = QuantizedDenseConv::new(team, &layer.geometry);
    let bytes: Vec<u8> = layer.w.iter().map(|weight| weight.cast_unsigned()).collect();
    let panels = dense
        .pack_weights(team, WeightSource { bytes: &bytes, order: WeightOrder::OutputsFirst, sign_flip: 0 });
    let zero = QuantizedMicroKernels::for_isa(team.isa).zero_as_read(layer.zeros[0] as i32, layer.is_signed);
    let mut starts: Vec<i32> = panels.sums.iter().map(|sum| -zero * sum).collect();
    starts.resize(starts.len().next_multiple_of(32), 0);
    let mut scratch = vec![0xff; dense.scratch_size()];
    let results = QuantizedOutput::Bytes(finish, y);
    dense.compute(team, images, (&panels, &starts), results, &mut ScratchBuffer::new(&mut scratch));
}

#[test]
fn poolings_take_the_greatest() {
    let mut numbers = RandomNumbers(8);
    for (channels, is_signed) in [(3, false), (64, true), (70, false), (70, true)] {
        let bytes: Vec<u8> = (0..2 * 7 * 6 * channels).map(|_| numbers.next(256) as u8).collect();
        let dtype = if is_signed { i8::DTYPE } else { u8::DTYPE };
        let x = TestArray::from_bytes(dtype, &[2, 7, 6, channels as i64], &bytes);
        let dims = [2, 4, 3, channels as i64];
        let attributes = [
            ("kernel_shape", TestAttribute::Ints(&[3, 3])),
            ("strides", TestAttribute::Ints(&[2, 2])),
            ("pads", TestAttribute::Ints(&[1; 4])),
        ];
        for isa in isa_levels() {
            let (isa, outputs) = (isa.to_string(), [Some((dtype, &dims[..]))]);
            let results =
                KERNELS.run_with_isa(&isa, "oarlock:MaxPool", 1, &attributes, &[Some(&x)], &outputs).unwrap();
            for (at, found) in results[0].as_ref().unwrap().bytes().iter().enumerate() {
                let (image, rest) = (at / (12 * channels), at % (12 * channels));
                let (row, column, channel) = (rest / channels / 3, rest / channels % 3, rest % channels);
                let near = |at: usize, size: usize| (2 * at).saturating_sub(1)..(2 * at + 2).min(size);
                let places = near(row, 7).flat_map(|row| near(column, 6).map(move |column| (row, column)));
                let under =
                    places.map(|(row, column)| bytes[((image * 7 + row) * 6 + column) * channels + channel]);
                let greatest = under.map(|byte| byte_value(byte, is_signed)).max().unwrap();
                assert_eq!(
                    byte_value(*found, is_signed),
                    greatest,
                    "{channels} channels on {isa}, element {at}"
                );
            }
        }
    }
}

#[test]
fn floats_become_bytes_as_the_general_row_makes_them() {
    let mut x: Vec<f32> = (0..1000).map(|at| (at as f32 - 500.0) * 0.25).collect();
    x.extend([f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, -0.0, 1e-40, 8388609.0]);
    let count = x.len() as i64;
    for (is_signed, scale, zero) in
        [(false, 0.5f32, 3u8), (true, 0.5, 0x90), (false, 0.0, 255), (true, -0.3, 7)]
    {
        let dtype = if is_signed { i8::DTYPE } else { u8::DTYPE };
        // More than one scale needs the general kernel.
        let rows = TestArray::from_values(&[2, count], &[x.as_slice(), &x].concat());
        let scales = (TestArray::from_values(&[], &[scale]), TestArray::from_values(&[2], &[scale; 2]));
        let zeros =
            (TestArray::from_bytes(dtype, &[], &[zero]), TestArray::from_bytes(dtype, &[2], &[zero; 2]));
        for isa in isa_levels() {
            let run = |scale, zero| {
                let inputs = [Some(&rows), Some(scale), Some(zero)];
                let (isa, outputs) = (isa.to_string(), [Some((dtype, &[2, count][..]))]);
                let axis = [("axis", TestAttribute::Int(0))];
                let results =
                    KERNELS.run_with_isa(&isa, "QuantizeLinear", 13, &axis, &inputs, &outputs).unwrap();
                results[0].as_ref().unwrap().bytes().to_vec()
            };
            assert_eq!(run(&scales.0, &zeros.0), run(&scales.1, &zeros.1), "{scale} and {zero} on {isa}");
        }
    }
}

#[test]
fn operands_that_are_not_constant_are_refused() {
    let (x, w) = (
        TestArray::from_values(&[1, 2, 2, 4], &[1u8; 16]),
        TestArray::from_values(&[3, 4, 1, 1], &[1i8; 12]),
    );
    let scale = TestArray::from_values(&[], &[1f32]);
    let outputs = [Some((Dtype::U8, &[1, 2, 2, 3][..]))];
    for (w, scale, name) in
        [(w.clone(), scale.clone().into_constant(), "`W`"), (w.into_constant(), scale, "`scale`")]
    {
        let inputs = [Some(&x), Some(&w), Some(&scale)];
        let message =
            KERNELS.run_with_isa("", "oarlock:QuantizedConv", 1, &[], &inputs, &outputs).unwrap_err();
        assert!(message.contains(name), "{message}");
    }
}
