//! `MeanVarianceNormalization`: over any axes, to mean 0 and variance 1.

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::compute_element::FloatElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::axis;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::with_isa;
use oarlock_sdk::{Kernel, KernelCall, KernelFlags, Result, dispatch};

use super::moments::mean_and_variance;
use super::real_operand;
use crate::reduce::ReduceShape;

/// Added to each standard deviation, as in the schema.
const EPSILON: f64 = 1e-9;

pub(super) fn mean_variance_kernels() -> Vec<Kernel<Cpu>> {
    let plan = |call: &KernelCall<'_>| Ok(call.ints_attribute("axes")?.unwrap_or(&[0, 2, 3]).to_vec());
    let normalization =
        operand_kernel("MeanVarianceNormalization", plan, |cpu, axes: &Vec<i64>, operands| {
            let dtype = operands.call().input(0)?.dtype();
            dispatch!(dtype, floating_and_half + bf16, T => run_mean_variance::<T>(cpu, axes, operands))
        });
    vec![
        normalization
            .since_version(9)
            .with_flags(KernelFlags::DETERMINISTIC)
            .with_inputs([real_operand("X")])
            .with_outputs([real_operand("Y")]),
    ]
}

fn run_mean_variance<T: FloatElement>(
    cpu: &Cpu,
    axes: &[i64],
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
    let (x, y) = (operands.call().input(0)?, operands.call().output(0)?);
    operands.expect_dims(&y, "Y", x.dims())?;
    let shape = ReduceShape::new(x.dims(), &axis::axes_mask(axes, x.dims().len())?)?;
    let (input, output) = (operands.read_input::<T>(0)?, operands.write_output::<T>(0)?);
    if output.is_empty() {
        return Ok(());
    }
    // The axes can be any, so the elements of a group may lie anywhere. They are gathered once for all passes.
    let (mut gathered, run) = (vec![T::Float::ZERO; shape.share], shape.contiguous_run());
    for group in 0..output.len() / shape.share {
        for (index, gathered) in gathered.chunks_exact_mut(run).enumerate() {
            let input = &input[shape.element_offset(group, index * run)..];
            gathered.iter_mut().zip(input).for_each(|(float, element)| *float = element.to_float());
        }
        let (mean, variance) = with_isa!(cpu.isa(), || mean_and_variance(&gathered));
        // Beside the root and not below it: this op adds epsilon to the deviation, others add it to the
        // variance.
        let factor = T::Float::ONE / (variance.square_root() + T::Float::from_f64(EPSILON));
        for (index, gathered) in gathered.chunks_exact(run).enumerate() {
            let output = &mut output[shape.element_offset(group, index * run)..];
            for (element, float) in output.iter_mut().zip(gathered) {
                *element = T::from_float((*float - mean) * factor);
            }
        }
    }
    Ok(())
}
