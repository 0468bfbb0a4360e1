//! Linear algebra: ops of the domain `oarlock`, for the extension of Python's array standard.
//!
//! All are computed in 64 bits, by methods whose work grows with the third power of the size: elimination with pivots,
//! reflections, and rotations of neighboring rows. For matrices with elements that are not finite, eigenvalues, singular values
//! and their vectors are NaN; the other methods compute with such elements as with any.

mod eigen;
mod eigenvectors;
mod field;
mod householder;
mod matrix;
mod product;
mod row_operations;
mod singular_values;
mod stored_scalar;
mod triangular;

use std::ops::Range;

use oarlock_cpu_base::OARLOCK_DOMAIN;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{OutputParts, OutputRows, parallel_for_parts};
use oarlock_cpu_base::rows::scratch::try_reserve_vec;
use oarlock_sdk::{
    Complex, Dtype, DtypeSet, Kernel, KernelCall, OperandSpec, PluginError, Result, TensorView, dtype_set,
    ensure,
};

use self::field::ScalarField as _;
use self::matrix::DenseMatrix;
use self::singular_values::SingularVectors;
use self::stored_scalar::StoredScalar;

const FIELD_DTYPES: DtypeSet = dtype_set(&[Dtype::F32, Dtype::F64, Dtype::C64, Dtype::C128]);
const COMPONENT_DTYPES: DtypeSet = dtype_set(&[Dtype::F32, Dtype::F64]);

const COMPLEX_DTYPES: DtypeSet = dtype_set(&[Dtype::C64, Dtype::C128]);

/// Runs a function that is generic over the element type of the first input.
macro_rules! for_numbers {
    ($function:ident) => {
        |cpu: &Cpu, is_complete: &bool, operands: &KernelOperands<'_, '_>| {
            let stack = MatrixStack { cpu, operands, is_complete: *is_complete };
            match operands.call().input(0)?.dtype() {
                Dtype::F32 => stack.$function::<f32>(),
                Dtype::F64 => stack.$function::<f64>(),
                Dtype::C64 => stack.$function::<Complex<f32>>(),
                Dtype::C128 => stack.$function::<Complex<f64>>(),
                _ => Err(PluginError::invalid_argument("expected floats or complex numbers, found others")),
            }
        }
    };
}

pub(super) fn linear_algebra_kernels() -> Vec<Kernel<Cpu>> {
    let number = OperandSpec::new(FIELD_DTYPES).with_dtype_group(1);
    let matrix = number.with_name("X").with_rank(2, u32::MAX);
    let part = OperandSpec::new(COMPONENT_DTYPES);
    let is_complete = |call: &KernelCall<'_>| Ok(call.int_attribute("complete")?.unwrap_or(0) != 0);
    let plain = |_: &KernelCall<'_>| Ok(false);
    vec![
        operand_kernel("Cholesky", plain, for_numbers!(cholesky))
            .with_inputs([matrix])
            .with_outputs([number]),
        operand_kernel("Eigenvectors", plain, eigenvectors_of_stack)
            .with_inputs([OperandSpec::new(COMPLEX_DTYPES)
                .with_name("X")
                .with_rank(2, u32::MAX)
                .with_dtype_group(1)])
            .with_outputs([OperandSpec::new(COMPLEX_DTYPES).with_dtype_group(1)]),
        operand_kernel("Eigh", plain, for_numbers!(eigh)).with_inputs([matrix]).with_outputs([part, number]),
        operand_kernel("Eigvalsh", plain, for_numbers!(eigvalsh)).with_inputs([matrix]).with_outputs([part]),
        operand_kernel("Qr", is_complete, for_numbers!(qr))
            .with_inputs([matrix])
            .with_outputs([number, number]),
        operand_kernel("SlogDet", plain, for_numbers!(slog_det))
            .with_inputs([matrix])
            .with_outputs([number, part]),
        operand_kernel("Solve", plain, for_numbers!(solve))
            .with_inputs([matrix, matrix.with_name("B")])
            .with_outputs([number]),
        operand_kernel("Svd", is_complete, for_numbers!(svd))
            .with_inputs([matrix])
            .with_outputs([number, part, number]),
        operand_kernel("Svdvals", plain, for_numbers!(svdvals)).with_inputs([matrix]).with_outputs([part]),
    ]
    .into_iter()
    .map(|kernel| kernel.with_domain(OARLOCK_DOMAIN))
    .collect()
}

fn eigenvectors_of_stack(cpu: &Cpu, is_complete: &bool, operands: &KernelOperands<'_, '_>) -> Result<()> {
    let stack = MatrixStack { cpu, operands, is_complete: *is_complete };
    match operands.call().input(0)?.dtype() {
        Dtype::C64 => stack.eigenvectors::<Complex<f32>>(),
        _ => stack.eigenvectors::<Complex<f64>>(),
    }
}

/// Stacks of matrices of the same size.
struct MatrixStack<'s, 'c, 'a> {
    cpu: &'s Cpu,
    operands: &'s KernelOperands<'c, 'a>,
    is_complete: bool,
}

/// The stack dimensions of an operand, and the size of its matrices.
fn stack_sizes<'t>(operand: &'t TensorView<'_>) -> Result<(&'t [i64], [usize; 2])> {
    match operand.dims() {
        [stack @ .., rows, columns] => Ok((stack, [*rows as usize, *columns as usize])),
        other => Err(PluginError::invalid_argument(format!("expected matrices, found {other:?}"))),
    }
}

fn item_range(index: usize, size: usize) -> Range<usize> {
    index * size..(index + 1) * size
}

fn write_elements<T: StoredScalar>(to: &mut [T], from: &[T::Field]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = T::from_field(*from));
}

fn write_components<T: StoredScalar>(to: &mut [T::Component], from: &[f64]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = T::component_from_f64(*from));
}

impl<'a> MatrixStack<'_, '_, 'a> {
    fn square_size(&self) -> Result<usize> {
        let x = self.operands.call().input(0)?;
        let (_, [rows, columns]) = stack_sizes(&x)?;
        ensure!(rows == columns, invalid_argument, "expected square matrices, found {:?}", x.dims());
        Ok(rows)
    }

    /// The elements of an output that has an item of a certain shape for each matrix.
    fn output_rows<T: oarlock_sdk::Element>(
        &self,
        index: usize,
        shape: &[usize],
    ) -> Result<OutputRows<'a, T>> {
        let (x, y) = (self.operands.call().input(0)?, self.operands.call().output(index)?);
        let expected: Vec<i64> =
            stack_sizes(&x)?.0.iter().copied().chain(shape.iter().map(|size| *size as i64)).collect();
        self.operands.expect_dims(&y, "an output", &expected)?;
        // An output without elements may state sizes whose product overflows.
        let width = if expected.contains(&0) { 0 } else { shape.iter().product() };
        Ok(OutputRows::new(self.operands.write_output(index)?, width))
    }

    /// Calls a function for each matrix of the first input; its results go to parts of the outputs. The function gets the number
    /// of the matrix, and the number within the parts.
    fn for_each_matrix<T: StoredScalar, P: OutputParts>(
        &self,
        outputs: P,
        body: impl Fn(DenseMatrix<T::Field>, [usize; 2], &mut P::Part) -> Result<()> + Sync,
    ) -> Result<()> {
        // Without results, there may be more matrices than a loop could ever visit.
        if outputs.is_empty() {
            return Ok(());
        }
        let x = self.operands.call().input(0)?;
        let (stack, [rows, columns]) = stack_sizes(&x)?;
        let count = stack.iter().map(|dim| *dim as usize).product();
        let x = self.operands.read_input::<T>(0)?;
        // Each matrix has an outcome of its own, so that the error reported is the first in order, whichever thread is faster.
        let mut outcomes: Vec<Result<()>> = try_reserve_vec(count)?;
        outcomes.resize_with(count, || Ok(()));
        // The work of all methods grows like this product.
        let work = rows.saturating_mul(columns).saturating_mul(rows.min(columns));
        let all = (OutputRows::new(&mut outcomes, 1), outputs);
        parallel_for_parts(self.cpu, count, grain_for(work), all, |first, (outcomes, mut parts)| {
            for (at, outcome) in outcomes.iter_mut().enumerate() {
                let index = first + at;
                *outcome = DenseMatrix::from_elements(rows, columns, &x[item_range(index, rows * columns)])
                    .and_then(|matrix| body(matrix, [index, at], &mut parts));
            }
        });
        outcomes.into_iter().collect()
    }

    fn cholesky<T: StoredScalar>(&self) -> Result<()> {
        let size = self.square_size()?;
        self.for_each_matrix::<T, _>(self.output_rows::<T>(0, &[size, size])?, |matrix, [_, at], y| {
            let lower = triangular::cholesky(self.cpu, matrix)?.ok_or_else(|| {
                PluginError::invalid_argument(
                    "expected matrices that are positive definite, found one that is not",
                )
            })?;
            write_elements(&mut y[item_range(at, size * size)], &lower.elements);
            Ok(())
        })
    }

    fn eigh<T: StoredScalar>(&self) -> Result<()> {
        let size = self.square_size()?;
        let outputs =
            (self.output_rows::<T::Component>(0, &[size])?, self.output_rows::<T>(1, &[size, size])?);
        self.for_each_matrix::<T, _>(outputs, |matrix, [_, at], (values, vectors)| {
            let (found, turned) = eigen::eigh(self.cpu, matrix, true)?;
            write_components::<T>(&mut values[item_range(at, size)], &found);
            write_elements(&mut vectors[item_range(at, size * size)], &turned.elements);
            Ok(())
        })
    }

    fn eigenvectors<T: StoredScalar<Field = Complex<f64>>>(&self) -> Result<()> {
        let size = self.square_size()?;
        self.for_each_matrix::<T, _>(self.output_rows::<T>(0, &[size, size])?, |matrix, [_, at], y| {
            let vectors = eigenvectors::eigenvectors(matrix)?;
            write_elements(&mut y[item_range(at, size * size)], &vectors.elements);
            Ok(())
        })
    }

    fn eigvalsh<T: StoredScalar>(&self) -> Result<()> {
        let size = self.square_size()?;
        self.for_each_matrix::<T, _>(
            self.output_rows::<T::Component>(0, &[size])?,
            |matrix, [_, at], values| {
                let (found, _) = eigen::eigh(self.cpu, matrix, false)?;
                write_components::<T>(&mut values[item_range(at, size)], &found);
                Ok(())
            },
        )
    }

    fn qr<T: StoredScalar>(&self) -> Result<()> {
        let x = self.operands.call().input(0)?;
        let (_, [rows, columns]) = stack_sizes(&x)?;
        // The other columns of a complete Q span what the matrix does not reach.
        let inner = if self.is_complete { rows } else { rows.min(columns) };
        let outputs =
            (self.output_rows::<T>(0, &[rows, inner])?, self.output_rows::<T>(1, &[inner, columns])?);
        self.for_each_matrix::<T, _>(outputs, |matrix, [_, at], (q, r)| {
            let (unitary, upper) = householder::qr_decompose(self.cpu, matrix, inner)?;
            write_elements(&mut q[item_range(at, rows * inner)], &unitary.elements);
            write_elements(&mut r[item_range(at, inner * columns)], &upper.elements);
            Ok(())
        })
    }

    fn slog_det<T: StoredScalar>(&self) -> Result<()> {
        let size = self.square_size()?;
        let outputs = (self.output_rows::<T>(0, &[])?, self.output_rows::<T::Component>(1, &[])?);
        self.for_each_matrix::<T, _>(outputs, |mut matrix, [_, at], (signs, logarithms)| {
            let (_, mut sign) = triangular::lu_decompose(self.cpu, &mut matrix)?;
            // A product of pivots may overflow; a sum of their logarithms does not.
            let mut logarithm = 0.0;
            for at in 0..size {
                let pivot = matrix.element_at(at, at);
                let length = pivot.magnitude();
                logarithm += length.ln();
                // A singular matrix has the sign 0 and the logarithm -∞, as in NumPy.
                sign = sign
                    * if length == 0.0 {
                        T::Field::ZERO
                    } else {
                        // Not scaled by the reciprocal, which is infinite for a tiny pivot.
                        T::Field::from_components(pivot.components().map(|part| part / length))
                    };
            }
            signs[at] = T::from_field(sign);
            logarithms[at] = T::component_from_f64(logarithm);
            Ok(())
        })
    }

    fn solve<T: StoredScalar>(&self) -> Result<()> {
        let size = self.square_size()?;
        let (a, b) = (self.operands.call().input(0)?, self.operands.call().input(1)?);
        let (stack, [rows, columns]) = stack_sizes(&b)?;
        ensure!(
            stack == stack_sizes(&a)?.0 && rows == size,
            invalid_argument,
            "expected as many right sides of {size} rows as matrices, found {:?} for {:?}",
            b.dims(),
            a.dims()
        );
        let b = self.operands.read_input::<T>(1)?;
        self.for_each_matrix::<T, _>(self.output_rows::<T>(0, &[size, columns])?, |matrix, [index, at], y| {
            let right = DenseMatrix::from_elements(size, columns, &b[item_range(index, size * columns)])?;
            let solved = triangular::solve_system(self.cpu, matrix, &right)?.ok_or_else(|| {
                PluginError::invalid_argument(
                    "expected matrices that have an inverse, found one that has none",
                )
            })?;
            write_elements(&mut y[item_range(at, size * columns)], &solved.elements);
            Ok(())
        })
    }

    fn svd<T: StoredScalar>(&self) -> Result<()> {
        let x = self.operands.call().input(0)?;
        let (_, [rows, columns]) = stack_sizes(&x)?;
        let inner = rows.min(columns);
        let (left, right, vectors) = match self.is_complete {
            true => (rows, columns, SingularVectors::Complete),
            false => (inner, inner, SingularVectors::Reduced),
        };
        let outputs = (
            self.output_rows::<T>(0, &[rows, left])?,
            self.output_rows::<T::Component>(1, &[inner])?,
            self.output_rows::<T>(2, &[right, columns])?,
        );
        self.for_each_matrix::<T, _>(outputs, |matrix, [_, at], (u, s, v)| {
            let (one, values, other) = singular_values::svd(self.cpu, matrix, vectors)?;
            write_elements(&mut u[item_range(at, rows * left)], &one.elements);
            write_components::<T>(&mut s[item_range(at, inner)], &values);
            write_elements(&mut v[item_range(at, right * columns)], &other.elements);
            Ok(())
        })
    }

    fn svdvals<T: StoredScalar>(&self) -> Result<()> {
        let x = self.operands.call().input(0)?;
        let (_, [rows, columns]) = stack_sizes(&x)?;
        let inner = rows.min(columns);
        self.for_each_matrix::<T, _>(self.output_rows::<T::Component>(0, &[inner])?, |matrix, [_, at], s| {
            let (_, values, _) = singular_values::svd(self.cpu, matrix, SingularVectors::None)?;
            write_components::<T>(&mut s[item_range(at, inner)], &values);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests;
