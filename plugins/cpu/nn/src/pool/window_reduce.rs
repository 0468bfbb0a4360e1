//! Reduces the elements under each window to one value, for a row of windows at a time: first the image rows under these windows to
//! a single row of columns, in whole vectors, then the columns of each window. So a column is reduced once instead of once per
//! window.

#![expect(unsafe_code, reason = "planes are written by several threads")]

use std::ops::Range;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::{BaselineTarget, Isa, SimdTarget, SimdTask};
use oarlock_cpu_base::window::WindowAxis;
use oarlock_cpu_gemm::DisjointSlice;

use super::PoolShape;

/// A reduction of elements to one value.
pub(super) trait WindowReduction<E>: Sync {
    /// The type of partial results.
    type Accumulator: Copy + Send + Sync;

    /// The reduction that merges partial results: its elements are such results.
    type Merge: WindowReduction<Self::Accumulator, Accumulator = Self::Accumulator>;
    const MERGE: Self::Merge;

    /// True if it is compiled for each instruction set. Reductions that models do not use are not: they would only make the plugin
    /// larger.
    const IS_VECTORIZED: bool;

    /// The result for no elements.
    fn initial_accumulator(&self) -> Self::Accumulator;

    /// Adds one element. Must be `#[inline(always)]`.
    fn accumulate_element(&self, sum: Self::Accumulator, element: E) -> Self::Accumulator;

    /// Merges two partial results.
    #[inline(always)]
    fn merge_accumulators(left: Self::Accumulator, right: Self::Accumulator) -> Self::Accumulator {
        Self::MERGE.accumulate_element(left, right)
    }

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
            PoolPlane { pool, under: &under, input, output, reduction }.reduce_plane(cpu.isa());
        }
    });
}

/// The steps that may be inside the input for some of these windows. If windows are much larger than the input, most steps are
/// skipped.
pub(super) fn steps_inside(axis: &WindowAxis, windows: Range<usize>) -> Range<usize> {
    let last = windows.end.saturating_sub(1) * axis.stride;
    let begin = axis.pad.0.saturating_sub(last).div_ceil(axis.dilation);
    let end = (axis.input + axis.pad.0).saturating_sub(windows.start * axis.stride).div_ceil(axis.dilation);
    begin..end.min(axis.kernel).max(begin)
}

/// The input under a window along one axis: the first index, the number of elements, and the number by which a mean divides.
struct AxisCoverage {
    first: usize,
    steps: usize,
    count: usize,
}

impl AxisCoverage {
    /// The coverage of all windows along an axis.
    fn of_windows(axis: &WindowAxis, with_padding: bool) -> Vec<Self> {
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

impl<E: Copy, F: WindowReduction<E>> PoolPlane<'_, E, F> {
    fn reduce_plane(self, isa: Isa) {
        let Self { pool, under, input, output, reduction } = self;
        let Some((last, outer)) = pool.window.axes.split_last() else { return };
        let Some((last_under, outer_under)) = under.split_last() else { return };
        let line = PoolLine::new(last, last_under);
        let at_once = (COLUMNS_AT_ONCE / line.width).max(1).min(output.len() / last.output);
        let none = reduction.initial_accumulator();
        let (mut columns, mut counts) = (vec![none; at_once * line.width], vec![0; at_once]);
        let (mut sums, mut halves) = (vec![none; at_once * last.output], Vec::new());
        let mut place = vec![0; outer.len()];
        // The step counts of the previous window, which most windows share, and its rows.
        let (mut steps, mut rows) = (vec![usize::MAX; outer.len()], vec![0]);
        for output in output.chunks_mut(at_once * last.output) {
            let lines = output.len() / last.output;
            for (columns, count) in columns.chunks_exact_mut(line.width).zip(&mut counts).take(lines) {
                let under = || outer_under.iter().zip(&place).map(|(under, place)| &under[*place]);
                *count = under().map(|under| under.count).product();
                // Offsets are relative to the first row of a window, so they change only with the number of steps.
                if under().zip(&steps).any(|(under, steps)| under.steps != *steps) {
                    steps.iter_mut().zip(under()).for_each(|(steps, under)| *steps = under.steps);
                    rows = covered_rows(outer, &steps, last.input);
                }
                // Without rows, there may be no input to index.
                let from = if rows.is_empty() {
                    input
                } else {
                    let add =
                        |row, (axis, under): (&WindowAxis, &AxisCoverage)| row * axis.input + under.first;
                    &input[outer.iter().zip(under()).fold(0, add) * last.input..]
                };
                let to = &mut columns[line.begin..line.begin + last.input];
                LineFold {
                    reduction,
                    from: (from, 0),
                    offsets: &rows,
                    to: (to, 0),
                    length: last.input,
                    lines: 1,
                }
                .run(isa);
                advance_index(&mut place, outer.iter().map(|axis| axis.output));
            }
            let sums = &mut sums[..lines * last.output];
            line.merge_columns(isa, &F::MERGE, &columns[..lines * line.width], &mut halves, sums);
            FinishedLines { reduction, line: &line, counts: &counts, sums, output }.run(isa);
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
    /// The size of the padded input, but at least 1.
    width: usize,
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
        let width = padded.input.max(1);
        Self { axis, under, padded, width, begin: before, whole, whole_when_padded }
    }

    /// Reduces the windows of lines of columns. `halves` is scratch memory.
    fn merge_columns<A: Copy, F: WindowReduction<A, Accumulator = A>>(
        &self,
        isa: Isa,
        reduction: &F,
        columns: &[A],
        halves: &mut Vec<A>,
        sums: &mut [A],
    ) {
        let Self { padded, width, whole_when_padded: whole, .. } = self;
        let (outputs, lines) = (padded.output, columns.len() / width);
        let (none, add) =
            (reduction.initial_accumulator(), |sum, column| reduction.accumulate_element(sum, column));
        // Few windows extend beyond the padded input, so they are reduced one by one.
        for (columns, sums) in columns.chunks_exact(*width).zip(sums.chunks_exact_mut(outputs)) {
            for window in (0..whole.start).chain(whole.end..outputs) {
                let steps = steps_inside(padded, window..window + 1);
                let places = steps.map(|step| columns[padded.first_position(step, window)]);
                sums[window] = places.fold(none, add);
            }
        }
        if whole.is_empty() {
            return;
        }
        let first = padded.first_position(0, whole.start);
        let steps = (0..padded.kernel).map(|step| step * padded.dilation);
        let (to, length) = ((&mut sums[whole.start..], outputs), whole.len());
        match padded.stride {
            1 => {
                let (from, offsets) = ((&columns[first..], *width), steps.collect::<Vec<_>>());
                LineFold { reduction, from, offsets: &offsets, to, length, lines }.run(isa);
            }
            // Even columns come before odd ones, so that a step of neighboring windows is contiguous.
            2 => {
                let half = (width - first).div_ceil(2);
                halves.resize(2 * half * lines, none);
                for (columns, halves) in columns.chunks_exact(*width).zip(halves.chunks_exact_mut(2 * half)) {
                    split_alternating(&columns[first..], halves.split_at_mut(half));
                }
                let offsets: Vec<_> = steps.map(|step| step % 2 * half + step / 2).collect();
                let from = (&halves[..], 2 * half);
                LineFold { reduction, from, offsets: &offsets, to, length, lines }.run(isa);
            }
            // With larger strides, vector loads would be mostly gaps, so windows are reduced one by one.
            stride => {
                for (columns, sums) in columns.chunks_exact(*width).zip(sums.chunks_exact_mut(outputs)) {
                    for (window, sum) in sums[whole.clone()].iter_mut().enumerate() {
                        let columns = &columns[first + window * stride..];
                        *sum = steps.clone().map(|step| columns[step]).fold(none, add);
                    }
                }
            }
        }
    }
}

/// Splits elements into those at even and those at odd places.
fn split_alternating<A: Copy>(elements: &[A], (even, odd): (&mut [A], &mut [A])) {
    let (pairs, rest) = elements.as_chunks::<2>();
    for ((even, odd), pair) in even.iter_mut().zip(odd).zip(pairs) {
        [*even, *odd] = *pair;
    }
    if let ([last], Some(even)) = (rest, even.last_mut()) {
        *even = *last;
    }
}

/// Lines with the results of all windows, to be turned into elements.
struct FinishedLines<'a, E, F: WindowReduction<E>> {
    reduction: &'a F,
    line: &'a PoolLine<'a>,
    /// For each line, the number of elements of a column.
    counts: &'a [usize],
    sums: &'a [F::Accumulator],
    output: &'a mut [E],
}

impl<E, F: WindowReduction<E>> FinishedLines<'_, E, F> {
    fn run(self, isa: Isa) {
        if const { F::IS_VECTORIZED } {
            isa.vectorize(self);
        } else {
            self.run_on_target::<BaselineTarget>();
        }
    }
}

impl<E, F: WindowReduction<E>> SimdTask for FinishedLines<'_, E, F> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let PoolLine { axis, under, whole, .. } = self.line;
        let lines = self.output.chunks_exact_mut(axis.output).zip(self.sums.chunks_exact(axis.output));
        for ((output, sums), count) in lines.zip(self.counts) {
            // Counts differ between windows only at the edges.
            for window in (0..whole.start).chain(whole.end..output.len()) {
                output[window] = self.reduction.finish_window(sums[window], count * under[window].count);
            }
            for (output, sum) in output[whole.clone()].iter_mut().zip(&sums[whole.clone()]) {
                *output = self.reduction.finish_window(*sum, count * axis.kernel);
            }
        }
    }
}

/// Advances an index, last dimension fastest; after the last index it wraps around.
#[inline(always)]
fn advance_index(index: &mut [usize], sizes: impl DoubleEndedIterator<Item = usize>) {
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

/// Lines of results, of which each is reduced from the parts of a line that begin at these offsets.
struct LineFold<'a, E, F: WindowReduction<E>> {
    reduction: &'a F,
    /// The first line, and the distance to the next.
    from: (&'a [E], usize),
    offsets: &'a [usize],
    /// The first line of results, and the distance to the next.
    to: (&'a mut [F::Accumulator], usize),
    length: usize,
    lines: usize,
}

impl<E: Copy, F: WindowReduction<E>> LineFold<'_, E, F> {
    fn run(self, isa: Isa) {
        if const { F::IS_VECTORIZED } {
            isa.vectorize(self);
        } else {
            self.run_on_target::<BaselineTarget>();
        }
    }

    #[inline(always)]
    fn fold_in_lanes<const LANES: usize>(&self, from: &[E], to: &mut [F::Accumulator]) {
        for begin in (0..to.len()).step_by(LANES) {
            // The last lanes overlap the previous ones. Each chunk is computed from its elements, so nothing counts twice.
            let begin = begin.min(to.len() - LANES);
            let mut sums = [self.reduction.initial_accumulator(); LANES];
            for offset in self.offsets {
                // One bounds check for all lanes, so that the loop has none.
                let Some(elements) = from[offset + begin..].first_chunk::<LANES>() else { return };
                for lane in 0..LANES {
                    sums[lane] = self.reduction.accumulate_element(sums[lane], elements[lane]);
                }
            }
            to[begin..begin + LANES].copy_from_slice(&sums);
        }
    }
}

impl<E: Copy, F: WindowReduction<E>> SimdTask for LineFold<'_, E, F> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(mut self) {
        let to = std::mem::take(&mut self.to.0);
        for line in 0..self.lines {
            let from = &self.from.0[line * self.from.1..];
            let to = &mut to[line * self.to.1..][..self.length];
            // With a constant number of lanes, sums stay in registers. 32 `f32` are two zmm or four ymm: independent chains, which
            // hide latency.
            match to.len() {
                32.. => self.fold_in_lanes::<32>(from, to),
                16.. => self.fold_in_lanes::<16>(from, to),
                8.. => self.fold_in_lanes::<8>(from, to),
                4.. => self.fold_in_lanes::<4>(from, to),
                1.. => self.fold_in_lanes::<1>(from, to),
                0 => {}
            }
        }
    }
}
