//! The rows of `oarlock.MaxPool` and `oarlock.AveragePool`: vectors of channels, one pixel of the output after the other.

#![expect(
    unsafe_code,
    reason = "vectors are loaded and stored through pointers, and operands are memory that the call vouches for"
)]

use std::ops::Range;
use std::sync::Arc;

use oarlock_sdk::{Call, DtypeSet, Kernel, KernelFlags, Operand, Result};

use super::depthwise::steps_inside;
use super::geometry::Geometry;
use super::lanes::{Lanes, Work, with_lanes};
use crate::device::Cpu;
use crate::gemm::{Parts, Team};
use crate::kernels::conv::window::{Axis, Settings};

/// Elements that are worth waking another thread.
const WORK_OF_A_THREAD: usize = 1 << 14;
/// Vectors of channels that are folded at a time: enough that one does not wait for the other.
const VECTORS: usize = 4;

pub(super) fn kernels() -> [Kernel<Cpu>; 2] {
    [kernel("MaxPool", |_| Ok(Fold::Greatest)), kernel("AveragePool", mean)]
}

fn mean(call: &Call<'_>) -> Result<Fold> {
    Ok(Fold::Mean { with_padding: call.int("count_include_pad")?.unwrap_or(0) != 0 })
}

fn kernel(op: &'static str, fold: fn(&Call<'_>) -> Result<Fold>) -> Kernel<Cpu> {
    let image = Operand::new(DtypeSet::F32).rank(3, 4);
    Kernel::prepared(op, move |_: &Cpu, call| {
        let (fold, settings) = (fold(call)?, Settings::new(call)?);
        let (x, y) = (call.input(0)?, call.output(0)?);
        let prepared = Geometry::of_pooling(&settings, x.dims(), y.dims())?;
        let dims = [x.dims().to_vec(), y.dims().to_vec()];
        Ok(Arc::new(move |cpu: &Cpu, call: &Call<'_>| {
            let (x, y) = (call.input(0)?, call.output(0)?);
            super::expect_prepared(x.dims() == dims[0] && y.dims() == dims[1])?;
            // SAFETY: the device's memory is the host's, and the call vouches for its operands.
            let (x, y) = unsafe { (x.elements()?, y.elements_mut()?) };
            compute(cpu, &prepared, fold, x, y);
            Ok(())
        }))
    })
    .domain("oarlock")
    .supports(|_, call| {
        Geometry::of_pooling(&Settings::new(call)?, call.input(0)?.dims(), call.output(0)?.dims()).map(drop)
    })
    .flags(KernelFlags::DETERMINISTIC)
    .inputs([image.named("X")])
    .outputs([image.named("Y")])
}

/// How the elements under a window become one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fold {
    /// The greatest. What is not a number is not greater than anything.
    Greatest,
    /// The sum divided by how many there are, with those in the padding or without.
    Mean { with_padding: bool },
}

/// Computes a pooling.
pub(super) fn compute(team: &dyn Team, geometry: &Geometry, fold: Fold, x: &[f32], y: &mut [f32]) {
    // Where there is nothing to make, the sizes of what it would have been may be any.
    if y.is_empty() {
        return;
    }
    let rows = geometry.images * geometry.down.output;
    let row_size = geometry.along.output * geometry.channels;
    let work = row_size.saturating_mul(geometry.taps()).saturating_mul(rows);
    let threads = team.worker_count().min(work / WORK_OF_A_THREAD).max(1);
    let share = rows.div_ceil(if threads == 1 { 1 } else { 4 * threads }).max(1);
    let y = Parts::new(y);
    team.each(rows.div_ceil(share), &|piece| {
        let rows = piece * share..rows.min((piece + 1) * share);
        // SAFETY: no two pieces have rows in common.
        let y = unsafe { y.part(rows.start * row_size..rows.end * row_size) };
        with_lanes(team.isa(), Rows { geometry, fold, x, rows, y });
    });
}

/// Some rows of the output.
struct Rows<'a> {
    geometry: &'a Geometry,
    fold: Fold,
    x: &'a [f32],
    rows: Range<usize>,
    y: &'a mut [f32],
}

impl Work for Rows<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let Self { geometry, fold, x, rows, y } = self;
        let Geometry { channels, down, along, .. } = *geometry;
        for (row, output) in rows.zip(y.chunks_exact_mut(along.output * channels)) {
            let (image, window) = (row / down.output, row % down.output);
            let lines = steps_inside(&down, window);
            for (pixel, output) in output.chunks_exact_mut(channels).enumerate() {
                let steps = steps_inside(&along, pixel);
                let under = Window {
                    x: &x[image * down.input * along.input * channels..],
                    channels,
                    line: along.input * channels,
                    lines: places(&down, window, lines.clone()),
                    steps: places(&along, pixel, steps.clone()),
                    count: match fold {
                        Fold::Mean { with_padding: true } => {
                            (steps_of(&down, window) * steps_of(&along, pixel)) as f32
                        }
                        _ => (lines.len() * steps.len()) as f32,
                    },
                };
                for channel in (0..channels).step_by(VECTORS * V::COUNT) {
                    let output = &mut output[channel..channels.min(channel + VECTORS * V::COUNT)];
                    // SAFETY: the caller vouches for the instructions.
                    unsafe {
                        match fold {
                            Fold::Greatest => under.fold::<V, true>(channel, output),
                            Fold::Mean { .. } => under.fold::<V, false>(channel, output),
                        }
                    }
                }
            }
        }
    }
}

/// The places that some steps of a window have in the input: the first, how far they are apart, and how many there are.
fn places(axis: &Axis, window: usize, steps: Range<usize>) -> (usize, usize, usize) {
    let first = (window * axis.stride + steps.start * axis.dilation).saturating_sub(axis.pad.0);
    (first, axis.dilation, steps.len())
}

/// The steps of a window that lie in the input or in its padding.
fn steps_of(axis: &Axis, window: usize) -> usize {
    let end = axis.input + axis.pad.0 + axis.pad.1;
    end.saturating_sub(window * axis.stride).div_ceil(axis.dilation).min(axis.kernel)
}

/// What is under one window.
struct Window<'a> {
    /// The image.
    x: &'a [f32],
    channels: usize,
    /// How far the lines of the image are apart.
    line: usize,
    /// As [`places`] says, down the image and along its lines.
    lines: (usize, usize, usize),
    steps: (usize, usize, usize),
    /// What a sum is divided by.
    count: f32,
}

impl Window<'_> {
    /// Folds some channels.
    #[inline(always)]
    unsafe fn fold<V: Lanes, const GREATEST: bool>(&self, channel: usize, output: &mut [f32]) {
        let (count, vectors) = (output.len(), output.len().div_ceil(V::COUNT));
        let lanes = |vector: usize| (count - vector * V::COUNT).min(V::COUNT);
        let is_whole = count == VECTORS * V::COUNT;
        // SAFETY: the window lies in the image and has these channels, and the caller vouches for the instructions.
        unsafe {
            let mut sums = [V::splat(if GREATEST { f32::NEG_INFINITY } else { 0.0 }); VECTORS];
            let add = |sum: V, element: V| if GREATEST { sum.at_least(element) } else { sum.plus(element) };
            for line in 0..self.lines.2 {
                for step in 0..self.steps.2 {
                    let start = (self.lines.0 + line * self.lines.1) * self.line
                        + (self.steps.0 + step * self.steps.1) * self.channels
                        + channel;
                    let place = self.x[start..].as_ptr();
                    if is_whole {
                        for (vector, sum) in sums.iter_mut().enumerate() {
                            *sum = add(*sum, V::load(place.add(vector * V::COUNT)));
                        }
                    } else {
                        for (vector, sum) in sums.iter_mut().enumerate().take(vectors) {
                            *sum = add(*sum, V::load_some(place.add(vector * V::COUNT), lanes(vector)));
                        }
                    }
                }
            }
            for (vector, sum) in sums.iter().enumerate().take(vectors) {
                let result = if GREATEST { *sum } else { sum.over(V::splat(self.count.max(1.0))) };
                let place = output.as_mut_ptr().add(vector * V::COUNT);
                if is_whole { result.store(place) } else { result.store_some(place, lanes(vector)) }
            }
        }
    }
}
