//! Rows of features: the inputs of these ops.

use oarlock_cpu_base::compute_element::ComputeElement;
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::operands::KernelOperands;
use oarlock_sdk::{PluginError, Result, TensorView, dispatch};

/// Rows of `f64`, which is exact for all but very large integers.
pub(super) struct FeatureMatrix {
    pub(super) elements: Vec<f64>,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl FeatureMatrix {
    /// The first input. A single row may come without a dimension of its own.
    pub(super) fn new(operands: &KernelOperands<'_, '_>) -> Result<Self> {
        let input = operands.call().input(0)?;
        let (rows, columns) = matrix_size(&input)?;
        let elements = dispatch!(input.dtype(), floating_and_half + i32 + i64, T => {
            Result::Ok(operands.read_input::<T>(0)?.iter().map(|element| element.to_float().to_f64()).collect())
        })?;
        Ok(Self { elements, rows, columns })
    }

    pub(super) fn row(&self, row: usize) -> &[f64] {
        &self.elements[row * self.columns..][..self.columns]
    }

    /// Some rows, from one on.
    pub(super) fn rows_from(&self, first: usize, count: usize) -> FeatureRows<'_> {
        FeatureRows::new(&self.elements[first * self.columns..][..count * self.columns], count, self.columns)
    }
}

/// Consecutive rows of features.
#[derive(Clone, Copy)]
pub(super) struct FeatureRows<'a> {
    elements: &'a [f64],
    count: usize,
    columns: usize,
    has_nan: bool,
}

impl<'a> FeatureRows<'a> {
    pub(super) fn new(elements: &'a [f64], count: usize, columns: usize) -> Self {
        Self { elements, count, columns, has_nan: elements.iter().any(|element| element.is_nan()) }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn row(&self, row: usize) -> &'a [f64] {
        &self.elements[row * self.columns..][..self.columns]
    }

    pub(super) fn has_nan(&self) -> bool {
        self.has_nan
    }
}

/// Rows and columns of an input.
pub(super) fn matrix_size(input: &TensorView<'_>) -> Result<(usize, usize)> {
    match *input.dims() {
        [columns] => Ok((1, columns as usize)),
        [rows, columns] => Ok((rows as usize, columns as usize)),
        _ => {
            let found = input.dims();
            Err(PluginError::invalid_argument(format!(
                "expected rows of features, found a shape of {found:?}"
            )))
        }
    }
}
