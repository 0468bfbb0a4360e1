//! Mean and variance of a slice.

use oarlock_cpu_base::compute_element::ComputeFloat;
use oarlock_cpu_base::rows::fold::fold_slice;

/// The sum of a function over the elements.
#[inline(always)]
pub(super) fn sum_values<F: ComputeFloat>(elements: &[F], value: impl Fn(F) -> F) -> F {
    fold_slice(elements, F::ZERO, |sum, element| sum + value(element), |left, right| left + right)
}

/// Mean and variance. The mean is computed from the differences to the first element, so that it is exact for equal elements and
/// their deviations vanish. The variance takes a second pass over the deviations, because the difference of two large sums would
/// lose all digits.
#[inline(always)]
pub(super) fn mean_and_variance<F: ComputeFloat>(elements: &[F]) -> (F, F) {
    let count = F::from_f64(elements.len() as f64);
    let first = elements.first().copied().unwrap_or(F::ZERO);
    let mean = first + sum_values(elements, |x| x - first) / count;
    (mean, sum_values(elements, |x| (x - mean) * (x - mean)) / count)
}

/// One over the standard deviation.
#[inline(always)]
pub(super) fn inverse_deviation<F: ComputeFloat>(variance: F, epsilon: F) -> F {
    F::ONE / (variance + epsilon).square_root()
}
