//! `DynamicQuantizeLinear`, which derives the scale from the smallest and the largest element.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::{Mutex, PoisonError};

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::{SimdTarget, SimdTask};
use oarlock_sdk::{DtypeSet, Kernel, KernelCall, KernelFlags, OperandSpec, Result, ensure};

use crate::quantized::quantize_linear::quantize_floats;

/// Processing fewer elements than this is faster than waking another thread.
const GRAIN: usize = 8192;

/// Finds the minimum and the maximum of some elements and 0.
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
                low[lane] = ArithmeticElement::minimum(chunk[lane], low[lane]);
                high[lane] = ArithmeticElement::maximum(chunk[lane], high[lane]);
            }
        }
        let low = low.iter().chain(rest).fold(0f32, |low, x| ArithmeticElement::minimum(*x, low));
        let high = high.iter().chain(rest).fold(0f32, |high, x| ArithmeticElement::maximum(*x, high));
        (low, high)
    }
}

fn value_range(cpu: &Cpu, elements: &[f32]) -> (f32, f32) {
    let range = Mutex::new((0f32, 0f32));
    cpu.parallel_for(elements.len(), GRAIN, |begin, end| {
        let (low, high) = cpu.isa().vectorize(ValueRangeTask(&elements[begin..end]));
        let mut range = range.lock().unwrap_or_else(PoisonError::into_inner);
        // Minimum and maximum do not depend on the order, so threads may come in any.
        *range = (ArithmeticElement::minimum(low, range.0), ArithmeticElement::maximum(high, range.1));
    });
    range.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn run_dynamic_quantize(cpu: &Cpu, call: &KernelCall<'_>) -> Result<()> {
    let (x, y, scale_output, zero_output) =
        (call.input(0)?, call.output(0)?, call.output(1)?, call.output(2)?);
    // SAFETY: the device uses host memory, and the call vouches for its operands, which do not overlap.
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
pub fn quantize_by_range(cpu: &Cpu, x: &[f32], y: &mut [u8]) -> (f32, u8) {
    let (low, high) = value_range(cpu, x);
    let scale = (high - low) / 255.0;
    let zero = if scale == 0.0 { 0.0 } else { (-low / scale).clamp(0.0, 255.0).round_ties_even() };
    if zero.is_nan() {
        // A NaN zero point would make every result NaN, which no byte can represent.
        y.fill(0);
    } else {
        // The scale is 0 only if all elements are 0 or subnormal, and these also round to 0 when divided by 1.
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

#[cfg(test)]
mod tests {
    use oarlock_cpu_testing::runner::TestArray;
    use oarlock_sdk::Dtype;

    use crate::KERNELS;

    #[test]
    fn a_scale_is_made_of_the_smallest_and_the_largest() {
        let run = |x: &[f32]| {
            let dims = [x.len() as i64];
            let outputs =
                [Some((Dtype::U8, &dims[..])), Some((Dtype::F32, &[][..])), Some((Dtype::U8, &[][..]))];
            let found = KERNELS
                .run_with_isa(
                    "",
                    "DynamicQuantizeLinear",
                    11,
                    &[],
                    &[Some(&TestArray::from_values(&dims, x))],
                    &outputs,
                )
                .unwrap();
            let [y, scale, zero] = [0, 1, 2].map(|index: usize| found[index].clone().unwrap());
            (y.values::<u8>(), scale.values::<f32>()[0], zero.values::<u8>()[0])
        };
        let (y, scale, zero) = run(&[0.0, 2.0, -3.0, -2.5, 1.34, 0.5]);
        assert_eq!((y, zero), (vec![153, 255, 0, 26, 221, 179], 153));
        assert!((scale - 5.0 / 255.0).abs() < 1e-8);
        assert_eq!(run(&[1.0, 2.1, 1.3, 2.5, 3.34, 4.0]).0, [64, 134, 83, 159, 213, 255]);
        assert_eq!(run(&[0.0; 3]), (vec![0; 3], 0.0, 0));
        let many: Vec<f32> = (0..20_000).map(|x| x as f32 - 5000.0).collect();
        assert_eq!(run(&many).2, 64);
    }

    #[test]
    fn numbers_of_any_kind_become_bytes_as_the_formula_has_it() {
        let ordinary: Vec<f32> = (0..1000).map(|at| ((at * 7919) % 997) as f32 * 0.37 - 150.0).collect();
        let with = |special: &[f32]| [&ordinary[..], special].concat();
        let cases = [
            vec![],
            vec![-0.0],
            ordinary.clone(),
            ordinary.iter().map(|x| x.abs() + 3.0).collect(),
            ordinary.iter().map(|x| -x.abs()).collect(),
            with(&[f32::NAN]),
            with(&[f32::INFINITY]),
            with(&[f32::NEG_INFINITY]),
            with(&[f32::MAX, f32::MIN]),
            vec![1e-40, -1e-41, 0.0],
        ];
        for (x, isa) in cases.iter().flat_map(|x| ["scalar", "sse4.1", "avx2", "avx512"].map(|isa| (x, isa)))
        {
            let dims = [x.len() as i64];
            let outputs =
                [Some((Dtype::U8, &dims[..])), Some((Dtype::F32, &[][..])), Some((Dtype::U8, &[][..]))];
            let inputs = [Some(&TestArray::from_values(&dims, x))];
            let found =
                KERNELS.run_with_isa(isa, "DynamicQuantizeLinear", 11, &[], &inputs, &outputs).unwrap();
            let [y, scale, zero] = [0, 1, 2].map(|index: usize| found[index].clone().unwrap());
            let is_number = x.iter().all(|x| !x.is_nan());
            let [low, high] = [f32::min, f32::max].map(|pick| x.iter().copied().fold(0.0, pick));
            let step = if is_number { (high - low) / 255.0 } else { f32::NAN };
            let middle = if step == 0.0 { 0.0 } else { (-low / step).clamp(0.0, 255.0).round_ties_even() };
            let divisor = if step == 0.0 { 1.0 } else { step };
            let bytes = x.iter().map(|x| ((x / divisor).round_ties_even() + middle).clamp(0.0, 255.0) as u8);
            assert_eq!(y.values::<u8>(), bytes.collect::<Vec<u8>>(), "{step} on {isa}");
            assert_eq!(scale.values::<f32>()[0].to_bits(), step.to_bits(), "{isa}");
            assert_eq!(zero.values::<u8>()[0], middle as u8, "{step} on {isa}");
        }
    }
}
