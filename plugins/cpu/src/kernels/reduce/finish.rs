//! What becomes of partial results: the last step of a reduction, done for many outputs at a time.

use super::reduction::Reduction;
use crate::isa::Isa;
use crate::kernels::rows::number::{Float, Number};
use crate::kernels::rows::vector::with_isa;

/// Makes outputs of as many results, each of `count` elements.
pub(super) type Finish<P, T> = fn(isa: Isa, partials: &[P], count: usize, outputs: &mut [T]);

/// The results themselves.
pub(super) fn plain<T: Number, R: Reduction<T>>(
    isa: Isa,
    partials: &[R::Partial],
    _: usize,
    outputs: &mut [T],
) {
    with_isa!(isa, || {
        for (output, partial) in outputs.iter_mut().zip(partials) {
            *output = R::element(*partial);
        }
    });
}

/// Means of sums. The mean of no elements is NaN.
pub(super) fn mean<T: Number>(isa: Isa, sums: &[T::Float], count: usize, outputs: &mut [T]) {
    let count = T::Float::of(count as f64);
    with_isa!(isa, || {
        for (output, sum) in outputs.iter_mut().zip(sums) {
            *output = T::of_float(*sum / count);
        }
    });
}

/// Square roots of sums.
pub(super) fn root<T: Number>(isa: Isa, sums: &[T::Float], _: usize, outputs: &mut [T]) {
    with_isa!(isa, || {
        for (output, sum) in outputs.iter_mut().zip(sums) {
            *output = T::of_float(sum.root());
        }
    });
}

/// Logarithms of sums.
pub(super) fn logarithm<T: Number>(isa: Isa, sums: &[T::Float], _: usize, outputs: &mut [T]) {
    with_isa!(isa, || {
        for (output, sum) in outputs.iter_mut().zip(sums) {
            *output = T::of_float(sum.logarithm());
        }
    });
}
