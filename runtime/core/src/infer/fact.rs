//! Facts: what is known about a tensor before it exists.

use std::fmt;

use smallvec::SmallVec;

use crate::{Constant, Dims, Dtype, Error, Result};

/// The size of one dimension, if it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PartialDim {
    /// Exactly this size.
    Known(i64),
    /// Any size. Results computed from it are unknown too, and checks let it pass.
    Unknown,
}

/// The dimensions of a tensor of known rank.
pub type PartialDims = SmallVec<[PartialDim; 6]>;

impl PartialDim {
    /// The size, or `None` if it is unknown.
    pub fn known_size(self) -> Option<i64> {
        if let Self::Known(size) = self { Some(size) } else { None }
    }

    /// True unless both are known and differ.
    pub fn may_equal(self, other: Self) -> bool {
        self == other || self == Self::Unknown || other == Self::Unknown
    }

    /// Combines two descriptions of the same size: known if either is.
    pub(super) fn refine_with(self, other: Self) -> Self {
        if self == Self::Unknown { other } else { self }
    }

    pub(super) fn try_add(self, other: impl Into<Self>) -> Result<Self> {
        self.combine_sizes(other.into(), i64::checked_add, "+", Error::resource_exhausted)
    }

    pub(super) fn try_sub(self, other: impl Into<Self>) -> Result<Self> {
        self.combine_sizes(other.into(), i64::checked_sub, "-", Error::resource_exhausted)
    }

    pub(super) fn try_mul(self, other: impl Into<Self>) -> Result<Self> {
        self.combine_sizes(other.into(), i64::checked_mul, "×", Error::resource_exhausted)
    }

    /// Rounds down.
    pub(super) fn try_div(self, other: impl Into<Self>) -> Result<Self> {
        self.combine_sizes(other.into(), i64::checked_div_euclid, "/", Error::invalid_argument)
    }

    /// True unless it is known not to be a multiple.
    pub(super) fn may_divide_by(self, parts: impl Into<Self>) -> bool {
        match (self, parts.into()) {
            (Self::Known(size), Self::Known(parts)) => size.checked_rem(parts) == Some(0),
            (_, parts) => parts != Self::Known(0),
        }
    }

    fn combine_sizes(
        self,
        other: Self,
        compute: fn(i64, i64) -> Option<i64>,
        sign: &str,
        error: fn(String) -> Error,
    ) -> Result<Self> {
        let (Self::Known(left), Self::Known(right)) = (self, other) else { return Ok(Self::Unknown) };
        compute(left, right).map(Self::Known).ok_or_else(|| {
            error(format!("expected sizes that 64 bits can hold, found {left} {sign} {right}"))
        })
    }
}

impl From<i64> for PartialDim {
    fn from(size: i64) -> Self {
        Self::Known(size)
    }
}

impl From<i32> for PartialDim {
    fn from(size: i32) -> Self {
        Self::Known(size.into())
    }
}

impl From<usize> for PartialDim {
    fn from(size: usize) -> Self {
        i64::try_from(size).map_or(Self::Unknown, Self::Known)
    }
}

impl fmt::Display for PartialDim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(size) => size.fmt(f),
            Self::Unknown => f.write_str("?"),
        }
    }
}

/// Formats dimensions for messages, such as `[2, ?, 3]`.
pub(super) struct DisplayDims<'a>(pub(super) &'a [PartialDim]);

impl fmt::Display for DisplayDims<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (at, dim) in self.0.iter().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            write!(f, "{separator}{dim}")?;
        }
        f.write_str("]")
    }
}

/// The product of sizes. A known 0 makes it 0 even if other sizes are unknown.
pub(super) fn dim_product(dims: &[PartialDim]) -> Result<PartialDim> {
    if dims.contains(&PartialDim::Known(0)) {
        return Ok(PartialDim::Known(0));
    }
    dims.iter().try_fold(PartialDim::Known(1), |product, dim| product.try_mul(*dim))
}

/// Everything that is known about one tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorFact {
    /// The type of its elements.
    pub dtype: Dtype,
    /// Its dimensions; `None` if not even the rank is known.
    pub dims: Option<PartialDims>,
    /// Its elements, if they are known on the host; for inputs such as shapes, axes and pads.
    pub value: Option<Constant>,
}

impl TensorFact {
    /// Only the dtype is known.
    pub fn from_dtype(dtype: Dtype) -> Self {
        Self { dtype, dims: None, value: None }
    }

    /// Dtype and shape are known.
    pub fn from_shape(dtype: Dtype, dims: &[i64]) -> Self {
        Self { dims: Some(dims.iter().copied().map(PartialDim::Known).collect()), ..Self::from_dtype(dtype) }
    }

    /// Everything is known, including the elements.
    pub fn from_value(value: Constant) -> Self {
        Self { value: Some(value.clone()), ..Self::from_shape(value.dtype(), value.dims()) }
    }

    /// The shape, if all of it is known.
    pub fn known_dims(&self) -> Option<Dims> {
        self.dims.as_ref()?.iter().map(|dim| dim.known_size()).collect()
    }
}
