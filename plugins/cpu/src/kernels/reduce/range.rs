//! Sums of finite numbers that leave the range of their type on the way, and would be within it in the end: where one lane has
//! become infinite and another its opposite, together they are no number. Those sums, which are few, are made again in a wider
//! range. How lanes meet then decides nothing, so that any number of threads gives the same bits.

use oarlock_sdk::{Dtype, Element};

use super::shape::Shape;
use crate::device::Cpu;
use crate::kernels::rows::GRAIN;
use crate::kernels::rows::fold::fold;
use crate::kernels::rows::number::{Exact, Float, Number};
use crate::kernels::rows::parts::{Rows, in_parallel};

/// What elements are multiplied by to be summed in `f64`, so that no sum of them leaves its range; none for types whose sums
/// do not leave theirs.
const fn factor<T: Element>() -> Option<f64> {
    match T::DTYPE {
        Dtype::F32 | Dtype::BF16 => Some(1.0),
        // 2 to the power of -64: there are fewer elements than that would take.
        Dtype::F64 => Some(1.0 / 18_446_744_073_709_551_616.0),
        _ => None,
    }
}

/// Makes again what is not finite among the results of a reduction of sums, in which large elements may cancel each other.
/// `finish` says what becomes of the sum of so many elements.
pub(super) fn mend<T: Number>(
    cpu: &Cpu,
    shape: &Shape,
    input: &[T],
    output: &mut [T],
    finish: fn(f64, usize) -> f64,
) {
    let Some(factor) = (const { factor::<T>() }) else { return };
    if shape.share < 2 {
        return;
    }
    in_parallel(cpu, output.len(), GRAIN, Rows::new(output, 1), |begin, part| {
        for (index, result) in part.iter_mut().enumerate() {
            if result.float().magnitude() < T::Float::GREATEST {
                continue;
            }
            let sum = sum(shape, input, begin + index, factor);
            *result = T::of_float(T::Float::of(finish(sum, shape.share) / factor));
        }
    });
}

/// The sum of the elements that become one output, each multiplied by a factor.
fn sum<T: Number>(shape: &Shape, input: &[T], item: usize, factor: f64) -> f64 {
    let length = if shape.last_is_reduced { shape.last } else { 1 };
    let mut all = 0.0;
    for index in (0..shape.share).step_by(length) {
        let line = &input[shape.place(item, index)..][..length];
        for piece in line.chunks(GRAIN) {
            all += fold(piece, 0.0, |sum, element| sum + element.float().to_f64() * factor, |a, b| a + b);
            // It stays so, whatever comes.
            if all.is_nan() {
                return all;
            }
        }
    }
    all
}
