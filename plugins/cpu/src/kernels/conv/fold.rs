//! Images put together of windows, as a transposed convolution and `Col2Im` do it: where windows overlap, what they hold is
//! added up.

use std::ops::Range;

use super::window::{Axis, coordinates};
use crate::isa::{Target, Vectorized};
use crate::kernels::rows::number::{Exact, Number};

/// What windows hold, to be added to an image where it lies under them.
pub(crate) struct Fold<'a, T: Number> {
    /// How the windows lie over the image.
    pub(crate) axes: &'a [Axis],
    /// Which elements of the windows there are.
    pub(crate) steps: Range<usize>,
    /// For each of them that of all windows, one after the other.
    pub(crate) columns: &'a [T],
    pub(crate) image: &'a mut [T::Exact],
}

impl<T: Number> Vectorized for Fold<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Target>(self) {
        let Self { axes, steps, columns, image } = self;
        let Some((last, outer)) = axes.split_last() else { return };
        let windows: usize = axes.iter().map(|axis| axis.output).product();
        if windows == 0 {
            return;
        }
        let mut step = vec![0; axes.len()];
        let mut inside = vec![0..0; outer.len()];
        let mut place = vec![0; outer.len()];
        for (index, column) in steps.zip(columns.chunks_exact(windows)) {
            coordinates(index, axes.iter().map(|axis| axis.kernel), &mut step);
            let along = last.windows_with(step[outer.len()]);
            for ((inside, axis), step) in inside.iter_mut().zip(outer).zip(&step) {
                *inside = axis.windows_with(*step);
            }
            if along.is_empty() || inside.iter().any(Range::is_empty) {
                continue;
            }
            for (place, inside) in place.iter_mut().zip(&inside) {
                *place = inside.start;
            }
            let to = last.first_place(step[outer.len()], along.start);
            loop {
                let (mut source, mut target) = (0, 0);
                for ((axis, place), step) in outer.iter().zip(&place).zip(&step) {
                    source = source * axis.output + place;
                    target = target * axis.input + axis.first_place(*step, *place);
                }
                let elements = &column[source * last.output..][along.clone()];
                let image = &mut image[target * last.input..][..last.input][to..];
                add(image, elements, last.stride);
                if !advance(&mut place, &inside) {
                    break;
                }
            }
        }
    }
}

/// Adds elements to some that are as far from each other as it is said.
#[inline(always)]
fn add<T: Number>(image: &mut [T::Exact], elements: &[T], stride: usize) {
    let add = |(sum, element): (&mut T::Exact, &T)| *sum = sum.plus(element.exact());
    if stride == 1 {
        image.iter_mut().zip(elements).for_each(add);
    } else {
        image.iter_mut().step_by(stride).zip(elements).for_each(add);
    }
}

/// Goes on to the next place, and says whether there is one.
#[inline(always)]
fn advance(place: &mut [usize], inside: &[Range<usize>]) -> bool {
    for (place, inside) in place.iter_mut().zip(inside).rev() {
        *place += 1;
        if *place < inside.end {
            return true;
        }
        *place = inside.start;
    }
    false
}
