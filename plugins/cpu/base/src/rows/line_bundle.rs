//! Bundles of lines. A loop over a line of a few elements spends most of its time on setup and remainder. So short lines are
//! transposed to lie side by side, as many as fill registers, and each step processes one element of each. Lines that fill
//! registers are read in place.

use oarlock_sdk::{Dtype, Element};

use super::axis::AxisLayout;
use super::fold::{FOLD_LANES, fold_idempotent, fold_positions, fold_slice};
use crate::compute_element::ComputeFloat;
use crate::isa::Isa;
use crate::rows::plane_transpose::PlaneTranspose;

/// Lines side by side: 64 `f32` are eight ymm or four zmm registers. With fewer, the compiler fully unrolls loops over them first,
/// and then fails to vectorize.
pub const BUNDLE_WIDTH: usize = 64;
/// The maximum length of lines that are worth transposing, unless stated otherwise: longer ones fill registers themselves.
pub const MAX_SHORT_LINE: usize = 63;
/// The maximum number of contiguous elements in a block of lines.
const BLOCK_ELEMENTS: usize = 128;
/// Fewer blocks are not worth transposing.
const MIN_BLOCKS: usize = 16;

/// True for element types that are common in models. For others, the transposing code would only enlarge the plugin.
pub const fn is_transposable<T: Element>() -> bool {
    matches!(T::DTYPE, Dtype::F32 | Dtype::F16 | Dtype::I64)
}

/// True if transposing the lines along an axis pays: they have at most `most` elements, and there are many short blocks of them.
pub fn are_lines_short(axis: AxisLayout, most: usize) -> bool {
    let block = axis.length.saturating_mul(axis.inner);
    axis.outer >= MIN_BLOCKS && axis.length <= most && (1..=BLOCK_ELEMENTS).contains(&block)
}

/// True if lines along an axis fill registers in place, which is cheaper than transposing them.
pub fn fills_registers(axis: AxisLayout) -> bool {
    axis.inner == 1 && axis.length >= FOLD_LANES
}

/// Transposes groups of blocks and passes each to `body`: the index of the first block, and for each position its elements in that
/// and the following blocks. Lanes past the last block are unspecified.
pub fn for_transposed_blocks<T: Copy, const LINES: usize>(
    isa: Isa,
    input: &[T],
    block: usize,
    mut body: impl FnMut(usize, &[[T; LINES]]),
) {
    let Some(first) = input.first() else { return };
    // Any element will do: lanes without a block are computed as well, but their results are not used.
    let mut tile = vec![[*first; LINES]; block];
    for (index, input) in input.chunks(block * LINES).enumerate() {
        let (out, columns) = (tile.as_flattened_mut(), input.len() / block);
        PlaneTranspose { input, stride: block, out, pitch: LINES, rows: block, columns }.transpose_plane(isa);
        body(index * LINES, &tile);
    }
}

/// Writes the blocks of a tile to consecutive positions from that of the first one on, as many as fit.
pub fn transpose_back<T: Copy, const LINES: usize>(
    isa: Isa,
    tile: &[[T; LINES]],
    first: usize,
    output: &mut [T],
) {
    let block = tile.len();
    let output = &mut output[first * block..];
    let rows = LINES.min(output.len() / block);
    let out = &mut output[..rows * block];
    // With blocks of one element, the tile already is in the order of the output.
    if let [only] = tile {
        out.copy_from_slice(&only[..rows]);
        return;
    }
    PlaneTranspose { input: tile.as_flattened(), stride: LINES, out, pitch: block, rows, columns: block }
        .transpose_plane(isa);
}

/// The layout of lines of the same length.
#[derive(Clone, Copy)]
enum BundleLayout {
    /// The first elements of all lines are contiguous; each following group is `step` groups further.
    SideBySide { step: usize },
    /// Each line is contiguous; there may be fewer lines than the bundle has room for.
    InTurn { length: usize },
}

/// Lines of the same length. Each step is computed for all lines before the next, so that the latencies of the lines overlap.
#[derive(Clone, Copy)]
pub struct LineBundle<'a, T, const LINES: usize> {
    elements: &'a [T],
    layout: BundleLayout,
}

impl<'a, T: Copy> LineBundle<'a, T, 1> {
    /// A contiguous line.
    #[inline(always)]
    pub fn from_line(line: &'a [T]) -> Self {
        Self::from_consecutive(line, line.len())
    }
}

impl<'a, T: Copy, const LINES: usize> LineBundle<'a, T, LINES> {
    /// Lines that lie side by side, starting with their first elements.
    #[inline(always)]
    pub fn new(elements: &'a [[T; LINES]], step: usize) -> Self {
        Self { elements: elements.as_flattened(), layout: BundleLayout::SideBySide { step } }
    }

    /// Contiguous lines of `length` elements, one after the other.
    #[inline(always)]
    pub fn from_consecutive(elements: &'a [T], length: usize) -> Self {
        Self { elements, layout: BundleLayout::InTurn { length: length.max(1) } }
    }

    /// The elements of lines that lie side by side, position by position.
    #[inline(always)]
    pub fn positions(self, step: usize) -> impl ExactSizeIterator<Item = &'a [T; LINES]> {
        self.elements.as_chunks().0.iter().step_by(step)
    }

    /// Folds each line. `add` gets the index of the line.
    #[inline(always)]
    pub fn fold_lines<P: Copy>(
        self,
        none: P,
        add: impl Fn(P, T, usize) -> P,
        join: impl Fn(P, P) -> P,
    ) -> [P; LINES] {
        match self.layout {
            BundleLayout::SideBySide { step } => fold_positions(self.positions(step), none, add, join),
            BundleLayout::InTurn { length } => {
                let mut found = [none; LINES];
                let lines = found.iter_mut().zip(self.elements.chunks_exact(length));
                for (line, (found, elements)) in lines.enumerate() {
                    *found = fold_slice(
                        elements,
                        none,
                        #[inline(always)]
                        |partial, element| add(partial, element, line),
                        &join,
                    );
                }
                found
            }
        }
    }

    /// The sum of `value` over the elements of each line.
    #[inline(always)]
    pub fn sum_lines<F: ComputeFloat>(self, value: impl Fn(T, usize) -> F) -> [F; LINES] {
        self.fold_lines(
            F::ZERO,
            #[inline(always)]
            |sum, element, line| sum + value(element, line),
            |left, right| left + right,
        )
    }
}

impl<F: ComputeFloat, const LINES: usize> LineBundle<'_, F, LINES> {
    /// The maximum of each line. NaN is skipped.
    #[inline(always)]
    pub fn max_of_lines(self) -> [F; LINES] {
        let greater = |greatest: F, element: F| greatest.max_ignoring_nan(element);
        match self.layout {
            BundleLayout::SideBySide { .. } => {
                self.fold_lines(F::LOWEST, |greatest, x, _| greater(greatest, x), greater)
            }
            BundleLayout::InTurn { length } => {
                let mut found = [F::LOWEST; LINES];
                for (found, line) in found.iter_mut().zip(self.elements.chunks_exact(length)) {
                    // A maximum may read an element twice, so the remainder needs no mask.
                    *found = fold_idempotent(line, F::LOWEST, greater);
                }
                found
            }
        }
    }
}

/// The results for the elements of a bundle.
pub struct BundleResults<'a, T, const LINES: usize> {
    elements: &'a mut [T],
    layout: BundleLayout,
}

impl<'a, T: Copy, const LINES: usize> BundleResults<'a, T, LINES> {
    /// Results of lines that lie side by side, starting with their first elements.
    #[inline(always)]
    pub fn new(elements: &'a mut [[T; LINES]], step: usize) -> Self {
        Self { elements: elements.as_flattened_mut(), layout: BundleLayout::SideBySide { step } }
    }

    /// Results of contiguous lines of `length` elements, one after the other.
    #[inline(always)]
    pub fn from_consecutive(elements: &'a mut [T], length: usize) -> Self {
        Self { elements, layout: BundleLayout::InTurn { length: length.max(1) } }
    }

    /// The results so far, as the input of the next step.
    #[inline(always)]
    pub fn as_bundle(&self) -> LineBundle<'_, T, LINES> {
        LineBundle { elements: self.elements, layout: self.layout }
    }

    /// Writes the value of each element, given its line.
    #[inline(always)]
    pub fn write_mapped(&mut self, from: LineBundle<'_, T, LINES>, value: impl Fn(T, usize) -> T) {
        match self.layout {
            BundleLayout::SideBySide { step } => {
                let (results, _) = self.elements.as_chunks_mut::<LINES>();
                for (results, elements) in results.iter_mut().step_by(step).zip(from.positions(step)) {
                    for line in 0..LINES {
                        results[line] = value(elements[line], line);
                    }
                }
            }
            BundleLayout::InTurn { length } => {
                let lines = self.elements.chunks_exact_mut(length).zip(from.elements.chunks_exact(length));
                for (line, (results, elements)) in lines.enumerate() {
                    write_line(
                        results,
                        elements,
                        #[inline(always)]
                        |element| value(element, line),
                    );
                }
            }
        }
    }

    /// Replaces each element by its value, given its line. The positions of a line are visited in order.
    #[inline(always)]
    pub fn map_in_place(&mut self, mut value: impl FnMut(T, usize) -> T) {
        match self.layout {
            BundleLayout::SideBySide { step } => {
                for results in self.elements.as_chunks_mut::<LINES>().0.iter_mut().step_by(step) {
                    for (line, result) in results.iter_mut().enumerate() {
                        *result = value(*result, line);
                    }
                }
            }
            BundleLayout::InTurn { length } => {
                for (line, results) in self.elements.chunks_exact_mut(length).enumerate() {
                    for result in results {
                        *result = value(*result, line);
                    }
                }
            }
        }
    }

    /// Multiplies each element by the factor of its line.
    #[inline(always)]
    pub fn scale_lines(&mut self, factors: &[T; LINES])
    where
        T: ComputeFloat,
    {
        match self.layout {
            BundleLayout::SideBySide { .. } => self.map_in_place(|x, line| x * factors[line]),
            BundleLayout::InTurn { length } => {
                for (results, factor) in self.elements.chunks_exact_mut(length).zip(factors) {
                    scale_line(results, *factor);
                }
            }
        }
    }
}

/// Writes the value of each element. The remainder is computed as the last [`FOLD_LANES`] elements, some of which are written
/// again: one more full vector instead of a scalar loop.
#[inline(always)]
fn write_line<T: Copy>(results: &mut [T], elements: &[T], value: impl Fn(T) -> T) {
    let Some(last) = elements.last_chunk::<FOLD_LANES>() else {
        return write_mapped_line(results, elements, value);
    };
    let whole = elements.len() / FOLD_LANES * FOLD_LANES;
    write_mapped_line(&mut results[..whole], elements, &value);
    if whole < elements.len()
        && let Some(results) = results.last_chunk_mut::<FOLD_LANES>()
    {
        write_mapped_line(results, last, value);
    }
}

#[inline(always)]
fn write_mapped_line<T: Copy>(results: &mut [T], elements: &[T], value: impl Fn(T) -> T) {
    for (result, element) in results.iter_mut().zip(elements) {
        *result = value(*element);
    }
}

/// Multiplies each element by a factor. The remainder is computed as a full vector that includes some earlier elements, and that is
/// read before these change.
#[inline(always)]
fn scale_line<F: ComputeFloat>(elements: &mut [F], factor: F) {
    let whole = elements.len() / FOLD_LANES * FOLD_LANES;
    let Some(mut last) = elements.last_chunk::<FOLD_LANES>().copied() else {
        return scale_elements(elements, factor);
    };
    scale_elements(&mut elements[..whole], factor);
    if whole < elements.len()
        && let Some(elements) = elements.last_chunk_mut::<FOLD_LANES>()
    {
        scale_elements(&mut last, factor);
        *elements = last;
    }
}

#[inline(always)]
fn scale_elements<F: ComputeFloat>(elements: &mut [F], factor: F) {
    for element in elements {
        *element = *element * factor;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::ArithmeticElement;

    #[test]
    fn lines_of_each_length_are_written_and_changed_as_element_by_element() {
        const TEST_LINES: usize = 4;
        for length in 1..=70 {
            for lines in 1..=TEST_LINES {
                let elements: Vec<f32> = (0..lines * length).map(|at| (at * 37 % 101) as f32).collect();
                let mut results = vec![0.0; elements.len()];
                let from = LineBundle::<_, TEST_LINES>::from_consecutive(&elements, length);
                let mut written = BundleResults::from_consecutive(&mut results, length);
                written.write_mapped(from, |x, line| x + 1000.0 * line as f32);
                let sums = written.as_bundle().sum_lines(|x, line| x - 1000.0 * line as f32);
                written.scale_lines(&[1.0, 2.0, -3.0, 4.0]);
                for (line, elements) in elements.chunks(length).enumerate() {
                    let factor = [1.0, 2.0, -3.0, 4.0][line];
                    let expected: Vec<f32> =
                        elements.iter().map(|x| (x + 1000.0 * line as f32) * factor).collect();
                    assert_eq!(results[line * length..][..length], expected, "line {line} of {length}");
                    assert_eq!(sums[line], elements.iter().sum::<f32>(), "the sum of line {line}");
                    let greatest = elements.iter().copied().fold(f32::LOWEST, f32::max);
                    assert_eq!(from.max_of_lines()[line], greatest, "the greatest of line {line}");
                }
            }
        }
    }
}
