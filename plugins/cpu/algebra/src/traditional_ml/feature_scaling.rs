//! Rows of features on one scale: `Scaler` and `Normalizer`.

use oarlock_cpu_base::compute_element::ComputeElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_cpu_base::with_isa;
use oarlock_sdk::{DtypeSet, Kernel, KernelCall, OperandSpec, PluginError, Result, dispatch, ensure};

use super::FEATURE_DTYPES;
use super::feature_matrix::matrix_size;

pub(super) fn feature_scaling_kernels() -> Vec<Kernel<Cpu>> {
    let rows = OperandSpec::new(FEATURE_DTYPES).with_name("X").with_rank(1, 2);
    let scaled = OperandSpec::new(DtypeSet::F32).with_name("Y");
    let floats = |call: &KernelCall<'_>, name: &str| {
        Ok::<_, PluginError>(call.floats_attribute(name)?.unwrap_or_default().to_vec())
    };
    vec![
        operand_kernel(
            "Scaler",
            move |call| Ok((floats(call, "offset")?, floats(call, "scale")?)),
            |cpu, (offset, scale), operands| {
                let dtype = operands.call().input(0)?.dtype();
                dispatch!(dtype, floating + i32 + i64, T => scale_features::<T>(cpu, offset, scale, operands))
            },
        )
        .with_inputs([rows])
        .with_outputs([scaled]),
        operand_kernel("Normalizer", RowNorm::new, |cpu, norm, operands| {
            let dtype = operands.call().input(0)?.dtype();
            dispatch!(dtype, floating + i32 + i64, T => normalize_rows::<T>(cpu, *norm, operands))
        })
        .with_inputs([rows])
        .with_outputs([scaled]),
    ]
}

/// A number for each column, repeated until there are enough of them for loops over vectors, however few columns there are.
pub(super) struct ColumnPattern<T> {
    elements: Vec<T>,
}

impl<T: Copy> ColumnPattern<T> {
    const MIN_WIDTH: usize = 256;

    /// Of as many numbers as there are columns, or of one for all columns. It is for at most this many rows.
    pub(super) fn new(numbers: impl Iterator<Item = T> + Clone, columns: usize, rows: usize) -> Self {
        let width = columns * Self::MIN_WIDTH.div_ceil(columns).min(rows.max(1));
        Self { elements: numbers.cycle().take(width).collect() }
    }

    /// The number of elements: a multiple of the columns.
    pub(super) fn width(&self) -> usize {
        self.elements.len()
    }

    pub(super) fn elements(&self) -> &[T] {
        &self.elements
    }
}

fn scale_features<T: ComputeElement>(
    cpu: &Cpu,
    offset: &[f64],
    scale: &[f64],
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
    let (x, y) = (operands.call().input(0)?, operands.call().output(0)?);
    operands.expect_dims(&y, "Y", x.dims())?;
    let (rows, columns) = matrix_size(&x)?;
    let fits = |list: &[f64]| list.len() <= 1 || list.len() == columns;
    ensure!(
        fits(offset) && fits(scale),
        invalid_argument,
        "expected one `offset` and `scale` or one for each of {columns} columns, found {} and {}",
        offset.len(),
        scale.len()
    );
    let (x, out) = (operands.read_input::<T>(0)?, operands.write_output::<f32>(0)?);
    if columns == 0 {
        return Ok(());
    }
    let pattern = |list: &[f64], default| match list {
        [] => ColumnPattern::new([default].into_iter(), columns, rows),
        list => ColumnPattern::new(list.iter().copied(), columns, rows),
    };
    let (offset, scale) = (pattern(offset, 0.0), pattern(scale, 1.0));
    parallel_for_parts(cpu, rows, grain_for(columns), OutputRows::new(out, columns), |first, out| {
        let x = &x[first * columns..][..out.len()];
        with_isa!(cpu.isa(), || {
            for (out, x) in out.chunks_mut(offset.width()).zip(x.chunks(offset.width())) {
                let factors = offset.elements().iter().zip(scale.elements());
                for ((out, element), (offset, scale)) in out.iter_mut().zip(x).zip(factors) {
                    *out = ((element.to_float().to_f64() - offset) * scale) as f32;
                }
            }
        });
    });
    Ok(())
}

/// The norm by which rows are divided.
#[derive(Clone, Copy)]
enum RowNorm {
    Largest,
    Sum,
    Length,
}

impl RowNorm {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        match call.string_attribute("norm")?.unwrap_or("MAX") {
            "MAX" => Ok(Self::Largest),
            "L1" => Ok(Self::Sum),
            "L2" => Ok(Self::Length),
            other => Err(PluginError::invalid_argument(format!(
                "expected `norm` to be `MAX`, `L1` or `L2`, found `{other}`"
            ))),
        }
    }

    #[inline(always)]
    fn norm_of_row(self, row: &[f64]) -> f64 {
        const LANES: usize = 8;
        let start = if let Self::Largest = self { f64::NEG_INFINITY } else { 0.0 };
        // Several results, so that one operation need not wait for the other.
        let mut lanes = [start; LANES];
        for row in row.chunks(LANES) {
            for (lane, element) in lanes.iter_mut().zip(row) {
                *lane = match self {
                    // The schema divides by the maximum itself, not by the largest magnitude.
                    Self::Largest => lane.max(*element),
                    Self::Sum => *lane + element.abs(),
                    Self::Length => *lane + element * element,
                };
            }
        }
        match self {
            Self::Largest => lanes.into_iter().fold(start, f64::max),
            Self::Sum => lanes.iter().sum(),
            Self::Length => lanes.iter().sum::<f64>().sqrt(),
        }
    }
}

fn normalize_rows<T: ComputeElement>(
    cpu: &Cpu,
    norm: RowNorm,
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
    let (x, y) = (operands.call().input(0)?, operands.call().output(0)?);
    operands.expect_dims(&y, "Y", x.dims())?;
    let (rows, columns) = matrix_size(&x)?;
    let (x, out) = (operands.read_input::<T>(0)?, operands.write_output::<f32>(0)?);
    if columns == 0 {
        return Ok(());
    }
    parallel_for_parts(cpu, rows, grain_for(columns), OutputRows::new(out, columns), |first, out| {
        let mut row = vec![0.0; columns];
        for (out, elements) in out.chunks_mut(columns).zip(x[first * columns..].chunks(columns)) {
            with_isa!(cpu.isa(), || normalize_row(norm, elements, &mut row, out));
        }
    });
    Ok(())
}

#[inline(always)]
fn normalize_row<T: ComputeElement>(norm: RowNorm, elements: &[T], row: &mut [f64], out: &mut [f32]) {
    for (number, element) in row.iter_mut().zip(elements) {
        *number = element.to_float().to_f64();
    }
    let norm = norm.norm_of_row(row);
    // A row of zeros stays as it is.
    let norm = if norm == 0.0 { 1.0 } else { norm };
    for (out, number) in out.iter_mut().zip(row.iter()) {
        *out = (number / norm) as f32;
    }
}

#[cfg(test)]
mod tests {
    use oarlock_cpu_testing::isa_levels::isa_levels;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};
    use oarlock_sdk::Dtype;

    use crate::KERNELS;

    /// As many rows as several threads share, of a width that vectors do not divide.
    const ROWS: usize = 9000;
    const COLUMNS: usize = 7;

    fn sample_elements() -> Vec<f32> {
        (0..ROWS * COLUMNS).map(|at| ((at * 31 % 103) as f32 - 50.0) / 8.0).collect()
    }

    #[track_caller]
    fn check_rows(
        op: &str,
        attributes: &[(&str, TestAttribute<'_>)],
        expected: impl Fn(usize, &[f32]) -> f32,
    ) {
        let elements = sample_elements();
        let dims = [ROWS as i64, COLUMNS as i64];
        let x = TestArray::from_values(&dims, &elements);
        for isa in isa_levels() {
            let made = KERNELS.run_with_isa(
                &isa.to_string(),
                op,
                1,
                attributes,
                &[Some(&x)],
                &[Some((Dtype::F32, &dims))],
            );
            let made: Vec<f32> = made.unwrap().remove(0).unwrap().values();
            for (at, found) in made.iter().enumerate() {
                let row = &elements[at / COLUMNS * COLUMNS..][..COLUMNS];
                let expected = expected(at % COLUMNS, row);
                assert!(
                    (found - expected).abs() <= 2e-7 * expected.abs(),
                    "{isa} {at}: {found} for {expected}"
                );
            }
        }
    }

    #[test]
    fn each_column_of_many_rows_is_scaled_by_its_own_numbers() {
        let (offset, scale) = ([0.5, 0.0, -3.0, 2.0, 1.0, 0.25, 9.0], [2.0, -1.0, 0.5, 3.0, 0.125, 7.0, 1.5]);
        let attributes =
            [("offset", TestAttribute::Floats(&offset)), ("scale", TestAttribute::Floats(&scale))];
        check_rows("ai.onnx.ml:Scaler", &attributes, |column, row| {
            ((f64::from(row[column]) - offset[column]) * scale[column]) as f32
        });
        let single = [("offset", TestAttribute::Floats(&[0.5]))];
        check_rows("ai.onnx.ml:Scaler", &single, |column, row| row[column] - 0.5);
    }

    #[test]
    fn each_of_many_rows_is_divided_by_its_norm() {
        let sum =
            |row: &[f32], power| row.iter().map(|element| f64::from(element.abs()).powi(power)).sum::<f64>();
        let check = |name, norm: &dyn Fn(&[f32]) -> f64| {
            check_rows("ai.onnx.ml:Normalizer", &[("norm", TestAttribute::Text(name))], |column, row| {
                (f64::from(row[column]) / norm(row)) as f32
            });
        };
        check("MAX", &|row| row.iter().copied().fold(f32::NEG_INFINITY, f32::max).into());
        check("L1", &|row| sum(row, 1));
        check("L2", &|row| sum(row, 2).sqrt());
    }
}
