//! The depthwise fallback, for the lowest instruction sets, residuals and large windows. It computes some channels of a pixel at a time,
//! over the steps of the window that are inside the image.

#![expect(unsafe_code, reason = "threads write parts of one output")]

use std::ops::Range;

use oarlock_cpu_base::isa::{SimdTarget, SimdTask};
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_gemm::DisjointSlice;

use super::byte_operands::QuantizedImages;
use super::requantize::{QuantizedEpilogue, RequantizeParameters};
use crate::channels_last::depthwise::{steps_inside, windows_inside};
use crate::channels_last::geometry::NhwcGeometry;
use oarlock_cpu_base::simd::SIGN_BIT;

/// Multiply-adds that make it worth waking another thread.
const MIN_WORK_PER_THREAD: usize = 1 << 17;

/// Packs weights [C, 1, kernel…]: for each tap, those of all channels.
pub(super) fn pack_quantized_depthwise(geometry: &NhwcGeometry, weights: &[i8]) -> Vec<i8> {
    let taps = geometry.tap_count();
    let mut packed = vec![0; weights.len()];
    for (channel, weights) in weights.chunks_exact(taps).enumerate() {
        for (tap, weight) in weights.iter().enumerate() {
            packed[tap * geometry.channels + channel] = *weight;
        }
    }
    packed
}

/// Runs the convolution. `starts` has the initial sum of each channel.
pub(super) fn compute_quantized_depthwise(
    team: &dyn ThreadTeam,
    geometry: &NhwcGeometry,
    images: &QuantizedImages<'_>,
    (weights, starts): (&[i8], &[i32]),
    finish: &QuantizedEpilogue<'_>,
    y: &mut [u8],
) {
    let rows = geometry.images * geometry.vertical.output;
    let row_size = geometry.horizontal.output * geometry.channels;
    let work = (row_size * geometry.tap_count()).max(1);
    let threads = team.worker_count().min(rows * work / MIN_WORK_PER_THREAD).max(1);
    // A few pieces per thread balance the load if other work runs on the machine.
    let share = rows.div_ceil(if threads == 1 { 1 } else { 4 * threads }).max(1);
    let y = DisjointSlice::new(y);
    team.parallel_for_each(rows.div_ceil(share), &|piece| {
        let rows = piece * share..rows.min((piece + 1) * share);
        // SAFETY: no two pieces share rows.
        let y = unsafe { y.range_mut(rows.start * row_size..rows.end * row_size) };
        team.isa().vectorize(QuantizedDepthwiseRows { geometry, images, weights, starts, finish, rows, y });
    });
}

struct QuantizedDepthwiseRows<'a> {
    geometry: &'a NhwcGeometry,
    images: &'a QuantizedImages<'a>,
    weights: &'a [i8],
    starts: &'a [i32],
    finish: &'a QuantizedEpilogue<'a>,
    rows: Range<usize>,
    y: &'a mut [u8],
}

impl SimdTask for QuantizedDepthwiseRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let NhwcGeometry { channels, vertical, horizontal, .. } = *self.geometry;
        let sign_flip = if self.images.is_signed { SIGN_BIT } else { 0 };
        // Flipped like the inputs, so that differences stay the same.
        let zero = i32::from(self.images.zero ^ sign_flip);
        let (finish, requantize) = (self.finish, *self.finish.requantize);
        // Windows that lie entirely in the image.
        let inside = windows_inside(&horizontal);
        for (row, output) in self.rows.zip(self.y.chunks_exact_mut(horizontal.output * channels)) {
            let lines = steps_inside(&vertical, row % vertical.output);
            for (pixel, output) in output.chunks_exact_mut(channels).enumerate() {
                let steps = if inside.contains(&pixel) {
                    0..horizontal.kernel
                } else {
                    steps_inside(&horizontal, pixel)
                };
                // The first pixel of the image under the window, if any.
                let top = (row % vertical.output * vertical.stride + lines.start * vertical.dilation)
                    .saturating_sub(vertical.pad.0);
                let left = (pixel * horizontal.stride + steps.start * horizontal.dilation)
                    .saturating_sub(horizontal.pad.0);
                let window = QuantizedDepthwiseWindow {
                    x: self.images.x,
                    first: ((row / vertical.output * vertical.input + top) * horizontal.input + left)
                        * channels,
                    line: vertical.dilation * horizontal.input * channels,
                    step: horizontal.dilation * channels,
                    weights: self.weights,
                    first_weight: (lines.start * horizontal.kernel + steps.start) * channels,
                    weights_of_line: horizontal.kernel * channels,
                    channels,
                    size: (lines.len(), steps.len()),
                    sign_flip,
                    zero,
                };
                let place = (row * horizontal.output + pixel) * channels;
                let pixel =
                    QuantizedDepthwisePixel { finish, requantize, window, starts: self.starts, place };
                let (whole, rest) = output.as_chunks_mut::<32>();
                let (quarters, rest) = rest.as_chunks_mut::<8>();
                let mut channel = 0;
                // Loops instead of iterator adapters, because their closures would not be compiled for the instruction set.
                for output in whole {
                    pixel.compute_channels(&mut channel, output);
                }
                for output in quarters {
                    pixel.compute_channels(&mut channel, output);
                }
                for output in rest {
                    pixel.compute_channels(&mut channel, std::array::from_mut(output));
                }
            }
        }
    }
}

struct QuantizedDepthwisePixel<'a> {
    finish: &'a QuantizedEpilogue<'a>,
    requantize: RequantizeParameters,
    window: QuantizedDepthwiseWindow<'a>,
    starts: &'a [i32],
    /// The index of its first output.
    place: usize,
}

impl QuantizedDepthwisePixel<'_> {
    /// Computes `COUNT` channels and advances `channel`. With a constant count, all sums stay in registers: 32 are four ymm.
    #[inline(always)]
    fn compute_channels<const COUNT: usize>(&self, channel: &mut usize, output: &mut [u8; COUNT]) {
        let mut sums = [0; COUNT];
        sums.copy_from_slice(&self.starts[*channel..][..COUNT]);
        let sums = self.window.channel_sums(*channel, sums);
        self.finish.finish_pixel(&self.requantize, &sums, (*channel, self.place + *channel), output);
        *channel += COUNT;
    }
}

/// The inputs under one window.
struct QuantizedDepthwiseWindow<'a> {
    x: &'a [u8],
    /// The index of the first input, and the distances between lines and between pixels of a line.
    first: usize,
    line: usize,
    step: usize,
    /// The same for the weights.
    weights: &'a [i8],
    first_weight: usize,
    weights_of_line: usize,
    channels: usize,
    /// The number of lines, and of pixels in each.
    size: (usize, usize),
    sign_flip: u8,
    zero: i32,
}

impl QuantizedDepthwiseWindow<'_> {
    #[inline(always)]
    fn channel_sums<const COUNT: usize>(&self, channel: usize, mut sums: [i32; COUNT]) -> [i32; COUNT] {
        for line in 0..self.size.0 {
            for step in 0..self.size.1 {
                let inputs = &self.x[self.first + line * self.line + step * self.step + channel..][..COUNT];
                let place = self.first_weight + line * self.weights_of_line + step * self.channels + channel;
                let weights = &self.weights[place..][..COUNT];
                for ((sum, input), weight) in sums.iter_mut().zip(inputs).zip(weights) {
                    let input = i32::from(input ^ self.sign_flip) - self.zero;
                    *sum = sum.wrapping_add(input * i32::from(*weight));
                }
            }
        }
        sums
    }
}
