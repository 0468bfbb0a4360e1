//! Hands memory over to NumPy, which may then write to it.

#![expect(unsafe_code, reason = "a view of the interpreter is filled")]

use std::ffi::c_int;

use oarlock_core::Tensor;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::{buffer, numpy_arrays};
use crate::convert::copy_tensor;
use crate::error::OrRaise as _;
use crate::startup::host_memory_device;
use crate::tensor::{PyTensor, placeholder};
use crate::trace::refuse_read;

/// A tensor that nobody else has, and that nobody is given.
#[pyclass(frozen, module = "oarlock._oarlock")]
struct OwnedBuffer(Tensor);

#[pymethods]
impl OwnedBuffer {
    /// # Safety
    ///
    /// The interpreter calls it with a view to fill.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let tensor = slf.get().0.clone();
        buffer::fill_view(slf.into_any(), tensor, view, flags, true)
    }

    /// # Safety
    ///
    /// The interpreter calls it with a view that was filled.
    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        buffer::release_view(view);
    }
}

/// Moves the elements of an array into a writable NumPy array, without a copy if nothing else owns the memory. The array is empty
/// afterwards.
#[pyfunction]
pub(crate) fn _given_up<'py>(py: Python<'py>, array: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
    let array = array.get();
    refuse_read(&array.tensor())?;
    let host = host_memory_device(py)?;
    let nothing = placeholder(py)?;
    let tensor = match array.source() {
        Some(_) => array.tensor(),
        None => array.update_tensor(|tensor| std::mem::replace(tensor, nothing)),
    };
    let tensor = tensor.to_device(&host).or_raise()?;
    if !buffer::has_buffer_format(tensor.dtype()) {
        return numpy_arrays::write_numpy(py, &tensor);
    }
    to_numpy(py, tensor)
}

/// Creates a NumPy array in the memory of a tensor, or in a copy if the memory is shared.
fn to_numpy(py: Python<'_>, mut tensor: Tensor) -> PyResult<Bound<'_, PyAny>> {
    if tensor.exclusive_address().or_raise()?.is_none() {
        tensor = copy_tensor(py, &tensor)?;
    }
    static AS_ARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    AS_ARRAY.import(py, "numpy", "asarray")?.call1((OwnedBuffer(tensor),))
}
