//! `MeanVarianceNormalization`: over any axes, to mean 0 and variance 1.

use oarlock_sdk::{Call, Kernel, KernelFlags, Result, dispatch};

use super::moments::moments;
use super::real;
use crate::device::Cpu;
use crate::kernels::reduce::Shape;
use crate::kernels::rows::axis;
use crate::kernels::rows::number::{Exact, Float, Real};
use crate::kernels::rows::operands::{Operands, kernel};
use crate::kernels::rows::vector::with_isa;

/// What the schema adds to each standard deviation.
const EPSILON: f64 = 1e-9;

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let plan = |call: &Call<'_>| Ok(call.ints("axes")?.unwrap_or(&[0, 2, 3]).to_vec());
    let normalization = kernel("MeanVarianceNormalization", plan, |cpu, axes: &Vec<i64>, operands| {
        let dtype = operands.call().input(0)?.dtype();
        dispatch!(dtype, floating_and_half + bf16, T => run::<T>(cpu, axes, operands))
    });
    vec![normalization.since(9).flags(KernelFlags::DETERMINISTIC).inputs([real("X")]).outputs([real("Y")])]
}

fn run<T: Real>(cpu: &Cpu, axes: &[i64], operands: &Operands<'_, '_>) -> Result<()> {
    let (x, y) = (operands.call().input(0)?, operands.call().output(0)?);
    operands.expect_dims(&y, "Y", x.dims())?;
    let shape = Shape::new(x.dims(), &axis::mask(axes, x.dims().len())?)?;
    let (input, output) = (operands.read::<T>(0)?, operands.write::<T>(0)?);
    if output.is_empty() {
        return Ok(());
    }
    let mut gathered = vec![T::Float::ZERO; shape.share];
    for group in 0..output.len() / shape.share {
        for (index, element) in gathered.iter_mut().enumerate() {
            *element = input[shape.place(group, index)].float();
        }
        let (mean, variance) = with_isa!(cpu.isa(), || moments(&gathered));
        let factor = T::Float::ONE / (variance.root() + T::Float::of(EPSILON));
        for (index, element) in gathered.iter().enumerate() {
            output[shape.place(group, index)] = T::of_float((*element - mean) * factor);
        }
    }
    Ok(())
}
