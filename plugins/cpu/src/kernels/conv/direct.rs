//! Convolutions with few outputs for each group, above all depthwise ones: too little is shared for a product of matrices to be
//! worth packing, so whole rows of the output are summed up, one element under the window at a time.

use std::ops::Range;

use super::layer::Layer;
use super::window::coordinates;
use crate::device::Cpu;
use crate::gemm::{Number, Parts, Stored};
use crate::isa::{Target, Vectorized};

/// Sums that are kept at a time, in the nearest cache.
const SUMS: usize = 512;
/// Products that are worth waking another thread.
const WORK_OF_A_THREAD: usize = 1 << 16;

/// Computes a convolution plane by plane.
#[expect(unsafe_code, reason = "planes are written by several threads")]
pub(super) fn compute<E: Stored>(
    cpu: &Cpu,
    layer: &Layer,
    x: &[E],
    w: &[E],
    bias: Option<&[E]>,
    y: &mut [E],
) {
    let outputs = layer.window.outputs();
    if y.is_empty() {
        return;
    }
    let planes = y.len() / outputs;
    let work = outputs.saturating_mul(layer.depth()).max(1);
    let y = Parts::new(y);
    cpu.parallel_for(planes, WORK_OF_A_THREAD.div_ceil(work), |begin, end| {
        for plane in begin..end {
            // SAFETY: no two planes overlap, and each is one thread's.
            let output = unsafe { y.part(plane * outputs..(plane + 1) * outputs) };
            cpu.isa().vectorize(Plane { layer, plane, x, w, bias, output });
        }
    });
}

/// One plane of the output.
struct Plane<'a, E> {
    layer: &'a Layer,
    plane: usize,
    x: &'a [E],
    w: &'a [E],
    bias: Option<&'a [E]>,
    output: &'a mut [E],
}

impl<E: Stored> Vectorized for Plane<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<T: Target>(self) {
        let Some((last, outer)) = self.layer.window.axes.split_last() else { return };
        let mut place = vec![0; outer.len()];
        let rows = self.output.len() / last.output;
        for row in 0..rows {
            coordinates(row, outer.iter().map(|axis| axis.output), &mut place);
            for begin in (0..last.output).step_by(SUMS) {
                let range = begin..last.output.min(begin + SUMS);
                let mut sums = [E::Computed::default(); SUMS];
                self.sum::<T>(&place, range.clone(), &mut sums[..range.len()]);
                let output = &mut self.output[row * last.output..][range.clone()];
                for (output, sum) in output.iter_mut().zip(&sums) {
                    *output = E::store(*sum);
                }
            }
        }
    }
}

impl<E: Stored> Plane<'_, E> {
    /// Sums up some windows of one row.
    #[inline(always)]
    fn sum<T: Target>(&self, place: &[usize], range: Range<usize>, sums: &mut [E::Computed]) {
        let Layer { window, channels, groups, rows, .. } = self.layer;
        let Some((last, outer)) = window.axes.split_last() else { return };
        let (image, output) = (self.plane / (groups * rows), self.plane % (groups * rows));
        let group = output / rows;
        if let Some(bias) = self.bias {
            sums.fill(bias[output].convert());
        }
        let steps = window.steps() / last.kernel;
        let mut step = vec![0; outer.len()];
        for channel in 0..*channels {
            let input = ((image * groups + group) * channels + channel) * window.inputs();
            let weights = &self.w[(output * channels + channel) * window.steps()..][..window.steps()];
            for (index, weights) in weights.chunks_exact(last.kernel).enumerate().take(steps) {
                coordinates(index, outer.iter().map(|axis| axis.kernel), &mut step);
                let mut row = Some(0);
                for ((axis, place), step) in outer.iter().zip(place).zip(&step) {
                    row = row.zip(axis.place(*place, *step)).map(|(row, place)| row * axis.input + place);
                }
                let Some(row) = row else { continue };
                let row = &self.x[input + row * last.input..][..last.input];
                for (step, weight) in weights.iter().enumerate() {
                    let inside = last.windows_with(step);
                    let begin = inside.start.max(range.start);
                    let end = inside.end.min(range.end);
                    if begin >= end {
                        continue;
                    }
                    let weight = weight.convert();
                    let sums = &mut sums[begin - range.start..end - range.start];
                    let elements = &row[last.first_place(step, begin)..];
                    add_products::<E, T>(sums, elements, last.stride, weight);
                }
            }
        }
    }
}

/// Adds elements, some apart from each other, times a weight.
#[inline(always)]
fn add_products<E: Stored, T: Target>(
    sums: &mut [E::Computed],
    elements: &[E],
    stride: usize,
    weight: E::Computed,
) {
    let add = |sum: &mut E::Computed, element: &E| {
        *sum = if T::HAS_FMA {
            sum.plus_product::<true>(element.convert(), weight)
        } else {
            sum.plus_product::<false>(element.convert(), weight)
        };
    };
    if stride == 1 {
        sums.iter_mut().zip(elements).for_each(|(sum, element)| add(sum, element));
    } else {
        sums.iter_mut().zip(elements.iter().step_by(stride)).for_each(|(sum, element)| add(sum, element));
    }
}
