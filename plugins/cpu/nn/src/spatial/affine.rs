//! `AffineGrid`: a sampling grid that is rotated, scaled and translated.

use oarlock_cpu_base::compute_element::FloatElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_sdk::shape::element_count;
use oarlock_sdk::{DtypeSet, Kernel, MemoryKind, OperandSpec, PluginError, Result, dispatch};

use super::SPATIAL_FLOATS;

fn affine_grid_kernel() -> Kernel<Cpu> {
    let number = OperandSpec::new(SPATIAL_FLOATS).with_dtype_group(1);
    operand_kernel(
        "AffineGrid",
        |call| Ok(call.int_attribute("align_corners")?.unwrap_or(0) != 0),
        |cpu, aligns_corners, operands| {
            let dtype = operands.call().input(0)?.dtype();
            dispatch!(dtype, floating_and_half + bf16, T => write_affine_grid::<T>(cpu, *aligns_corners, operands))
        },
    )
    .since_version(20)
    .with_inputs([
        number.with_name("theta").with_rank(3, 3),
        OperandSpec::new(DtypeSet::I64).with_name("size").with_rank(1, 1).in_memory(MemoryKind::HOST),
    ])
    .with_outputs([number.with_name("grid").with_rank(4, 5)])
}

pub(super) fn affine_grid_kernels() -> Vec<Kernel<Cpu>> {
    vec![affine_grid_kernel()]
}

fn write_affine_grid<T: FloatElement>(
    cpu: &Cpu,
    aligns_corners: bool,
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
    let call = operands.call();
    let (theta, grid) = (call.input(0)?, call.output(0)?);
    let sizes = operands.read_input::<i64>(1)?;
    let ([images, _, axes @ ..], 4..=5) = (sizes, sizes.len()) else {
        return Err(PluginError::invalid_argument(format!(
            "expected `size` of 4 or 5 items, found {sizes:?}"
        )));
    };
    let depth = axes.len();
    operands.expect_dims(&theta, "theta", &[*images, depth as i64, depth as i64 + 1])?;
    operands.expect_dims(&grid, "grid", &[&[*images], axes, &[depth as i64]].concat())?;
    let places = element_count(axes)?;
    let theta: Vec<f64> =
        operands.read_input::<T>(0)?.iter().map(|number| number.to_float().to_f64()).collect();
    // The coordinates of each axis from -1 to 1, the last axis first.
    let coordinates: Vec<Vec<f64>> =
        axes.iter().rev().map(|axis| axis_coordinates(*axis as usize, aligns_corners)).collect();
    let out = operands.write_output::<T>(0)?;
    let all = if out.is_empty() { 0 } else { out.len() / depth };
    parallel_for_parts(cpu, all, grain_for(depth * depth), OutputRows::new(out, depth), |first, out| {
        for (index, out) in out.chunks_mut(depth).enumerate() {
            let (image, mut place) = ((first + index) / places, (first + index) % places);
            // In `f64`: in `f32`, a sum of three products of about the size of a coordinate would be off by several ULP.
            let mut sums = [0.0; 3];
            let matrix = &theta[image * depth * (depth + 1)..][..depth * (depth + 1)];
            for (row, sum) in sums[..depth].iter_mut().enumerate() {
                // The last column is the translation.
                *sum = matrix[row * (depth + 1) + depth];
            }
            for (column, coordinates) in coordinates.iter().enumerate() {
                // The position is split along the axes from the last one on, in the order of `coordinates`.
                let coordinate = coordinates[place % coordinates.len()];
                place /= coordinates.len();
                for (row, sum) in sums[..depth].iter_mut().enumerate() {
                    *sum += matrix[row * (depth + 1) + column] * coordinate;
                }
            }
            for (out, sum) in out.iter_mut().zip(sums) {
                *out = T::from_float(T::Float::from_f64(sum));
            }
        }
    });
    Ok(())
}

/// Coordinates from -1 to 1, which are the centers of the outermost elements or their outer edges.
fn axis_coordinates(length: usize, aligns_corners: bool) -> Vec<f64> {
    let place = |index: usize| match (aligns_corners, length) {
        // A single element is the center; the formula below would divide by 0.
        (true, 1) => 0.0,
        (true, _) => 2.0 * index as f64 / (length as f64 - 1.0) - 1.0,
        (false, _) => (2.0 * index as f64 + 1.0) / length as f64 - 1.0,
    };
    (0..length).map(place).collect()
}
