//! Folds what lies under each window into one value, a row of windows at a time, so that the rows of the image are read in
//! whole vectors.

#![expect(unsafe_code, reason = "planes are written by several threads")]

use std::ops::Range;

use super::Pool;
use crate::device::Cpu;
use crate::gemm::Parts;
use crate::isa::{Target, Vectorized};
use crate::kernels::conv::window::{Axis, coordinates};

/// How elements become one.
pub(super) trait Fold<E>: Sync {
    /// What is kept while elements are added.
    type Sum: Copy;

    /// The sum of no elements.
    fn start(&self) -> Self::Sum;

    /// A sum and one more element. Must be `#[inline(always)]`.
    fn add(&self, sum: Self::Sum, element: E) -> Self::Sum;

    /// What becomes of a sum of a window that has so many elements.
    fn finish(&self, sum: Self::Sum, count: usize) -> E;
}

/// Windows that are worked on at a time, in the nearest cache.
const WINDOWS: usize = 512;
/// Elements that are worth waking another thread.
const WORK_OF_A_THREAD: usize = 1 << 14;

/// Folds all windows. `with_padding` counts the padding among the elements of a window.
pub(super) fn fold<E: Copy + Send + Sync, F: Fold<E>>(
    cpu: &Cpu,
    pool: &Pool,
    with_padding: bool,
    x: &[E],
    y: &mut [E],
    how: &F,
) {
    let outputs = pool.window.outputs();
    if y.is_empty() {
        return;
    }
    let counts: Vec<Vec<usize>> = pool
        .window
        .axes
        .iter()
        .map(|axis| {
            let end = axis.input + axis.pad.0 + axis.pad.1;
            let count = |window: usize| {
                if with_padding {
                    end.saturating_sub(window * axis.stride).div_ceil(axis.dilation).min(axis.kernel)
                } else {
                    steps_inside(axis, window..window + 1).len()
                }
            };
            (0..axis.output).map(count).collect()
        })
        .collect();
    let work = outputs.saturating_mul(pool.window.steps()).max(1);
    let y = Parts::new(y);
    cpu.parallel_for(pool.planes, WORK_OF_A_THREAD.div_ceil(work), |begin, end| {
        for plane in begin..end {
            // SAFETY: no two planes overlap, and each is one thread's.
            let output = unsafe { y.part(plane * outputs..(plane + 1) * outputs) };
            let input = &x[plane * pool.window.inputs()..][..pool.window.inputs()];
            cpu.isa().vectorize(Plane { pool, counts: &counts, input, output, how });
        }
    });
}

/// The steps with which some of these windows may lie in the input. The others need not be gone through, of which there
/// are many where windows are much larger than the input.
pub(super) fn steps_inside(axis: &Axis, windows: Range<usize>) -> Range<usize> {
    let last = windows.end.saturating_sub(1) * axis.stride;
    let begin = axis.pad.0.saturating_sub(last).div_ceil(axis.dilation);
    let end = (axis.input + axis.pad.0).saturating_sub(windows.start * axis.stride).div_ceil(axis.dilation);
    begin..end.min(axis.kernel).max(begin)
}

struct Plane<'a, E, F> {
    pool: &'a Pool,
    counts: &'a [Vec<usize>],
    input: &'a [E],
    output: &'a mut [E],
    how: &'a F,
}

impl<E: Copy, F: Fold<E>> Vectorized for Plane<'_, E, F> {
    type Output = ();

    #[inline(always)]
    fn run<T: Target>(self) {
        let Some((last, outer)) = self.pool.window.axes.split_last() else { return };
        let Some((last_counts, outer_counts)) = self.counts.split_last() else { return };
        let mut place = vec![0; outer.len()];
        for (row, output) in self.output.chunks_exact_mut(last.output).enumerate() {
            coordinates(row, outer.iter().map(|axis| axis.output), &mut place);
            let count: usize =
                outer_counts.iter().zip(&place).map(|(counts, place)| counts[*place]).product();
            for begin in (0..last.output).step_by(WINDOWS) {
                let range = begin..last.output.min(begin + WINDOWS);
                let mut sums = [self.how.start(); WINDOWS];
                sum(self.pool, self.input, self.how, &place, range.clone(), &mut sums);
                for ((output, sum), last_count) in
                    output[range.clone()].iter_mut().zip(sums).zip(&last_counts[range])
                {
                    *output = self.how.finish(sum, count * last_count);
                }
            }
        }
    }
}

/// Folds some windows of a row.
#[inline(always)]
fn sum<E: Copy, F: Fold<E>>(
    pool: &Pool,
    input: &[E],
    how: &F,
    place: &[usize],
    range: Range<usize>,
    sums: &mut [F::Sum; WINDOWS],
) {
    let Some((last, outer)) = pool.window.axes.split_last() else { return };
    let near: Vec<Range<usize>> =
        outer.iter().zip(place).map(|(axis, place)| steps_inside(axis, *place..*place + 1)).collect();
    let rows: usize = near.iter().map(Range::len).product();
    let mut step = vec![0; outer.len()];
    for index in 0..rows {
        coordinates(index, near.iter().map(Range::len), &mut step);
        let mut row = Some(0);
        for ((axis, place), (step, near)) in outer.iter().zip(place).zip(step.iter().zip(&near)) {
            let found = axis.place(*place, near.start + step);
            row = row.zip(found).map(|(row, place)| row * axis.input + place);
        }
        let Some(row) = row else { continue };
        let row = &input[row * last.input..][..last.input];
        for step in steps_inside(last, range.clone()) {
            let inside = last.windows_with(step);
            let (begin, end) = (inside.start.max(range.start), inside.end.min(range.end));
            if begin >= end {
                continue;
            }
            let sums = &mut sums[begin - range.start..end - range.start];
            let elements = &row[last.first_place(step, begin)..];
            let add = |(sum, element): (&mut F::Sum, &E)| *sum = how.add(*sum, *element);
            if last.stride == 1 {
                sums.iter_mut().zip(elements).for_each(add);
            } else {
                sums.iter_mut().zip(elements.iter().step_by(last.stride)).for_each(add);
            }
        }
    }
}
