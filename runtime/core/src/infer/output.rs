//! The result of a rule.

use super::fact::{PartialDim, PartialDims};
use crate::{Constant, Dtype, Error, Result};

/// The dimensions of an output; `None` if not even the rank is known.
pub(super) type PartialShape = Option<PartialDims>;

pub(super) struct InferredOutput {
    pub(super) dims: PartialShape,
    /// `None` if the schema determines it.
    pub(super) dtype: Option<Dtype>,
    pub(super) value: Option<Constant>,
}

impl InferredOutput {
    /// Sets a dtype that the schema does not determine.
    pub(super) fn with_dtype(self, dtype: impl Into<Option<Dtype>>) -> Self {
        Self { dtype: dtype.into(), ..self }
    }
}

impl From<PartialShape> for InferredOutput {
    fn from(dims: PartialShape) -> Self {
        Self { dims, dtype: None, value: None }
    }
}

impl From<PartialDims> for InferredOutput {
    fn from(dims: PartialDims) -> Self {
        Some(dims).into()
    }
}

impl From<&[PartialDim]> for InferredOutput {
    fn from(dims: &[PartialDim]) -> Self {
        PartialDims::from_slice(dims).into()
    }
}

impl From<Constant> for InferredOutput {
    fn from(value: Constant) -> Self {
        let dims = value.dims().iter().copied().map(PartialDim::Known).collect();
        Self { dims: Some(dims), dtype: Some(value.dtype()), value: Some(value) }
    }
}

/// Wraps the result of a rule for ops with one output.
pub(super) fn single_output(output: impl Into<InferredOutput>) -> Result<Vec<InferredOutput>> {
    Ok(vec![output.into()])
}

/// Dimensions of known rank and unknown sizes.
pub(super) fn unknown_dims(rank: usize) -> PartialDims {
    smallvec::smallvec![PartialDim::Unknown; rank]
}

/// The shape to which two shapes broadcast. An unknown size must be 1 or equal, so a known size above 1 wins.
pub(super) fn broadcast_shapes(left: &PartialShape, right: &PartialShape) -> Result<PartialShape> {
    let (Some(left), Some(right)) = (left, right) else { return Ok(None) };
    let rank = left.len().max(right.len());
    let dim = |dims: &[PartialDim], axis: usize| {
        (axis + dims.len()).checked_sub(rank).map_or(PartialDim::Known(1), |at| dims[at])
    };
    let merge = |axis| match (dim(left, axis), dim(right, axis)) {
        (PartialDim::Known(1), other) | (other, PartialDim::Known(1)) => Ok(other),
        (a, b) if a.may_equal(b) => Ok(a.refine_with(b)),
        (a, b) => Err(Error::invalid_argument(format!(
            "expected shapes that are equal or 1 from the last dimension on, found {} and {}, which have {a} and {b} in \
             one place",
            super::fact::DisplayDims(left),
            super::fact::DisplayDims(right)
        ))),
    };
    (0..rank).map(merge).collect::<Result<_>>().map(Some)
}
