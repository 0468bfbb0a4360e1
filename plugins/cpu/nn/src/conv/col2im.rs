//! Folds windows into images, for transposed convolutions and `Col2Im`: elements of overlapping windows are added.

use std::ops::Range;

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::isa::{BaselineTarget, Isa, SimdTarget, SimdTask};
use oarlock_cpu_base::window::{WindowAxis, unravel_index};
use oarlock_cpu_gemm::GemmElement;

/// Window elements to be added to an image.
pub(crate) struct Col2ImFold<'a, T> {
    /// The positions of the windows over the image.
    pub(crate) axes: &'a [WindowAxis],
    /// The range of window steps in `columns`.
    pub(crate) steps: Range<usize>,
    /// For each step, the elements of all windows.
    pub(crate) columns: &'a [T],
    pub(crate) image: &'a mut [T],
}

impl<T: GemmElement> Col2ImFold<'_, T> {
    /// Adds the elements, in code for each instruction set if they are of a common type.
    pub(crate) fn add_to_image(self, isa: Isa) {
        if const { T::IS_COMMON } {
            isa.vectorize(self);
        } else {
            self.add_on_baseline();
        }
    }

    // Not a part of each caller: those differ in dtypes that share the type of sums.
    #[inline(never)]
    fn add_on_baseline(self) {
        self.run_on_target::<BaselineTarget>();
    }
}

impl<T: ArithmeticElement> SimdTask for Col2ImFold<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<I: SimdTarget>(self) {
        let Self { axes, steps, columns, image } = self;
        let Some((last, outer)) = axes.split_last() else { return };
        let windows: usize = axes.iter().map(|axis| axis.output).product();
        if windows == 0 {
            return;
        }
        let mut step = vec![0; axes.len()];
        let mut inside = vec![0..0; outer.len()];
        // The last axis is a run of elements; the outer axes are iterated by position.
        let mut place = vec![0; outer.len()];
        let mut columns = columns.chunks_exact(windows);
        let mut index = steps.start;
        while let Some(column) = columns.next().filter(|_| index < steps.end) {
            unravel_index(index, axes.iter().map(|axis| axis.kernel), &mut step);
            index += 1;
            let at = step[outer.len()];
            let run = ColumnRun { axis: last, step: at, windows: last.windows_with_step(at) };
            // With stride 2, one step writes every second element. Two adjacent steps together write all elements, so they are
            // added as pairs with unit stride.
            let mut pair = None;
            if run.has_next_beside() && index < steps.end {
                let next = ColumnRun { axis: last, step: at + 1, windows: last.windows_with_step(at + 1) };
                let both = run.windows.start.max(next.windows.start)..run.windows.end.min(next.windows.end);
                if !both.is_empty() {
                    pair = columns.next().map(|column| (column, next, both));
                    index += 1;
                }
            }
            for ((inside, axis), step) in inside.iter_mut().zip(outer).zip(&step) {
                *inside = axis.windows_with_step(*step);
            }
            // This step is in the padding for all windows.
            if run.windows.is_empty() || inside.iter().any(Range::is_empty) {
                continue;
            }
            for (place, inside) in place.iter_mut().zip(&inside) {
                *place = inside.start;
            }
            // Every window that has this step inside the image, row by row.
            loop {
                let (mut source, mut target) = (0, 0);
                for ((axis, place), step) in outer.iter().zip(&place).zip(&step) {
                    source = source * axis.output + place;
                    target = target * axis.input + axis.first_position(*step, *place);
                }
                let row = source * last.output..(source + 1) * last.output;
                let (elements, image) =
                    (&column[row.clone()], &mut image[target * last.input..][..last.input]);
                if let Some((column, next, both)) = &pair {
                    let others = &column[row];
                    let image_of_both = &mut image[last.first_position(at, both.start)..];
                    add_interleaved(image_of_both, [&elements[both.clone()], &others[both.clone()]]);
                    // At the edges, only one of the two steps may be inside.
                    for (run, elements) in [(&run, elements), (next, others)] {
                        run.add_windows(image, elements, run.windows.start..both.start);
                        run.add_windows(image, elements, both.end..run.windows.end);
                    }
                } else {
                    run.add_windows(image, elements, run.windows.clone());
                }
                if !advance_position(&mut place, &inside) {
                    break;
                }
            }
        }
    }
}

/// The windows of a row that have a step inside the image, along the last axis.
struct ColumnRun<'a> {
    axis: &'a WindowAxis,
    step: usize,
    windows: Range<usize>,
}

impl ColumnRun<'_> {
    /// True if the elements of the next step fill the gaps between those of this one.
    #[inline(always)]
    fn has_next_beside(&self) -> bool {
        self.axis.stride == 2 && self.axis.dilation == 1 && self.step + 1 < self.axis.kernel
    }

    /// Adds the elements of one step, for some windows of a row.
    #[inline(always)]
    fn add_windows<T: ArithmeticElement>(&self, image: &mut [T], elements: &[T], windows: Range<usize>) {
        if !windows.is_empty() {
            let place = self.axis.first_position(self.step, windows.start);
            add_strided(&mut image[place..], &elements[windows], self.axis.stride);
        }
    }
}

/// Adds the elements of two adjacent steps, which together fill the image without gaps.
#[inline(always)]
fn add_interleaved<T: ArithmeticElement>(image: &mut [T], [first, second]: [&[T]; 2]) {
    let (pairs, _) = image.as_chunks_mut::<2>();
    for (pair, (first, second)) in pairs.iter_mut().zip(first.iter().zip(second)) {
        *pair = [pair[0].plus(*first), pair[1].plus(*second)];
    }
}

/// Adds contiguous elements to elements `stride` apart.
#[inline(always)]
fn add_strided<T: ArithmeticElement>(image: &mut [T], elements: &[T], stride: usize) {
    let add = |(sum, element): (&mut T, &T)| *sum = sum.plus(*element);
    if stride == 1 {
        image.iter_mut().zip(elements).for_each(add);
    } else {
        image.iter_mut().step_by(stride).zip(elements).for_each(add);
    }
}

/// Advances to the next position; false after the last.
#[inline(always)]
fn advance_position(place: &mut [usize], inside: &[Range<usize>]) -> bool {
    for (place, inside) in place.iter_mut().zip(inside).rev() {
        *place += 1;
        if *place < inside.end {
            return true;
        }
        *place = inside.start;
    }
    false
}
