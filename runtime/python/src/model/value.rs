//! Converts inputs and outputs of a run from and to Python objects.

use oarlock_engine::RuntimeValue;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::exchange::from_python::asarray;
use crate::tensor::PyTensor;

/// Accepts an array, a list of arrays, or `None`.
pub(super) fn value_from_object(object: &Bound<'_, PyAny>) -> PyResult<RuntimeValue> {
    if object.is_none() {
        return Ok(RuntimeValue::Nothing);
    }
    if let Ok(array) = object.cast::<PyTensor>() {
        let tensor = array.get().tensor();
        crate::jit::refuse_read(&tensor)?;
        return Ok(RuntimeValue::Tensor(tensor));
    }
    if let Ok(list) = object.cast::<PyList>()
        && list.iter().all(|item| item.is_instance_of::<PyTensor>())
    {
        return list
            .iter()
            .map(|item| value_from_object(&item))
            .collect::<PyResult<Vec<_>>>()
            .map(RuntimeValue::Sequence);
    }
    let array = asarray(object, None, None, None)?;
    Ok(RuntimeValue::Tensor(array.get().tensor()))
}

pub(super) fn value_to_object(py: Python<'_>, value: RuntimeValue) -> PyResult<Bound<'_, PyAny>> {
    match value {
        RuntimeValue::Tensor(tensor) => Ok(Bound::new(py, PyTensor::new(tensor))?.into_any()),
        RuntimeValue::Sequence(all) => {
            let all =
                all.into_iter().map(|value| value_to_object(py, value)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, all)?.into_any())
        }
        RuntimeValue::Nothing => Ok(py.None().into_bound(py)),
    }
}
