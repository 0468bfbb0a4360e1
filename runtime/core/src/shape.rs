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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn sizes_are_checked_and_never_wrap() {
        assert_eq!(size_in_bytes(Dtype::F32, &[2, 3]).unwrap(), 24);
        assert_eq!(size_in_bytes(Dtype::I4, &[3]).unwrap(), 2);
        assert_eq!(size_in_bytes(Dtype::F64, &[]).unwrap(), 8);
        assert_eq!(size_in_bytes(Dtype::F64, &[i64::MAX, i64::MAX, 0]).unwrap(), 0);
    }

    #[test]
    fn what_no_memory_holds_is_told_apart_from_what_no_shape_is() {
        let kind = |dtype, dims: &[i64]| size_in_bytes(dtype, dims).unwrap_err().kind();
        for dims in [&[i64::MAX, 3][..], &[i64::MAX], &[1 << 60, 1], &[1 << 40; 3]] {
            assert_eq!(kind(Dtype::F64, dims), ErrorKind::ResourceExhausted, "{dims:?}");
        }
        for dims in [&[-1][..], &[-1, 0], &[1; 65]] {
            assert_eq!(kind(Dtype::U8, dims), ErrorKind::InvalidArgument, "{dims:?}");
        }
    }

    #[test]
    fn shapes_broadcast_from_the_last_dimension() {
        assert_eq!(broadcast_dims(&[2, 1, 3], &[4, 1]).unwrap().as_slice(), [2, 4, 3]);
        assert_eq!(broadcast_dims(&[], &[5]).unwrap().as_slice(), [5]);
        assert_eq!(broadcast_dims(&[0, 3], &[1]).unwrap().as_slice(), [0, 3]);
        assert!(broadcast_dims(&[2, 3], &[2]).unwrap_err().message().contains("[2, 3] and [2]"));
    }

    #[test]
    fn contiguous_means_that_the_last_dimension_is_fastest() {
        assert_eq!(contiguous_strides(&[2, 3, 4]).as_slice(), [12, 4, 1]);
        assert!(is_contiguous(&[2, 3], &[3, 1]) && is_contiguous(&[2, 1, 3], &[3, 99, 1]));
        assert!(!is_contiguous(&[2, 3], &[1, 2]) && !is_contiguous(&[4], &[0]));
        assert!(is_contiguous(&[4, 0], &[9, 9]));
    }

    #[test]
    fn an_axis_counts_from_either_end() {
        assert_eq!((resolve_axis(-1, 3).unwrap(), resolve_axis(0, 3).unwrap()), (2, 0));
        assert!(
            resolve_axis(3, 3).is_err()
                && resolve_axis(-4, 3).is_err()
                && resolve_axis(0, 0).is_err()
                && resolve_axis(i64::MIN, 3).is_err()
        );
    }
}
