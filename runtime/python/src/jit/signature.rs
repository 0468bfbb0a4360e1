//! Signatures of calls: what decides which graph runs.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString, PyTuple};

use crate::tensor::PyTensor;
use crate::trace::is_traced;

/// A key for calls of the same graph, and the arrays of this one.
type CallSignature<'py> = (Bound<'py, PyBytes>, Vec<Bound<'py, PyTensor>>);

/// The arrays of a call, and a key that is equal for calls of the same graph. `None` if an argument is neither an array, a number, a text
/// nor `None`, or if one is traced.
#[pyfunction]
#[pyo3(signature = (arguments, /))]
pub(crate) fn _signature<'py>(arguments: &Bound<'py, PyTuple>) -> PyResult<Option<CallSignature<'py>>> {
    let mut key = Vec::with_capacity(64);
    let mut arrays = Vec::with_capacity(arguments.len());
    for argument in arguments {
        if let Ok(array) = argument.cast::<PyTensor>() {
            let tensor = array.get().tensor();
            if is_traced(&tensor) {
                return Ok(None);
            }
            let device = tensor.device();
            key.extend([b'a', tensor.dims().len() as u8]);
            key.extend(tensor.dtype().onnx_number().to_ne_bytes());
            key.extend(tensor.dims().iter().flat_map(|size| size.to_ne_bytes()));
            add_text(&mut key, device.name());
            arrays.push(array.clone());
        } else if argument.is_none() {
            key.push(b'n');
        } else if argument.is_exact_instance_of::<PyBool>() {
            key.extend([b'b', u8::from(argument.is_truthy()?)]);
        } else if argument.is_exact_instance_of::<PyFloat>() {
            key.push(b'f');
            key.extend(argument.extract::<f64>()?.to_ne_bytes());
        } else if argument.is_exact_instance_of::<PyString>() {
            key.push(b's');
            add_text(&mut key, &argument.extract::<String>()?);
        } else if argument.is_exact_instance_of::<PyInt>()
            && let Ok(number) = argument.extract::<i64>()
        {
            key.push(b'i');
            key.extend(number.to_ne_bytes());
        } else {
            return Ok(None);
        }
    }
    Ok(Some((PyBytes::new(arguments.py(), &key), arrays)))
}

/// Adds a text whose length is known, so that no two keys are alike.
fn add_text(key: &mut Vec<u8>, text: &str) {
    key.extend(text.len().to_ne_bytes());
    key.extend(text.as_bytes());
}
