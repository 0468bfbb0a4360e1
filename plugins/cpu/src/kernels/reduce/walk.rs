//! Walks over the elements of a reduction. How work is cut into partial results is decided by the shape alone and they are
//! joined in order, so that the number of threads does not change a bit of the result.

use oarlock_sdk::Element;

use super::reduction::Reduction;
use super::shape::Shape;
use crate::device::Cpu;
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

/// Reduces `input`, whose elements lie as `shape` says, into `output`.
pub(super) fn reduce<T: Element, R: Reduction<T>>(cpu: &Cpu, shape: &Shape, input: &[T], output: &mut [T]) {
    if shape.share == 0 {
        output.fill(R::finish(R::NONE, 0));
    } else if output.is_empty() {
    } else if const { are_turned::<T>() }
        && let Some(axis) = shape.axis().filter(|axis| are_short(*axis, SHORT) && !fill_registers(*axis))
    {
        short_lines::<T, R>(cpu, axis, input, output);
    } else if let Some(axis) = shape.axis().filter(|axis| axis.inner == 1 && axis.length <= CHUNK) {
        whole_lines::<T, R>(cpu, axis, input, output);
    } else if shape.last_is_reduced {
        lines::<T, R>(cpu, shape, input, output);
    } else {
        columns::<T, R>(cpu, shape, input, output);
    }
}

/// One dimension of a few elements is reduced: lines along it are reduced side by side.
fn short_lines<T: Element, R: Reduction<T>>(cpu: &Cpu, axis: Axis, input: &[T], output: &mut [T]) {
    let (block, isa) = (axis.length * axis.inner, cpu.isa());
    in_parallel(cpu, axis.outer, grain(block), Rows::new(output, axis.inner), |begin, part| {
        let input = &input[begin * block..][..part.len() * axis.length];
        let mut results = vec![[R::finish(R::NONE, axis.length); WIDTH]; axis.inner];
        turned(isa, input, block, |first, tile: &[[T; WIDTH]]| {
            with_isa!(isa, || {
                for (start, results) in results.iter_mut().enumerate() {
                    let partials = R::of_lines(Bundle::new(&tile[start..], axis.inner));
                    for (result, partial) in results.iter_mut().zip(partials) {
                        *result = R::finish(partial, axis.length);
                    }
                }
            });
            turn_back(isa, &results, first, part);
        });
    });
}

/// Every output is made of one line, which lies in one piece and is not worth cutting.
fn whole_lines<T: Element, R: Reduction<T>>(cpu: &Cpu, axis: Axis, input: &[T], output: &mut [T]) {
    in_parallel(cpu, axis.outer, grain(axis.length), Rows::new(output, 1), |begin, part| {
        let lines = input[begin * axis.length..].chunks_exact(axis.length);
        with_isa!(cpu.isa(), || {
            for (result, line) in part.iter_mut().zip(lines) {
                *result = R::finish(R::of_slice(line), axis.length);
            }
        });
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
    #[inline(always)]
    fn reduce<T: Element, R: Reduction<T>>(self, shape: &Shape, input: &[T], item: usize) -> R::Partial {
        let (start, index) = (shape.kept.offset(item / self.pieces), item % self.pieces);
        let length = shape.last;
        let first = index * self.lines_per_piece / self.pieces_per_line;
        let lines = first..shape.reduced.count().min(first + self.lines_per_piece);
        let begin = index % self.pieces_per_line * CHUNK;
        let end = length.min(begin + CHUNK);
        let mut halves = Halves::<T, R>::new();
        for first in lines.clone().step_by(FEW) {
            let mut few = R::NONE;
            for line in first..lines.end.min(first + FEW) {
                let line = start + shape.reduced.offset(line);
                few = R::join(few, R::of_slice(&input[line + begin..line + end]));
            }
            halves.add(few);
        }
        halves.joined()
    }
}

/// The last dimension is reduced: each output is made of lines of elements that lie in one piece.
fn lines<T: Element, R: Reduction<T>>(cpu: &Cpu, shape: &Shape, input: &[T], output: &mut [T]) {
    let cut = Cut::new(shape.last, shape.reduced.count());
    let pieces = cut.pieces;
    let mut partials = vec![R::NONE; output.len() * pieces];
    let count = partials.len();
    in_parallel(cpu, count, grain(shape.share / pieces), Rows::new(&mut partials, 1), |begin, part| {
        with_isa!(cpu.isa(), || {
            for (index, partial) in part.iter_mut().enumerate() {
                *partial = cut.reduce::<T, R>(shape, input, begin + index);
            }
        });
    });
    join::<T, R>(cpu, output, pieces, shape.share, |item, piece| partials[item * pieces + piece]);
}

/// The last dimension is kept: rows of elements are added up column by column.
fn columns<T: Element, R: Reduction<T>>(cpu: &Cpu, shape: &Shape, input: &[T], output: &mut [T]) {
    let (width, rows) = (shape.last, shape.reduced.count());
    let groups = rows.div_ceil(ROWS);
    let mut partials = vec![R::NONE; output.len() * groups];
    let count = partials.len();
    in_parallel(cpu, count, grain(rows.min(ROWS)), Rows::new(&mut partials, 1), |begin, part| {
        let (mut next, mut part, mut few) = (begin, part, [R::NONE; COLUMNS]);
        while !part.is_empty() {
            let (line, column) = (next / width, next % width);
            let (block, rest) = part.split_at_mut(COLUMNS.min(width - column).min(part.len()));
            let start = shape.kept.offset(line / groups) + column;
            let first = line % groups * ROWS;
            let last = rows.min(first + ROWS);
            with_isa!(cpu.isa(), || {
                for begin in (first..last).step_by(FEW) {
                    let few = &mut few[..block.len()];
                    let row = start + shape.reduced.offset(begin);
                    for (partial, element) in few.iter_mut().zip(&input[row..]) {
                        *partial = R::add(R::NONE, *element);
                    }
                    for row in begin + 1..last.min(begin + FEW) {
                        let row = start + shape.reduced.offset(row);
                        for (partial, element) in few.iter_mut().zip(&input[row..]) {
                            *partial = R::add(*partial, *element);
                        }
                    }
                    for (partial, few) in block.iter_mut().zip(few) {
                        *partial = R::join(*partial, *few);
                    }
                }
            });
            next += block.len();
            part = rest;
        }
    });
    join::<T, R>(cpu, output, groups, shape.share, |item, group| {
        partials[(item / width * groups + group) * width + item % width]
    });
}

/// Partial results that are joined as they come, always two of as many: so rounding grows with the logarithm of how many there
/// are, not with their number.
struct Halves<T, R: Reduction<T>> {
    /// Where the bit of a power of two is set in the count, what so many became.
    powers: [R::Partial; usize::BITS as usize],
    count: usize,
}

impl<T, R: Reduction<T>> Halves<T, R> {
    #[inline(always)]
    fn new() -> Self {
        Self { powers: [R::NONE; usize::BITS as usize], count: 0 }
    }

    #[inline(always)]
    fn add(&mut self, mut partial: R::Partial) {
        let full = self.count.trailing_ones() as usize;
        for earlier in &self.powers[..full] {
            partial = R::join(*earlier, partial);
        }
        self.powers[full] = partial;
        self.count += 1;
    }

    #[inline(always)]
    fn joined(&self) -> R::Partial {
        let (mut all, mut left) = (R::NONE, self.count);
        while left > 0 {
            all = R::join(self.powers[left.trailing_zeros() as usize], all);
            left &= left - 1;
        }
        all
    }
}

/// Joins the partial results of each output.
fn join<T: Element, R: Reduction<T>>(
    cpu: &Cpu,
    output: &mut [T],
    pieces: usize,
    share: usize,
    partial: impl Fn(usize, usize) -> R::Partial + Sync,
) {
    let count = output.len();
    in_parallel(cpu, count, grain(pieces), Rows::new(output, 1), |begin, part| {
        with_isa!(cpu.isa(), || {
            for (index, element) in part.iter_mut().enumerate() {
                let item = begin + index;
                let all = if pieces == 1 {
                    partial(item, 0)
                } else {
                    let mut halves = Halves::<T, R>::new();
                    (0..pieces).for_each(|piece| halves.add(partial(item, piece)));
                    halves.joined()
                };
                *element = R::finish(all, share);
            }
        });
    });
}
