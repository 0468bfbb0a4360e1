//! The kernels `AveragePool` and `LpPool`.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::compute_element::ComputeElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::window::WindowAttributes;
use oarlock_sdk::{Dtype, Kernel, KernelCall, KernelFlags, OperandSpec, Result, dispatch, ensure};

use super::window_reduce::{WindowReduction, reduce_windows};
use super::{FLOATS, PoolShape};

pub(super) fn average_pool_kernels() -> [Kernel<Cpu>; 2] {
    let image = OperandSpec::new(FLOATS).with_dtype_group(1).with_rank(3, u32::MAX);
    let average = Kernel::new_prepared("AveragePool", |_: &Cpu, call| {
        let settings = WindowAttributes::new(call)?;
        let with_padding = call.int_attribute("count_include_pad")?.unwrap_or(0) != 0;
        Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| {
            let pool = PoolShape::new(&settings, call)?;
            dispatch!(call.output(0)?.dtype(), floating_and_half + bf16, T => {
                run_average_pool::<T, _>(cpu, call, &pool, with_padding, &MeanReduction)
            })
        }))
    });
    // Padding is zeros, which do not change a norm, so it is never counted.
    let norm = Kernel::new_prepared("LpPool", |_: &Cpu, call| {
        let (settings, norm) = (WindowAttributes::new(call)?, NormReduction::new(call)?);
        Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| {
            let pool = PoolShape::new(&settings, call)?;
            dispatch!(call.output(0)?.dtype(), floating_and_half + bf16, T => {
                run_average_pool::<T, _>(cpu, call, &pool, false, &norm)
            })
        }))
    })
    .since_version(2);
    [average, norm].map(|kernel| {
        kernel
            .with_flags(KernelFlags::DETERMINISTIC)
            .with_inputs([image.with_name("X")])
            .with_outputs([image.with_name("Y")])
    })
}

/// The type in which averages are computed. 16-bit floats are summed in `f32`: a sum of 2048 ones in `f16` would not grow any more.
pub(super) trait AverageAccumulator: MathFloat {
    fn divide_by_count(self, count: usize) -> Self;

    /// An integer power.
    fn powi(self, exponent: i32) -> Self;

    /// An integer root.
    fn nth_root(self, degree: i32) -> Self;
}

macro_rules! wide {
    ($($float:ident)*) => {
        $(impl AverageAccumulator for $float {
            #[inline(always)]
            fn divide_by_count(self, count: usize) -> Self {
                // The mean of an empty window is 0 instead of 0/0.
                self / count.max(1) as $float
            }

            #[inline(always)]
            fn powi(self, exponent: i32) -> Self {
                $float::powi(self, exponent)
            }

            #[inline(always)]
            fn nth_root(self, degree: i32) -> Self {
                match degree {
                    1 => self,
                    // `sqrt` is correctly rounded and a single instruction; `powf` is neither.
                    2 => self.sqrt(),
                    _ => self.powf(1.0 / degree as $float),
                }
            }
        })*
    };
}

wide!(f32 f64);
/// The mean of the elements that count.
pub(super) struct MeanReduction;

impl<E: ComputeElement<Float: AverageAccumulator>> WindowReduction<E> for MeanReduction {
    type Accumulator = E::Float;

    const IS_VECTORIZED: bool = !matches!(E::DTYPE, Dtype::F64);

    #[inline(always)]
    fn initial_accumulator(&self) -> E::Float {
        E::Float::ZERO
    }

    #[inline(always)]
    fn accumulate_element(&self, sum: E::Float, element: E) -> E::Float {
        sum + element.to_float()
    }

    #[inline(always)]
    fn merge_accumulators(&self, left: E::Float, right: E::Float) -> E::Float {
        left + right
    }

    #[inline(always)]
    fn finish_window(&self, sum: E::Float, count: usize) -> E {
        E::from_float(sum.divide_by_count(count))
    }
}

/// The p-norm: the p-th root of the sum of p-th powers.
pub(super) struct NormReduction {
    degree: i32,
}

impl NormReduction {
    pub(super) fn new(call: &KernelCall<'_>) -> Result<Self> {
        let degree = call.int_attribute("p")?.unwrap_or(2);
        ensure!(
            // For a higher degree, the norm equals the maximum within rounding, and powers overflow long before.
            (1..=1024).contains(&degree),
            invalid_argument,
            "expected `p` between 1 and 1024, found {degree}"
        );
        Ok(Self { degree: degree as i32 })
    }
}

impl<E: ComputeElement<Float: AverageAccumulator>> WindowReduction<E> for NormReduction {
    type Accumulator = E::Float;

    const IS_VECTORIZED: bool = matches!(E::DTYPE, Dtype::F32);

    #[inline(always)]
    fn initial_accumulator(&self) -> E::Float {
        E::Float::ZERO
    }

    #[inline(always)]
    fn accumulate_element(&self, sum: E::Float, element: E) -> E::Float {
        let element = element.to_float().magnitude();
        // The common degree without a loop over the bits of the exponent.
        sum + if self.degree == 2 { element * element } else { element.powi(self.degree) }
    }

    #[inline(always)]
    fn merge_accumulators(&self, left: E::Float, right: E::Float) -> E::Float {
        left + right
    }

    #[inline(always)]
    fn finish_window(&self, sum: E::Float, _count: usize) -> E {
        E::from_float(sum.nth_root(self.degree))
    }
}

fn run_average_pool<E: ComputeElement, F: WindowReduction<E>>(
    cpu: &Cpu,
    call: &KernelCall<'_>,
    pool: &PoolShape,
    with_padding: bool,
    reduction: &F,
) -> Result<()> {
    let (x, y) = (call.input(0)?, call.output(0)?);
    // SAFETY: device memory is host memory, and the call guarantees its operands.
    let (x, y) = unsafe { (x.elements::<E>()?, y.elements_mut::<E>()?) };
    reduce_windows(cpu, pool, with_padding, x, y, reduction);
    Ok(())
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    #[test]
    fn padding_counts_only_on_request() {
        let x = TestArray::from_values(&[1, 1, 3], &[3f32, 6., 9.]);
        for (include, expected) in [(0, [4.5f32, 7.5]), (1, [3.0, 5.0])] {
            let attributes = [
                ("kernel_shape", TestAttribute::Ints(&[3])),
                ("strides", TestAttribute::Ints(&[2])),
                ("pads", TestAttribute::Ints(&[1, 1])),
                ("count_include_pad", TestAttribute::Int(include)),
            ];
            let results = KERNELS
                .run_kernel("AveragePool", 19, &attributes, &[Some(&x)], &[Some((Dtype::F32, &[1, 1, 2]))])
                .unwrap();
            assert_eq!(results[0].as_ref().unwrap().values::<f32>(), expected);
        }
    }

    #[test]
    fn average_pool_excludes_positions_beyond_the_padding() {
        let x = TestArray::from_values(&[1, 1, 4], &[1f32, 2., 3., 4.]);
        let attributes = [
            ("kernel_shape", TestAttribute::Ints(&[3])),
            ("strides", TestAttribute::Ints(&[2])),
            ("ceil_mode", TestAttribute::Int(1)),
            ("count_include_pad", TestAttribute::Int(1)),
        ];
        let results = KERNELS
            .run_kernel("AveragePool", 19, &attributes, &[Some(&x)], &[Some((Dtype::F32, &[1, 1, 2]))])
            .unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<f32>(), [2., 3.5]);
    }

    #[test]
    fn a_norm_is_the_root_of_the_sum_of_powers() {
        let x = TestArray::from_values(&[1, 1, 3], &[3f32, -4., 0.]);
        let attributes = [("kernel_shape", TestAttribute::Ints(&[2])), ("p", TestAttribute::Int(2))];
        let results = KERNELS
            .run_kernel("LpPool", 18, &attributes, &[Some(&x)], &[Some((Dtype::F32, &[1, 1, 2]))])
            .unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<f32>(), [5., 4.]);
    }
}
