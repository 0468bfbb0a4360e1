//! `AffineGrid`: the places that a grid comes from when it is turned, scaled and moved.

use oarlock_sdk::{DtypeSet, Error, Kernel, MemoryKind, Operand, Result, dispatch};

use super::FLOATS;
use crate::device::Cpu;
use crate::kernels::rows::axis::count;
use crate::kernels::rows::grain;
use crate::kernels::rows::number::{Float, Real};
use crate::kernels::rows::operands::{Operands, kernel};
use crate::kernels::rows::parts::{Rows, in_parallel};

fn row() -> Kernel<Cpu> {
    let number = Operand::new(FLOATS).group(1);
    kernel(
        "AffineGrid",
        |call| Ok(call.int("align_corners")?.unwrap_or(0) != 0),
        |cpu, aligns_corners, operands| {
            let dtype = operands.call().input(0)?.dtype();
            dispatch!(dtype, floating_and_half + bf16, T => place::<T>(cpu, *aligns_corners, operands))
        },
    )
    .since(20)
    .inputs([
        number.named("theta").rank(3, 3),
        Operand::new(DtypeSet::I64).named("size").rank(1, 1).on(MemoryKind::HOST),
    ])
    .outputs([number.named("grid").rank(4, 5)])
}

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    vec![row()]
}

fn place<T: Real>(cpu: &Cpu, aligns_corners: bool, operands: &Operands<'_, '_>) -> Result<()> {
    let call = operands.call();
    let (theta, grid) = (call.input(0)?, call.output(0)?);
    let sizes = operands.read::<i64>(1)?;
    let ([images, _, axes @ ..], 4..=5) = (sizes, sizes.len()) else {
        return Err(Error::invalid_argument(format!("expected `size` of 4 or 5 items, found {sizes:?}")));
    };
    let depth = axes.len();
    operands.expect_dims(&theta, "theta", &[*images, depth as i64, depth as i64 + 1])?;
    operands.expect_dims(&grid, "grid", &[&[*images], axes, &[depth as i64]].concat())?;
    let places = count(axes)?;
    let theta: Vec<f64> = operands.read::<T>(0)?.iter().map(|number| number.float().to_f64()).collect();
    // The places of each axis from -1 to 1, the last axis first.
    let coordinates: Vec<Vec<f64>> =
        axes.iter().rev().map(|axis| along(*axis as usize, aligns_corners)).collect();
    let out = operands.write::<T>(0)?;
    let all = if out.is_empty() { 0 } else { out.len() / depth };
    in_parallel(cpu, all, grain(depth * depth), Rows::new(out, depth), |first, out| {
        for (index, out) in out.chunks_mut(depth).enumerate() {
            let (image, mut place) = ((first + index) / places, (first + index) % places);
            let mut sums = [0.0; 3];
            let matrix = &theta[image * depth * (depth + 1)..][..depth * (depth + 1)];
            for (row, sum) in sums[..depth].iter_mut().enumerate() {
                *sum = matrix[row * (depth + 1) + depth];
            }
            for (column, coordinates) in coordinates.iter().enumerate() {
                let coordinate = coordinates[place % coordinates.len()];
                place /= coordinates.len();
                for (row, sum) in sums[..depth].iter_mut().enumerate() {
                    *sum += matrix[row * (depth + 1) + column] * coordinate;
                }
            }
            for (out, sum) in out.iter_mut().zip(sums) {
                *out = T::of_float(T::Float::of(sum));
            }
        }
    });
    Ok(())
}

/// Places from -1 to 1: of the outermost elements, or of the outer edges of these.
fn along(length: usize, aligns_corners: bool) -> Vec<f64> {
    let place = |index: usize| match (aligns_corners, length) {
        (true, 1) => 0.0,
        (true, _) => 2.0 * index as f64 / (length as f64 - 1.0) - 1.0,
        (false, _) => (2.0 * index as f64 + 1.0) / length as f64 - 1.0,
    };
    (0..length).map(place).collect()
}
