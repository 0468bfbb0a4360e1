//! What the tests compare with: convolutions as sums, threads of their own, numbers that look random.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::finish::{Finish, Residual};
use super::super::geometry::Geometry;
use crate::gemm::Team;
use crate::isa::Isa;
use crate::kernels::activation::Activation;
use crate::kernels::conv::window::Axis;

/// Threads of the test's own.
pub(in crate::kernels) struct Threads {
    pub(in crate::kernels) isa: Isa,
    pub(in crate::kernels) count: usize,
}

impl Team for Threads {
    fn isa(&self) -> Isa {
        self.isa
    }

    fn worker_count(&self) -> usize {
        self.count
    }

    fn each(&self, count: usize, body: &(dyn Fn(usize) + Sync)) {
        if self.count == 1 || count == 1 {
            return (0..count).for_each(body);
        }
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..self.count.min(count) {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= count {
                            break;
                        }
                        body(index);
                    }
                });
            }
        });
    }
}

/// The instruction sets of the machine.
pub(in crate::kernels) fn levels() -> impl Iterator<Item = Isa> {
    Isa::available()
}

/// Numbers in no order.
pub(in crate::kernels) struct Numbers(pub(in crate::kernels) u32);

impl Numbers {
    pub(in crate::kernels) fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 12) as usize % below
    }

    /// Small whole numbers.
    pub(in crate::kernels) fn values(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.next(9) as f32 - 4.0).collect()
    }

    /// Numbers around 0 that are almost distributed normally.
    fn normal(&mut self, count: usize, deviation: f64) -> Vec<f32> {
        let mut uniform = || self.next(1 << 20) as f64 / f64::from(1 << 20);
        (0..count).map(|_| (((0..12).map(|_| uniform()).sum::<f64>() - 6.0) * deviation) as f32).collect()
    }
}

/// A convolution and its operands.
pub(in crate::kernels) struct Case {
    pub(in crate::kernels) geometry: Geometry,
    pub(in crate::kernels) x: Vec<f32>,
    pub(in crate::kernels) w: Vec<f32>,
    pub(in crate::kernels) bias: Vec<f32>,
    pub(in crate::kernels) residual: Vec<f32>,
}

/// An axis whose windows have a size, a stride, a dilation and pads.
pub(in crate::kernels) fn axis(
    input: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
    pad: (usize, usize),
) -> Axis {
    let extent = (kernel - 1) * dilation + 1;
    let output = (input + pad.0 + pad.1).checked_sub(extent).map_or(0, |room| room / stride + 1);
    Axis { input, output, kernel, stride, dilation, pad }
}

impl Case {
    fn new(numbers: &mut Numbers, geometry: Geometry) -> Self {
        let inputs = geometry.images * geometry.down.input * geometry.along.input * geometry.channels;
        let results = geometry.pixels() * geometry.outputs;
        let weights = geometry.outputs * geometry.channels_of_group() * geometry.taps();
        Self {
            x: numbers.values(inputs),
            w: numbers.values(weights),
            bias: numbers.values(geometry.outputs),
            residual: numbers.values(results),
            geometry,
        }
    }

    /// Of any sizes, often of those that are treated in a way of their own.
    pub(in crate::kernels) fn random(numbers: &mut Numbers) -> Self {
        let mut axis_of = |is_simple: bool| {
            let (kernel, dilation) = if is_simple {
                (1 + 2 * numbers.next(2), 1)
            } else {
                (1 + numbers.next(5), 1 + numbers.next(2))
            };
            let stride = if is_simple { 1 } else { 1 + numbers.next(3) };
            let pad = (numbers.next(3), numbers.next(3));
            axis((kernel - 1) * dilation + 1 + numbers.next(12), kernel, stride, dilation, pad)
        };
        let simple = axis_of(true);
        let (down, along) =
            if simple.input % 2 == 0 { (simple, simple) } else { (axis_of(false), axis_of(false)) };
        let groups = [1, 1, 2, 3, 19, 40][numbers.next(6)];
        let is_depthwise = groups > 3 && numbers.next(4) > 0;
        let of_group = |numbers: &mut Numbers| if is_depthwise { 1 } else { 1 + numbers.next(44 / groups) };
        let (channels, outputs) = (groups * of_group(numbers), groups * of_group(numbers));
        let images = 1 + numbers.next(2);
        Self::new(numbers, Geometry { images, channels, outputs, groups, down, along })
    }

    /// One image of a size with windows of a size, a stride and pads at all sides.
    pub(in crate::kernels) fn of_window(
        numbers: &mut Numbers,
        (height, width): (usize, usize),
        (channels, outputs): (usize, usize),
        (kernel, stride, pad): (usize, usize, usize),
    ) -> Self {
        let axis = |size| axis(size, kernel, stride, 1, (pad, pad));
        let (down, along) = (axis(height), axis(width));
        Self::new(numbers, Geometry { images: 1, channels, outputs, groups: 1, down, along })
    }

    /// Two images whose channels have windows of three of their own, with a stride, pads and a dilation.
    pub(in crate::kernels) fn of_groups(
        numbers: &mut Numbers,
        (height, width): (usize, usize),
        channels: usize,
        (stride, pad): (usize, usize),
        dilation: usize,
    ) -> Self {
        let axis = |size| axis(size, 3, stride, dilation, (pad, pad));
        let (down, along) = (axis(height), axis(width));
        Self::new(numbers, Geometry { images: 2, channels, outputs: channels, groups: channels, down, along })
    }

    /// One image whose channels have windows of their own.
    pub(in crate::kernels) fn of_channels(
        numbers: &mut Numbers,
        (height, width): (usize, usize),
        channels: usize,
        (kernel, stride, pad): (usize, usize, usize),
    ) -> Self {
        let axis = |size| axis(size, kernel, stride, 1, (pad, pad));
        let (down, along) = (axis(height), axis(width));
        Self::new(numbers, Geometry { images: 1, channels, outputs: channels, groups: channels, down, along })
    }

    /// Takes numbers such as networks have.
    pub(in crate::kernels) fn make_normal(&mut self, numbers: &mut Numbers) {
        let under_window = self.geometry.taps() * self.geometry.channels_of_group();
        self.x = numbers.normal(self.x.len(), 1.0).into_iter().map(|value| value.max(0.0)).collect();
        self.w = numbers.normal(self.w.len(), (2.0 / under_window as f64).sqrt());
    }

    /// The weights as a model would give them.
    pub(in crate::kernels) fn given(&self) -> impl Fn(usize, &mut [f32]) + Sync {
        |first, to| to.copy_from_slice(&self.w[first..][..to.len()])
    }

    /// How large sums get.
    pub(in crate::kernels) fn scale(&self) -> f64 {
        16.0 * (self.geometry.taps() * self.geometry.channels_of_group()) as f64 + 8.0
    }

    /// The results, computed plainly.
    pub(in super::super) fn expected(&self, finish: &Finish<'_>) -> Vec<f64> {
        let Geometry { channels, outputs, down, along, .. } = self.geometry;
        let (depth, rows, taps) =
            (self.geometry.channels_of_group(), self.geometry.outputs_of_group(), self.geometry.taps());
        let mut expected = Vec::new();
        for pixel in 0..self.geometry.pixels() {
            let (image, window_down, window_along) = (
                pixel / along.output / down.output,
                pixel / along.output % down.output,
                pixel % along.output,
            );
            for output in 0..outputs {
                let mut sum = finish.bias.map_or(0.0, |bias| f64::from(bias[output]));
                for tap in 0..taps {
                    let y = down.place(window_down, tap / along.kernel);
                    let x = along.place(window_along, tap % along.kernel);
                    let Some((y, x)) = y.zip(x) else { continue };
                    let place =
                        ((image * down.input + y) * along.input + x) * channels + output / rows * depth;
                    for channel in 0..depth {
                        let weight = self.w[(output * depth + channel) * taps + tap];
                        sum += f64::from(self.x[place + channel]) * f64::from(weight);
                    }
                }
                if let Residual::Apart(residual) = finish.residual {
                    sum += f64::from(residual[pixel * outputs + output]);
                }
                expected.push(match finish.activation {
                    Activation::Bounds([low, _]) if sum < f64::from(low) => f64::from(low),
                    Activation::Bounds([_, high]) if sum > f64::from(high) => f64::from(high),
                    Activation::Bounds(_) => sum,
                    activation => {
                        let mut result = [sum as f32];
                        activation.apply(Isa::Scalar, &mut result);
                        f64::from(result[0])
                    }
                });
            }
        }
        expected
    }
}
