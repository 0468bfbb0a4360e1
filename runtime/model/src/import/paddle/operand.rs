//! Operands of Paddle ops.

use oarlock_core::{Dtype, Error, Result};

use crate::graph::ValueId;
use crate::import::error_location::invalid_model;

/// An operand with its declared type.
#[derive(Clone, Copy)]
pub(super) struct PaddleOperand<'m> {
    pub(super) id: ValueId,
    /// Declared sizes, -1 for an unknown one; `None` if not even the rank is known.
    pub(super) dims: Option<&'m [i64]>,
    /// Declared dtype.
    pub(super) stated: Option<Dtype>,
}

impl PaddleOperand<'_> {
    /// The rank, or an error if it is unknown.
    pub(super) fn rank(&self) -> Result<i64> {
        match self.dims {
            Some(dims) => Ok(dims.len() as i64),
            None => Err(Error::unimplemented(
                "expected an operand of a known number of dimensions, found another",
            )),
        }
    }

    /// The declared dtype, or f32, the most likely one.
    pub(super) fn dtype(&self) -> Dtype {
        self.stated.unwrap_or(Dtype::F32)
    }

    /// Resolves an axis; negative ones count from the end.
    pub(super) fn normalize_axis(&self, axis: i64) -> Result<i64> {
        let rank = self.rank()?;
        let place = if axis < 0 { axis.saturating_add(rank) } else { axis };
        if (0..rank).contains(&place) {
            Ok(place)
        } else {
            Err(invalid_model(format!("one of {rank} axes"), axis))
        }
    }

    /// The size of a dimension, if it is known.
    pub(super) fn dimension_size(&self, axis: i64) -> Option<i64> {
        let place = usize::try_from(self.normalize_axis(axis).ok()?).ok()?;
        self.dims?.get(place).copied().filter(|size| *size >= 0)
    }

    /// The size of a dimension, or an error if it is unknown.
    pub(super) fn known_dimension_size(&self, axis: i64) -> Result<i64> {
        self.dimension_size(axis).ok_or_else(|| {
            Error::unimplemented(format!("expected a known size of dimension {axis}, found one that is not"))
        })
    }
}
