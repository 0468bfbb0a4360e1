//! Turns partial results into outputs: the last step of a reduction, for many outputs at a time.

use oarlock_cpu_base::compute_element::{ComputeElement, ComputeFloat};
use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::with_avx;

use super::reduction::{LogSumExp, Reducer, with_isa_of};

/// Turns results, each of `count` elements, into outputs.
pub(super) type FinalizeFunction<P, T> = fn(isa: Isa, partials: &[P], count: usize, outputs: &mut [T]);

/// The results themselves, as elements.
pub(super) fn finalize_plain<T: ComputeElement>(
    isa: Isa,
    results: &[T::Accumulator],
    _: usize,
    outputs: &mut [T],
) {
    with_avx!(isa, || {
        for (output, result) in outputs.iter_mut().zip(results) {
            *output = T::from_accumulator(*result);
        }
    });
}

pub(super) fn finalize_log_sum_exp<T: ComputeElement>(
    isa: Isa,
    sums: &[<LogSumExp as Reducer<T>>::Partial],
    _: usize,
    outputs: &mut [T],
) {
    with_isa_of!(LogSumExp, isa, || {
        for (output, sum) in outputs.iter_mut().zip(sums) {
            *output = LogSumExp::to_element(*sum);
        }
    });
}

/// Means of sums. The mean of no elements is NaN.
pub(super) fn finalize_mean<T: ComputeElement>(isa: Isa, sums: &[T::Float], count: usize, outputs: &mut [T]) {
    // Divided by the count: a product with its reciprocal would be rounded once more.
    let count = T::Float::from_f64(count as f64);
    with_avx!(isa, || {
        for (output, sum) in outputs.iter_mut().zip(sums) {
            *output = T::from_float(*sum / count);
        }
    });
}

pub(super) fn finalize_root<T: ComputeElement>(isa: Isa, sums: &[T::Float], _: usize, outputs: &mut [T]) {
    with_avx!(isa, || {
        for (output, sum) in outputs.iter_mut().zip(sums) {
            *output = T::from_float(sum.square_root());
        }
    });
}

pub(super) fn finalize_logarithm<T: ComputeElement>(
    isa: Isa,
    sums: &[T::Float],
    _: usize,
    outputs: &mut [T],
) {
    with_avx!(isa, || {
        for (output, sum) in outputs.iter_mut().zip(sums) {
            *output = T::from_float(sum.logarithm());
        }
    });
}
