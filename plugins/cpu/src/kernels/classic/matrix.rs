//! Rows of features: the inputs of these ops.

use oarlock_sdk::{Error, Result, Tensor, dispatch};

use crate::kernels::rows::number::{Float, Number};
use crate::kernels::rows::operands::Operands;

/// Rows of numbers in 64 bits, which hold what all but very large integers say.
pub(super) struct Matrix {
    pub(super) elements: Vec<f64>,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl Matrix {
    /// The first input. A single row may come without a dimension of its own.
    pub(super) fn new(operands: &Operands<'_, '_>) -> Result<Self> {
        let input = operands.call().input(0)?;
        let (rows, columns) = size(&input)?;
        let elements = dispatch!(input.dtype(), floating_and_half + i32 + i64, T => {
            Result::Ok(operands.read::<T>(0)?.iter().map(|element| element.float().to_f64()).collect())
        })?;
        Ok(Self { elements, rows, columns })
    }

    pub(super) fn row(&self, row: usize) -> &[f64] {
        &self.elements[row * self.columns..][..self.columns]
    }
}

/// Rows and columns of an input.
pub(super) fn size(input: &Tensor<'_>) -> Result<(usize, usize)> {
    match *input.dims() {
        [columns] => Ok((1, columns as usize)),
        [rows, columns] => Ok((rows as usize, columns as usize)),
        _ => {
            let found = input.dims();
            Err(Error::invalid_argument(format!("expected rows of features, found a shape of {found:?}")))
        }
    }
}
