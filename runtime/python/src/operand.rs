//! The other operand of an expression: an array or a Python number.

use oarlock_core::{Dtype, Tensor};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFrozenSet, PyList, PySet, PyString, PyTuple};

use crate::convert::cast_tensor;
use crate::error::{OrRaise as _, type_name};
use crate::promote;
use crate::python_number::{PythonNumber, numpy_scalar};
use crate::scalar_cache;
use crate::tensor::PyTensor;

pub(crate) enum ArrayOperand {
    Array(Tensor),
    Number(PythonNumber),
    Text(String),
    /// An array of another library, by its type's name. It is refused here, because that library would raise an unhelpful
    /// error, or return `False` for `==`.
    Foreign(String),
    /// A Python object that is not an operand, with the message to raise: Python's own error would only say that the types
    /// are unsupported.
    Refused(String),
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
            None if object.hasattr("__dlpack__")? => {
                Ok(Self::Foreign(object.get_type().fully_qualified_name()?.to_string()))
            }
            None if is_builtin_object(&object) => Ok(Self::Refused(describe_non_operand(&object))),
            None => Err(PyTypeError::new_err(describe_non_operand(&object))),
        }
    }
}

/// True for Python's built-in types, which have no operators with arrays.
#[cold]
fn is_builtin_object(object: &Bound<'_, PyAny>) -> bool {
    object.is_none()
        || object.is_exact_instance_of::<PyList>()
        || object.is_exact_instance_of::<PyTuple>()
        || object.is_exact_instance_of::<PyBytes>()
        || object.is_exact_instance_of::<PyDict>()
        || object.is_exact_instance_of::<PySet>()
        || object.is_exact_instance_of::<PyFrozenSet>()
}

/// The message for an object that is no operand.
#[cold]
fn describe_non_operand(object: &Bound<'_, PyAny>) -> String {
    let hint = if object.is_none() {
        "look where it comes from: a function without `return` gives it"
    } else if object.is_instance_of::<PyDict>() {
        "make an array of its values with `oarlock.asarray(list(….values()))`"
    } else if object.is_instance_of::<PySet>() || object.is_instance_of::<PyFrozenSet>() {
        "make an array of its elements with `oarlock.asarray(list(…))`"
    } else {
        "make it an array with `oarlock.asarray`"
    };
    format!("expected an array or a number, found {}\nhint: {hint}", type_name(object))
}

/// The array argument of a function; errors name it.
#[inline]
pub(crate) fn array_argument<'a, 'py>(
    object: &'a Bound<'py, PyAny>,
    function: &str,
    name: &str,
) -> PyResult<&'a Bound<'py, PyTensor>> {
    object.cast::<PyTensor>().map_err(|_| {
        let found = type_name(object);
        PyTypeError::new_err(format!(
            "`{function}` expected an array as `{name}`, found {found}\nhint: make it an array with `oarlock.asarray`"
        ))
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
            Self::Foreign(name) => Self::Foreign(name.clone()),
            Self::Refused(message) => Self::Refused(message.clone()),
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
        (ArrayOperand::Array(left), ArrayOperand::Array(right)) => {
            if left.dtype() == right.dtype() {
                return Ok([left, right]);
            }
            if !left.device().is_same_device(right.device()) {
                return Err(device_mismatch_error(&left, &right));
            }
            let dtype = promote::promote_dtypes(left.dtype(), right.dtype())?;
            Ok([cast_tensor(py, &left, dtype)?, cast_tensor(py, &right, dtype)?])
        }
        (ArrayOperand::Array(array), ArrayOperand::Number(number)) => {
            let (array, number) = promote_number(py, &array, number)?;
            Ok([array, number])
        }
        (ArrayOperand::Number(number), ArrayOperand::Array(array)) => {
            let (array, number) = promote_number(py, &array, number)?;
            Ok([number, array])
        }
        (ArrayOperand::Array(array), ArrayOperand::Text(text)) => {
            let text = text_operand(&array, text)?;
            Ok([array, text])
        }
        (ArrayOperand::Text(text), ArrayOperand::Array(array)) => Ok([text_operand(&array, text)?, array]),
        (ArrayOperand::Refused(message), _) | (_, ArrayOperand::Refused(message)) => {
            Err(PyTypeError::new_err(message))
        }
        (left @ ArrayOperand::Foreign(_), right) | (left, right @ ArrayOperand::Foreign(_)) => {
            let message = |operand| match operand {
                ArrayOperand::Array(_) => "`oarlock.Tensor`".to_owned(),
                ArrayOperand::Number(_) => "a number".to_owned(),
                ArrayOperand::Text(_) => "text".to_owned(),
                ArrayOperand::Foreign(name) => format!("`{name}`"),
                ArrayOperand::Refused(message) => message,
            };
            Err(foreign_operand_error(&format!("{} and {}", message(left), message(right))))
        }
        (
            ArrayOperand::Number(_) | ArrayOperand::Text(_),
            ArrayOperand::Number(_) | ArrayOperand::Text(_),
        ) => Err(PyTypeError::new_err("expected an array among the operands, found none")),
    }
}

#[cold]
pub(crate) fn foreign_operand_error(found: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "expected arrays of Oarlock and numbers, found {found}\nhint: make arrays of other libraries into ones with \
         `oarlock.asarray(…)`, which shares their memory where it can"
    ))
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
