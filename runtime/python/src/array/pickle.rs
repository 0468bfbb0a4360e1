//! Pickles arrays as dtype, shape, elements, and the device's name.

use oarlock_core::{Dtype, Tensor};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use super::PyTensor;
use crate::dtype::{self, DType};
use crate::error::OrRaise as _;
use crate::startup::shared_runtime;
use crate::trace::refuse_read;

/// The result of `__reduce__`: a constructor and its arguments.
pub(super) type PickleReduction<'py> = (Bound<'py, PyAny>, Bound<'py, PyTuple>);

/// Reduces an array to `_restored` and its arguments.
pub(super) fn pickle_tensor<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<PickleReduction<'py>> {
    refuse_read(tensor)?;
    let elements = if tensor.dtype() == Dtype::String {
        PyList::new(py, tensor.to_strings().or_raise()?)?.into_any()
    } else {
        PyBytes::new(py, &py.detach(|| tensor.to_bytes()).or_raise()?).into_any()
    };
    let dims = PyTuple::new(py, tensor.dims())?;
    let arguments = (dtype::dtype_object(py, tensor.dtype())?, dims, tensor.device().name(), elements);
    Ok((py.import("oarlock._oarlock")?.getattr("_restored")?, arguments.into_pyobject(py)?))
}

/// The array that was pickled.
#[pyfunction]
pub(crate) fn _restored(
    py: Python<'_>,
    dtype: &DType,
    dims: Vec<i64>,
    device: &str,
    elements: &Bound<'_, PyAny>,
) -> PyResult<PyTensor> {
    let device = shared_runtime(py)?.device(device).or_raise().map_err(|error| {
        PyValueError::new_err(format!(
            "{}\nhint: the array lay there when it was pickled; pickle `x.to_device(\"cpu\")` for programs without the device",
            error.value(py)
        ))
    })?;
    let result = match elements.cast::<PyBytes>() {
        Ok(bytes) => Tensor::from_bytes(&device, dtype.0, &dims, bytes.as_bytes()),
        Err(_) => Tensor::from_strings(&device, &dims, elements.extract::<Vec<String>>()?),
    };
    result.or_raise().map(PyTensor::new)
}
