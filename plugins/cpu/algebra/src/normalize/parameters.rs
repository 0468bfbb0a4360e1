//! Scales, biases and statistics of channels, which are few and of any float dtype.

use oarlock_cpu_base::compute_element::{ComputeElement, ComputeFloat};
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::operands::KernelOperands;
use oarlock_sdk::{Result, TensorView, dispatch, ensure};

/// An input in the compute type.
pub(super) fn read_parameter<F: ComputeFloat>(
    operands: &KernelOperands<'_, '_>,
    index: usize,
) -> Result<Vec<F>> {
    let dtype = operands.call().input(index)?.dtype();
    dispatch!(dtype, floating_and_half + bf16, T => {
        // By way of `f64`, which holds every value of the other floats.
        Ok(operands.read_input::<T>(index)?.iter().map(|value| F::from_f64(value.to_float().to_f64())).collect())
    })
}

/// An input with one value per channel or group.
pub(super) fn read_per_channel<F: ComputeFloat>(
    operands: &KernelOperands<'_, '_>,
    index: usize,
    count: usize,
) -> Result<Vec<F>> {
    let found = operands.call().input(index)?;
    ensure!(
        found.dims() == [count as i64],
        invalid_argument,
        "expected input {index} of shape [{count}], found {:?}",
        found.dims()
    );
    read_parameter(operands, index)
}

/// An input broadcast to a shape; missing leading dimensions count as 1.
pub(super) fn read_broadcast<F: ComputeFloat>(
    operands: &KernelOperands<'_, '_>,
    index: usize,
    dims: &[i64],
) -> Result<Option<Vec<F>>> {
    let Some(found) = operands.call().optional_input(index)? else { return Ok(None) };
    let values = read_parameter(operands, index)?;
    if found.dims() == dims {
        return Ok(Some(values));
    }
    let steps = broadcast_strides(&found, index, dims)?;
    let count = dims.iter().product::<i64>() as usize;
    let repeated = |place: usize| {
        let (mut place, mut at) = (place, 0);
        for (dim, step) in dims.iter().zip(&steps).rev() {
            at += place % *dim as usize * step;
            place /= *dim as usize;
        }
        values[at]
    };
    Ok(Some((0..count).map(repeated).collect()))
}

/// Strides along each dimension of the shape; 0 where the input is broadcast.
fn broadcast_strides(found: &TensorView<'_>, index: usize, dims: &[i64]) -> Result<Vec<usize>> {
    let fits = found.dims().len() <= dims.len()
        && found.dims().iter().rev().zip(dims.iter().rev()).all(|(own, dim)| *own == 1 || own == dim);
    ensure!(
        fits,
        invalid_argument,
        "expected input {index} of a shape that can be repeated to {dims:?}, found {:?}",
        found.dims()
    );
    let mut steps = vec![0; dims.len()];
    let mut step = 1;
    for (own, target) in found.dims().iter().rev().zip(steps.iter_mut().rev()) {
        *target = if *own == 1 { 0 } else { step };
        step *= *own as usize;
    }
    Ok(steps)
}
