//! Reduces the elements under each window to one value, for a row of windows at a time: first the image rows under these windows to
//! a single row of columns, in whole vectors, then the columns of each window. So a column is reduced once instead of once per
//! window.

#![expect(unsafe_code, reason = "planes are written by several threads")]

use std::ops::Range;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::{BaselineTarget, SimdTarget, SimdTask};
use oarlock_cpu_base::window::WindowAxis;
use oarlock_cpu_gemm::DisjointSlice;

use super::PoolShape;

/// A reduction of elements to one value.
pub(super) trait WindowReduction<E>: Sync {
    /// The type of partial results.
    type Accumulator: Copy;

    /// True if it is compiled for each instruction set. Reductions that models do not use are not: they would only make the plugin
    /// larger.
    const IS_VECTORIZED: bool;

    /// The result for no elements.
    fn initial_accumulator(&self) -> Self::Accumulator;

    /// Adds one element. Must be `#[inline(always)]`.
    fn accumulate_element(&self, sum: Self::Accumulator, element: E) -> Self::Accumulator;

    /// Merges two partial results. Must be `#[inline(always)]`.
    fn merge_accumulators(&self, left: Self::Accumulator, right: Self::Accumulator) -> Self::Accumulator;

    /// The final value of a window with this many elements.
    fn finish_window(&self, sum: Self::Accumulator, count: usize) -> E;
}

/// Elements that make it worth waking another thread.
const MIN_WORK_PER_THREAD: usize = 1 << 14;

/// Columns that are built before the windows over them are reduced: at most 16 KiB of f32, half of a 32 KiB L1.
const COLUMNS_AT_ONCE: usize = 4096;

/// Reduces all windows. `with_padding` counts the padding among the elements of a window.
pub(super) fn reduce_windows<E: Copy + Send + Sync, F: WindowReduction<E>>(
    cpu: &Cpu,
    pool: &PoolShape,
    with_padding: bool,
    x: &[E],
    y: &mut [E],
    reduction: &F,
) {
    let outputs = pool.window.output_count();
    if y.is_empty() {
        return;
    }
    // Coverage along one axis does not depend on the others, so it is computed once per axis instead of for each window.
    let axes = pool.window.axes.iter();
    let under: Vec<_> = axes.map(|axis| AxisCoverage::of_windows(axis, with_padding)).collect();
    let work = outputs.saturating_mul(pool.window.step_count()).max(1);
    let y = DisjointSlice::new(y);
    // Planes are independent, and one thread computes each in a fixed order, so results do not depend on the number of threads.
    cpu.parallel_for(pool.planes, MIN_WORK_PER_THREAD.div_ceil(work), |begin, end| {
        for plane in begin..end {
            // SAFETY: no two planes overlap, and each is one thread's.
            let output = unsafe { y.range_mut(plane * outputs..(plane + 1) * outputs) };
            let input = &x[plane * pool.window.input_count()..][..pool.window.input_count()];
            let plane = PoolPlane { pool, under: &under, input, output, reduction };
            if const { F::IS_VECTORIZED } {
                cpu.isa().vectorize(plane);
            } else {
                plane.run_on_target::<BaselineTarget>();
            }
        }
    });
}

/// The steps that may be inside the input for some of these windows. If windows are much larger than the input, most steps are
/// skipped.
fn steps_inside(axis: &WindowAxis, windows: Range<usize>) -> Range<usize> {
    let last = windows.end.saturating_sub(1) * axis.stride;
    let begin = axis.pad.0.saturating_sub(last).div_ceil(axis.dilation);
    let end = (axis.input + axis.pad.0).saturating_sub(windows.start * axis.stride).div_ceil(axis.dilation);
    begin..end.min(axis.kernel).max(begin)
}

/// The input under a window along one axis: the first index, the number of elements, and the number by which a mean divides.
pub(super) struct AxisCoverage {
    pub(super) first: usize,
    pub(super) steps: usize,
    count: usize,
}

impl AxisCoverage {
    /// The coverage of all windows along an axis.
    pub(super) fn of_windows(axis: &WindowAxis, with_padding: bool) -> Vec<Self> {
        let end = axis.input + axis.pad.0 + axis.pad.1;
        let under = |window: usize| {
            let steps = steps_inside(axis, window..window + 1);
            // Elements beyond the padding do not count: with `ceil_mode`, the last window may reach past it.
            let with_padding = with_padding
                .then(|| end.saturating_sub(window * axis.stride).div_ceil(axis.dilation).min(axis.kernel));
            // A window that lies in the padding has no first element; 0 is in bounds.
            let first = if steps.is_empty() { 0 } else { axis.first_position(steps.start, window) };
            Self { first, steps: steps.len(), count: with_padding.unwrap_or(steps.len()) }
        };
        (0..axis.output).map(under).collect()
    }
}

struct PoolPlane<'a, E, F> {
    pool: &'a PoolShape,
    /// For each axis, the coverage of each window.
    under: &'a [Vec<AxisCoverage>],
    input: &'a [E],
    output: &'a mut [E],
    reduction: &'a F,
}

impl<E: Copy, F: WindowReduction<E>> SimdTask for PoolPlane<'_, E, F> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let Self { pool, under, input, output, reduction } = self;
        let Some((last, outer)) = pool.window.axes.split_last() else { return };
        let Some((last_under, outer_under)) = under.split_last() else { return };
        let line = PoolLine::new(last, last_under);
        // Elements are read in groups of a whole stride, so the last window reads up to stride - 1 elements past its last column.
        let width = line.padded.input + MAX_KNOWN_STRIDE - 1;
        let at_once = (COLUMNS_AT_ONCE / width).max(1).min(output.len() / last.output);
        let (mut columns, mut counts) =
            (vec![reduction.initial_accumulator(); at_once * width], vec![0; at_once]);
        let mut sums = vec![reduction.initial_accumulator(); last.output];
        let mut place = vec![0; outer.len()];
        // The step counts of the previous window, which most windows share, and its rows.
        let (mut steps, mut rows) = (vec![usize::MAX; outer.len()], vec![0]);
        for output in output.chunks_mut(at_once * last.output) {
            let lines = output.len() / last.output;
            for (columns, count) in columns.chunks_exact_mut(width).zip(&mut counts).take(lines) {
                let under = || outer_under.iter().zip(&place).map(|(under, place)| &under[*place]);
                *count = under().map(|under| under.count).product();
                // Offsets are relative to the first row of a window, so they change only with the number of steps.
                if under().zip(&steps).any(|(under, steps)| under.steps != *steps) {
                    steps.iter_mut().zip(under()).for_each(|(steps, under)| *steps = under.steps);
                    rows = covered_rows(outer, &steps, last.input);
                }
                // Without rows, there may be no input to index.
                let input = if rows.is_empty() {
                    input
                } else {
                    let add =
                        |row, (axis, under): (&WindowAxis, &AxisCoverage)| row * axis.input + under.first;
                    &input[outer.iter().zip(under()).fold(0, add) * last.input..]
                };
                reduce_rows(reduction, input, &rows, &mut columns[line.begin..line.begin + last.input]);
                advance_index(&mut place, outer.iter().map(|axis| axis.output));
            }
            for ((output, columns), count) in
                output.chunks_exact_mut(last.output).zip(columns.chunks_exact(width)).zip(&counts)
            {
                line.reduce_line(reduction, columns, *count, &mut sums, output);
            }
        }
    }
}

/// The offsets of the rows under a window with this many steps along the outer axes, relative to the first row.
fn covered_rows(outer: &[WindowAxis], steps: &[usize], width: usize) -> Vec<usize> {
    let mut rows = vec![0];
    for (axis, steps) in outer.iter().zip(steps) {
        let along = |row| (0..*steps).map(move |step| row * axis.input + step * axis.dilation);
        rows = rows.into_iter().flat_map(along).collect();
    }
    rows.iter_mut().for_each(|row| *row *= width);
    rows
}

/// The windows along the last axis.
struct PoolLine<'a> {
    axis: &'a WindowAxis,
    under: &'a [AxisCoverage],
    /// The same windows over an input with padding, but with no more padding than the size of the input.
    padded: WindowAxis,
    /// The start of the input in the padded input.
    begin: usize,
    /// The windows that lie entirely in the input, and in the padded input.
    whole: Range<usize>,
    whole_when_padded: Range<usize>,
}

impl<'a> PoolLine<'a> {
    fn new(axis: &'a WindowAxis, under: &'a [AxisCoverage]) -> Self {
        // Further padding would waste memory, since windows that lie deep in it have nothing to reduce.
        let (before, after) = (axis.pad.0.min(axis.input), axis.pad.1.min(axis.input));
        let pad = (axis.pad.0 - before, axis.pad.1 - after);
        let padded = WindowAxis { input: before + axis.input + after, pad, ..*axis };
        let (whole, whole_when_padded) = (windows_inside(axis), windows_inside(&padded));
        Self { axis, under, padded, begin: before, whole, whole_when_padded }
    }

    /// Reduces a line of columns, each of which counts for `count` elements. `sums` has room for the results of all windows.
    #[inline(always)]
    fn reduce_line<E: Copy, F: WindowReduction<E>>(
        &self,
        reduction: &F,
        columns: &[F::Accumulator],
        count: usize,
        sums: &mut [F::Accumulator],
        output: &mut [E],
    ) {
        let Self { padded, whole, whole_when_padded, .. } = self;
        // Few windows extend beyond the padded input, so they are reduced one by one.
        for window in (0..whole_when_padded.start).chain(whole_when_padded.end..output.len()) {
            let steps = steps_inside(padded, window..window + 1);
            let places = steps.map(|step| columns[padded.first_position(step, window)]);
            sums[window] = places.fold(reduction.initial_accumulator(), |sum, column| {
                reduction.merge_accumulators(sum, column)
            });
        }
        if !whole_when_padded.is_empty() {
            let columns = &columns[padded.first_position(0, whole_when_padded.start)..];
            reduce_inner_windows(reduction, padded, columns, &mut sums[whole_when_padded.clone()]);
        }
        // Counts differ between windows only at the edges.
        for window in (0..whole.start).chain(whole.end..output.len()) {
            output[window] = reduction.finish_window(sums[window], count * self.under[window].count);
        }
        for (output, sum) in output[whole.clone()].iter_mut().zip(&sums[whole.clone()]) {
            *output = reduction.finish_window(*sum, count * self.axis.kernel);
        }
    }
}

/// Advances an index, last dimension fastest; after the last index it wraps around.
#[inline(always)]
pub(super) fn advance_index(index: &mut [usize], sizes: impl DoubleEndedIterator<Item = usize>) {
    for (part, size) in index.iter_mut().rev().zip(sizes.rev()) {
        *part += 1;
        if *part < size {
            return;
        }
        *part = 0;
    }
}

/// The windows that lie entirely inside the input.
fn windows_inside(axis: &WindowAxis) -> Range<usize> {
    let (first, last) = (axis.windows_with_step(0), axis.windows_with_step(axis.kernel - 1));
    // The windows whose first and last steps are inside the input. There are none if windows are longer than the input.
    let begin = first.start.min(last.end);
    begin..last.end.min(first.end).max(begin)
}

/// Calls a function with the largest supported number of lanes that is not greater than the number of elements.
macro_rules! by_lanes {
    ($count:expr, $function:ident::<_$(, $more:tt)*>($($argument:expr),*)) => {
        match $count {
            // With a constant number of lanes, sums stay in registers. 32 `f32` are two zmm or four ymm: independent chains, which
            // hide latency.
            32.. => $function::<32, $($more),*>($($argument),*),
            16.. => $function::<16, $($more),*>($($argument),*),
            8.. => $function::<8, $($more),*>($($argument),*),
            4.. => $function::<4, $($more),*>($($argument),*),
            1.. => $function::<1, $($more),*>($($argument),*),
            0 => {}
        }
    };
}

/// Reduces the image rows at these offsets to one row.
#[inline(always)]
fn reduce_rows<E: Copy, F: WindowReduction<E>>(
    reduction: &F,
    input: &[E],
    rows: &[usize],
    columns: &mut [F::Accumulator],
) {
    by_lanes!(columns.len(), reduce_rows_in_lanes::<_, E, F>(reduction, input, rows, columns));
}

#[inline(always)]
fn reduce_rows_in_lanes<const LANES: usize, E: Copy, F: WindowReduction<E>>(
    reduction: &F,
    input: &[E],
    rows: &[usize],
    columns: &mut [F::Accumulator],
) {
    for begin in (0..columns.len()).step_by(LANES) {
        // The last lanes overlap the previous ones. Each chunk is computed from the rows, so nothing counts twice.
        let begin = begin.min(columns.len() - LANES);
        let mut sums = [reduction.initial_accumulator(); LANES];
        for row in rows {
            // One bounds check for all lanes, so that the loop has none.
            let Some(elements) = input[row + begin..].first_chunk::<LANES>() else { return };
            for lane in 0..LANES {
                sums[lane] = reduction.accumulate_element(sums[lane], elements[lane]);
            }
        }
        columns[begin..begin + LANES].copy_from_slice(&sums);
    }
}

/// The largest stride with specialized loops.
const MAX_KNOWN_STRIDE: usize = 4;

/// Reduces windows that lie entirely inside the input, which starts at the first window.
#[inline(always)]
fn reduce_inner_windows<E: Copy, F: WindowReduction<E>>(
    reduction: &F,
    axis: &WindowAxis,
    columns: &[F::Accumulator],
    sums: &mut [F::Accumulator],
) {
    match axis.stride {
        1 => by_lanes!(sums.len(), reduce_windows_in_lanes::<_, 1, E, F>(reduction, axis, columns, sums)),
        2 => by_lanes!(sums.len(), reduce_windows_in_lanes::<_, 2, E, F>(reduction, axis, columns, sums)),
        3 if sums.len() >= 8 => reduce_windows_in_lanes::<8, 3, E, F>(reduction, axis, columns, sums),
        4 if sums.len() >= 8 => reduce_windows_in_lanes::<8, 4, E, F>(reduction, axis, columns, sums),
        // With larger strides, vector loads would be mostly gaps, so windows are reduced one by one.
        _ => reduce_windows_in_lanes::<1, 1, E, F>(reduction, axis, columns, sums),
    }
}

#[inline(always)]
fn reduce_windows_in_lanes<const LANES: usize, const STRIDE: usize, E: Copy, F: WindowReduction<E>>(
    reduction: &F,
    axis: &WindowAxis,
    columns: &[F::Accumulator],
    sums: &mut [F::Accumulator],
) {
    for begin in (0..sums.len()).step_by(LANES) {
        let begin = begin.min(sums.len() - LANES);
        let mut found = [reduction.initial_accumulator(); LANES];
        for step in 0..axis.kernel {
            let (groups, _) = columns[begin * axis.stride + step * axis.dilation..].as_chunks::<STRIDE>();
            let Some(groups) = groups.first_chunk::<LANES>() else { return };
            for lane in 0..LANES {
                found[lane] = reduction.merge_accumulators(found[lane], groups[lane][0]);
            }
        }
        sums[begin..begin + LANES].copy_from_slice(&found);
    }
}
