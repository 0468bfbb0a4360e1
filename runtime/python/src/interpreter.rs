//! Admits only one interpreter of the process, because there is one runtime and arrays belong to one interpreter.

#![expect(unsafe_code, reason = "the interpreter is asked for its number")]

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

/// Fails in all interpreters but the main one, such as those of `concurrent.interpreters`.
pub(crate) fn require_main_interpreter(_: Python<'_>) -> PyResult<()> {
    // SAFETY: this thread is attached, so there is a current interpreter, and it outlives the call.
    let number = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if number == 0 {
        return Ok(());
    }
    Err(PyImportError::new_err(format!(
        "expected `oarlock` to be imported by the main interpreter of the process, found interpreter {number}\nhint: use threads, which \
         run models at the same time, or processes"
    )))
}
