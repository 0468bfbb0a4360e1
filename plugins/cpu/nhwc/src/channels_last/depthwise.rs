//! Depthwise convolutions. They compute vectors of channels for a few pixels of a row at a time, so that each weight is loaded once
//! for these pixels.
//!
//! Images may be bf16, which loads widen and stores round.

#![expect(unsafe_code, reason = "vectors are loaded and stored through pointers")]

use std::ops::Range;

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_base::window::WindowAxis;
use oarlock_cpu_gemm::{AlignedBuffer, DisjointSlice};

use super::bf16_images::word_count;
use super::epilogue::ConvEpilogue;
use super::geometry::NhwcGeometry;
use oarlock_cpu_base::simd::{F32Vector, F32VectorTask, run_with_bf16_vectors, run_with_vectors};

/// Multiply-adds that make it worth waking another thread.
const MIN_WORK_PER_THREAD: usize = 1 << 16;

/// Packs weights [C, 1, kernel…]: for each tap, those of all channels in whole vectors.
pub(super) fn pack_depthwise(geometry: &NhwcGeometry, weights: &[f32]) -> AlignedBuffer<f32> {
    let (taps, padded) = (geometry.tap_count(), padded_channels(geometry.channels));
    let mut packed = AlignedBuffer::zeroed(taps * padded);
    for (channel, weights) in weights.chunks_exact(taps).enumerate() {
        for (tap, weight) in weights.iter().enumerate() {
            packed[tap * padded + channel] = *weight;
        }
    }
    packed
}

/// The number of channels, rounded up to whole vectors of every instruction set.
fn padded_channels(channels: usize) -> usize {
    channels.next_multiple_of(16)
}

/// Runs the convolution. Either all images are pairs of bf16, or all are `f32`.
pub(super) fn compute_depthwise(
    team: &dyn ThreadTeam,
    geometry: &NhwcGeometry,
    (x, weights): (&[f32], &AlignedBuffer<f32>),
    epilogue: &ConvEpilogue<'_>,
    y: &mut [f32],
    are_paired: bool,
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
        let row_size = word_count(row_size, are_paired);
        // SAFETY: no two pieces share rows.
        let y = unsafe { y.range_mut(rows.start * row_size..rows.end * row_size) };
        let rows = DepthwiseRows { isa: team.isa(), geometry, x, weights, epilogue, rows, y };
        if are_paired {
            run_with_bf16_vectors(team.isa(), rows);
        } else {
            run_with_vectors(team.isa(), rows);
        }
    });
}

struct DepthwiseRows<'a> {
    isa: Isa,
    geometry: &'a NhwcGeometry,
    x: &'a [f32],
    weights: &'a AlignedBuffer<f32>,
    epilogue: &'a ConvEpilogue<'a>,
    rows: Range<usize>,
    y: &'a mut [f32],
}

impl F32VectorTask for DepthwiseRows<'_> {
    #[inline(always)]
    unsafe fn run_on_vectors<V: F32Vector>(self) {
        if V::HAS_BF16 {
            // SAFETY: guaranteed by the caller.
            unsafe { self.compute_rows::<V, u16>() };
        } else {
            // SAFETY: as above.
            unsafe { self.compute_rows::<V, f32>() };
        }
    }
}

/// An element of an image: an `f32`, or the bits of a bf16.
trait DepthwiseElement: Copy {
    /// True if two elements occupy the word of an `f32`.
    const ARE_PAIRS: bool;

    /// # Safety
    ///
    /// All lanes (or `count` of them) are readable or writable, and the machine has the instructions.
    unsafe fn load_lanes<V: F32Vector>(place: *const Self) -> V;
    unsafe fn load_partial<V: F32Vector>(place: *const Self, count: usize) -> V;
    unsafe fn store_lanes<V: F32Vector>(vector: V, place: *mut Self);
    unsafe fn store_partial<V: F32Vector>(vector: V, place: *mut Self, count: usize);
}

impl DepthwiseElement for f32 {
    const ARE_PAIRS: bool = false;

    #[inline(always)]
    unsafe fn load_lanes<V: F32Vector>(place: *const Self) -> V {
        // SAFETY: guaranteed by the caller.
        unsafe { V::load(place) }
    }

    #[inline(always)]
    unsafe fn load_partial<V: F32Vector>(place: *const Self, count: usize) -> V {
        // SAFETY: guaranteed by the caller.
        unsafe { V::load_partial(place, count) }
    }

    #[inline(always)]
    unsafe fn store_lanes<V: F32Vector>(vector: V, place: *mut Self) {
        // SAFETY: guaranteed by the caller.
        unsafe { vector.store(place) };
    }

    #[inline(always)]
    unsafe fn store_partial<V: F32Vector>(vector: V, place: *mut Self, count: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { vector.store_partial(place, count) };
    }
}

impl DepthwiseElement for u16 {
    const ARE_PAIRS: bool = true;

    #[inline(always)]
    unsafe fn load_lanes<V: F32Vector>(place: *const Self) -> V {
        // SAFETY: guaranteed by the caller.
        unsafe { V::load_bf16(place, V::LANES) }
    }

    #[inline(always)]
    unsafe fn load_partial<V: F32Vector>(place: *const Self, count: usize) -> V {
        // SAFETY: guaranteed by the caller.
        unsafe { V::load_bf16(place, count) }
    }

    #[inline(always)]
    unsafe fn store_lanes<V: F32Vector>(vector: V, place: *mut Self) {
        // SAFETY: guaranteed by the caller.
        unsafe { vector.store_bf16(place, V::LANES) };
    }

    #[inline(always)]
    unsafe fn store_partial<V: F32Vector>(vector: V, place: *mut Self, count: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { vector.store_bf16(place, count) };
    }
}

impl DepthwiseRows<'_> {
    #[inline(always)]
    unsafe fn compute_rows<V: F32Vector, E: DepthwiseElement>(self) {
        let Self { isa, geometry, x, weights, epilogue, rows, y } = self;
        let NhwcGeometry { channels, vertical, horizontal, .. } = *geometry;
        let row_size = word_count(horizontal.output * channels, E::ARE_PAIRS);
        for (row, output) in rows.zip(y.chunks_exact_mut(row_size)) {
            let (image, window) = (row / vertical.output, row % vertical.output);
            let steps = steps_inside(&vertical, window);
            // The first line of the image under the window, if any.
            let line = image * vertical.input
                + (window * vertical.stride + steps.start * vertical.dilation).saturating_sub(vertical.pad.0);
            let first = output.as_mut_ptr();
            let stripe = DepthwiseRow {
                geometry,
                lines: steps.len(),
                input: x[word_count(line * horizontal.input * channels, E::ARE_PAIRS).min(x.len())..]
                    .as_ptr()
                    .cast::<E>(),
                weights: weights[steps.start * horizontal.kernel * padded_channels(channels)..].as_ptr(),
                bias: epilogue.bias_pointer(0),
                residual: epilogue.residual_pointer(row * row_size, first).cast(),
                output: first.cast(),
                bounds: epilogue.clamp_bounds(),
            };
            // SAFETY: all lines of the window lie in the image, and the output is a whole row; the caller guarantees the
            // instructions.
            unsafe { stripe.compute_row::<V>() };
            if epilogue.has_remaining() {
                epilogue.apply_remaining(isa, output);
            }
        }
    }
}

/// The steps of a window that are inside the input.
pub(crate) fn steps_inside(axis: &WindowAxis, window: usize) -> Range<usize> {
    let start = window * axis.stride;
    let begin = axis.pad.0.saturating_sub(start).div_ceil(axis.dilation).min(axis.kernel);
    let end = (axis.input + axis.pad.0).saturating_sub(start).div_ceil(axis.dilation).min(axis.kernel);
    begin..end.max(begin)
}

/// One row of the output, for all channels.
struct DepthwiseRow<'a, E> {
    geometry: &'a NhwcGeometry,
    /// The lines of the image under the windows, and the first input of the first line.
    lines: usize,
    input: *const E,
    /// The weights for the first of these lines.
    weights: *const f32,
    bias: *const f32,
    residual: *const E,
    output: *mut E,
    bounds: Option<[f32; 2]>,
}

impl<E: DepthwiseElement> DepthwiseRow<'_, E> {
    #[inline(always)]
    unsafe fn compute_row<V: F32Vector>(&self) {
        let horizontal = &self.geometry.horizontal;
        let inside = windows_inside(horizontal);
        // SAFETY: as the caller guarantees; the steps of these windows lie in the image.
        unsafe {
            // Known sizes let the compiler unroll the window and keep its weights in registers.
            let done = match (horizontal.kernel, horizontal.stride, horizontal.dilation) {
                (3, 1, 1) => self.compute_windows::<V, 3, 1>(&inside),
                (3, 2, 1) => self.compute_windows::<V, 3, 2>(&inside),
                (5, 1, 1) => self.compute_windows::<V, 5, 1>(&inside),
                (5, 2, 1) => self.compute_windows::<V, 5, 2>(&inside),
                (7, 1, 1) => self.compute_windows::<V, 7, 1>(&inside),
                _ => self.compute_windows::<V, 0, 0>(&inside),
            };
            // Compiled once, not for each of these sizes: all of this is inlined, and compiling it took a third of the crate's time.
            for pixel in (0..inside.start).chain(done..horizontal.output) {
                self.compute_edge::<V>(pixel);
            }
        }
    }

    /// Computes pixels whose windows are inside the image, all with the same constant size and stride, or with any if both are 0.
    /// Returns the pixel after them: the last one may be left over.
    #[inline(always)]
    unsafe fn compute_windows<V: F32Vector, const STEPS: usize, const STRIDE: usize>(
        &self,
        inside: &Range<usize>,
    ) -> usize {
        let steps = self.geometry.horizontal.kernel;
        let mut pixel = inside.start;
        // SAFETY: guaranteed by the caller.
        unsafe {
            // Four pixels are four independent sums, which cover an FMA latency of 4 cycles. With the 7 weights of the widest
            // unrolled window and 1 input, they use 12 of 16 ymm registers.
            while pixel + 4 <= inside.end {
                self.compute_pixels::<V, 4, STEPS, STRIDE>(pixel, 0..steps);
                pixel += 4;
            }
            if pixel + 2 <= inside.end {
                self.compute_pixels::<V, 2, STEPS, STRIDE>(pixel, 0..steps);
                pixel += 2;
            }
        }
        pixel
    }

    /// Computes a pixel whose window may reach into the padding.
    #[inline(always)]
    unsafe fn compute_edge<V: F32Vector>(&self, pixel: usize) {
        let horizontal = &self.geometry.horizontal;
        let steps = steps_inside(horizontal, pixel);
        // SAFETY: as the caller guarantees; these steps lie in the image.
        unsafe {
            match steps.len() {
                // Common widths of clipped windows are unrolled as well.
                2 if horizontal.dilation == 1 => self.compute_pixels::<V, 1, 2, 1>(pixel, steps),
                3 if horizontal.dilation == 1 => self.compute_pixels::<V, 1, 3, 1>(pixel, steps),
                _ => self.compute_pixels::<V, 1, 0, 0>(pixel, steps),
            }
        }
    }

    /// Computes adjacent pixels from some steps of their windows.
    #[inline(always)]
    unsafe fn compute_pixels<V: F32Vector, const PIXELS: usize, const STEPS: usize, const STRIDE: usize>(
        &self,
        pixel: usize,
        steps: Range<usize>,
    ) {
        let NhwcGeometry { channels, horizontal, .. } = *self.geometry;
        let start =
            (pixel * horizontal.stride + steps.start * horizontal.dilation).wrapping_sub(horizontal.pad.0);
        let pixels = DepthwisePixels {
            input: self.input.wrapping_add(start.wrapping_mul(channels)),
            weights: self.weights.wrapping_add(steps.start * padded_channels(channels)),
            steps: steps.len(),
            first: pixel * channels,
        };
        let whole = channels / V::LANES * V::LANES;
        // SAFETY: guaranteed by the caller.
        unsafe {
            for channel in (0..whole).step_by(V::LANES) {
                self.compute_channels::<V, false, PIXELS, STEPS, STRIDE>(&pixels, channel, V::LANES);
            }
            if whole < channels {
                self.compute_channels::<V, true, PIXELS, STEPS, STRIDE>(&pixels, whole, channels - whole);
            }
        }
    }

    /// Computes a vector of channels, or `count` lanes of it, for some pixels.
    #[inline(always)]
    unsafe fn compute_channels<
        V: F32Vector,
        const SOME: bool,
        const PIXELS: usize,
        const STEPS: usize,
        const STRIDE: usize,
    >(
        &self,
        pixels: &DepthwisePixels<E>,
        channel: usize,
        count: usize,
    ) {
        let NhwcGeometry { channels, vertical, horizontal, .. } = *self.geometry;
        let padded = padded_channels(channels);
        // SAFETY: as the caller guarantees: the steps of these windows lie in the image.
        unsafe {
            let load = |place: *const E| {
                if SOME { E::load_partial::<V>(place, count) } else { E::load_lanes::<V>(place) }
            };
            let bias = match self.bias.wrapping_add(channel) {
                _ if self.bias.is_null() => V::splat(0.0),
                bias if SOME => V::load_partial(bias, count),
                bias => V::load(bias),
            };
            let mut sums = [bias; PIXELS];
            let mut input = pixels.input.wrapping_add(channel);
            let mut weights = pixels.weights.wrapping_add(channel);
            for _ in 0..self.lines {
                if STEPS > 0 {
                    // Adjacent windows overlap, so each input is loaded once and multiplied for every window that contains it.
                    let mut factors = [V::splat(0.0); STEPS];
                    for (step, factor) in factors.iter_mut().enumerate() {
                        *factor = V::load(weights.add(step * padded));
                    }
                    for place in 0..(PIXELS - 1) * STRIDE + STEPS {
                        let element = load(input.add(place * channels));
                        for (index, sum) in sums.iter_mut().enumerate() {
                            if (index * STRIDE..index * STRIDE + STEPS).contains(&place) {
                                *sum = sum.add_product(element, factors[place - index * STRIDE]);
                            }
                        }
                    }
                } else {
                    for step in 0..pixels.steps {
                        let factor = V::load(weights.add(step * padded));
                        for (index, sum) in sums.iter_mut().enumerate() {
                            let place = (index * horizontal.stride + step * horizontal.dilation) * channels;
                            *sum = sum.add_product(load(input.add(place)), factor);
                        }
                    }
                }
                input = input.wrapping_add(vertical.dilation.wrapping_mul(horizontal.input * channels));
                weights = weights.wrapping_add(horizontal.kernel * padded);
            }
            for (index, sum) in sums.into_iter().enumerate() {
                let place = pixels.first + index * channels + channel;
                let mut sum = sum;
                if !self.residual.is_null() {
                    sum = sum.add(load(self.residual.add(place)));
                }
                if let Some([low, high]) = self.bounds {
                    sum = sum.max(V::splat(low)).min(V::splat(high));
                }
                if SOME {
                    E::store_partial(sum, self.output.add(place), count);
                } else {
                    E::store_lanes(sum, self.output.add(place));
                }
            }
        }
    }
}

/// Adjacent pixels of a row.
struct DepthwisePixels<E> {
    /// The first element under the first window, the weight of its step, and the steps of each window.
    input: *const E,
    weights: *const f32,
    steps: usize,
    /// The position of the first output in its row.
    first: usize,
}

/// The windows that lie entirely inside the input.
pub(crate) fn windows_inside(axis: &WindowAxis) -> Range<usize> {
    let begin = axis.windows_with_step(0).start;
    let end = axis.windows_with_step(axis.kernel - 1).end;
    begin..end.max(begin)
}
