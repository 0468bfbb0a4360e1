//! Convolutions with few outputs per group, above all depthwise ones. Inputs are reused too rarely for the packing of a matrix
//! product to pay, so whole rows of the output are accumulated, one window element at a time.

use std::ops::Range;

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::{SimdTarget, SimdTask};
use oarlock_cpu_base::window::unravel_index;
use oarlock_cpu_gemm::{DisjointSlice, StoredElement};

use super::conv_shape::ConvShape;

/// Sums that are accumulated at a time: 2 KiB of f32, which stay in L1 over all window elements.
const SUMS_AT_ONCE: usize = 512;
/// Multiply-adds that make it worth waking another thread.
const MIN_WORK_PER_THREAD: usize = 1 << 16;

/// Computes a convolution plane by plane.
#[expect(unsafe_code, reason = "planes are written by several threads")]
pub(super) fn compute_direct<E: StoredElement>(
    cpu: &Cpu,
    layer: &ConvShape,
    x: &[E],
    w: &[E],
    bias: Option<&[E]>,
    y: &mut [E],
) {
    let outputs = layer.window.output_count();
    if y.is_empty() {
        return;
    }
    let planes = y.len() / outputs;
    let work = outputs.saturating_mul(layer.depth()).max(1);
    let y = DisjointSlice::new(y);
    cpu.parallel_for(planes, MIN_WORK_PER_THREAD.div_ceil(work), |begin, end| {
        for plane in begin..end {
            // SAFETY: no two planes overlap, and each is one thread's.
            let output = unsafe { y.range_mut(plane * outputs..(plane + 1) * outputs) };
            cpu.isa().vectorize(DirectConvPlane { layer, plane, x, w, bias, output });
        }
    });
}

struct DirectConvPlane<'a, E> {
    layer: &'a ConvShape,
    plane: usize,
    x: &'a [E],
    w: &'a [E],
    bias: Option<&'a [E]>,
    output: &'a mut [E],
}

impl<E: StoredElement> SimdTask for DirectConvPlane<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let Some((last, outer)) = self.layer.window.axes.split_last() else { return };
        let mut place = vec![0; outer.len()];
        let rows = self.output.len() / last.output;
        for row in 0..rows {
            unravel_index(row, outer.iter().map(|axis| axis.output), &mut place);
            for begin in (0..last.output).step_by(SUMS_AT_ONCE) {
                let range = begin..last.output.min(begin + SUMS_AT_ONCE);
                // A local array, which the compiler knows nothing else points to, so the loops vectorize without alias checks.
                let mut sums = [E::ComputeType::default(); SUMS_AT_ONCE];
                self.sum_windows::<T>(&place, range.clone(), &mut sums[..range.len()]);
                let output = &mut self.output[row * last.output..][range.clone()];
                for (output, sum) in output.iter_mut().zip(&sums) {
                    *output = E::from_computed(*sum);
                }
            }
        }
    }
}

impl<E: StoredElement> DirectConvPlane<'_, E> {
    /// Computes the sums of some windows of one row.
    #[inline(always)]
    fn sum_windows<T: SimdTarget>(&self, place: &[usize], range: Range<usize>, sums: &mut [E::ComputeType]) {
        let ConvShape { window, channels, groups, rows, .. } = self.layer;
        let Some((last, outer)) = window.axes.split_last() else { return };
        let (image, output) = (self.plane / (groups * rows), self.plane % (groups * rows));
        let group = output / rows;
        // Without a bias, the sums stay at the zeros with which the array was created.
        if let Some(bias) = self.bias {
            sums.fill(bias[output].convert());
        }
        let steps = window.step_count() / last.kernel;
        let mut step = vec![0; outer.len()];
        for channel in 0..*channels {
            let input = ((image * groups + group) * channels + channel) * window.input_count();
            let weights =
                &self.w[(output * channels + channel) * window.step_count()..][..window.step_count()];
            for (index, weights) in weights.chunks_exact(last.kernel).enumerate().take(steps) {
                unravel_index(index, outer.iter().map(|axis| axis.kernel), &mut step);
                let mut row = Some(0);
                for ((axis, place), step) in outer.iter().zip(place).zip(&step) {
                    row = row
                        .zip(axis.input_position(*place, *step))
                        .map(|(row, place)| row * axis.input + place);
                }
                // A row in the padding adds nothing.
                let Some(row) = row else { continue };
                let row = &self.x[input + row * last.input..][..last.input];
                for (step, weight) in weights.iter().enumerate() {
                    // Only windows whose element is inside the image: the others would add a multiple of zero.
                    let inside = last.windows_with_step(step);
                    let begin = inside.start.max(range.start);
                    let end = inside.end.min(range.end);
                    if begin >= end {
                        continue;
                    }
                    let weight = weight.convert();
                    let sums = &mut sums[begin - range.start..end - range.start];
                    let elements = &row[last.first_position(step, begin)..];
                    add_products::<E, T>(sums, elements, last.stride, weight);
                }
            }
        }
    }
}

/// Adds elements, `stride` apart, multiplied by a weight.
#[inline(always)]
fn add_products<E: StoredElement, T: SimdTarget>(
    sums: &mut [E::ComputeType],
    elements: &[E],
    stride: usize,
    weight: E::ComputeType,
) {
    let add = |sum: &mut E::ComputeType, element: &E| {
        *sum = if T::HAS_FMA {
            sum.add_product::<true>(element.convert(), weight)
        } else {
            sum.add_product::<false>(element.convert(), weight)
        };
    };
    // `step_by` would hide the unit stride from the compiler, and the loop would not vectorize.
    if stride == 1 {
        sums.iter_mut().zip(elements).for_each(|(sum, element)| add(sum, element));
    } else {
        sums.iter_mut().zip(elements.iter().step_by(stride)).for_each(|(sum, element)| add(sum, element));
    }
}
