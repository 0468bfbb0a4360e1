//! `DynamicQuantizeLinear`: the scale follows from the smallest and the largest element.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::{Mutex, PoisonError};

use oarlock_sdk::{DtypeSet, Kernel, KernelCall, KernelFlags, OperandSpec, Result, ensure};

use super::super::number::ArithmeticElement;
use crate::device::Cpu;
use crate::isa::{SimdTarget, SimdTask};
use crate::kernels::quantized::quantize_linear::quantize_floats;

/// Fewer elements are not worth another thread.
const GRAIN: usize = 8192;

/// The smallest and the largest of some elements and 0.
struct ValueRangeTask<'a>(&'a [f32]);

impl SimdTask for ValueRangeTask<'_> {
    type Output = (f32, f32);

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) -> (f32, f32) {
        // 32 `f32` are four ymm or two zmm registers, for `low` and for `high`: independent chains hide the latency of a minimum.
        const LANES: usize = 32;
        let (mut low, mut high) = ([0f32; LANES], [0f32; LANES]);
        let (chunks, rest) = self.0.as_chunks::<LANES>();
        for chunk in chunks {
            for lane in 0..LANES {
                low[lane] = chunk[lane].smaller_or_nan(low[lane]);
                high[lane] = chunk[lane].larger_or_nan(high[lane]);
            }
        }
        let low = low.iter().chain(rest).fold(0f32, |low, x| x.smaller_or_nan(low));
        let high = high.iter().chain(rest).fold(0f32, |high, x| x.larger_or_nan(high));
        (low, high)
    }
}

fn value_range(cpu: &Cpu, elements: &[f32]) -> (f32, f32) {
    let range = Mutex::new((0f32, 0f32));
    cpu.parallel_for(elements.len(), GRAIN, |begin, end| {
        let (low, high) = cpu.isa().vectorize(ValueRangeTask(&elements[begin..end]));
        let mut range = range.lock().unwrap_or_else(PoisonError::into_inner);
        *range = (low.smaller_or_nan(range.0), high.larger_or_nan(range.1));
    });
    range.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn run_dynamic_quantize(cpu: &Cpu, call: &KernelCall<'_>) -> Result<()> {
    let (x, y, scale_output, zero_output) =
        (call.input(0)?, call.output(0)?, call.output(1)?, call.output(2)?);
    // SAFETY: the device's memory is the host's, and the call vouches for its operands, which do not overlap.
    let (x, y, scale_to, zero_to) = unsafe {
        let to = (scale_output.elements_mut::<f32>()?, zero_output.elements_mut::<u8>()?);
        (x.elements::<f32>()?, y.elements_mut::<u8>()?, to.0, to.1)
    };
    ensure!(
        scale_to.len() == 1 && zero_to.len() == 1 && x.len() == y.len(),
        invalid_argument,
        "expected one scale, one zero point and {} numbers, found room for {}, {} and {}",
        x.len(),
        scale_to.len(),
        zero_to.len(),
        y.len()
    );
    (scale_to[0], zero_to[0]) = quantize_by_range(cpu, x, y);
    Ok(())
}

/// Quantizes floats to bytes, and returns their scale and zero point.
pub(crate) fn quantize_by_range(cpu: &Cpu, x: &[f32], y: &mut [u8]) -> (f32, u8) {
    let (low, high) = value_range(cpu, x);
    let scale = (high - low) / 255.0;
    let zero = if scale == 0.0 { 0.0 } else { (-low / scale).clamp(0.0, 255.0).round_ties_even() };
    if zero.is_nan() {
        // A NaN zero point makes every result NaN, which no byte can hold.
        y.fill(0);
    } else {
        // The scale is 0 only if all elements are 0, and then any other divisor will do.
        let divisor = if scale == 0.0 { 1.0 } else { scale };
        quantize_floats(cpu, x, (divisor, zero as u8), [-zero, 255.0 - zero], y);
    }
    (scale, zero as u8)
}

pub(super) fn dynamic_quantize_kernel() -> Kernel<Cpu> {
    Kernel::new("DynamicQuantizeLinear", run_dynamic_quantize)
        .since_version(11)
        .with_flags(KernelFlags::DETERMINISTIC)
        .with_inputs([OperandSpec::new(DtypeSet::F32).with_name("x")])
        .with_outputs([
            OperandSpec::new(DtypeSet::U8).with_name("y"),
            OperandSpec::new(DtypeSet::F32).with_name("y_scale"),
            OperandSpec::new(DtypeSet::U8).with_name("y_zero_point"),
        ])
}
