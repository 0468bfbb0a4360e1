//! Linear algebra: ops of the domain `oarlock`, for the extension of Python's array standard.
//!
//! All are computed in 64 bits, by methods whose work grows with the third power of the size: eliminations with pivots,
//! mirrors, and turns of neighbouring rows. Of matrices with elements that are not finite, eigenvalues, singular values and
//! their vectors are no numbers; the other methods compute with such elements as with any.

mod eigen;
mod field;
mod matrix;
mod mirrors;
mod product;
mod rows;
mod singular;
mod triangular;

use std::ops::Range;

use oarlock_sdk::{
    Call, Complex, Dtype, DtypeSet, Error, Kernel, Operand, Result, Tensor, dtype_set, ensure,
};

use self::field::{Field, Stored};
use self::matrix::Matrix;
use self::singular::Vectors;
use crate::device::Cpu;
use crate::kernels::rows::grain;
use crate::kernels::rows::operands::{Operands, kernel};
use crate::kernels::rows::parts::{Parts, Rows, in_parallel};
use crate::kernels::rows::room::room_for;

const DOMAIN: &str = "oarlock";
const NUMBERS: DtypeSet = dtype_set(&[Dtype::F32, Dtype::F64, Dtype::C64, Dtype::C128]);
const PARTS: DtypeSet = dtype_set(&[Dtype::F32, Dtype::F64]);

/// Runs a function for the type of the elements of the first input.
macro_rules! for_numbers {
    ($function:ident) => {
        |cpu: &Cpu, is_complete: &bool, operands: &Operands<'_, '_>| {
            let stack = Stack { cpu, operands, is_complete: *is_complete };
            match operands.call().input(0)?.dtype() {
                Dtype::F32 => stack.$function::<f32>(),
                Dtype::F64 => stack.$function::<f64>(),
                Dtype::C64 => stack.$function::<Complex<f32>>(),
                Dtype::C128 => stack.$function::<Complex<f64>>(),
                _ => Err(Error::invalid_argument("expected floats or complex numbers, found others")),
            }
        }
    };
}

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let number = Operand::new(NUMBERS).group(1);
    let matrix = number.named("X").rank(2, u32::MAX);
    let part = Operand::new(PARTS);
    let is_complete = |call: &Call<'_>| Ok(call.int("complete")?.unwrap_or(0) != 0);
    let plain = |_: &Call<'_>| Ok(false);
    vec![
        kernel("Cholesky", plain, for_numbers!(cholesky)).inputs([matrix]).outputs([number]),
        kernel("Eigh", plain, for_numbers!(eigh)).inputs([matrix]).outputs([part, number]),
        kernel("Eigvalsh", plain, for_numbers!(eigvalsh)).inputs([matrix]).outputs([part]),
        kernel("Qr", is_complete, for_numbers!(qr)).inputs([matrix]).outputs([number, number]),
        kernel("SlogDet", plain, for_numbers!(slog_det)).inputs([matrix]).outputs([number, part]),
        kernel("Solve", plain, for_numbers!(solve)).inputs([matrix, matrix.named("B")]).outputs([number]),
        kernel("Svd", is_complete, for_numbers!(svd)).inputs([matrix]).outputs([number, part, number]),
        kernel("Svdvals", plain, for_numbers!(svdvals)).inputs([matrix]).outputs([part]),
    ]
    .into_iter()
    .map(|kernel| kernel.domain(DOMAIN))
    .collect()
}

/// Stacks of matrices, all of which have the same size.
struct Stack<'s, 'c, 'a> {
    cpu: &'s Cpu,
    operands: &'s Operands<'c, 'a>,
    is_complete: bool,
}

/// The size of the matrices of an operand, and how many there are along which dimensions.
fn sizes<'t>(operand: &'t Tensor<'_>) -> Result<(&'t [i64], [usize; 2])> {
    match operand.dims() {
        [stack @ .., rows, columns] => Ok((stack, [*rows as usize, *columns as usize])),
        other => Err(Error::invalid_argument(format!("expected matrices, found {other:?}"))),
    }
}

fn part(index: usize, size: usize) -> Range<usize> {
    index * size..(index + 1) * size
}

fn write<T: Stored>(to: &mut [T], from: &[T::Field]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = T::of(*from));
}

fn write_parts<T: Stored>(to: &mut [T::Part], from: &[f64]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = T::part(*from));
}

impl<'a> Stack<'_, '_, 'a> {
    fn square(&self) -> Result<usize> {
        let x = self.operands.call().input(0)?;
        let (_, [rows, columns]) = sizes(&x)?;
        ensure!(rows == columns, invalid_argument, "expected square matrices, found {:?}", x.dims());
        Ok(rows)
    }

    /// The elements of an output that has something of a certain shape for each matrix.
    fn output<T: oarlock_sdk::Element>(&self, index: usize, shape: &[usize]) -> Result<Rows<'a, T>> {
        let (x, y) = (self.operands.call().input(0)?, self.operands.call().output(index)?);
        let expected: Vec<i64> =
            sizes(&x)?.0.iter().copied().chain(shape.iter().map(|size| *size as i64)).collect();
        self.operands.expect_dims(&y, "an output", &expected)?;
        // An output that has no elements may state sizes whose product nobody can count.
        let width = if expected.contains(&0) { 0 } else { shape.iter().product() };
        Ok(Rows::new(self.operands.write(index)?, width))
    }

    /// Does something with each matrix of the first input, whose results go to parts of the outputs. It is given the number
    /// of the matrix, and the number within the parts.
    fn each<T: Stored, P: Parts>(
        &self,
        outputs: P,
        body: impl Fn(Matrix<T::Field>, [usize; 2], &mut P::Part) -> Result<()> + Sync,
    ) -> Result<()> {
        // There may be more matrices without results than anybody could count.
        if outputs.is_empty() {
            return Ok(());
        }
        let x = self.operands.call().input(0)?;
        let (stack, [rows, columns]) = sizes(&x)?;
        let count = stack.iter().map(|dim| *dim as usize).product();
        let x = self.operands.read::<T>(0)?;
        let mut outcomes: Vec<Result<()>> = room_for(count)?;
        outcomes.resize_with(count, || Ok(()));
        let work = rows.saturating_mul(columns).saturating_mul(rows.min(columns));
        let all = (Rows::new(&mut outcomes, 1), outputs);
        in_parallel(self.cpu, count, grain(work), all, |first, (outcomes, mut parts)| {
            for (at, outcome) in outcomes.iter_mut().enumerate() {
                let index = first + at;
                *outcome = Matrix::read(rows, columns, &x[part(index, rows * columns)])
                    .and_then(|matrix| body(matrix, [index, at], &mut parts));
            }
        });
        outcomes.into_iter().collect()
    }

    fn cholesky<T: Stored>(&self) -> Result<()> {
        let size = self.square()?;
        self.each::<T, _>(self.output::<T>(0, &[size, size])?, |matrix, [_, at], y| {
            let lower = triangular::cholesky(self.cpu, matrix)?.ok_or_else(|| {
                Error::invalid_argument("expected matrices that are positive definite, found one that is not")
            })?;
            write(&mut y[part(at, size * size)], &lower.elements);
            Ok(())
        })
    }

    fn eigh<T: Stored>(&self) -> Result<()> {
        let size = self.square()?;
        let outputs = (self.output::<T::Part>(0, &[size])?, self.output::<T>(1, &[size, size])?);
        self.each::<T, _>(outputs, |matrix, [_, at], (values, vectors)| {
            let (found, turned) = eigen::eigh(self.cpu, matrix, true)?;
            write_parts::<T>(&mut values[part(at, size)], &found);
            write(&mut vectors[part(at, size * size)], &turned.elements);
            Ok(())
        })
    }

    fn eigvalsh<T: Stored>(&self) -> Result<()> {
        let size = self.square()?;
        self.each::<T, _>(self.output::<T::Part>(0, &[size])?, |matrix, [_, at], values| {
            let (found, _) = eigen::eigh(self.cpu, matrix, false)?;
            write_parts::<T>(&mut values[part(at, size)], &found);
            Ok(())
        })
    }

    fn qr<T: Stored>(&self) -> Result<()> {
        let x = self.operands.call().input(0)?;
        let (_, [rows, columns]) = sizes(&x)?;
        let inner = if self.is_complete { rows } else { rows.min(columns) };
        let outputs = (self.output::<T>(0, &[rows, inner])?, self.output::<T>(1, &[inner, columns])?);
        self.each::<T, _>(outputs, |matrix, [_, at], (q, r)| {
            let (unitary, upper) = mirrors::qr(self.cpu, matrix, inner)?;
            write(&mut q[part(at, rows * inner)], &unitary.elements);
            write(&mut r[part(at, inner * columns)], &upper.elements);
            Ok(())
        })
    }

    fn slog_det<T: Stored>(&self) -> Result<()> {
        let size = self.square()?;
        let outputs = (self.output::<T>(0, &[])?, self.output::<T::Part>(1, &[])?);
        self.each::<T, _>(outputs, |mut matrix, [_, at], (signs, logarithms)| {
            let (_, mut sign) = triangular::eliminate(self.cpu, &mut matrix)?;
            let mut logarithm = 0.0;
            for at in 0..size {
                let pivot = matrix.at(at, at);
                let length = pivot.magnitude();
                logarithm += length.ln();
                sign = sign * if length == 0.0 { T::Field::ZERO } else { pivot.scaled(1.0 / length) };
            }
            signs[at] = T::of(sign);
            logarithms[at] = T::part(logarithm);
            Ok(())
        })
    }

    fn solve<T: Stored>(&self) -> Result<()> {
        let size = self.square()?;
        let (a, b) = (self.operands.call().input(0)?, self.operands.call().input(1)?);
        let (stack, [rows, columns]) = sizes(&b)?;
        ensure!(
            stack == sizes(&a)?.0 && rows == size,
            invalid_argument,
            "expected as many right sides of {size} rows as matrices, found {:?} for {:?}",
            b.dims(),
            a.dims()
        );
        let b = self.operands.read::<T>(1)?;
        self.each::<T, _>(self.output::<T>(0, &[size, columns])?, |matrix, [index, at], y| {
            let right = Matrix::read(size, columns, &b[part(index, size * columns)])?;
            let solved = triangular::solve(self.cpu, matrix, &right)?.ok_or_else(|| {
                Error::invalid_argument("expected matrices that have an inverse, found one that has none")
            })?;
            write(&mut y[part(at, size * columns)], &solved.elements);
            Ok(())
        })
    }

    fn svd<T: Stored>(&self) -> Result<()> {
        let x = self.operands.call().input(0)?;
        let (_, [rows, columns]) = sizes(&x)?;
        let inner = rows.min(columns);
        let (left, right, vectors) = match self.is_complete {
            true => (rows, columns, Vectors::Complete),
            false => (inner, inner, Vectors::Reduced),
        };
        let outputs = (
            self.output::<T>(0, &[rows, left])?,
            self.output::<T::Part>(1, &[inner])?,
            self.output::<T>(2, &[right, columns])?,
        );
        self.each::<T, _>(outputs, |matrix, [_, at], (u, s, v)| {
            let (one, values, other) = singular::svd(self.cpu, matrix, vectors)?;
            write(&mut u[part(at, rows * left)], &one.elements);
            write_parts::<T>(&mut s[part(at, inner)], &values);
            write(&mut v[part(at, right * columns)], &other.elements);
            Ok(())
        })
    }

    fn svdvals<T: Stored>(&self) -> Result<()> {
        let x = self.operands.call().input(0)?;
        let (_, [rows, columns]) = sizes(&x)?;
        let inner = rows.min(columns);
        self.each::<T, _>(self.output::<T::Part>(0, &[inner])?, |matrix, [_, at], s| {
            let (_, values, _) = singular::svd(self.cpu, matrix, Vectors::None)?;
            write_parts::<T>(&mut s[part(at, inner)], &values);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests;
