//! Transposed convolutions of each channel for itself: an output is the sum over the few inputs whose windows reach it, of
//! vectors of channels.

#![expect(unsafe_code, reason = "vectors are loaded and stored through pointers")]

use std::ops::Range;

use super::super::finish::Finish;
use super::super::lanes::{Lanes, Work, with_lanes};
use super::products::Sizes;
use crate::gemm::{Aligned, Parts, Team};
use crate::kernels::conv::window::Axis;

/// Products that are worth waking another thread.
const WORK_OF_A_THREAD: usize = 1 << 16;

/// A transposed convolution of each channel for itself that is ready to be computed.
pub(in super::super) struct Channels {
    sizes: Sizes,
    /// For each place of the output down an image and along a row the inputs that reach it, and with which step.
    down: Vec<Vec<Reach>>,
    along: Vec<Vec<Reach>>,
}

#[derive(Clone, Copy)]
struct Reach {
    input: usize,
    step: usize,
}

impl Channels {
    /// None where an output is made of several channels, or a channel becomes several.
    pub(in super::super) fn new(sizes: &Sizes) -> Option<Self> {
        let is_depthwise =
            sizes.groups == sizes.channels && sizes.groups == sizes.outputs && sizes.groups > 1;
        is_depthwise.then(|| Self {
            sizes: sizes.clone(),
            down: all_reaches(&sizes.down),
            along: all_reaches(&sizes.along),
        })
    }

    /// The weights [C, 1, kernel…] in the order in which they are read: for each step those of all channels.
    pub(in super::super) fn pack(&self, weights: &[f32]) -> Aligned<f32> {
        let (channels, steps) = (self.sizes.channels, self.sizes.down.kernel * self.sizes.along.kernel);
        let mut packed = Aligned::zeroed(steps * channels);
        for (channel, weights) in weights.chunks_exact(steps).enumerate() {
            for (step, weight) in weights.iter().enumerate() {
                packed[step * channels + channel] = *weight;
            }
        }
        packed
    }

    /// Computes the convolution.
    pub(in super::super) fn compute(
        &self,
        team: &dyn Team,
        (x, weights): (&[f32], &Aligned<f32>),
        finish: &Finish<'_>,
        y: &mut [f32],
    ) {
        let Sizes { images, channels, down, along, .. } = &self.sizes;
        let rows = images * down.input;
        let row_size = along.input * channels;
        let steps = down.kernel.div_ceil(down.stride) * along.kernel.div_ceil(along.stride);
        let work = (row_size * steps).max(1);
        let threads = team.worker_count().min(rows * work / WORK_OF_A_THREAD).max(1);
        // A few pieces for each thread even out what else the machine does.
        let share = rows.div_ceil(if threads == 1 { 1 } else { 4 * threads }).max(1);
        let y = Parts::new(y);
        team.each(rows.div_ceil(share), &|piece| {
            let rows = piece * share..rows.min((piece + 1) * share);
            // SAFETY: no two pieces have rows in common.
            let y = unsafe { y.part(rows.start * row_size..rows.end * row_size) };
            for (row, y) in rows.zip(y.chunks_exact_mut(row_size.max(1))) {
                let lanes = Row { all: self, x, weights, finish, row, y: Parts::new(y) };
                with_lanes(team.isa(), lanes);
                if finish.is_left() {
                    finish.apply(team.isa(), y);
                }
            }
        });
    }
}

/// For each place of the output along an axis what reaches it.
fn all_reaches(axis: &Axis) -> Vec<Vec<Reach>> {
    let mut all = vec![Vec::new(); axis.input];
    for step in 0..axis.kernel {
        for input in axis.windows_with(step) {
            all[axis.first_place(step, input)].push(Reach { input, step });
        }
    }
    all
}

/// A row of the output.
struct Row<'a> {
    all: &'a Channels,
    x: &'a [f32],
    weights: &'a Aligned<f32>,
    finish: &'a Finish<'a>,
    row: usize,
    /// Where the row lies, which nothing else writes.
    y: Parts<'a, f32>,
}

impl Work for Row<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let Sizes { channels, down, .. } = self.all.sizes;
        let place = self.row % down.input;
        let whole = channels / V::COUNT * V::COUNT;
        for (pixel, along) in self.all.along.iter().enumerate() {
            // SAFETY: the pixel is in the row and has these channels; the caller vouches for the instructions.
            unsafe {
                for channel in (0..whole).step_by(V::COUNT) {
                    self.sum::<V, false>(pixel, (&self.all.down[place], along), channel..channel + V::COUNT);
                }
                if whole < channels {
                    self.sum::<V, true>(pixel, (&self.all.down[place], along), whole..channels);
                }
            }
        }
    }
}

impl Row<'_> {
    /// Sums up some channels of a pixel, at most a vector.
    #[inline(always)]
    unsafe fn sum<V: Lanes, const SOME: bool>(
        &self,
        pixel: usize,
        (downs, alongs): (&[Reach], &[Reach]),
        range: Range<usize>,
    ) {
        let Sizes { channels, down, along, .. } = self.all.sizes;
        let (channel, count) = (range.start, range.len());
        let image = self.row / down.input * down.output;
        // SAFETY: inputs and steps lie in the images and the weights, for these channels; the caller vouches for the
        // instructions.
        unsafe {
            let load = |place: *const f32| if SOME { V::load_some(place, count) } else { V::load(place) };
            let mut sum = match self.finish.bias {
                Some(bias) => load(bias[channel..].as_ptr()),
                None => V::splat(0.0),
            };
            for down in downs {
                let line = (image + down.input) * along.output;
                for reach in alongs {
                    let x = self.x.as_ptr().add((line + reach.input) * channels + channel);
                    let step = down.step * along.kernel + reach.step;
                    let weight = self.weights.as_ptr().add(step * channels + channel);
                    sum = sum.plus_product(load(x), load(weight));
                }
            }
            let place = pixel * channels + channel;
            let output = self.y.pointer(place);
            let residual = self.finish.residual_from(self.row * along.input * channels + place, output);
            if !residual.is_null() {
                sum = sum.plus(load(residual));
            }
            if let Some([low, high]) = self.finish.bounds() {
                sum = sum.at_least(V::splat(low)).at_most(V::splat(high));
            }
            if SOME { sum.store_some(output, count) } else { sum.store(output) }
        }
    }
}
