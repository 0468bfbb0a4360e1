//! What goes wrong, as exceptions of the type that Python has for it.

use std::fmt::Write as _;

use oarlock_core::ErrorKind;
use pyo3::create_exception;
use pyo3::exceptions::{
    PyException, PyIndexError, PyMemoryError, PyNotImplementedError, PyRuntimeError, PyValueError,
};
use pyo3::prelude::*;

create_exception!(
    oarlock,
    Error,
    PyRuntimeError,
    "What no built-in exception names: a device that is gone, a state that does not allow a call."
);

/// The exception for an error of the core.
#[cold]
pub(crate) fn raised(error: oarlock_core::Error) -> PyErr {
    let mut message = error.to_string();
    if let Some(advice) = error.advice() {
        // The core says it in Rust.
        let advice = advice.replace("Tensor::to`", "to_device`");
        let _ = write!(message, "\nhint: {advice}");
    }
    let cause = crate::extension::function::raised(&message);
    if let Some(cause) = cause.as_ref()
        && Python::attach(|py| !cause.is_instance_of::<PyException>(py))
    {
        // An interrupt stays what it is.
        return Python::attach(|py| cause.clone_ref(py));
    }
    let made = match error.kind() {
        // What an op does not find is a kernel.
        ErrorKind::NotFound if error.op().is_some() => PyNotImplementedError::new_err(message),
        ErrorKind::InvalidArgument | ErrorKind::NotFound | ErrorKind::AlreadyExists => {
            PyValueError::new_err(message)
        }
        ErrorKind::OutOfRange => PyIndexError::new_err(message),
        ErrorKind::ResourceExhausted => PyMemoryError::new_err(message),
        ErrorKind::Unimplemented => PyNotImplementedError::new_err(message),
        _ => Error::new_err(message),
    };
    if let Some(cause) = cause {
        Python::attach(|py| made.set_cause(py, Some(cause)));
    }
    made
}

/// Results of the core as results of Python.
pub(crate) trait OrRaise<T> {
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for oarlock_core::Result<T> {
    #[inline]
    fn or_raise(self) -> PyResult<T> {
        self.map_err(raised)
    }
}
