//! Linear algebra: ops of the domain `oarlock`, for the extension of Python's array standard.
//!
//! All are computed in 64 bits, matrix after matrix, by methods that are short and exact rather than fast for large
//! matrices: eliminations with pivots, reflections and rotations.

mod decomposed;
mod field;
mod matrix;
mod rotated;

use std::ops::Range;

use oarlock_sdk::{Call, Complex, Dtype, DtypeSet, Error, Kernel, Operand, Result, Tensor, dtype_set};

use self::field::{Field, Stored};
use self::matrix::Matrix;
use crate::device::Cpu;
use crate::kernels::rows::operands::{Operands, kernel};

const DOMAIN: &str = "oarlock";
const NUMBERS: DtypeSet = dtype_set(&[Dtype::F32, Dtype::F64, Dtype::C64, Dtype::C128]);
const PARTS: DtypeSet = dtype_set(&[Dtype::F32, Dtype::F64]);

/// Runs a function for the type of the elements of the first input.
macro_rules! for_numbers {
    ($function:ident) => {
        |_: &Cpu, flag: &bool, operands: &Operands<'_, '_>| {
            let dtype = operands.call().input(0)?.dtype();
            match dtype {
                Dtype::F32 => $function::<f32>(operands, *flag),
                Dtype::F64 => $function::<f64>(operands, *flag),
                Dtype::C64 => $function::<Complex<f32>>(operands, *flag),
                Dtype::C128 => $function::<Complex<f64>>(operands, *flag),
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
        kernel("Qr", is_complete, for_numbers!(qr)).inputs([matrix]).outputs([number, number]),
        kernel("SlogDet", plain, for_numbers!(slog_det)).inputs([matrix]).outputs([number, part]),
        kernel("Solve", plain, for_numbers!(solve)).inputs([matrix, matrix.named("B")]).outputs([number]),
        kernel("Svd", is_complete, for_numbers!(svd)).inputs([matrix]).outputs([number, part, number]),
    ]
    .into_iter()
    .map(|kernel| kernel.domain(DOMAIN))
    .collect()
}

/// The size of the matrices of an operand.
fn sizes(operand: &Tensor<'_>) -> Result<[usize; 2]> {
    match operand.dims() {
        [.., rows, columns] => Ok([*rows as usize, *columns as usize]),
        other => Err(Error::invalid_argument(format!("expected matrices, found {other:?}"))),
    }
}

fn square(operand: &Tensor<'_>) -> Result<usize> {
    match sizes(operand)? {
        [rows, columns] if rows == columns => Ok(rows),
        _ => Err(Error::invalid_argument(format!("expected square matrices, found {:?}", operand.dims()))),
    }
}

/// How many matrices an operand has.
fn count(operand: &Tensor<'_>) -> usize {
    let dims = operand.dims();
    dims[..dims.len().saturating_sub(2)].iter().map(|dim| *dim as usize).product()
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

fn cholesky<T: Stored>(operands: &Operands<'_, '_>, _: bool) -> Result<()> {
    let x = operands.call().input(0)?;
    let (size, count) = (square(&x)?, count(&x));
    let (x, y) = (operands.read::<T>(0)?, operands.write::<T>(0)?);
    for index in 0..count {
        let own = part(index, size * size);
        let lower = decomposed::cholesky(&Matrix::read(size, size, &x[own.clone()]));
        let lower = lower.ok_or_else(|| {
            Error::invalid_argument("expected matrices that are positive definite, found one that is not")
        })?;
        write(&mut y[own], &lower.elements);
    }
    Ok(())
}

fn eigh<T: Stored>(operands: &Operands<'_, '_>, _: bool) -> Result<()> {
    let x = operands.call().input(0)?;
    let (size, count) = (square(&x)?, count(&x));
    let x = operands.read::<T>(0)?;
    let (values, vectors) = (operands.write::<T::Part>(0)?, operands.write::<T>(1)?);
    for index in 0..count {
        let own = part(index, size * size);
        let (found, turned) = rotated::eigh(Matrix::read(size, size, &x[own.clone()]));
        write_parts::<T>(&mut values[part(index, size)], &found);
        write(&mut vectors[own], &turned.elements);
    }
    Ok(())
}

fn qr<T: Stored>(operands: &Operands<'_, '_>, is_complete: bool) -> Result<()> {
    let x = operands.call().input(0)?;
    let ([rows, columns], count) = (sizes(&x)?, count(&x));
    let inner = if is_complete { rows } else { rows.min(columns) };
    let x = operands.read::<T>(0)?;
    let (q, r) = (operands.write::<T>(0)?, operands.write::<T>(1)?);
    for index in 0..count {
        let matrix = Matrix::read(rows, columns, &x[part(index, rows * columns)]);
        let (unitary, upper) = decomposed::qr(matrix, inner);
        write(&mut q[part(index, rows * inner)], &unitary.elements);
        write(&mut r[part(index, inner * columns)], &upper.elements);
    }
    Ok(())
}

fn slog_det<T: Stored>(operands: &Operands<'_, '_>, _: bool) -> Result<()> {
    let x = operands.call().input(0)?;
    let (size, count) = (square(&x)?, count(&x));
    let x = operands.read::<T>(0)?;
    let (signs, logarithms) = (operands.write::<T>(0)?, operands.write::<T::Part>(1)?);
    for index in 0..count {
        let mut matrix = Matrix::read(size, size, &x[part(index, size * size)]);
        let (_, mut sign) = decomposed::eliminate(&mut matrix);
        let mut logarithm = 0.0;
        for at in 0..size {
            let pivot = matrix.at(at, at);
            let length = pivot.magnitude();
            logarithm += length.ln();
            sign = if length == 0.0 { T::Field::ZERO } else { sign * pivot.scaled(1.0 / length) };
        }
        signs[index] = T::of(sign);
        logarithms[index] = T::part(logarithm);
    }
    Ok(())
}

fn solve<T: Stored>(operands: &Operands<'_, '_>, _: bool) -> Result<()> {
    let (a, b) = (operands.call().input(0)?, operands.call().input(1)?);
    let (size, [rows, columns], count) = (square(&a)?, sizes(&b)?, count(&a));
    if rows != size || self::count(&b) != count {
        return Err(Error::invalid_argument(format!(
            "expected as many right sides of {size} rows as matrices, found {:?} for {:?}",
            b.dims(),
            a.dims()
        )));
    }
    let (a, b, y) = (operands.read::<T>(0)?, operands.read::<T>(1)?, operands.write::<T>(0)?);
    for index in 0..count {
        let matrix = Matrix::read(size, size, &a[part(index, size * size)]);
        let own = part(index, size * columns);
        let solved = decomposed::solve(matrix, Matrix::read(size, columns, &b[own.clone()]));
        let solved = solved.ok_or_else(|| {
            Error::invalid_argument("expected matrices that have an inverse, found one that has none")
        })?;
        write(&mut y[own], &solved.elements);
    }
    Ok(())
}

fn svd<T: Stored>(operands: &Operands<'_, '_>, is_complete: bool) -> Result<()> {
    let x = operands.call().input(0)?;
    let ([rows, columns], count) = (sizes(&x)?, count(&x));
    let inner = rows.min(columns);
    let (left, right) = if is_complete { (rows, columns) } else { (inner, inner) };
    let x = operands.read::<T>(0)?;
    let (u, s, v) = (operands.write::<T>(0)?, operands.write::<T::Part>(1)?, operands.write::<T>(2)?);
    for index in 0..count {
        let matrix = Matrix::read(rows, columns, &x[part(index, rows * columns)]);
        let (one, values, other) = rotated::svd(&matrix, is_complete);
        write(&mut u[part(index, rows * left)], &one.elements);
        write_parts::<T>(&mut s[part(index, inner)], &values);
        write(&mut v[part(index, right * columns)], &other.elements);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
