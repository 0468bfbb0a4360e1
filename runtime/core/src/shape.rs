//! Shapes: sizes of dimensions, and arithmetic on them that reports overflow.

use smallvec::SmallVec;

use crate::{Dtype, Error, Result};

/// The sizes of the dimensions of a tensor, or its strides.
pub type Dims = SmallVec<[i64; 6]>;

/// The largest rank that a tensor may have.
pub const MAX_RANK: usize = 64;

/// The number of elements of a shape.
pub fn element_count(dims: &[i64]) -> Result<u64> {
    let is_empty = dims.contains(&0);
    let mut count = 1u64;
    for dim in dims {
        let size = u64::try_from(*dim)
            .map_err(|_| Error::invalid_argument(shape_message(dims, "sizes of at least 0")))?;
        match count.checked_mul(size) {
            Some(product) => count = product,
            None if is_empty => count = 0,
            None => return Err(overflow_error(dims, "a shape with fewer than 2^64 elements")),
        }
    }
    Ok(if is_empty { 0 } else { count })
}

/// The size of a contiguous tensor in bytes. With packed dtypes, the last byte may be only partly used.
pub fn size_in_bytes(dtype: Dtype, dims: &[i64]) -> Result<u64> {
    if dims.len() > MAX_RANK {
        let most = format!("at most {MAX_RANK} dimensions");
        return Err(Error::invalid_argument(shape_message(dims, &most)));
    }
    let bits = element_count(dims)?.checked_mul(u64::from(dtype.bits()));
    let bytes = bits.map(|bits| bits.div_ceil(8)).filter(|bytes| i64::try_from(*bytes).is_ok());
    bytes.ok_or_else(|| overflow_error(dims, "a shape that memory can hold"))
}

/// The row-major strides of a contiguous tensor, in elements.
pub fn contiguous_strides(dims: &[i64]) -> Dims {
    let mut strides: Dims = SmallVec::from_elem(0, dims.len());
    let mut step = 1i64;
    for (stride, dim) in strides.iter_mut().zip(dims).rev() {
        *stride = step;
        step = step.saturating_mul((*dim).max(1));
    }
    strides
}

/// True if the strides are those of a contiguous tensor. The stride of a dimension of size 1 does not matter.
pub fn is_contiguous(dims: &[i64], strides: &[i64]) -> bool {
    if dims.contains(&0) {
        return true;
    }
    let mut step = 1;
    dims.iter().zip(strides).rev().all(|(dim, stride)| {
        let fits = *dim == 1 || *stride == step;
        step *= dim;
        fits
    })
}

/// The shape that two shapes broadcast to. Aligned at the last dimension, sizes must be equal, or one of them 1 or missing.
pub fn broadcast_dims(left: &[i64], right: &[i64]) -> Result<Dims> {
    let rank = left.len().max(right.len());
    let dim = |dims: &[i64], axis: usize| (axis + dims.len()).checked_sub(rank).map_or(1, |at| dims[at]);
    let merge = |axis| match (dim(left, axis), dim(right, axis)) {
        (a, b) if a == b => Ok(a),
        (1, b) => Ok(b),
        (a, 1) => Ok(a),
        (a, b) => Err(Error::invalid_argument(format!(
            "expected shapes that are equal or 1 from the last dimension on, found {left:?} and {right:?}, which have {a} \
             and {b} in one place"
        ))),
    };
    (0..rank).map(merge).collect()
}

/// Turns an axis into the index of a dimension. A negative axis counts from the end.
pub fn resolve_axis(axis: i64, rank: usize) -> Result<usize> {
    let rank_signed = i64::try_from(rank).unwrap_or(i64::MAX);
    let counted = if axis < 0 { axis.checked_add(rank_signed) } else { Some(axis) };
    counted
        .filter(|axis| (0..rank_signed).contains(axis))
        .and_then(|axis| usize::try_from(axis).ok())
        .ok_or_else(|| {
            Error::out_of_range(format!("expected an axis from -{rank} to before {rank}, found {axis}"))
        })
}

#[cold]
fn overflow_error(dims: &[i64], shape: &str) -> Error {
    Error::resource_exhausted(shape_message(dims, shape))
        .with_advice("look at what the sizes are computed from")
}

fn shape_message(dims: &[i64], expected: &str) -> String {
    format!("expected {expected}, found the shape {dims:?}")
}
