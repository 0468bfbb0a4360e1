//! Keywords of NumPy's elementwise functions: `out`, `where`, `dtype` and `casting`. Python does what they say; calls without them
//! pay for no more than the check.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::tensor::PyTensor;

const KNOWN: [&str; 6] = ["where", "dtype", "casting", "out", "order", "subok"];

/// The keywords of a call, `out` apart, which may also be the last argument.
#[derive(Clone, Copy)]
pub(crate) struct UfuncKeywords<'a, 'py> {
    pub(crate) out: Option<&'a Bound<'py, PyAny>>,
    pub(crate) named: Option<&'a Bound<'py, PyDict>>,
}

impl<'py> UfuncKeywords<'_, 'py> {
    /// The result of a function, made by `call` if there are no keywords.
    #[inline]
    pub(crate) fn apply<const COUNT: usize>(
        self,
        name: &str,
        operands: [&Bound<'py, PyAny>; COUNT],
        call: impl Fn(Python<'py>) -> PyResult<PyTensor>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let py = operands[0].py();
        if self.out.is_none() && self.named.is_none() {
            return Bound::new(py, call(py)?);
        }
        self.apply_with_keywords(py, name, &operands, &call)
    }

    /// Not generic, or the library would have it once for each function.
    #[inline(never)]
    fn apply_with_keywords(
        self,
        py: Python<'py>,
        name: &str,
        operands: &[&Bound<'py, PyAny>],
        call: &dyn Fn(Python<'py>) -> PyResult<PyTensor>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        if self.named.is_none()
            && let Some(out) = self.out.and_then(|out| out.cast::<PyTensor>().ok())
            && write_equal(py, out.get(), call)?
        {
            return Ok(out.clone());
        }
        self.apply_in_python(py, name, operands)
    }

    #[cold]
    fn apply_in_python(
        self,
        py: Python<'py>,
        name: &str,
        operands: &[&Bound<'py, PyAny>],
    ) -> PyResult<Bound<'py, PyTensor>> {
        let named = self.named.map_or_else(|| Ok(PyDict::new(py)), |named| named.copy())?;
        for key in named.keys() {
            let key = key.cast_into::<PyString>()?;
            if !KNOWN.contains(&key.to_str()?) {
                return Err(PyTypeError::new_err(format!(
                    "`{name}` expected `out`, `where`, `dtype` or `casting` as keyword, found `{key}`"
                )));
            }
        }
        if let Some(out) = self.out {
            named.set_item("out", out)?;
        }
        let function = py.import("oarlock._oarlock")?.getattr(name)?;
        let options = PyDict::new(py);
        options.set_item("is_elementwise", name != "matmul")?;
        let given = PyTuple::new(py, operands)?;
        let made = py.import("oarlock._ufunc_keywords")?.call_method(
            "call",
            (function, name, given, named),
            Some(&options),
        )?;
        Ok(made.cast_into()?)
    }
}

/// Writes the result to an output of its dtype and shape; false for any other output.
fn write_equal<'py>(
    py: Python<'py>,
    out: &PyTensor,
    call: &dyn Fn(Python<'py>) -> PyResult<PyTensor>,
) -> PyResult<bool> {
    let made = call(py)?.tensor();
    let own = out.tensor();
    if (made.dtype(), made.dims()) != (own.dtype(), own.dims()) {
        return Ok(false);
    }
    drop(own);
    out.check_assignment(Some(&made))?;
    out.replace_tensor(py, made)?;
    Ok(true)
}
