//! Converts inputs and outputs of a run from and to Python objects.

use oarlock_core::{Dtype, Tensor};
use oarlock_engine::graph::ValueType;
use oarlock_engine::{ModelOperand, RuntimeValue};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyList, PyTuple};

use crate::convert::cast_tensor;
use crate::error::OrRaise as _;
use crate::exchange::from_python::asarray;
use crate::promote::dtype_kind;
use crate::tensor::PyTensor;

/// Accepts an array, a list of arrays, or `None`. Numbers of Python become elements of the input's dtype if it has them exactly.
pub(super) fn value_from_object(
    object: &Bound<'_, PyAny>,
    input: Option<&ModelOperand>,
) -> PyResult<RuntimeValue> {
    if object.is_none() {
        return Ok(RuntimeValue::Nothing);
    }
    if let Ok(array) = object.cast::<PyTensor>() {
        let tensor = array.get().tensor();
        crate::trace::refuse_read(&tensor)?;
        return Ok(RuntimeValue::Tensor(tensor));
    }
    if let Ok(list) = object.cast::<PyList>()
        && list.iter().all(|item| item.is_instance_of::<PyTensor>())
    {
        return list
            .iter()
            .map(|item| value_from_object(&item, None))
            .collect::<PyResult<Vec<_>>>()
            .map(RuntimeValue::Sequence);
    }
    let tensor = asarray(object, None, None, None)?.get().tensor();
    let is_python = object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || object.is_instance_of::<PyInt>()
        || object.is_instance_of::<PyFloat>();
    let wanted = match input.map(|input| &input.declared) {
        Some(ValueType::Tensor { dtype: Some(dtype), .. }) if is_python => *dtype,
        _ => tensor.dtype(),
    };
    Ok(RuntimeValue::Tensor(cast_exactly(object.py(), tensor, wanted)?))
}

/// The same numbers in another dtype; as they are if it lacks one of them, for the run to refuse.
fn cast_exactly(py: Python<'_>, tensor: Tensor, to: Dtype) -> PyResult<Tensor> {
    let from = tensor.dtype();
    if from == to || [from, to].map(dtype_kind).contains(&None) {
        return Ok(tensor);
    }
    let made = cast_tensor(py, &tensor, to)?;
    let back = cast_tensor(py, &made, from)?;
    let is_exact = back.to_bytes().or_raise()? == tensor.to_bytes().or_raise()?;
    Ok(if is_exact { made } else { tensor })
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
