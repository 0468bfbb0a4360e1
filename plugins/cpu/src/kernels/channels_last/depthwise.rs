//! Convolutions of each channel for itself: vectors of channels, some pixels of a row at a time, so that a weight is loaded
//! once for them.

//!
//! Images may hold numbers in bf16, which become those of f32 while they are loaded, and are rounded while they are stored.

#![expect(unsafe_code, reason = "vectors are loaded and stored through pointers")]

use std::ops::Range;

use super::dense::word_count;
use super::epilogue::ConvEpilogue;
use super::geometry::NhwcGeometry;
use super::simd::{FloatVector, FloatVectorTask, run_with_bf16_vectors, run_with_vectors};
use crate::gemm::{AlignedBuffer, DisjointSlice, ThreadTeam};
use crate::isa::Isa;
use crate::kernels::conv::window::WindowAxis;

/// Products that are worth waking another thread.
const MIN_WORK_PER_THREAD: usize = 1 << 16;

/// The weights [C, 1, kernel…] in the order in which they are read: for each tap those of all channels, in whole vectors.
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

/// Channels in whole vectors of any kind.
fn padded_channels(channels: usize) -> usize {
    channels.next_multiple_of(16)
}

/// Computes the convolution, of images of which all or none hold pairs of bf16.
pub(super) fn compute_depthwise(
    team: &dyn ThreadTeam,
    geometry: &NhwcGeometry,
    (x, weights): (&[f32], &AlignedBuffer<f32>),
    finish: &ConvEpilogue<'_>,
    y: &mut [f32],
    are_paired: bool,
) {
    let rows = geometry.images * geometry.down.output;
    let row_size = geometry.along.output * geometry.channels;
    let work = (row_size * geometry.tap_count()).max(1);
    let threads = team.worker_count().min(rows * work / MIN_WORK_PER_THREAD).max(1);
    // A few pieces for each thread even out what else the machine does.
    let share = rows.div_ceil(if threads == 1 { 1 } else { 4 * threads }).max(1);
    let y = DisjointSlice::new(y);
    team.parallel_for_each(rows.div_ceil(share), &|piece| {
        let rows = piece * share..rows.min((piece + 1) * share);
        let row_size = word_count(row_size, are_paired);
        // SAFETY: no two pieces have rows in common.
        let y = unsafe { y.range_mut(rows.start * row_size..rows.end * row_size) };
        let rows = DepthwiseRows { isa: team.isa(), geometry, x, weights, finish, rows, y };
        if are_paired {
            run_with_bf16_vectors(team.isa(), rows);
        } else {
            run_with_vectors(team.isa(), rows);
        }
    });
}

/// Some rows of the output.
struct DepthwiseRows<'a> {
    isa: Isa,
    geometry: &'a NhwcGeometry,
    x: &'a [f32],
    weights: &'a AlignedBuffer<f32>,
    finish: &'a ConvEpilogue<'a>,
    rows: Range<usize>,
    y: &'a mut [f32],
}

impl FloatVectorTask for DepthwiseRows<'_> {
    #[inline(always)]
    unsafe fn run_on_vectors<V: FloatVector>(self) {
        if V::HAS_BF16 {
            // SAFETY: as the caller vouches.
            unsafe { self.compute_rows::<V, u16>() };
        } else {
            // SAFETY: as above.
            unsafe { self.compute_rows::<V, f32>() };
        }
    }
}

/// What images hold: numbers, or the bits of such in bf16.
trait DepthwiseElement: Copy {
    /// Whether two of them are in the place of a number.
    const ARE_PAIRS: bool;

    /// # Safety
    ///
    /// All lanes can be read, or some, or written, and the machine has the instructions.
    unsafe fn load_lanes<V: FloatVector>(place: *const Self) -> V;
    unsafe fn load_partial<V: FloatVector>(place: *const Self, count: usize) -> V;
    unsafe fn store_lanes<V: FloatVector>(vector: V, place: *mut Self);
    unsafe fn store_partial<V: FloatVector>(vector: V, place: *mut Self, count: usize);
}

impl DepthwiseElement for f32 {
    const ARE_PAIRS: bool = false;

    #[inline(always)]
    unsafe fn load_lanes<V: FloatVector>(place: *const Self) -> V {
        // SAFETY: as the caller vouches.
        unsafe { V::load(place) }
    }

    #[inline(always)]
    unsafe fn load_partial<V: FloatVector>(place: *const Self, count: usize) -> V {
        // SAFETY: as the caller vouches.
        unsafe { V::load_partial(place, count) }
    }

    #[inline(always)]
    unsafe fn store_lanes<V: FloatVector>(vector: V, place: *mut Self) {
        // SAFETY: as the caller vouches.
        unsafe { vector.store(place) };
    }

    #[inline(always)]
    unsafe fn store_partial<V: FloatVector>(vector: V, place: *mut Self, count: usize) {
        // SAFETY: as the caller vouches.
        unsafe { vector.store_partial(place, count) };
    }
}

impl DepthwiseElement for u16 {
    const ARE_PAIRS: bool = true;

    #[inline(always)]
    unsafe fn load_lanes<V: FloatVector>(place: *const Self) -> V {
        // SAFETY: as the caller vouches.
        unsafe { V::load_bf16(place, V::LANES) }
    }

    #[inline(always)]
    unsafe fn load_partial<V: FloatVector>(place: *const Self, count: usize) -> V {
        // SAFETY: as the caller vouches.
        unsafe { V::load_bf16(place, count) }
    }

    #[inline(always)]
    unsafe fn store_lanes<V: FloatVector>(vector: V, place: *mut Self) {
        // SAFETY: as the caller vouches.
        unsafe { vector.store_bf16(place, V::LANES) };
    }

    #[inline(always)]
    unsafe fn store_partial<V: FloatVector>(vector: V, place: *mut Self, count: usize) {
        // SAFETY: as the caller vouches.
        unsafe { vector.store_bf16(place, count) };
    }
}

impl DepthwiseRows<'_> {
    #[inline(always)]
    unsafe fn compute_rows<V: FloatVector, E: DepthwiseElement>(self) {
        let Self { isa, geometry, x, weights, finish, rows, y } = self;
        let NhwcGeometry { channels, down, along, .. } = *geometry;
        let row_size = word_count(along.output * channels, E::ARE_PAIRS);
        for (row, output) in rows.zip(y.chunks_exact_mut(row_size)) {
            let (image, window) = (row / down.output, row % down.output);
            let steps = steps_inside(&down, window);
            // The first line of the image under the window, if there is one.
            let line = image * down.input
                + (window * down.stride + steps.start * down.dilation).saturating_sub(down.pad.0);
            let first = output.as_mut_ptr();
            let strip = DepthwiseRow {
                geometry,
                lines: steps.len(),
                input: x[word_count(line * along.input * channels, E::ARE_PAIRS).min(x.len())..]
                    .as_ptr()
                    .cast::<E>(),
                weights: weights[steps.start * along.kernel * padded_channels(channels)..].as_ptr(),
                bias: finish.bias_pointer(0),
                residual: finish.residual_pointer(row * row_size, first).cast(),
                output: first.cast(),
                bounds: finish.clamp_bounds(),
            };
            // SAFETY: all lines of the window lie in the image, and the output is a row; the caller vouches for the
            // instructions.
            unsafe { strip.compute_row::<V>() };
            if finish.has_remaining() {
                finish.apply_remaining(isa, output);
            }
        }
    }
}

/// The steps of a window that lie in the input.
pub(in crate::kernels) fn steps_inside(axis: &WindowAxis, window: usize) -> Range<usize> {
    let start = window * axis.stride;
    let begin = axis.pad.0.saturating_sub(start).div_ceil(axis.dilation).min(axis.kernel);
    let end = (axis.input + axis.pad.0).saturating_sub(start).div_ceil(axis.dilation).min(axis.kernel);
    begin..end.max(begin)
}

/// One row of the output, for all channels.
struct DepthwiseRow<'a, E> {
    geometry: &'a NhwcGeometry,
    /// How many lines of the image are under the windows, and where the first begins.
    lines: usize,
    input: *const E,
    /// The weights for the first of the lines.
    weights: *const f32,
    bias: *const f32,
    residual: *const E,
    output: *mut E,
    bounds: Option<[f32; 2]>,
}

impl<E: DepthwiseElement> DepthwiseRow<'_, E> {
    #[inline(always)]
    unsafe fn compute_row<V: FloatVector>(&self) {
        let along = &self.geometry.along;
        // SAFETY: as the caller vouches.
        unsafe {
            match (along.kernel, along.stride, along.dilation) {
                (3, 1, 1) => self.compute_windows::<V, 3, 1>(),
                (3, 2, 1) => self.compute_windows::<V, 3, 2>(),
                (5, 1, 1) => self.compute_windows::<V, 5, 1>(),
                (5, 2, 1) => self.compute_windows::<V, 5, 2>(),
                (7, 1, 1) => self.compute_windows::<V, 7, 1>(),
                _ => self.compute_windows::<V, 0, 0>(),
            }
        }
    }

    /// Computes the row, with windows of a size and a stride that are known, or of any where they are 0.
    #[inline(always)]
    unsafe fn compute_windows<V: FloatVector, const STEPS: usize, const STRIDE: usize>(&self) {
        let along = &self.geometry.along;
        let inside = windows_inside(along);
        // SAFETY: as the caller vouches; these steps lie in the image.
        unsafe {
            for pixel in 0..inside.start {
                self.compute_edge::<V, STEPS>(pixel);
            }
            let mut pixel = inside.start;
            while pixel + 4 <= inside.end {
                self.compute_pixels::<V, 4, STEPS, STRIDE>(pixel, 0..along.kernel);
                pixel += 4;
            }
            if pixel + 2 <= inside.end {
                self.compute_pixels::<V, 2, STEPS, STRIDE>(pixel, 0..along.kernel);
                pixel += 2;
            }
            for pixel in pixel..along.output {
                self.compute_edge::<V, STEPS>(pixel);
            }
        }
    }

    /// Computes a pixel of whose window some steps may lie in the padding.
    #[inline(always)]
    unsafe fn compute_edge<V: FloatVector, const STEPS: usize>(&self, pixel: usize) {
        let steps = steps_inside(&self.geometry.along, pixel);
        // SAFETY: as the caller vouches; these steps lie in the image.
        unsafe {
            match steps.len() {
                // Known where windows are small and have no gaps, as most are.
                2 if STEPS > 0 => self.compute_pixels::<V, 1, 2, 1>(pixel, steps),
                3 if STEPS > 0 => self.compute_pixels::<V, 1, 3, 1>(pixel, steps),
                _ => self.compute_pixels::<V, 1, 0, 0>(pixel, steps),
            }
        }
    }

    /// Computes some pixels side by side from some steps of their windows.
    #[inline(always)]
    unsafe fn compute_pixels<V: FloatVector, const PIXELS: usize, const STEPS: usize, const STRIDE: usize>(
        &self,
        pixel: usize,
        steps: Range<usize>,
    ) {
        let NhwcGeometry { channels, along, .. } = *self.geometry;
        let start = (pixel * along.stride + steps.start * along.dilation).wrapping_sub(along.pad.0);
        let pixels = DepthwisePixels {
            input: self.input.wrapping_add(start.wrapping_mul(channels)),
            weights: self.weights.wrapping_add(steps.start * padded_channels(channels)),
            steps: steps.len(),
            first: pixel * channels,
        };
        let whole = channels / V::LANES * V::LANES;
        // SAFETY: as the caller vouches.
        unsafe {
            for channel in (0..whole).step_by(V::LANES) {
                self.compute_channels::<V, false, PIXELS, STEPS, STRIDE>(&pixels, channel, V::LANES);
            }
            if whole < channels {
                self.compute_channels::<V, true, PIXELS, STEPS, STRIDE>(&pixels, whole, channels - whole);
            }
        }
    }

    /// Computes a vector of channels, or some lanes of it, of some pixels.
    #[inline(always)]
    unsafe fn compute_channels<
        V: FloatVector,
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
        let NhwcGeometry { channels, down, along, .. } = *self.geometry;
        let padded = padded_channels(channels);
        // SAFETY: as the caller vouches: the steps of these windows lie in the image.
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
                    // Windows side by side share most of what is under them.
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
                            let place = (index * along.stride + step * along.dilation) * channels;
                            *sum = sum.add_product(load(input.add(place)), factor);
                        }
                    }
                }
                input = input.wrapping_add(down.dilation.wrapping_mul(along.input * channels));
                weights = weights.wrapping_add(along.kernel * padded);
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

/// Some pixels of a row.
struct DepthwisePixels<E> {
    /// The first element under the first window, its weights, and the steps of each window.
    input: *const E,
    weights: *const f32,
    steps: usize,
    /// Where the first output is in its row.
    first: usize,
}

/// The windows all of whose steps lie in the input.
pub(in crate::kernels) fn windows_inside(axis: &WindowAxis) -> Range<usize> {
    let begin = axis.windows_with_step(0).start;
    let end = axis.windows_with_step(axis.kernel - 1).end;
    begin..end.max(begin)
}
