//! Short lines, many at a time. What a loop over a line of a few elements costs is mostly its beginning and its end. So
//! lines are turned to lie side by side, as many as fill registers, and each step handles an element of all of them.

use oarlock_sdk::{Dtype, Element};

use super::axis::Axis;
use super::fold::{fold, fold_each};
use super::number::{Exact, Float};
use crate::isa::Isa;
use crate::kernels::movement::plane::Plane;

/// How many lines lie side by side. With fewer, the compiler writes loops over them out before it sees that registers could
/// do many of the steps at once, and then does not see it.
pub(crate) const WIDTH: usize = 64;
/// How many elements a line has that is worth turning, where nothing else is said: longer ones fill registers themselves.
pub(crate) const SHORT: usize = 63;
/// How many elements a block of lines has, which follow one another in memory, at most.
const BLOCK: usize = 128;
/// How many blocks have to be there.
const FEWEST: usize = 16;

/// Whether lines of such elements are turned at all: those that models have. For others nobody waits, and a program would be
/// larger by what turns them.
pub(crate) const fn are_turned<T: Element>() -> bool {
    matches!(T::DTYPE, Dtype::F32 | Dtype::F16 | Dtype::I64)
}

/// Whether lines along an axis are best turned: whether they have at most so many elements, and short blocks of them are
/// many.
pub(crate) fn are_short(axis: Axis, most: usize) -> bool {
    let block = axis.length.saturating_mul(axis.inner);
    axis.outer >= FEWEST && axis.length <= most && (1..=BLOCK).contains(&block)
}

/// Hands over blocks of so many elements in tiles: the index of the first block, and for each position the elements there of
/// this and of the next blocks. Where fewer blocks are left than lie side by side, what is in their place means nothing.
pub(crate) fn turned<T: Copy, const LINES: usize>(
    isa: Isa,
    input: &[T],
    block: usize,
    mut body: impl FnMut(usize, &[[T; LINES]]),
) {
    let Some(first) = input.first() else { return };
    let mut tile = vec![[*first; LINES]; block];
    for (index, input) in input.chunks(block * LINES).enumerate() {
        let (out, columns) = (tile.as_flattened_mut(), input.len() / block);
        Plane { input, stride: block, out, pitch: LINES, rows: block, columns }.turn(isa);
        body(index * LINES, &tile);
    }
}

/// Writes the blocks of a tile from the place of the first one on, one after the other, as many as there is place for.
pub(crate) fn turn_back<T: Copy, const LINES: usize>(
    isa: Isa,
    tile: &[[T; LINES]],
    first: usize,
    output: &mut [T],
) {
    let block = tile.len();
    let output = &mut output[first * block..];
    let rows = LINES.min(output.len() / block);
    let out = &mut output[..rows * block];
    if let [only] = tile {
        out.copy_from_slice(&only[..rows]);
        return;
    }
    Plane { input: tile.as_flattened(), stride: LINES, out, pitch: block, rows, columns: block }.turn(isa);
}

/// Some lines of the same length. What is said about one of them is calculated for all at once.
#[derive(Clone, Copy)]
pub(crate) struct Bundle<'a, T, const LINES: usize> {
    elements: &'a [[T; LINES]],
    /// How far elements of a line are apart.
    step: usize,
}

impl<'a, T: Copy> Bundle<'a, T, 1> {
    /// A line that lies in one piece.
    #[inline(always)]
    pub(crate) fn of_line(line: &'a [T]) -> Self {
        Self { elements: line.as_chunks().0, step: 1 }
    }
}

impl<'a, T: Copy, const LINES: usize> Bundle<'a, T, LINES> {
    /// Lines that start where the elements do.
    #[inline(always)]
    pub(crate) fn new(elements: &'a [[T; LINES]], step: usize) -> Self {
        Self { elements, step }
    }

    /// The elements of the lines, position by position.
    #[inline(always)]
    pub(crate) fn positions(self) -> impl Iterator<Item = &'a [T; LINES]> {
        self.elements.iter().step_by(self.step)
    }

    /// How many elements each line has.
    #[inline(always)]
    pub(crate) fn length(self) -> usize {
        self.elements.len().div_ceil(self.step)
    }

    /// Folds each line. What is added may depend on the line.
    #[inline(always)]
    pub(crate) fn fold<P: Copy>(
        self,
        none: P,
        add: impl Fn(P, T, usize) -> P,
        join: impl Fn(P, P) -> P,
    ) -> [P; LINES] {
        if LINES == 1 {
            [fold(self.elements.as_flattened(), none, |partial, element| add(partial, element, 0), join);
                LINES]
        } else {
            fold_each(self, none, add, join)
        }
    }

    /// The sum of what becomes of the elements of each line.
    #[inline(always)]
    pub(crate) fn sum<F: Float>(self, value: impl Fn(T, usize) -> F) -> [F; LINES] {
        self.fold(F::ZERO, |sum, element, line| sum + value(element, line), |left, right| left + right)
    }
}

impl<F: Float, const LINES: usize> Bundle<'_, F, LINES> {
    /// The greatest number of each line. What is not a number is passed over.
    #[inline(always)]
    pub(crate) fn greatest(self) -> [F; LINES] {
        self.fold(F::LOWEST, |greatest, element, _| Exact::greater(greatest, element), F::greater)
    }
}

/// What becomes of the elements of a bundle.
pub(crate) struct Results<'a, T, const LINES: usize> {
    elements: &'a mut [[T; LINES]],
    step: usize,
}

impl<'a, T: Copy> Results<'a, T, 1> {
    /// Those of a line that lies in one piece.
    #[inline(always)]
    pub(crate) fn of_line(line: &'a mut [T]) -> Self {
        Self { elements: line.as_chunks_mut().0, step: 1 }
    }
}

impl<'a, T: Copy, const LINES: usize> Results<'a, T, LINES> {
    /// Those of lines that start where the elements do.
    #[inline(always)]
    pub(crate) fn new(elements: &'a mut [[T; LINES]], step: usize) -> Self {
        Self { elements, step }
    }

    /// What has been written.
    #[inline(always)]
    pub(crate) fn written(&self) -> Bundle<'_, T, LINES> {
        Bundle { elements: self.elements, step: self.step }
    }

    /// Writes what becomes of each element of a bundle and its line.
    #[inline(always)]
    pub(crate) fn write(&mut self, from: Bundle<'_, T, LINES>, value: impl Fn(T, usize) -> T) {
        if LINES == 1 {
            let elements = from.elements.as_flattened();
            for (result, element) in self.elements.as_flattened_mut().iter_mut().zip(elements) {
                *result = value(*element, 0);
            }
            return;
        }
        for (results, elements) in self.elements.iter_mut().step_by(self.step).zip(from.positions()) {
            for line in 0..LINES {
                results[line] = value(elements[line], line);
            }
        }
    }

    /// Puts what becomes of each element and its line in its place.
    #[inline(always)]
    pub(crate) fn change(&mut self, mut value: impl FnMut(T, usize) -> T) {
        if LINES == 1 {
            for result in self.elements.as_flattened_mut() {
                *result = value(*result, 0);
            }
            return;
        }
        for results in self.elements.iter_mut().step_by(self.step) {
            for (line, result) in results.iter_mut().enumerate() {
                *result = value(*result, line);
            }
        }
    }
}
