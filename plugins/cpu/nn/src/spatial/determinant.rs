//! `Det`: determinants of matrices.

use oarlock_cpu_base::compute_element::FloatElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_sdk::{Kernel, OperandSpec, PluginError, Result, dispatch, ensure};

use super::SPATIAL_FLOATS;

pub(super) fn determinant_kernels() -> Vec<Kernel<Cpu>> {
    let number = OperandSpec::new(SPATIAL_FLOATS).with_dtype_group(1);
    let kernel = operand_kernel(
        "Det",
        |_| Ok(()),
        |cpu, (), operands| {
            let dtype = operands.call().input(0)?.dtype();
            dispatch!(dtype, floating_and_half + bf16, T => compute_determinants::<T>(cpu, operands))
        },
    );
    vec![
        kernel
            .since_version(11)
            .with_inputs([number.with_name("X").with_rank(2, u32::MAX)])
            .with_outputs([number.with_name("Y")]),
    ]
}

fn compute_determinants<T: FloatElement>(cpu: &Cpu, operands: &KernelOperands<'_, '_>) -> Result<()> {
    let (x, y) = (operands.call().input(0)?, operands.call().output(0)?);
    let [batch @ .., rows, columns] = x.dims() else {
        return Err(PluginError::invalid_argument(format!("expected matrices, found {:?}", x.dims())));
    };
    ensure!(rows == columns, invalid_argument, "expected square matrices, found {:?}", x.dims());
    operands.expect_dims(&y, "Y", batch)?;
    let size = *rows as usize;
    let (x, y) = (operands.read_input::<T>(0)?, operands.write_output::<T>(0)?);
    let count = y.len();
    parallel_for_parts(cpu, count, grain_for(size.saturating_pow(3)), OutputRows::new(y, 1), |first, y| {
        let mut matrix = Vec::new();
        for (index, y) in y.iter_mut().enumerate() {
            let elements = &x[(first + index) * size * size..][..size * size];
            matrix.clear();
            matrix.extend(elements.iter().map(|element| element.to_float().to_f64()));
            *y = T::from_float(T::Float::from_f64(determinant(&mut matrix, size)));
        }
    });
    Ok(())
}

/// Gaussian elimination, column by column, with the largest remaining element as pivot to keep rounding errors small.
fn determinant(matrix: &mut [f64], size: usize) -> f64 {
    let mut product = 1.0;
    for column in 0..size {
        let largest = |best: usize, row: usize| {
            let size_of = |row: usize| matrix[row * size + column].abs();
            if size_of(row) > size_of(best) { row } else { best }
        };
        let pivot = (column + 1..size).fold(column, largest);
        if pivot != column {
            product = -product;
            let (upper, lower) = matrix.split_at_mut(pivot * size);
            upper[column * size..][..size].swap_with_slice(&mut lower[..size]);
        }
        let (upper, lower) = matrix.split_at_mut((column + 1) * size);
        let own = &upper[column * size..];
        product *= own[column];
        // The pivot is the largest element left, so a 0 means that the matrix is singular.
        if own[column] == 0.0 {
            return product;
        }
        for row in lower.chunks_mut(size) {
            let factor = row[column] / own[column];
            // Elements at and before the pivot's column are never read again, so they are not updated.
            row.iter_mut().zip(own).skip(column + 1).for_each(|(element, own)| *element -= factor * own);
        }
    }
    product
}

#[cfg(test)]
mod tests {
    use crate::KERNELS;
    use oarlock_cpu_testing::runner::TestArray;

    #[test]
    fn rows_are_swapped_where_a_pivot_is_missing() {
        let x = TestArray::from_values(&[3, 2, 2], &[0f32, 1., 1., 0., 1., 2., 2., 4., 2., 0., 0., 3.]);
        KERNELS.check_kernel("Det", 11, &[], &[Some(&x)], &[TestArray::from_values(&[3], &[-1f32, 0., 6.])]);
    }

    #[test]
    fn a_matrix_without_elements_has_the_determinant_one() {
        KERNELS.check_kernel(
            "Det",
            11,
            &[],
            &[Some(&TestArray::from_values::<f64>(&[0, 0], &[]))],
            &[TestArray::from_values(&[], &[1f64])],
        );
    }
}
