//! What a tensor is, apart from the memory its elements lie in. Tensors that are made alike share it, so a call site knows
//! what it has seen before by its address.

use std::sync::Arc;

use crate::{Device, Dims, Dtype, Result, shape};

/// A device, a dtype and a shape, with strides where there are gaps.
#[derive(Debug)]
pub(crate) struct TensorLayout {
    pub(crate) device: Device,
    pub(crate) dtype: Dtype,
    pub(crate) dims: Dims,
    /// Elements from one index to the next in each dimension; `None` when contiguous.
    pub(crate) strides: Option<Dims>,
    /// Bytes from the first element to past the last, with gaps.
    pub(crate) extent: u64,
}

impl TensorLayout {
    /// Elements that lie one after the other, the last dimension fastest.
    pub(crate) fn contiguous(device: &Device, dtype: Dtype, dims: &[i64]) -> Result<Arc<Self>> {
        let extent = shape::size_in_bytes(dtype, dims)?;
        Ok(Arc::new(Self { device: device.clone(), dtype, dims: dims.into(), strides: None, extent }))
    }

    /// Elements with strides, of which none is below 0, in memory that has them all.
    pub(crate) fn strided(device: &Device, dtype: Dtype, dims: Dims, strides: Dims) -> Result<Arc<Self>> {
        if shape::is_contiguous(&dims, &strides) {
            return Self::contiguous(device, dtype, &dims);
        }
        let last: i64 = dims.iter().zip(&strides).map(|(dim, stride)| (dim - 1) * stride).sum();
        let extent = (last.unsigned_abs() + 1) * dtype.byte_size().unwrap_or(1);
        Ok(Arc::new(Self { device: device.clone(), dtype, dims, strides: Some(strides), extent }))
    }

    /// Whether two forms are alike.
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

/// Whether two short lists are equal. Comparing a few numbers one by one is faster than the call that compares memory.
#[inline]
fn equal_dims(left: &[i64], right: &[i64]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left == right)
}
