//! Walks over the elements of a reduction. How work is cut into partial results is decided by the shape alone and they are
//! joined in order, so that the number of threads does not change a bit of the result.

use std::ops::Range;

use oarlock_sdk::Element;

use super::finish::Finish;
use super::reduction::Reduction;
use super::shape::{Nest, Shape};
use crate::device::Cpu;
use crate::isa::Isa;
use crate::kernels::rows::axis::Axis;
use crate::kernels::rows::bundle::{
    Bundle, SHORT, WIDTH, are_short, are_turned, fill_registers, turn_back, turned,
};
use crate::kernels::rows::parts::{Rows, in_parallel};
use crate::kernels::rows::vector::with_isa;
use crate::kernels::rows::{GRAIN, grain};

/// How many elements of a line become one partial result, at most.
const CHUNK: usize = GRAIN;
/// How many rows become one row of partial results, at most.
const ROWS: usize = 256;
/// How many rows or lines are added up one after the other before they are joined with those before.
const FEW: usize = 16;
/// How many columns are added up together: their partial results stay in the nearest cache.
const COLUMNS: usize = 1024;

/// Partial results of columns that lie in memory as registers do: each row of elements waits for what was written of the one
/// before it, which takes much longer where that is in two parts.
#[repr(align(64))]
struct Few<P>([P; COLUMNS]);

/// Results that are finished at a time where they are not all in memory.
const FINISHED: usize = 64;

/// Runs a body for the instruction sets of the level where the reduction is compiled for each of them.
macro_rules! with_isa_of {
    ($reduction:ty, $isa:expr, || $body:expr) => {
        if const { <$reduction as Reduction<T>>::IS_VECTORIZED } { with_isa!($isa, || $body) } else { $body }
    };
}

/// Reduces `input`, whose elements lie as `shape` says, into `output`.
pub(super) fn reduce<T: Element, R: Reduction<T>>(
    cpu: &Cpu,
    shape: &Shape,
    input: &[T],
    output: &mut [T],
    finish: Finish<R::Partial, T>,
) {
    if output.is_empty() {
    } else if shape.share == 0 {
        finish(cpu.isa(), &[R::NONE], 0, &mut output[..1]);
        let nothing = output[0];
        output.fill(nothing);
    } else if const { are_turned::<T>() && R::IS_VECTORIZED }
        && let Some(axis) = shape.axis().filter(|axis| are_short(*axis, SHORT) && !fill_registers(*axis))
    {
        short_lines::<T, R>(cpu, axis, input, output, finish);
    } else if let Some(axis) = shape.axis().filter(|axis| axis.inner == 1 && axis.length <= CHUNK) {
        whole_lines::<T, R>(cpu, axis, input, output, finish);
    } else if shape.last_is_reduced {
        lines::<T, R>(cpu, shape, input, output, finish);
    } else {
        columns::<T, R>(cpu, shape, input, output, finish);
    }
}

/// One dimension of a few elements is reduced: lines along it are reduced side by side.
fn short_lines<T: Element, R: Reduction<T>>(
    cpu: &Cpu,
    axis: Axis,
    input: &[T],
    output: &mut [T],
    finish: Finish<R::Partial, T>,
) {
    let (block, isa) = (axis.length * axis.inner, cpu.isa());
    in_parallel(cpu, axis.outer, grain(block), Rows::new(output, axis.inner), |begin, part| {
        let input = &input[begin * block..][..part.len() * axis.length];
        let mut partials = vec![[R::NONE; WIDTH]; axis.inner];
        let mut results = vec![[R::element(R::NONE); WIDTH]; axis.inner];
        turned(isa, input, block, |first, tile: &[[T; WIDTH]]| {
            with_isa!(isa, || {
                for (start, partials) in partials.iter_mut().enumerate() {
                    *partials = R::of_lines(Bundle::new(&tile[start..], axis.inner));
                }
            });
            finish(isa, partials.as_flattened(), axis.length, results.as_flattened_mut());
            turn_back(isa, &results, first, part);
        });
    });
}

/// Every output is made of one line, which lies in one piece and is not worth cutting.
fn whole_lines<T: Element, R: Reduction<T>>(
    cpu: &Cpu,
    axis: Axis,
    input: &[T],
    output: &mut [T],
    finish: Finish<R::Partial, T>,
) {
    in_parallel(cpu, axis.outer, grain(axis.length), Rows::new(output, 1), |begin, part| {
        let mut partials = [R::NONE; FINISHED];
        let mut rest = &input[begin * axis.length..];
        for outputs in part.chunks_mut(FINISHED) {
            let partials = &mut partials[..outputs.len()];
            fold_lines::<T, R>(cpu.isa(), rest, axis.length, axis.length, partials);
            finish(cpu.isa(), partials, axis.length, outputs);
            rest = &rest[outputs.len() * axis.length..];
        }
    });
}

/// How the lines of one output are cut: long ones into pieces, short ones gathered to a piece.
#[derive(Clone, Copy)]
struct Cut {
    pieces: usize,
    pieces_per_line: usize,
    lines_per_piece: usize,
}

impl Cut {
    fn new(length: usize, lines: usize) -> Self {
        let (pieces_per_line, lines_per_piece) = (length.div_ceil(CHUNK), (CHUNK / length).max(1));
        let pieces =
            if pieces_per_line == 1 { lines.div_ceil(lines_per_piece) } else { lines * pieces_per_line };
        Self { pieces, pieces_per_line, lines_per_piece }
    }

    /// The partial result of one piece of one output.
    fn fold<T: Element, R: Reduction<T>>(
        self,
        isa: Isa,
        shape: &Shape,
        input: &[T],
        item: usize,
    ) -> R::Partial {
        let (start, index) = (shape.kept.offset(item / self.pieces), item % self.pieces);
        let first = index * self.lines_per_piece / self.pieces_per_line;
        let lines = self.lines_per_piece.min(shape.reduced.count() - first);
        let begin = index % self.pieces_per_line * CHUNK;
        let length = CHUNK.min(shape.last - begin);
        let mut partials = [R::NONE; FEW];
        joined::<T, R>(lines.div_ceil(FEW), |few| {
            let (mut next, mut left) = (first + few * FEW, &mut partials[..FEW.min(lines - few * FEW)]);
            let count = left.len();
            while !left.is_empty() {
                let (step, even) = shape.reduced.even_from(next);
                let (part, rest) = left.split_at_mut(even.min(left.len()));
                let input = &input[start + begin + shape.reduced.offset(next)..];
                fold_lines::<T, R>(isa, input, step, length, part);
                next += part.len();
                left = rest;
            }
            partials[..count].iter().fold(R::NONE, |few, line| R::join(few, *line))
        })
    }
}

/// Folds lines of one length, each of which begins so many elements after the one before.
fn fold_lines<T: Element, R: Reduction<T>>(
    isa: Isa,
    input: &[T],
    step: usize,
    length: usize,
    partials: &mut [R::Partial],
) {
    with_isa_of!(R, isa, || fold_each::<T, R>(input, step, length, partials));
}

#[inline(always)]
fn fold_each<T: Element, R: Reduction<T>>(
    input: &[T],
    step: usize,
    length: usize,
    partials: &mut [R::Partial],
) {
    let mut rest = input;
    for partial in partials {
        *partial = R::of_slice(&rest[..length]);
        // After the last line there may be less.
        rest = rest.get(step..).unwrap_or_default();
    }
}

/// The last dimension is reduced: each output is made of lines of elements that lie in one piece.
fn lines<T: Element, R: Reduction<T>>(
    cpu: &Cpu,
    shape: &Shape,
    input: &[T],
    output: &mut [T],
    finish: Finish<R::Partial, T>,
) {
    let cut = Cut::new(shape.last, shape.reduced.count());
    let pieces = cut.pieces;
    let mut partials = vec![R::NONE; output.len() * pieces];
    let count = partials.len();
    in_parallel(cpu, count, grain(shape.share / pieces), Rows::new(&mut partials, 1), |begin, part| {
        for (index, partial) in part.iter_mut().enumerate() {
            *partial = cut.fold::<T, R>(cpu.isa(), shape, input, begin + index);
        }
    });
    finish_pieces::<T, R>(cpu, shape, [1, pieces], &partials, output, finish);
}

/// The last dimension is kept: rows of elements are added up column by column.
fn columns<T: Element, R: Reduction<T>>(
    cpu: &Cpu,
    shape: &Shape,
    input: &[T],
    output: &mut [T],
    finish: Finish<R::Partial, T>,
) {
    let (width, rows) = (shape.last, shape.reduced.count());
    let groups = rows.div_ceil(ROWS);
    let mut partials = vec![R::NONE; output.len() * groups];
    let count = partials.len();
    in_parallel(cpu, count, grain(rows.min(ROWS)), Rows::new(&mut partials, 1), |begin, part| {
        let (mut next, mut part, mut few) = (begin, part, Few([R::NONE; COLUMNS]));
        while !part.is_empty() {
            let (line, column) = (next / width, next % width);
            let (block, rest) = part.split_at_mut(COLUMNS.min(width - column).min(part.len()));
            let input = &input[shape.kept.offset(line / groups) + column..];
            let first = line % groups * ROWS;
            let few = &mut few.0[..block.len()];
            add_rows::<T, R>(cpu.isa(), input, &shape.reduced, first..rows.min(first + ROWS), few, block);
            next += block.len();
            part = rest;
        }
    });
    finish_pieces::<T, R>(cpu, shape, [width, groups], &partials, output, finish);
}

/// Adds up rows, first a few in the place for that, and joins what becomes of those.
fn add_rows<T: Element, R: Reduction<T>>(
    isa: Isa,
    input: &[T],
    nest: &Nest,
    rows: Range<usize>,
    few: &mut [R::Partial],
    partials: &mut [R::Partial],
) {
    with_isa_of!(R, isa, || add_each_row::<T, R>(input, nest, rows, few, partials));
}

#[inline(always)]
fn add_each_row<T: Element, R: Reduction<T>>(
    input: &[T],
    nest: &Nest,
    rows: Range<usize>,
    few: &mut [R::Partial],
    partials: &mut [R::Partial],
) {
    for begin in rows.clone().step_by(FEW) {
        for (partial, element) in few.iter_mut().zip(&input[nest.offset(begin)..]) {
            *partial = R::add(R::NONE, *element);
        }
        for row in begin + 1..rows.end.min(begin + FEW) {
            for (partial, element) in few.iter_mut().zip(&input[nest.offset(row)..]) {
                *partial = R::add(*partial, *element);
            }
        }
        for (partial, few) in partials.iter_mut().zip(&*few) {
            *partial = R::join(*partial, *few);
        }
    }
}

/// Partial results that are joined as they come, always two of as many: so rounding grows with the logarithm of how many there
/// are, not with their number.
struct Halves<T, R: Reduction<T>> {
    /// Where the bit of a power of two is set in the count, what so many became.
    powers: [R::Partial; usize::BITS as usize],
    count: usize,
}

impl<T, R: Reduction<T>> Halves<T, R> {
    fn new() -> Self {
        Self { powers: [R::NONE; usize::BITS as usize], count: 0 }
    }

    fn add(&mut self, mut partial: R::Partial) {
        let full = self.count.trailing_ones() as usize;
        for earlier in &self.powers[..full] {
            partial = R::join(*earlier, partial);
        }
        self.powers[full] = partial;
        self.count += 1;
    }

    fn joined(&self) -> R::Partial {
        let (mut all, mut left) = (R::NONE, self.count);
        while left > 0 {
            all = R::join(self.powers[left.trailing_zeros() as usize], all);
            left &= left - 1;
        }
        all
    }
}

/// So many partial results joined.
fn joined<T, R: Reduction<T>>(count: usize, mut partial: impl FnMut(usize) -> R::Partial) -> R::Partial {
    if count == 1 {
        return partial(0);
    }
    let mut halves = Halves::<T, R>::new();
    (0..count).for_each(|index| halves.add(partial(index)));
    halves.joined()
}

/// Joins the partial results of each output. Outputs lie in lines of this width, and so do as many partial results as each has,
/// a line of the first ones of all before the next.
fn finish_pieces<T: Element, R: Reduction<T>>(
    cpu: &Cpu,
    shape: &Shape,
    [width, pieces]: [usize; 2],
    partials: &[R::Partial],
    output: &mut [T],
    finish: Finish<R::Partial, T>,
) {
    let count = output.len();
    in_parallel(cpu, count, grain(pieces), Rows::new(output, 1), |begin, part| {
        if pieces == 1 {
            return finish(cpu.isa(), &partials[begin..], shape.share, part);
        }
        let mut all = [R::NONE; FINISHED];
        for (chunk, outputs) in part.chunks_mut(FINISHED).enumerate() {
            for (index, all) in all[..outputs.len()].iter_mut().enumerate() {
                let item = begin + chunk * FINISHED + index;
                let first = item / width * width * (pieces - 1) + item;
                *all = joined::<T, R>(pieces, |piece| partials[first + piece * width]);
            }
            finish(cpu.isa(), &all, shape.share, outputs);
        }
    });
}
