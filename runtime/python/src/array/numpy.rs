//! NumPy functions called with an Oarlock array. NumPy's operators are such functions too if their first operand is an array
//! or scalar of NumPy.

use oarlock_core::Dtype;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::PyTensor;

/// NumPy's ufuncs behind operators, each with the reflected method of the second operand.
const UFUNC_OPERATORS: [(&str, &str); 19] = [
    ("add", "__radd__"),
    ("subtract", "__rsub__"),
    ("multiply", "__rmul__"),
    ("divide", "__rtruediv__"),
    ("floor_divide", "__rfloordiv__"),
    ("remainder", "__rmod__"),
    ("power", "__rpow__"),
    ("matmul", "__rmatmul__"),
    ("left_shift", "__rlshift__"),
    ("right_shift", "__rrshift__"),
    ("bitwise_and", "__rand__"),
    ("bitwise_or", "__ror__"),
    ("bitwise_xor", "__rxor__"),
    ("equal", "__eq__"),
    ("not_equal", "__ne__"),
    ("less", "__gt__"),
    ("less_equal", "__ge__"),
    ("greater", "__lt__"),
    ("greater_equal", "__le__"),
];

/// Answers a NumPy operator through the reflected method, and refuses all other functions: NumPy would read the buffer and
/// return arrays of its own.
pub(super) fn call_ufunc<'py>(
    function: &Bound<'py, PyAny>,
    method: &str,
    inputs: &Bound<'py, PyTuple>,
    more: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = function.py();
    let name: String = function.getattr("__name__")?.extract()?;
    let is_plain = method == "__call__" && more.is_none_or(|more| more.is_empty());
    if let Some((_, answer)) = UFUNC_OPERATORS.iter().find(|(operator, _)| is_plain && *operator == name)
        && let Ok((first, second)) = inputs.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>()
        && !first.is_instance_of::<PyTensor>()
    {
        // NumPy converts a scalar to an array before it compares.
        let is_turned = first.hasattr("shape")? && first.getattr("shape")?.extract::<[usize; 0]>().is_ok();
        let first = if is_turned { first.get_item(PyTuple::empty(py))? } else { first };
        let is_text = |array: &Bound<'_, PyTensor>| array.get().tensor().dtype() == Dtype::String;
        if !first.is_instance_of::<PyString>() || second.cast::<PyTensor>().is_ok_and(is_text) {
            let result = second.call_method1(*answer, (first,))?;
            if !result.is(py.NotImplemented()) {
                return Ok(result);
            }
        }
    }
    let types = inputs.iter().map(|input| Ok(format!("`{}`", input.get_type().fully_qualified_name()?)));
    let found = types.collect::<PyResult<Vec<_>>>()?.join(" and ");
    let call = if method == "__call__" { String::new() } else { format!(".{method}") };
    Err(PyTypeError::new_err(format!(
        "expected arrays of NumPy for `numpy.{name}{call}`, found {found}\nhint: make arrays of NumPy with `numpy.asarray(…)`, or \
         arrays of Oarlock with `oarlock.asarray(…)` and use a function of `oarlock`"
    )))
}
