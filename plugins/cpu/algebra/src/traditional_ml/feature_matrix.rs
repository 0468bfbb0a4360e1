//! Rows of features: the inputs of these ops.

use std::borrow::Cow;

use oarlock_cpu_base::compute_element::{ComputeElement, ComputeFloat};
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::operands::KernelOperands;
use oarlock_sdk::{PluginError, Result, TensorView, dispatch};

/// Rows of `f32` or `f64`. The latter is exact for all but very large integers.
pub(super) struct FeatureMatrix<'a, F: Clone> {
    pub(super) elements: Cow<'a, [F]>,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl<'a, F: ComputeFloat> FeatureMatrix<'a, F> {
    /// The first input, converted unless it has the type already. A single row may come without a dimension of its own.
    pub(super) fn new(operands: &KernelOperands<'a, '_>) -> Result<Self> {
        let input = operands.call().input(0)?;
        let (rows, columns) = matrix_size(&input)?;
        let elements = if input.dtype() == F::DTYPE {
            Cow::Borrowed(operands.read_input::<F>(0)?)
        } else {
            Cow::Owned(dispatch!(input.dtype(), floating_and_half + i32 + i64, T => {
                let convert = |element: &T| F::from_f64(element.to_float().to_f64());
                Result::Ok(operands.read_input::<T>(0)?.iter().map(convert).collect())
            })?)
        };
        Ok(Self { elements, rows, columns })
    }
}

impl<F: Clone> FeatureMatrix<'_, F> {
    pub(super) fn row(&self, row: usize) -> &[F] {
        &self.elements[row * self.columns..][..self.columns]
    }
}

impl FeatureMatrix<'_, f64> {
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
