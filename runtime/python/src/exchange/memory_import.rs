//! Tensors over memory of other libraries: in place where it is allowed, else as a copy.

use bytes::Bytes;
use oarlock_core::{Constant, Device, Dtype, Tensor};
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

use crate::error::OrRaise as _;

/// Fails if `copy=False` forbids the copy.
pub(crate) fn check_copy_allowed(copy: Option<bool>, found: &str) -> PyResult<()> {
    if copy != Some(false) {
        return Ok(());
    }
    Err(PyBufferError::new_err(format!(
        "expected what needs no copy, found {found}\nhint: leave out `copy=False`"
    )))
}

/// Makes a tensor over borrowed memory: in place if possible and allowed, else as a copy.
pub(crate) fn tensor_from_memory(
    device: &Device,
    dtype: Dtype,
    dims: &[i64],
    memory: Bytes,
    copy: Option<bool>,
) -> PyResult<Tensor> {
    if copy == Some(true) {
        return Tensor::from_bytes(device, dtype, dims, &memory).or_raise();
    }
    let constant = Constant::new(dtype, dims, memory).or_raise()?;
    let tensor = Tensor::from_constant(device, &constant.to_aligned().or_raise()?).or_raise()?;
    let bytes = constant.bytes().or_raise()?;
    if !bytes.is_empty() && tensor.host_address().or_raise()? != Some(bytes.as_ptr()) {
        check_copy_allowed(copy, &format!("{} that {device} cannot use where they lie", dtype.numpy_name()))?;
    }
    Ok(tensor)
}
