//! Layouts: all properties of a tensor except its memory. Outputs of repeated calls with the same signature share a
//! layout, so a call site can recognize it by its address.

use std::sync::Arc;

use crate::{Device, Dims, Dtype, Result, shape};

/// Device, dtype and shape, with strides unless the elements are contiguous.
#[derive(Debug)]
pub(crate) struct TensorLayout {
    pub(crate) device: Device,
    pub(crate) dtype: Dtype,
    pub(crate) dims: Dims,
    /// The distance in elements from one index to the next, for each dimension; `None` if contiguous.
    pub(crate) strides: Option<Dims>,
    /// Bytes from the first element to the end of the last, gaps included.
    pub(crate) extent: u64,
}

impl TensorLayout {
    pub(crate) fn contiguous(device: &Device, dtype: Dtype, dims: &[i64]) -> Result<Arc<Self>> {
        let extent = shape::size_in_bytes(dtype, dims)?;
        Ok(Arc::new(Self { device: device.clone(), dtype, dims: dims.into(), strides: None, extent }))
    }

    /// Strides must not be negative. The caller must have memory for the whole extent.
    pub(crate) fn strided(device: &Device, dtype: Dtype, dims: Dims, strides: Dims) -> Result<Arc<Self>> {
        if shape::is_contiguous(&dims, &strides) {
            return Self::contiguous(device, dtype, &dims);
        }
        let last: i64 = dims.iter().zip(&strides).map(|(dim, stride)| (dim - 1) * stride).sum();
        let extent = (last.unsigned_abs() + 1) * dtype.byte_size().unwrap_or(1);
        Ok(Arc::new(Self { device: device.clone(), dtype, dims, strides: Some(strides), extent }))
    }

    #[inline]
    pub(crate) fn is_same_layout(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
            || self.device.is_same_device(&other.device)
                && self.dtype == other.dtype
                && equal_dims(&self.dims, &other.dims)
                && match (&self.strides, &other.strides) {
                    (None, None) => true,
                    (Some(own), Some(others)) => equal_dims(own, others),
                    _ => false,
                }
    }
}

/// For a handful of numbers, this loop is faster than a call of `memcmp`.
#[inline]
fn equal_dims(left: &[i64], right: &[i64]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left == right)
}
