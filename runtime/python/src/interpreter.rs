//! Which interpreter of the process imports the package: there is one runtime in a process, and arrays are of one interpreter.

#![expect(unsafe_code, reason = "the interpreter is asked for its number")]

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

/// Refuses every interpreter but the first, such as those of `concurrent.interpreters`.
pub(crate) fn require_main_interpreter(_: Python<'_>) -> PyResult<()> {
    // SAFETY: this thread is attached to an interpreter, so that there is one, and it lives as long.
    let number = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if number == 0 {
        return Ok(());
    }
    Err(PyImportError::new_err(format!(
        "expected `oarlock` to be imported by the main interpreter of the process, found interpreter {number}\nhint: use threads, which \
         run models at the same time, or processes"
    )))
}
