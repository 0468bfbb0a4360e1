//! Walks over the elements of a reduction. The shape alone decides how work is cut into partial results, and they are joined in
//! order, so that the number of threads does not change a bit of the result.

use std::ops::Range;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::rows::axis::AxisLayout;
use oarlock_cpu_base::rows::line_bundle::{
    BUNDLE_WIDTH, LineBundle, MAX_SHORT_LINE, are_lines_short, fills_registers, for_transposed_blocks,
    is_transposable, transpose_back,
};
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_cpu_base::rows::{GRAIN, grain_for};
use oarlock_cpu_base::with_avx;
use oarlock_sdk::Element;

use super::finalize::FinalizeFunction;
use super::reduction::{Reducer, with_isa_of};
use super::shape::{DimensionNest, ReduceShape};

/// The maximum number of elements of a line per partial result.
const LINE_CHUNK: usize = GRAIN;
/// The maximum number of rows per row of partial results.
const ROW_CHUNK: usize = 256;
/// Rows or lines that are added one after the other before they are joined with those before: a short chain keeps the rounding
/// error small.
const SERIAL_COUNT: usize = 16;
/// Columns that are added up together: their partial results, 4 KiB of `f32`, stay in L1.
const COLUMN_CHUNK: usize = 1024;

/// Partial results of columns, aligned like registers: each row of elements reads what was just written for the one before it,
/// which takes much longer if it spans two cache lines.
#[repr(align(64))]
struct AlignedPartials<P>([P; COLUMN_CHUNK]);

/// Results that are finalized at a time if they are not all in memory.
const FINALIZE_CHUNK: usize = 64;

/// Reduces `input`, whose elements lie as `shape` says, into `output`.
pub(super) fn reduce_elements<T: Element, R: Reducer<T>>(
    cpu: &Cpu,
    shape: &ReduceShape,
    input: &[T],
    output: &mut [T],
    finish: FinalizeFunction<R::Partial, T>,
) {
    if output.is_empty() {
    } else if shape.share == 0 {
        // All outputs are the same result of nothing, such as 0 for a sum and NaN for a mean.
        finish(cpu.isa(), &[R::NONE], 0, &mut output[..1]);
        let nothing = output[0];
        output.fill(nothing);
    } else if const { is_transposable::<T>() && R::IS_VECTORIZED }
        && let Some(axis) = shape
            .single_axis()
            .filter(|axis| are_lines_short(*axis, MAX_SHORT_LINE) && !fills_registers(*axis))
    {
        reduce_short_lines::<T, R>(cpu, axis, input, output, finish);
    } else if let Some(axis) = shape.single_axis().filter(|axis| axis.inner == 1 && axis.length <= LINE_CHUNK)
    {
        // Each line has one partial result, so there is no list of them to allocate and to join.
        reduce_whole_lines::<T, R>(cpu, axis, input, output, finish);
    } else if shape.last_is_reduced {
        reduce_inner_axis::<T, R>(cpu, shape, input, output, finish);
    } else {
        reduce_outer_axis::<T, R>(cpu, shape, input, output, finish);
    }
}

/// Reduces one short dimension: lines along it are reduced side by side.
fn reduce_short_lines<T: Element, R: Reducer<T>>(
    cpu: &Cpu,
    axis: AxisLayout,
    input: &[T],
    output: &mut [T],
    finish: FinalizeFunction<R::Partial, T>,
) {
    let (block, isa) = (axis.length * axis.inner, cpu.isa());
    parallel_for_parts(
        cpu,
        axis.outer,
        grain_for(block),
        OutputRows::new(output, axis.inner),
        |begin, part| {
            let input = &input[begin * block..][..part.len() * axis.length];
            let mut partials = vec![[R::NONE; BUNDLE_WIDTH]; axis.inner];
            let mut results = vec![[R::to_element(R::NONE); BUNDLE_WIDTH]; axis.inner];
            for_transposed_blocks(isa, input, block, |first, tile: &[[T; BUNDLE_WIDTH]]| {
                with_avx!(isa, || {
                    for (start, partials) in partials.iter_mut().enumerate() {
                        *partials = R::reduce_lines(LineBundle::new(&tile[start..], axis.inner));
                    }
                });
                finish(isa, partials.as_flattened(), axis.length, results.as_flattened_mut());
                transpose_back(isa, &results, first, part);
            });
        },
    );
}

/// Each output comes from one contiguous line that is not worth cutting.
fn reduce_whole_lines<T: Element, R: Reducer<T>>(
    cpu: &Cpu,
    axis: AxisLayout,
    input: &[T],
    output: &mut [T],
    finish: FinalizeFunction<R::Partial, T>,
) {
    parallel_for_parts(cpu, axis.outer, grain_for(axis.length), OutputRows::new(output, 1), |begin, part| {
        // On the stack: the results of a chunk are finalized before the next lines are read.
        let mut partials = [R::NONE; FINALIZE_CHUNK];
        let mut rest = &input[begin * axis.length..];
        for outputs in part.chunks_mut(FINALIZE_CHUNK) {
            let partials = &mut partials[..outputs.len()];
            fold_lines::<T, R>(cpu.isa(), rest, axis.length, axis.length, partials);
            finish(cpu.isa(), partials, axis.length, outputs);
            rest = &rest[outputs.len() * axis.length..];
        }
    });
}

/// How the lines of one output are cut: long ones into pieces, short ones several to a piece.
#[derive(Clone, Copy)]
struct LinePartition {
    pieces: usize,
    pieces_per_line: usize,
    lines_per_piece: usize,
}

impl LinePartition {
    fn new(length: usize, lines: usize) -> Self {
        let (pieces_per_line, lines_per_piece) = (length.div_ceil(LINE_CHUNK), (LINE_CHUNK / length).max(1));
        let pieces =
            if pieces_per_line == 1 { lines.div_ceil(lines_per_piece) } else { lines * pieces_per_line };
        Self { pieces, pieces_per_line, lines_per_piece }
    }

    /// The partial result of one piece of one output.
    fn fold_piece<T: Element, R: Reducer<T>>(
        self,
        isa: Isa,
        shape: &ReduceShape,
        input: &[T],
        item: usize,
    ) -> R::Partial {
        let (start, index) = (shape.kept.combination_offset(item / self.pieces), item % self.pieces);
        // One of the two factors is 1: a line is cut into pieces, or a piece has several whole lines.
        let first = index * self.lines_per_piece / self.pieces_per_line;
        let lines = self.lines_per_piece.min(shape.reduced.combination_count() - first);
        let begin = index % self.pieces_per_line * LINE_CHUNK;
        let length = LINE_CHUNK.min(shape.last - begin);
        let mut partials = [R::NONE; SERIAL_COUNT];
        join_pairwise::<T, R>(lines.div_ceil(SERIAL_COUNT), |few| {
            let (mut next, mut left) =
                (first + few * SERIAL_COUNT, &mut partials[..SERIAL_COUNT.min(lines - few * SERIAL_COUNT)]);
            let count = left.len();
            while !left.is_empty() {
                // Each call dispatches by instruction set, so lines at the same distance share one.
                let (step, even) = shape.reduced.uniform_run(next);
                let (part, rest) = left.split_at_mut(even.min(left.len()));
                let input = &input[start + begin + shape.reduced.combination_offset(next)..];
                fold_lines::<T, R>(isa, input, step, length, part);
                next += part.len();
                left = rest;
            }
            partials[..count].iter().fold(R::NONE, |few, line| R::join_partials(few, *line))
        })
    }
}

/// Folds lines of one length, each of which begins `step` elements after the one before.
pub(super) fn fold_lines<T: Element, R: Reducer<T>>(
    isa: Isa,
    input: &[T],
    step: usize,
    length: usize,
    partials: &mut [R::Partial],
) {
    with_isa_of!(R, isa, || fold_each_line::<T, R>(input, step, length, partials));
}

#[inline(always)]
fn fold_each_line<T: Element, R: Reducer<T>>(
    input: &[T],
    step: usize,
    length: usize,
    partials: &mut [R::Partial],
) {
    let mut rest = input;
    for partial in partials {
        *partial = R::reduce_slice(&rest[..length]);
        // After the last line there may be less than a step.
        rest = rest.get(step..).unwrap_or_default();
    }
}

/// Reduces the last dimension: each output comes from lines of contiguous elements.
fn reduce_inner_axis<T: Element, R: Reducer<T>>(
    cpu: &Cpu,
    shape: &ReduceShape,
    input: &[T],
    output: &mut [T],
    finish: FinalizeFunction<R::Partial, T>,
) {
    let cut = LinePartition::new(shape.last, shape.reduced.combination_count());
    let pieces = cut.pieces;
    let mut partials = vec![R::NONE; output.len() * pieces];
    let count = partials.len();
    parallel_for_parts(
        cpu,
        count,
        grain_for(shape.share / pieces),
        OutputRows::new(&mut partials, 1),
        |begin, part| {
            for (index, partial) in part.iter_mut().enumerate() {
                *partial = cut.fold_piece::<T, R>(cpu.isa(), shape, input, begin + index);
            }
        },
    );
    finalize_pieces::<T, R>(cpu, shape, [1, pieces], &partials, output, finish);
}

/// Keeps the last dimension: rows of elements are added up column by column.
fn reduce_outer_axis<T: Element, R: Reducer<T>>(
    cpu: &Cpu,
    shape: &ReduceShape,
    input: &[T],
    output: &mut [T],
    finish: FinalizeFunction<R::Partial, T>,
) {
    let (width, rows) = (shape.last, shape.reduced.combination_count());
    // Cutting the rows as well gives threads work where columns are few.
    let groups = rows.div_ceil(ROW_CHUNK);
    let mut partials = vec![R::NONE; output.len() * groups];
    let count = partials.len();
    parallel_for_parts(
        cpu,
        count,
        grain_for(rows.min(ROW_CHUNK)),
        OutputRows::new(&mut partials, 1),
        |begin, part| {
            // Partial results lie as [kept, group, column]. A thread's part may begin or end within a row of them: columns are
            // added independently, so where it is cut changes no bit.
            let (mut next, mut part, mut few) = (begin, part, AlignedPartials([R::NONE; COLUMN_CHUNK]));
            while !part.is_empty() {
                let (line, column) = (next / width, next % width);
                let (block, rest) = part.split_at_mut(COLUMN_CHUNK.min(width - column).min(part.len()));
                let input = &input[shape.kept.combination_offset(line / groups) + column..];
                let first = line % groups * ROW_CHUNK;
                let few = &mut few.0[..block.len()];
                add_rows::<T, R>(
                    cpu.isa(),
                    input,
                    &shape.reduced,
                    first..rows.min(first + ROW_CHUNK),
                    few,
                    block,
                );
                next += block.len();
                part = rest;
            }
        },
    );
    finalize_pieces::<T, R>(cpu, shape, [width, groups], &partials, output, finish);
}

/// Adds up rows: [`SERIAL_COUNT`] of them in `few`, which is then joined with the partial results.
fn add_rows<T: Element, R: Reducer<T>>(
    isa: Isa,
    input: &[T],
    nest: &DimensionNest,
    rows: Range<usize>,
    few: &mut [R::Partial],
    partials: &mut [R::Partial],
) {
    with_isa_of!(R, isa, || add_each_row::<T, R>(input, nest, rows, few, partials));
}

#[inline(always)]
fn add_each_row<T: Element, R: Reducer<T>>(
    input: &[T],
    nest: &DimensionNest,
    rows: Range<usize>,
    few: &mut [R::Partial],
    partials: &mut [R::Partial],
) {
    // Row by row, so that memory is read in order and neighboring columns fill vectors.
    for begin in rows.clone().step_by(SERIAL_COUNT) {
        // The first row overwrites `few`, which saves a pass that clears it.
        for (partial, element) in few.iter_mut().zip(&input[nest.combination_offset(begin)..]) {
            *partial = R::add_element(R::NONE, *element);
        }
        for row in begin + 1..rows.end.min(begin + SERIAL_COUNT) {
            for (partial, element) in few.iter_mut().zip(&input[nest.combination_offset(row)..]) {
                *partial = R::add_element(*partial, *element);
            }
        }
        for (partial, few) in partials.iter_mut().zip(&*few) {
            *partial = R::join_partials(*partial, *few);
        }
    }
}

/// Partial results that are joined as they come, always two of the same count: rounding errors grow with the logarithm of their
/// number, not with the number itself.
struct PairwisePartials<T, R: Reducer<T>> {
    /// For each power of two in the count, the joined result of so many.
    powers: [R::Partial; usize::BITS as usize],
    count: usize,
}

impl<T, R: Reducer<T>> PairwisePartials<T, R> {
    fn new() -> Self {
        Self { powers: [R::NONE; usize::BITS as usize], count: 0 }
    }

    fn add_partial(&mut self, mut partial: R::Partial) {
        // As when counting in binary, where each carry joins two results of the same count.
        let full = self.count.trailing_ones() as usize;
        for earlier in &self.powers[..full] {
            // What came earlier stays on the left, so that elements meet in the order of the input.
            partial = R::join_partials(*earlier, partial);
        }
        self.powers[full] = partial;
        self.count += 1;
    }

    fn join_all(&self) -> R::Partial {
        let (mut all, mut left) = (R::NONE, self.count);
        while left > 0 {
            all = R::join_partials(self.powers[left.trailing_zeros() as usize], all);
            left &= left - 1;
        }
        all
    }
}

/// Joins `count` partial results.
fn join_pairwise<T, R: Reducer<T>>(count: usize, mut partial: impl FnMut(usize) -> R::Partial) -> R::Partial {
    // One result is not worth clearing room for all powers of two.
    if count == 1 {
        return partial(0);
    }
    let mut halves = PairwisePartials::<T, R>::new();
    (0..count).for_each(|index| halves.add_partial(partial(index)));
    halves.join_all()
}

/// Joins the partial results of each output. Outputs lie in lines of `width`, and so do their partial results: a line with the
/// first ones of all outputs comes before the next.
fn finalize_pieces<T: Element, R: Reducer<T>>(
    cpu: &Cpu,
    shape: &ReduceShape,
    [width, pieces]: [usize; 2],
    partials: &[R::Partial],
    output: &mut [T],
    finish: FinalizeFunction<R::Partial, T>,
) {
    let count = output.len();
    parallel_for_parts(cpu, count, grain_for(pieces), OutputRows::new(output, 1), |begin, part| {
        if pieces == 1 {
            return finish(cpu.isa(), &partials[begin..], shape.share, part);
        }
        let mut all = [R::NONE; FINALIZE_CHUNK];
        for (chunk, outputs) in part.chunks_mut(FINALIZE_CHUNK).enumerate() {
            for (index, all) in all[..outputs.len()].iter_mut().enumerate() {
                let item = begin + chunk * FINALIZE_CHUNK + index;
                // Each line of outputs before this one has `pieces` lines of partial results.
                let first = item / width * width * (pieces - 1) + item;
                *all = join_pairwise::<T, R>(pieces, |piece| partials[first + piece * width]);
            }
            finish(cpu.isa(), &all, shape.share, outputs);
        }
    });
}
