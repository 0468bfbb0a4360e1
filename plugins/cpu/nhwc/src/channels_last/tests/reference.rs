//! References for the tests: convolutions as naive sums, and pseudorandom numbers.

use oarlock_cpu_base::fused_activation::FusedActivation;
use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::window::WindowAxis;

use super::super::epilogue::{ConvEpilogue, ResidualSource};
use super::super::geometry::NhwcGeometry;

/// A deterministic pseudorandom generator.
pub(crate) struct RandomNumbers(pub(crate) u32);

impl RandomNumbers {
    pub(crate) fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 12) as usize % below
    }

    /// Small integers.
    pub(crate) fn small_integers(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.next(9) as f32 - 4.0).collect()
    }

    /// Numbers around 0, approximately normally distributed.
    fn normal_values(&mut self, count: usize, deviation: f64) -> Vec<f32> {
        let mut uniform = || self.next(1 << 20) as f64 / f64::from(1 << 20);
        (0..count).map(|_| (((0..12).map(|_| uniform()).sum::<f64>() - 6.0) * deviation) as f32).collect()
    }
}

pub(crate) struct ConvCase {
    pub(crate) geometry: NhwcGeometry,
    pub(crate) x: Vec<f32>,
    pub(crate) w: Vec<f32>,
    pub(crate) bias: Vec<f32>,
    pub(crate) residual: Vec<f32>,
}

pub(crate) fn conv_axis(
    input: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
    pad: (usize, usize),
) -> WindowAxis {
    let extent = (kernel - 1) * dilation + 1;
    let output = (input + pad.0 + pad.1).checked_sub(extent).map_or(0, |room| room / stride + 1);
    WindowAxis { input, output, kernel, stride, dilation, pad }
}

impl ConvCase {
    fn new(numbers: &mut RandomNumbers, geometry: NhwcGeometry) -> Self {
        let inputs =
            geometry.images * geometry.vertical.input * geometry.horizontal.input * geometry.channels;
        let results = geometry.output_pixels() * geometry.outputs;
        let weights = geometry.outputs * geometry.channels_per_group() * geometry.tap_count();
        Self {
            x: numbers.small_integers(inputs),
            w: numbers.small_integers(weights),
            bias: numbers.small_integers(geometry.outputs),
            residual: numbers.small_integers(results),
            geometry,
        }
    }

    /// A case of random sizes, biased toward those with special code paths.
    pub(crate) fn random(numbers: &mut RandomNumbers) -> Self {
        let mut axis_of = |is_simple: bool| {
            let (kernel, dilation) = if is_simple {
                (1 + 2 * numbers.next(2), 1)
            } else {
                (1 + numbers.next(5), 1 + numbers.next(2))
            };
            let stride = if is_simple { 1 } else { 1 + numbers.next(3) };
            let pad = (numbers.next(3), numbers.next(3));
            conv_axis((kernel - 1) * dilation + 1 + numbers.next(12), kernel, stride, dilation, pad)
        };
        let simple = axis_of(true);
        let (vertical, horizontal) =
            if simple.input % 2 == 0 { (simple, simple) } else { (axis_of(false), axis_of(false)) };
        // 19 and 40 leave a remainder after vectors of 16 lanes.
        let groups = [1, 1, 2, 3, 19, 40][numbers.next(6)];
        let is_depthwise = groups > 3 && numbers.next(4) > 0;
        let of_group =
            |numbers: &mut RandomNumbers| if is_depthwise { 1 } else { 1 + numbers.next(44 / groups) };
        let (channels, outputs) = (groups * of_group(numbers), groups * of_group(numbers));
        let images = 1 + numbers.next(2);
        Self::new(numbers, NhwcGeometry { images, channels, outputs, groups, vertical, horizontal })
    }

    /// A case with one image, a window, a stride and the same pads on all sides.
    pub(crate) fn with_window(
        numbers: &mut RandomNumbers,
        (height, width): (usize, usize),
        (channels, outputs): (usize, usize),
        (kernel, stride, pad): (usize, usize, usize),
    ) -> Self {
        let axis = |size| conv_axis(size, kernel, stride, 1, (pad, pad));
        let (vertical, horizontal) = (axis(height), axis(width));
        Self::new(numbers, NhwcGeometry { images: 1, channels, outputs, groups: 1, vertical, horizontal })
    }

    /// A depthwise case with two images, windows of three, a stride, pads and a dilation.
    pub(crate) fn with_groups(
        numbers: &mut RandomNumbers,
        (height, width): (usize, usize),
        channels: usize,
        (stride, pad): (usize, usize),
        dilation: usize,
    ) -> Self {
        let axis = |size| conv_axis(size, 3, stride, dilation, (pad, pad));
        let (vertical, horizontal) = (axis(height), axis(width));
        Self::new(
            numbers,
            NhwcGeometry { images: 2, channels, outputs: channels, groups: channels, vertical, horizontal },
        )
    }

    /// A depthwise case with one image.
    pub(crate) fn with_channels(
        numbers: &mut RandomNumbers,
        (height, width): (usize, usize),
        channels: usize,
        (kernel, stride, pad): (usize, usize, usize),
    ) -> Self {
        let axis = |size| conv_axis(size, kernel, stride, 1, (pad, pad));
        let (vertical, horizontal) = (axis(height), axis(width));
        Self::new(
            numbers,
            NhwcGeometry { images: 1, channels, outputs: channels, groups: channels, vertical, horizontal },
        )
    }

    /// Replaces the operands by numbers distributed as in trained networks.
    pub(crate) fn make_normal(&mut self, numbers: &mut RandomNumbers) {
        let under_window = self.geometry.tap_count() * self.geometry.channels_per_group();
        self.x = numbers.normal_values(self.x.len(), 1.0).into_iter().map(|value| value.max(0.0)).collect();
        // The standard deviation of He initialization, which keeps the variance of sums constant from layer to layer.
        self.w = numbers.normal_values(self.w.len(), (2.0 / under_window as f64).sqrt());
    }

    /// The weights as a model would give them.
    pub(crate) fn original_weights(&self) -> impl Fn(usize, &mut [f32]) + Sync {
        |first, to| to.copy_from_slice(&self.w[first..][..to.len()])
    }

    /// An upper bound of the absolute value of sums.
    pub(crate) fn magnitude(&self) -> f64 {
        16.0 * (self.geometry.tap_count() * self.geometry.channels_per_group()) as f64 + 8.0
    }

    pub(in crate::channels_last) fn expected_output(&self, epilogue: &ConvEpilogue<'_>) -> Vec<f64> {
        let NhwcGeometry { channels, outputs, vertical, horizontal, .. } = self.geometry;
        let (depth, rows, taps) = (
            self.geometry.channels_per_group(),
            self.geometry.outputs_per_group(),
            self.geometry.tap_count(),
        );
        let mut expected = Vec::new();
        for pixel in 0..self.geometry.output_pixels() {
            let (image, window_row, window_column) = (
                pixel / horizontal.output / vertical.output,
                pixel / horizontal.output % vertical.output,
                pixel % horizontal.output,
            );
            for output in 0..outputs {
                let mut sum = epilogue.bias.map_or(0.0, |bias| f64::from(bias[output]));
                for tap in 0..taps {
                    let y = vertical.input_position(window_row, tap / horizontal.kernel);
                    let x = horizontal.input_position(window_column, tap % horizontal.kernel);
                    let Some((y, x)) = y.zip(x) else { continue };
                    let place = ((image * vertical.input + y) * horizontal.input + x) * channels
                        + output / rows * depth;
                    for channel in 0..depth {
                        let weight = self.w[(output * depth + channel) * taps + tap];
                        sum += f64::from(self.x[place + channel]) * f64::from(weight);
                    }
                }
                if let ResidualSource::Apart(residual) = epilogue.residual {
                    sum += f64::from(residual[pixel * outputs + output]);
                }
                expected.push(match epilogue.activation {
                    FusedActivation::Bounds([low, _]) if sum < f64::from(low) => f64::from(low),
                    FusedActivation::Bounds([_, high]) if sum > f64::from(high) => f64::from(high),
                    FusedActivation::Bounds(_) => sum,
                    activation => {
                        let mut result = [sum as f32];
                        activation.apply_with_isa(Isa::Scalar, &mut result);
                        f64::from(result[0])
                    }
                });
            }
        }
        expected
    }
}
