//! `DynamicQuantizeLinear`: the scale is made of the smallest and the largest element.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::{Mutex, PoisonError};

use oarlock_sdk::{Call, DtypeSet, Kernel, KernelFlags, Operand, Result, ensure};

use super::super::number::Number;
use crate::device::Cpu;
use crate::isa::{Target, Vectorized};
use crate::kernels::quantized::linear::quantize;

/// Elements that are worth a thread.
const GRAIN: usize = 8192;

/// The smallest and the largest of some elements and 0.
struct Range<'a>(&'a [f32]);

impl Vectorized for Range<'_> {
    type Output = (f32, f32);

    #[inline(always)]
    fn run<T: Target>(self) -> (f32, f32) {
        const LANES: usize = 32;
        let (mut low, mut high) = ([0f32; LANES], [0f32; LANES]);
        let (chunks, rest) = self.0.as_chunks::<LANES>();
        for chunk in chunks {
            for lane in 0..LANES {
                low[lane] = chunk[lane].smaller(low[lane]);
                high[lane] = chunk[lane].larger(high[lane]);
            }
        }
        let low = low.iter().chain(rest).fold(0f32, |low, x| x.smaller(low));
        let high = high.iter().chain(rest).fold(0f32, |high, x| x.larger(high));
        (low, high)
    }
}

fn range(cpu: &Cpu, elements: &[f32]) -> (f32, f32) {
    let range = Mutex::new((0f32, 0f32));
    cpu.parallel_for(elements.len(), GRAIN, |begin, end| {
        let (low, high) = cpu.isa().vectorize(Range(&elements[begin..end]));
        let mut range = range.lock().unwrap_or_else(PoisonError::into_inner);
        *range = (low.smaller(range.0), high.larger(range.1));
    });
    range.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn run(cpu: &Cpu, call: &Call<'_>) -> Result<()> {
    let (x, y, scale_output, zero_output) =
        (call.input(0)?, call.output(0)?, call.output(1)?, call.output(2)?);
    // SAFETY: the device's memory is the host's, and the call vouches for its operands, which no two share.
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

/// Makes bytes of floats, and says their scale and zero point.
pub(crate) fn quantize_by_range(cpu: &Cpu, x: &[f32], y: &mut [u8]) -> (f32, u8) {
    let (low, high) = range(cpu, x);
    let scale = (high - low) / 255.0;
    let zero = if scale == 0.0 { 0.0 } else { (-low / scale).clamp(0.0, 255.0).round_ties_even() };
    if zero.is_nan() {
        // Nothing that a zero point of no number is added to is one.
        y.fill(0);
    } else {
        // All elements are 0 where the scale is, and any other scale will do.
        let divisor = if scale == 0.0 { 1.0 } else { scale };
        quantize(cpu, x, (divisor, zero as u8), [-zero, 255.0 - zero], y);
    }
    (scale, zero as u8)
}

/// The row of `DynamicQuantizeLinear`.
pub(super) fn kernel() -> Kernel<Cpu> {
    Kernel::new("DynamicQuantizeLinear", run)
        .since(11)
        .flags(KernelFlags::DETERMINISTIC)
        .inputs([Operand::new(DtypeSet::F32).named("x")])
        .outputs([
            Operand::new(DtypeSet::U8).named("y"),
            Operand::new(DtypeSet::F32).named("y_scale"),
            Operand::new(DtypeSet::U8).named("y_zero_point"),
        ])
}
