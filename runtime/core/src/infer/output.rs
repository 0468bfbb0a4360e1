//! What a rule says about an output.

use super::fact::{Dim, PartialDims};
use crate::{Constant, Dtype, Error, Result};

/// The sizes of the dimensions of an output; none where not even their number is known.
pub(super) type Shape = Option<PartialDims>;

/// One output, as a rule sees it.
pub(super) struct Output {
    pub(super) dims: Shape,
    /// None where the schema knows it.
    pub(super) dtype: Option<Dtype>,
    pub(super) value: Option<Constant>,
}

impl Output {
    /// With a dtype that the schema does not say.
    pub(super) fn of_dtype(self, dtype: impl Into<Option<Dtype>>) -> Self {
        Self { dtype: dtype.into(), ..self }
    }
}

impl From<Shape> for Output {
    fn from(dims: Shape) -> Self {
        Self { dims, dtype: None, value: None }
    }
}

impl From<PartialDims> for Output {
    fn from(dims: PartialDims) -> Self {
        Some(dims).into()
    }
}

impl From<&[Dim]> for Output {
    fn from(dims: &[Dim]) -> Self {
        PartialDims::from_slice(dims).into()
    }
}

impl From<Constant> for Output {
    fn from(value: Constant) -> Self {
        let dims = value.dims().iter().copied().map(Dim::Known).collect();
        Self { dims: Some(dims), dtype: Some(value.dtype()), value: Some(value) }
    }
}

/// What a rule returns when there is one output.
pub(super) fn one(output: impl Into<Output>) -> Result<Vec<Output>> {
    Ok(vec![output.into()])
}

/// A shape of which only the rank is known.
pub(super) fn of_rank(rank: usize) -> PartialDims {
    smallvec::smallvec![Dim::Unknown; rank]
}

/// The shape that two shapes are repeated to. A size that is not known does not change one that is more than 1.
pub(super) fn broadcast(left: &Shape, right: &Shape) -> Result<Shape> {
    let (Some(left), Some(right)) = (left, right) else { return Ok(None) };
    let rank = left.len().max(right.len());
    let dim = |dims: &[Dim], axis: usize| {
        (axis + dims.len()).checked_sub(rank).map_or(Dim::Known(1), |at| dims[at])
    };
    let merge = |axis| match (dim(left, axis), dim(right, axis)) {
        (Dim::Known(1), other) | (other, Dim::Known(1)) => Ok(other),
        (a, b) if a.agrees(b) => Ok(a.or(b)),
        (a, b) => Err(Error::invalid_argument(format!(
            "expected shapes that are equal or 1 from the last dimension on, found {} and {}, which have {a} and {b} in \
             one place",
            super::fact::Listed(left),
            super::fact::Listed(right)
        ))),
    };
    (0..rank).map(merge).collect::<Result<_>>().map(Some)
}
