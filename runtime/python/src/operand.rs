//! The other operand of an expression: an array, a number, a list, or an array of another library.

use std::sync::Arc;

use oarlock_core::{Dtype, Tensor};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFrozenSet, PyList, PySet, PyString, PyTuple};

use crate::convert::cast_tensor;
use crate::device;
use crate::error::{OrRaise as _, type_name};
use crate::exchange::from_python;
use crate::promote;
use crate::python_number::{PythonNumber, numpy_scalar};
use crate::scalar_cache;
use crate::tensor::PyTensor;

pub(crate) enum ArrayOperand {
    Array(Tensor),
    Number(PythonNumber),
    Text(String),
    /// An array made of a list or of another library's array. It goes to the device of the array beside it.
    Imported(Tensor),
    /// A Python object that is not an operand, with the error to raise: Python's own would only say that the types are
    /// unsupported.
    Refused(Arc<PyErr>),
}

impl FromPyObject<'_, '_> for ArrayOperand {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(array) = object.cast::<PyTensor>() {
            return Ok(Self::Array(array.get().tensor()));
        }
        match PythonNumber::from_object(&object)?
            .map_or_else(|| numpy_scalar(&object), |number| Ok(Some(number)))?
        {
            Some(number) => Ok(Self::Number(number)),
            None if object.is_instance_of::<PyString>() => Ok(Self::Text(object.extract()?)),
            None if is_array_like(&object)? => Ok(match from_python::asarray(&object, None, None, None) {
                Ok(array) => Self::Imported(array.get().tensor()),
                Err(error) => Self::Refused(Arc::new(error)),
            }),
            None if is_builtin_object(&object) => Ok(Self::Refused(Arc::new(non_operand_error(&object)))),
            None => Err(non_operand_error(&object)),
        }
    }
}

/// True for lists and for arrays of other libraries, which become arrays. Tables, such as those of pandas, have operators of their
/// own, which answer instead.
#[inline]
fn is_array_like(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let is_list = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
    Ok(is_list || object.hasattr("__dlpack__")?)
}

/// True for Python's built-in types that are no operands.
#[cold]
fn is_builtin_object(object: &Bound<'_, PyAny>) -> bool {
    object.is_none()
        || object.is_exact_instance_of::<PyBytes>()
        || object.is_exact_instance_of::<PyDict>()
        || object.is_exact_instance_of::<PySet>()
        || object.is_exact_instance_of::<PyFrozenSet>()
}

/// The error for an object that is no operand.
#[cold]
fn non_operand_error(object: &Bound<'_, PyAny>) -> PyErr {
    let hint = if object.is_none() {
        "look where it comes from: a function without `return` gives it"
    } else if object.is_instance_of::<PyDict>() {
        "make an array of its values with `oarlock.asarray(list(….values()))`"
    } else if object.is_instance_of::<PySet>() || object.is_instance_of::<PyFrozenSet>() {
        "make an array of its elements with `oarlock.asarray(list(…))`"
    } else {
        "make it an array with `oarlock.asarray`"
    };
    PyTypeError::new_err(format!("expected an array or a number, found {}\nhint: {hint}", type_name(object)))
}

/// The array argument of a function, which may be anything that an array can be made of; errors name it.
#[inline]
pub(crate) fn array_argument<'py>(
    object: &Bound<'py, PyAny>,
    function: &str,
    name: &str,
) -> PyResult<Bound<'py, PyTensor>> {
    match object.cast::<PyTensor>() {
        Ok(array) => Ok(array.clone()),
        Err(_) => convert_argument(object, function, name),
    }
}

#[cold]
fn convert_argument<'py>(
    object: &Bound<'py, PyAny>,
    function: &str,
    name: &str,
) -> PyResult<Bound<'py, PyTensor>> {
    if is_builtin_object(object) || object.is_instance_of::<PyString>() {
        let found = type_name(object);
        return Err(PyTypeError::new_err(format!(
            "`{function}` expected an array as `{name}`, found {found}\nhint: make it an array with `oarlock.asarray`"
        )));
    }
    from_python::asarray(object, None, None, None).inspect_err(|error| {
        let py = object.py();
        if error.is_instance_of::<PyTypeError>(py) || error.is_instance_of::<PyValueError>(py) {
            let message = format!("`{function}` expected an array as `{name}`: {}", error.value(py));
            let _ = error.value(py).setattr("args", (message,));
        }
    })
}

/// Arguments that binary functions accept.
pub(crate) trait AsOperand {
    fn as_operand(&self) -> ArrayOperand;
}

impl AsOperand for PyTensor {
    #[inline]
    fn as_operand(&self) -> ArrayOperand {
        ArrayOperand::Array(self.tensor())
    }
}

impl AsOperand for ArrayOperand {
    #[inline]
    fn as_operand(&self) -> ArrayOperand {
        match self {
            Self::Array(tensor) => Self::Array(tensor.clone()),
            Self::Number(number) => Self::Number(*number),
            Self::Text(text) => Self::Text(text.clone()),
            Self::Imported(tensor) => Self::Imported(tensor.clone()),
            Self::Refused(error) => Self::Refused(error.clone()),
        }
    }
}

/// Converts two operands to their common dtype.
#[inline]
pub(crate) fn promote_operands(
    py: Python<'_>,
    left: &impl AsOperand,
    right: &impl AsOperand,
) -> PyResult<[Tensor; 2]> {
    match (left.as_operand(), right.as_operand()) {
        (ArrayOperand::Array(left), ArrayOperand::Array(right)) => promote_arrays(py, left, right),
        (ArrayOperand::Array(array), ArrayOperand::Number(number)) => {
            let (array, number) = promote_number(py, &array, number)?;
            Ok([array, number])
        }
        (ArrayOperand::Number(number), ArrayOperand::Array(array)) => {
            let (array, number) = promote_number(py, &array, number)?;
            Ok([number, array])
        }
        (left, right) => promote_others(py, left, right),
    }
}

/// The same for less common operands.
#[cold]
fn promote_others(py: Python<'_>, left: ArrayOperand, right: ArrayOperand) -> PyResult<[Tensor; 2]> {
    use ArrayOperand::{Array, Imported, Number, Refused, Text};
    match (left, right) {
        (Refused(error), _) | (_, Refused(error)) => Err(error.clone_ref(py)),
        (Array(array), Imported(other)) => {
            let other = move_beside(&array, &other)?;
            promote_arrays(py, array, other)
        }
        (Imported(other), Array(array)) => {
            let other = move_beside(&array, &other)?;
            promote_arrays(py, other, array)
        }
        (Array(array) | Imported(array), Text(text)) => {
            let text = text_operand(&array, text)?;
            Ok([array, text])
        }
        (Text(text), Array(array) | Imported(array)) => Ok([text_operand(&array, text)?, array]),
        // Without an array of ours, the first one goes to the default device.
        (Imported(left), right) => promote_operands(
            py,
            &Array(left.to_device(&device::resolve_device(py, None)?).or_raise()?),
            &right,
        ),
        (left, Imported(right)) => promote_operands(
            py,
            &left,
            &Array(right.to_device(&device::resolve_device(py, None)?).or_raise()?),
        ),
        (Number(left), right) => {
            let left = left
                .to_tensor(&device::resolve_device(py, None)?, promote::default_dtype(left.dtype_kind()))?;
            promote_operands(py, &Array(left), &right)
        }
        (left, Number(right)) => {
            let right = right
                .to_tensor(&device::resolve_device(py, None)?, promote::default_dtype(right.dtype_kind()))?;
            promote_operands(py, &left, &Array(right))
        }
        (Text(_), Text(_)) => {
            Err(PyTypeError::new_err("expected an array among the operands, found two texts"))
        }
        (Array(left), Array(right)) => promote_arrays(py, left, right),
    }
}

#[inline]
fn promote_arrays(py: Python<'_>, left: Tensor, right: Tensor) -> PyResult<[Tensor; 2]> {
    if left.dtype() == right.dtype() {
        return Ok([left, right]);
    }
    if !left.device().is_same_device(right.device()) {
        return Err(device_mismatch_error(&left, &right));
    }
    let dtype = promote::promote_dtypes(left.dtype(), right.dtype())?;
    Ok([cast_tensor(py, &left, dtype)?, cast_tensor(py, &right, dtype)?])
}

/// An imported array on the device of another.
fn move_beside(array: &Tensor, imported: &Tensor) -> PyResult<Tensor> {
    imported.to_device(array.device()).or_raise()
}

/// The error for an in-place operator that would change dtype or shape.
#[cold]
pub(crate) fn in_place_error(operator: &str, own: &Tensor, made: &Tensor) -> PyErr {
    let describe = |tensor: &Tensor| format!("{}{:?}", tensor.dtype().numpy_name(), tensor.dims());
    let message = format!(
        "expected what has the dtype and shape of the array for `{operator}`, {}, found {}\nhint: write `a = a {} b`, which makes a \
         new array",
        describe(own),
        describe(made),
        operator.trim_end_matches('=')
    );
    let is_shape = own.dtype() == made.dtype();
    if is_shape { PyValueError::new_err(message) } else { PyTypeError::new_err(message) }
}

#[cold]
fn device_mismatch_error(left: &Tensor, right: &Tensor) -> PyErr {
    let (left, right) = (left.device(), right.device());
    PyValueError::new_err(format!(
        "expected arrays on one device, found one on `{left}` and one on `{right}`\nhint: copy one of them with `to_device`"
    ))
}

/// A Python string as a scalar, to use with an array.
pub(crate) fn text_operand(array: &Tensor, text: String) -> PyResult<Tensor> {
    if array.dtype() != Dtype::String {
        return Err(PyTypeError::new_err(format!(
            "expected a number or an array beside an array of {}, found text\nhint: convert text with `float(…)` or `int(…)` first",
            array.dtype().numpy_name()
        )));
    }
    Tensor::from_strings(array.device(), &[], vec![text]).or_raise()
}

/// Converts an array and a number to their common dtype.
fn promote_number(py: Python<'_>, array: &Tensor, number: PythonNumber) -> PyResult<(Tensor, Tensor)> {
    let dtype = promote::promote_with_number(array.dtype(), number.dtype_kind())?;
    Ok((cast_tensor(py, array, dtype)?, scalar_cache::scalar_tensor(number, array.device(), dtype)?))
}
