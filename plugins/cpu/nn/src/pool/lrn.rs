//! `LRN`: divides each element by a power of the sum of squares over neighboring channels.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_gemm::{DisjointSlice, StoredElement};
use oarlock_sdk::{
    Kernel, KernelCall, KernelFlags, OperandSpec, PluginError, Result, bf16, dispatch, ensure, f16,
};

use super::{FLOATS, pool_shape_error};

pub(super) fn lrn_kernel() -> Kernel<Cpu> {
    let image = OperandSpec::new(FLOATS).with_dtype_group(1).with_rank(2, u32::MAX);
    Kernel::new_prepared("LRN", |_: &Cpu, call| {
        let settings = LrnSettings::new(call)?;
        Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| {
            dispatch!(call.output(0)?.dtype(), floating_and_half + bf16, T => run_lrn::<T>(cpu, call, settings))
        }))
    })
    .with_flags(KernelFlags::DETERMINISTIC)
    .with_inputs([image.with_name("X")])
    .with_outputs([image.with_name("Y")])
}

#[derive(Clone, Copy)]
struct LrnSettings {
    /// The number of channels before and after.
    around: (usize, usize),
    /// The weight of a sum of squares: alpha divided by the size.
    factor: f64,
    bias: f64,
    exponent: f64,
}

impl LrnSettings {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let size = call.int_attribute("size")?;
        let size =
            size.ok_or_else(|| PluginError::invalid_argument("expected an attribute `size`, found none"))?;
        ensure!(
            (1..=1 << 30).contains(&size),
            invalid_argument,
            "expected `size` from 1 to 2^30, found {size}"
        );
        let before = (size as usize - 1) / 2;
        Ok(Self {
            around: (before, size as usize - 1 - before),
            factor: call.float_attribute("alpha")?.unwrap_or(1e-4) / size as f64,
            bias: call.float_attribute("bias")?.unwrap_or(1.0),
            exponent: call.float_attribute("beta")?.unwrap_or(0.75),
        })
    }
}

/// An element that is normalized in its compute type.
trait LrnElement: StoredElement {
    fn normalize_element(self, sum: Self::ComputeType, settings: LrnSettings) -> Self;
}

macro_rules! normalized {
    ($($element:ty => $computed:ty: $store:expr),*) => {
        $(impl LrnElement for $element {
            fn normalize_element(self, sum: $computed, settings: LrnSettings) -> Self {
                let LrnSettings { factor, bias, exponent, .. } = settings;
                let value: $computed = self.into();
                $store(value / (sum * factor as $computed + bias as $computed).powf(exponent as $computed))
            }
        })*
    };
}

normalized!(f32 => f32: |value| value, f64 => f64: |value| value, f16 => f32: f16::from_f32, bf16 => f32: bf16::from_f32);

fn run_lrn<E: LrnElement>(cpu: &Cpu, call: &KernelCall<'_>, settings: LrnSettings) -> Result<()> {
    let (x, y) = (call.input(0)?, call.output(0)?);
    let dims = x.dims();
    let [_, channels, ..] = x.dims() else { return Err(pool_shape_error(x.dims(), y.dims())) };
    let channels = *channels as usize;
    ensure!(
        x.dims() == y.dims(),
        invalid_argument,
        "expected an output of shape {:?}, found {:?}",
        x.dims(),
        y.dims()
    );
    // SAFETY: device memory is host memory, and the call guarantees its operands.
    let (x, y) = unsafe { (x.elements::<E>()?, y.elements_mut::<E>()?) };
    if y.is_empty() {
        return Ok(());
    }
    let size: usize = dims[2..].iter().map(|dim| *dim as usize).product();
    let (before, after) = settings.around;
    let y = DisjointSlice::new(y);
    cpu.parallel_for(x.len() / size, 1, |begin, end| {
        // Sums of a whole plane, channel by channel: loads have unit stride, and the loop vectorizes.
        let mut sums = vec![E::ComputeType::default(); size];
        for plane in begin..end {
            let (first, channel) = (plane - plane % channels, plane % channels);
            sums.fill(E::ComputeType::default());
            for other in channel.saturating_sub(before)..channels.min(channel + after + 1) {
                for (sum, element) in sums.iter_mut().zip(&x[(first + other) * size..][..size]) {
                    *sum = sum.add_product::<false>(element.convert(), element.convert());
                }
            }
            // SAFETY: no two planes overlap, and each is one thread's.
            let output = unsafe { y.range_mut(plane * size..(plane + 1) * size) };
            for ((output, element), sum) in output.iter_mut().zip(&x[plane * size..]).zip(&sums) {
                *output = element.normalize_element(*sum, settings);
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    #[test]
    fn elements_are_divided_by_their_neighbors_in_other_channels() {
        let x = TestArray::from_values(&[1, 3, 1, 1], &[1f32, 2., 3.]);
        let attributes = [
            ("size", TestAttribute::Int(2)),
            ("alpha", TestAttribute::Float(2.0)),
            ("beta", TestAttribute::Float(1.0)),
            ("bias", TestAttribute::Float(1.0)),
        ];
        let results = KERNELS
            .run_kernel("LRN", 13, &attributes, &[Some(&x)], &[Some((Dtype::F32, &[1, 3, 1, 1]))])
            .unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<f32>(), [1. / 6., 2. / 14., 0.3]);
    }
}
