//! `HannWindow`, `HammingWindow` and `BlackmanWindow`: sums of cosines.

use std::f64::consts::TAU;

use oarlock_cpu_base::compute_element::ComputeElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_sdk::{DtypeSet, Kernel, OperandSpec, PluginError, Result, dispatch, family};

use super::dft::optional_integer;
use super::length_operand;

pub(super) const WINDOW_DTYPES: DtypeSet = family::FLOATING_AND_INTEGRAL
    .union(DtypeSet::F16)
    .union(DtypeSet::BF16)
    .union(DtypeSet::U16)
    .union(DtypeSet::U32)
    .union(DtypeSet::U64);

/// The weights of the cosines of 0, 1 and 2 turns.
type CosineWeights = [f64; 3];

const HANN: CosineWeights = [0.5, -0.5, 0.0];
// ONNX has these fractions where others round to 0.54 and 0.46.
const HAMMING: CosineWeights = [25.0 / 46.0, -21.0 / 46.0, 0.0];
const BLACKMAN: CosineWeights = [0.42, -0.5, 0.08];

pub(super) fn window_kernels() -> Vec<Kernel<Cpu>> {
    let row = |op: &str, weights: CosineWeights| {
        let plan = move |call: &oarlock_sdk::KernelCall<'_>| {
            Ok((weights, call.int_attribute("periodic")?.unwrap_or(1) != 0))
        };
        operand_kernel(op, plan, |_, (weights, is_periodic), operands| {
            let dtype = operands.call().output(0)?.dtype();
            dispatch!(dtype, floating_and_integral + f16 + bf16 + u16 + u32 + u64, T => {
                write_window::<T>(weights, *is_periodic, operands)
            })
        })
        .since_version(17)
        .with_inputs([length_operand("size")])
        .with_outputs([OperandSpec::new(WINDOW_DTYPES).with_name("output").with_rank(1, 1)])
    };
    vec![row("HannWindow", HANN), row("HammingWindow", HAMMING), row("BlackmanWindow", BLACKMAN)]
}

fn write_window<T: ComputeElement>(
    weights: &CosineWeights,
    is_periodic: bool,
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
    let size = optional_integer(operands, 0)?.filter(|size| *size >= 0);
    let size =
        size.ok_or_else(|| PluginError::invalid_argument("expected `size` of at least 0, found another"))?;
    operands.expect_dims(&operands.call().output(0)?, "output", &[size])?;
    // A symmetric window ends where the next period would begin.
    // At least 1, as 0 must not divide.
    let period = if is_periodic { size } else { size - 1 }.max(1) as f64;
    for (index, out) in operands.write_output::<T>(0)?.iter_mut().enumerate() {
        let turn = TAU * index as f64 / period;
        let value = weights[0] + weights[1] * turn.cos() + weights[2] * (2.0 * turn).cos();
        // A window of one element cannot fade.
        let value = if size == 1 { 1.0 } else { value };
        *out = T::from_float(T::Float::from_f64(value));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    #[test]
    fn windows_are_symmetric_or_part_of_a_period() {
        let (size, symmetric) = (TestArray::from_values(&[], &[3i64]), [("periodic", TestAttribute::Int(0))]);
        KERNELS.check_kernel(
            "HannWindow",
            17,
            &symmetric,
            &[Some(&size)],
            &[TestArray::from_values(&[3], &[0f32, 1., 0.])],
        );
        KERNELS.check_kernel(
            "HannWindow",
            17,
            &[],
            &[Some(&size)],
            &[TestArray::from_values(&[3], &[0f32, 0.75, 0.75])],
        );
        let one = TestArray::from_values(&[1], &[1i32]);
        KERNELS.check_kernel(
            "BlackmanWindow",
            17,
            &symmetric,
            &[Some(&one)],
            &[TestArray::from_values(&[1], &[1f64])],
        );
    }

    #[test]
    fn a_window_of_negative_size_is_refused() {
        let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::F32, &[0]))];
        for size in [-1, i64::MIN] {
            KERNELS.refusal_message(
                "HannWindow",
                17,
                &[],
                &[Some(&TestArray::from_values(&[], &[size]))],
                &outputs,
            );
        }
    }
}
