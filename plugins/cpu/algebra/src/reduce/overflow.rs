//! Repairs sums of finite numbers that leave the range of their type on the way but not in the end: if one lane overflows to
//! infinity and another to its opposite, their sum is NaN. Such sums are rare, and are computed again in a wider range. So it
//! does not matter how lanes meet, and any number of threads gives the same bits.

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::compute_element::ComputeElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::GRAIN;
use oarlock_cpu_base::rows::fold::fold_slice;
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_sdk::{Dtype, Element};

use super::shape::ReduceShape;

/// The factor by which elements are multiplied so that no sum of them in `f64` overflows; `None` for types whose sums cannot.
const fn overflow_scale<T: Element>() -> Option<f64> {
    match T::DTYPE {
        // An `f64` holds the sum of 2⁸⁹⁶ elements that are as large as an `f32` can be.
        Dtype::F32 | Dtype::BF16 => Some(1.0),
        // 2⁻⁶⁴: an overflow would take more elements than there are.
        Dtype::F64 => Some(1.0 / 18_446_744_073_709_551_616.0),
        // `f16` is added in `f32`, which takes 2¹¹² elements to overflow.
        _ => None,
    }
}

/// Computes those results of a sum again that are not finite, in which large elements may cancel. `finish` gets the sum of the
/// scaled elements, the factor by which they are scaled and their number. What it returns out of range rounds to infinity.
pub(super) fn repair_overflow<T: ComputeElement>(
    cpu: &Cpu,
    shape: &ReduceShape,
    input: &[T],
    output: &mut [T],
    finish: fn(f64, f64, usize) -> f64,
) {
    let Some(factor) = (const { overflow_scale::<T>() }) else { return };
    // A single element is its own sum, in which nothing can cancel.
    if shape.share < 2 {
        return;
    }
    // The grain is that of the test for infinity alone, as hardly any result is computed again.
    parallel_for_parts(cpu, output.len(), GRAIN, OutputRows::new(output, 1), |begin, part| {
        for (index, result) in part.iter_mut().enumerate() {
            // Also false for NaN, which a comparison with infinity would miss.
            if result.to_float().magnitude() < T::Float::GREATEST {
                continue;
            }
            let sum = sum_scaled(shape, input, begin + index, factor);
            *result = T::from_float(T::Float::from_f64(finish(sum, factor, shape.share)));
        }
    });
}

/// The sum of the elements of one output, each multiplied by a factor.
fn sum_scaled<T: ComputeElement>(shape: &ReduceShape, input: &[T], item: usize, factor: f64) -> f64 {
    let length = if shape.last_is_reduced { shape.last } else { 1 };
    // One thread adds all of them in the order of the input, so the number of threads does not change a bit.
    let mut all = 0.0;
    for index in (0..shape.share).step_by(length) {
        let line = &input[shape.element_offset(item, index)..][..length];
        for piece in line.chunks(GRAIN) {
            all += fold_slice(
                piece,
                0.0,
                |sum, element| sum + element.to_float().to_f64() * factor,
                |a, b| a + b,
            );
            // NaN stays NaN, whatever follows.
            if all.is_nan() {
                return all;
            }
        }
    }
    all
}
