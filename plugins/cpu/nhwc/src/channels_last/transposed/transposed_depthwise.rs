//! Depthwise transposed convolutions: each output is a sum over the few inputs whose windows contain it, computed in vectors of
//! channels.

#![expect(unsafe_code, reason = "vectors are loaded and stored through pointers")]

use std::ops::Range;

use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_base::window::WindowAxis;
use oarlock_cpu_gemm::{AlignedBuffer, DisjointSlice};

use super::super::epilogue::ConvEpilogue;
use super::transposed_shape::NhwcTransposedShape;
use oarlock_cpu_base::simd::{F32Vector, F32VectorTask, run_with_vectors};

/// Multiply-adds that make it worth waking another thread.
const MIN_WORK_PER_THREAD: usize = 1 << 16;

/// A planned depthwise transposed convolution.
pub(crate) struct TransposedDepthwise {
    sizes: NhwcTransposedShape,
    /// For each output position down an image and along a row: the inputs that reach it, each with its step.
    vertical: Vec<Vec<InputReach>>,
    horizontal: Vec<Vec<InputReach>>,
}

#[derive(Clone, Copy)]
struct InputReach {
    input: usize,
    step: usize,
}

impl TransposedDepthwise {
    /// `None` if an output depends on several channels, or a channel has several outputs.
    pub(crate) fn new(sizes: &NhwcTransposedShape) -> Option<Self> {
        let is_depthwise =
            sizes.groups == sizes.channels && sizes.groups == sizes.outputs && sizes.groups > 1;
        is_depthwise.then(|| Self {
            sizes: sizes.clone(),
            vertical: input_reaches(&sizes.vertical),
            horizontal: input_reaches(&sizes.horizontal),
        })
    }

    /// Packs weights [C, 1, kernel…]: for each step, those of all channels.
    pub(crate) fn pack_weights(&self, weights: &[f32]) -> AlignedBuffer<f32> {
        let (channels, steps) =
            (self.sizes.channels, self.sizes.vertical.kernel * self.sizes.horizontal.kernel);
        let mut packed = AlignedBuffer::zeroed(steps * channels);
        for (channel, weights) in weights.chunks_exact(steps).enumerate() {
            for (step, weight) in weights.iter().enumerate() {
                packed[step * channels + channel] = *weight;
            }
        }
        packed
    }

    pub(crate) fn compute(
        &self,
        team: &dyn ThreadTeam,
        (x, weights): (&[f32], &AlignedBuffer<f32>),
        epilogue: &ConvEpilogue<'_>,
        y: &mut [f32],
    ) {
        let NhwcTransposedShape { images, channels, vertical, horizontal, .. } = &self.sizes;
        let rows = images * vertical.input;
        let row_size = horizontal.input * channels;
        let steps = vertical.kernel.div_ceil(vertical.stride) * horizontal.kernel.div_ceil(horizontal.stride);
        let work = (row_size * steps).max(1);
        let threads = team.worker_count().min(rows * work / MIN_WORK_PER_THREAD).max(1);
        // A few pieces per thread balance the load if other work runs on the machine.
        let share = rows.div_ceil(if threads == 1 { 1 } else { 4 * threads }).max(1);
        let y = DisjointSlice::new(y);
        team.parallel_for_each(rows.div_ceil(share), &|piece| {
            let rows = piece * share..rows.min((piece + 1) * share);
            // SAFETY: no two pieces share rows.
            let y = unsafe { y.range_mut(rows.start * row_size..rows.end * row_size) };
            for (row, y) in rows.zip(y.chunks_exact_mut(row_size.max(1))) {
                let lanes =
                    TransposedDepthwiseRow { all: self, x, weights, epilogue, row, y: DisjointSlice::new(y) };
                run_with_vectors(team.isa(), lanes);
                if epilogue.has_remaining() {
                    epilogue.apply_remaining(team.isa(), y);
                }
            }
        });
    }
}

/// For each output position along an axis, the inputs that contribute to it.
fn input_reaches(axis: &WindowAxis) -> Vec<Vec<InputReach>> {
    // One list per axis suffices, since the inputs down and along are independent.
    let mut all = vec![Vec::new(); axis.input];
    for step in 0..axis.kernel {
        for input in axis.windows_with_step(step) {
            all[axis.first_position(step, input)].push(InputReach { input, step });
        }
    }
    all
}

struct TransposedDepthwiseRow<'a> {
    all: &'a TransposedDepthwise,
    x: &'a [f32],
    weights: &'a AlignedBuffer<f32>,
    epilogue: &'a ConvEpilogue<'a>,
    row: usize,
    /// The output. Nothing else writes this row.
    y: DisjointSlice<'a, f32>,
}

impl F32VectorTask for TransposedDepthwiseRow<'_> {
    #[inline(always)]
    unsafe fn run_on_vectors<V: F32Vector>(self) {
        let NhwcTransposedShape { channels, vertical, .. } = self.all.sizes;
        let place = self.row % vertical.input;
        let whole = channels / V::LANES * V::LANES;
        for (pixel, horizontal) in self.all.horizontal.iter().enumerate() {
            // SAFETY: the pixel is in the row and has these channels; the caller guarantees the instructions.
            unsafe {
                for channel in (0..whole).step_by(V::LANES) {
                    self.sum_channels::<V, false>(
                        pixel,
                        (&self.all.vertical[place], horizontal),
                        channel..channel + V::LANES,
                    );
                }
                if whole < channels {
                    self.sum_channels::<V, true>(
                        pixel,
                        (&self.all.vertical[place], horizontal),
                        whole..channels,
                    );
                }
            }
        }
    }
}

impl TransposedDepthwiseRow<'_> {
    /// Computes at most a vector of channels of a pixel.
    #[inline(always)]
    unsafe fn sum_channels<V: F32Vector, const SOME: bool>(
        &self,
        pixel: usize,
        (row_reaches, column_reaches): (&[InputReach], &[InputReach]),
        range: Range<usize>,
    ) {
        let NhwcTransposedShape { channels, vertical, horizontal, .. } = self.all.sizes;
        let (channel, count) = (range.start, range.len());
        let image = self.row / vertical.input * vertical.output;
        // SAFETY: inputs and steps lie in the images and weights, for these channels; the caller guarantees the instructions.
        unsafe {
            let load = |place: *const f32| if SOME { V::load_partial(place, count) } else { V::load(place) };
            let mut sum = match self.epilogue.bias {
                Some(bias) => load(bias[channel..].as_ptr()),
                None => V::splat(0.0),
            };
            for row_reach in row_reaches {
                let line = (image + row_reach.input) * horizontal.output;
                for reach in column_reaches {
                    let x = self.x.as_ptr().add((line + reach.input) * channels + channel);
                    let step = row_reach.step * horizontal.kernel + reach.step;
                    let weight = self.weights.as_ptr().add(step * channels + channel);
                    sum = sum.add_product(load(x), load(weight));
                }
            }
            let place = pixel * channels + channel;
            let output = self.y.element_pointer(place);
            let residual =
                self.epilogue.residual_pointer(self.row * horizontal.input * channels + place, output);
            if !residual.is_null() {
                sum = sum.add(load(residual));
            }
            if let Some([low, high]) = self.epilogue.clamp_bounds() {
                // The lower bound first, as in all kernels: if the bounds are crossed, the upper one wins.
                sum = sum.max(V::splat(low)).min(V::splat(high));
            }
            if SOME { sum.store_partial(output, count) } else { sum.store(output) }
        }
    }
}
