//! Converts errors to the matching Python exceptions.

use std::cell::RefCell;
use std::fmt::Write as _;

use oarlock_core::{Dtype, ErrorKind};
use pyo3::create_exception;
use pyo3::exceptions::{
    PyBaseException, PyException, PyIndexError, PyMemoryError, PyNotImplementedError, PyOverflowError,
    PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;

create_exception!(
    oarlock,
    Error,
    PyRuntimeError,
    "Errors without a built-in exception, such as a lost device or a call in the wrong state."
);

/// Terms in the core's advice, which is written for Rust and the command line, and their Python equivalents.
const PYTHON_NAMES: [(&str, &str); 5] = [
    ("Tensor::to_device`", "to_device`"),
    ("`oarlock devices`", "`oarlock.devices()`"),
    ("`oarlock doctor`", "`python -m oarlock doctor`"),
    ("`oarlock flags`", "`python -m oarlock flags`"),
    ("`oarlock kernels ", "`python -m oarlock kernels "),
];

/// The advice of an error in terms of Python.
fn python_advice(error: &oarlock_core::Error) -> Option<String> {
    match error.advice() {
        Some(advice) => Some(translate_calls(advice)),
        // Casting does not help with text that is not a number.
        None if error.is_dtype_mismatch() && !is_about_text(error) => {
            Some("convert it with `astype` first".to_owned())
        }
        None => None,
    }
}

/// Replaces names that differ in Python.
pub(crate) fn translate_calls(text: &str) -> String {
    PYTHON_NAMES.iter().fold(text.to_owned(), |text, (other, python)| text.replace(other, python))
}

/// True for an error about a text operand, which the core calls a string.
fn is_about_text(error: &oarlock_core::Error) -> bool {
    error.is_dtype_mismatch() && error.to_string().ends_with(FOUND_STRING)
}

const FOUND_STRING: &str = "found string";

/// The exception's attribute with the op that it names.
const OP_ATTRIBUTE: &str = "_op";

/// Converts an error of an op call. Python uses `TypeError` for operands of the wrong dtype.
#[cold]
pub(crate) fn call_exception(error: oarlock_core::Error) -> PyErr {
    let (is_about_dtype, op) = (error.is_dtype_mismatch(), error.op().map(str::to_owned));
    let result = to_exception(error);
    Python::attach(|py| {
        let result = if is_about_dtype { PyTypeError::new_err(result.value(py).to_string()) } else { result };
        match op {
            // If an interrupt replaced the error, leave it untouched.
            Some(op) if result.is_instance_of::<PyException>(py) => with_function_name(py, &op, result),
            _ => result,
        }
    })
}

/// Attaches the name of the op or function in the message, so that a function built on it can substitute its own.
#[cold]
pub(crate) fn with_function_name(py: Python<'_>, function: &str, error: PyErr) -> PyErr {
    let _ = error.value(py).setattr(OP_ATTRIBUTE, function);
    error
}

/// Makes an error name the called function instead of the op behind it, which the caller may not know.
#[cold]
pub(crate) fn rename_op(py: Python<'_>, function: &str, error: PyErr) -> PyErr {
    let value = error.value(py);
    let op = value.getattr_opt(OP_ATTRIBUTE).ok().flatten().and_then(|op| op.extract::<String>().ok());
    let is_bare = op.is_none();
    if let Some(op) = op
        && op != function
    {
        let message = value.to_string().replace(&format!("`{op}`"), &format!("`{function}`"));
        set_message(value, function, message);
    } else if is_bare && value.is_instance_of::<PyOverflowError>() {
        // Overflow errors are raised by code that does not know the function.
        let (name, message) = (format!("`{function}`"), value.to_string());
        if !message.starts_with(&name) {
            set_message(value, function, format!("{name}: {message}"));
        }
    }
    error
}

/// Replaces the message and the op of an exception. One that supports neither keeps its own.
fn set_message(value: &Bound<'_, PyBaseException>, function: &str, message: String) {
    let _ = value.setattr("args", (message,)).and_then(|()| value.setattr(OP_ATTRIBUTE, function));
}

/// Has an error speak of the function that was called.
#[pyfunction]
pub(crate) fn _in_name_of(function: &str, error: &Bound<'_, PyAny>) {
    drop(rename_op(error.py(), function, PyErr::from_value(error.clone())));
}

/// Replaces dtypes in a message, such as `f32` by `float32`. The core writes them as plain words; user-chosen names are in
/// backticks or part of longer words.
fn translate_dtypes(message: &str) -> String {
    let mut translated = String::with_capacity(message.len() + 16);
    for (at, part) in message.split('`').enumerate() {
        if at > 0 {
            translated.push('`');
        }
        if at % 2 == 1 {
            translated.push_str(part);
            continue;
        }
        let is_of_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.' | ':');
        let mut rest = part;
        while let Some(start) = rest.find(is_of_word) {
            let (before, from) = rest.split_at(start);
            let (word, behind) = from.split_at(from.find(|c| !is_of_word(c)).unwrap_or(from.len()));
            translated.push_str(before);
            translated.push_str(python_dtype_name(word));
            rest = behind;
        }
        translated.push_str(rest);
    }
    translated
}

/// Python's name of a dtype; other words are returned unchanged. Text is called `string` in messages too.
fn python_dtype_name(word: &str) -> &str {
    let dtype = Dtype::ALL.iter().find(|dtype| dtype.name() == word && **dtype != Dtype::String);
    dtype.map_or(word, |dtype| dtype.numpy_name())
}

/// Converts an error of the core.
#[cold]
pub(crate) fn to_exception(error: oarlock_core::Error) -> PyErr {
    let mut message = error.to_string();
    if is_about_text(&error) {
        message.truncate(message.len() - FOUND_STRING.len());
        message.push_str("found str");
    }
    if let Some(advice) = python_advice(&error) {
        let _ = write!(message, "\nhint: {advice}");
    }
    let cause = take_exception(&message);
    if let Some(cause) = cause.as_ref()
        && Python::attach(|py| !cause.is_instance_of::<PyException>(py))
    {
        // Interrupts pass through unchanged.
        return Python::attach(|py| cause.clone_ref(py));
    }
    // Exceptions raised by Python functions keep their own words.
    let message = if cause.is_some() { message } else { translate_dtypes(&message) };
    let result = match error.kind() {
        // For an op, not found means that there is no kernel.
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
        Python::attach(|py| result.set_cause(py, Some(cause)));
    }
    result
}

/// The type's name, for messages about an unexpected object.
#[cold]
pub(crate) fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "something else".to_owned(), |name| name.to_string())
}

/// Converts results of the core.
pub(crate) trait OrRaise<T> {
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for oarlock_core::Result<T> {
    #[inline]
    fn or_raise(self) -> PyResult<T> {
        self.map_err(to_exception)
    }
}

thread_local! {
    /// The last exception raised on this thread, and the message of the error made from it.
    static LAST_EXCEPTION: RefCell<Option<(String, PyErr)>> = const { RefCell::new(None) };
}

/// Remembers an exception for the error that it becomes.
pub(crate) fn remember_exception(message: &str, error: PyErr) {
    LAST_EXCEPTION.with_borrow_mut(|raised| *raised = Some((message.to_owned(), error)));
}

/// The Python exception behind an error message, if it was raised on this thread.
fn take_exception(message: &str) -> Option<PyErr> {
    let is_it = |(noted, _): &mut (String, PyErr)| message.contains(noted.as_str());
    LAST_EXCEPTION.with_borrow_mut(|raised| raised.take_if(is_it)).map(|(_, error)| error)
}
