//! What goes wrong, as exceptions of the type that Python has for it.

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
    "What no built-in exception names: a device that is gone, a state that does not allow a call."
);

/// What the core calls things in its advice, which is for users of Rust and of the command, and what they are in Python.
const PYTHON_NAMES: [(&str, &str); 5] = [
    ("Tensor::to`", "to_device`"),
    ("`oarlock devices`", "`oarlock.devices()`"),
    ("`oarlock doctor`", "`python -m oarlock doctor`"),
    ("`oarlock flags`", "`python -m oarlock flags`"),
    ("`oarlock kernels ", "`python -m oarlock kernels "),
];

/// What to do about an error, in words of Python.
fn python_advice(error: &oarlock_core::Error) -> Option<String> {
    match error.advice() {
        Some(advice) => Some(translate_calls(advice)),
        // No dtype of numbers is had from text that spells none.
        None if error.is_dtype_mismatch() && !is_about_text(error) => {
            Some("convert it with `astype` first".to_owned())
        }
        None => None,
    }
}

/// A text that names what Python has under another name.
pub(crate) fn translate_calls(text: &str) -> String {
    PYTHON_NAMES.iter().fold(text.to_owned(), |text, (other, python)| text.replace(other, python))
}

/// Whether an error is about an operand of text, of which the core speaks as of strings.
fn is_about_text(error: &oarlock_core::Error) -> bool {
    error.is_dtype_mismatch() && error.to_string().ends_with(FOUND_STRING)
}

const FOUND_STRING: &str = "found string";

/// The attribute of an exception with the op that an error names.
const OP_ATTRIBUTE: &str = "_op";

/// The exception for an error of a call of an op. Python has a type of its own for operands that do not fit.
#[cold]
pub(crate) fn call_exception(error: oarlock_core::Error) -> PyErr {
    let (is_about_dtype, op) = (error.is_dtype_mismatch(), error.op().map(str::to_owned));
    let made = to_exception(error);
    Python::attach(|py| {
        let made = if is_about_dtype { PyTypeError::new_err(made.value(py).to_string()) } else { made };
        match op {
            // An interrupt that took the place of the error is not ours to write on.
            Some(op) if made.is_instance_of::<PyException>(py) => with_function_name(py, &op, made),
            _ => made,
        }
    })
}

/// An error with the name of the op or function that it speaks of, so that a function that is made of it may take its place.
#[cold]
pub(crate) fn with_function_name(py: Python<'_>, function: &str, error: PyErr) -> PyErr {
    let _ = error.value(py).setattr(OP_ATTRIBUTE, function);
    error
}

/// Has an error speak of the function that was called, in place of an op that the function is made of and its caller may
/// not know.
#[cold]
pub(crate) fn rename_op(py: Python<'_>, function: &str, error: PyErr) -> PyErr {
    let value = error.value(py);
    let op = value.getattr_opt(OP_ATTRIBUTE).ok().flatten().and_then(|op| op.extract::<String>().ok());
    let is_bare = op.is_none();
    if let Some(op) = op
        && op != function
    {
        let told = value.to_string().replace(&format!("`{op}`"), &format!("`{function}`"));
        set_message(value, function, told);
    } else if is_bare && value.is_instance_of::<PyOverflowError>() {
        // Numbers that are too large are found where nobody knows what they are for.
        let (name, told) = (format!("`{function}`"), value.to_string());
        if !told.starts_with(&name) {
            set_message(value, function, format!("{name}: {told}"));
        }
    }
    error
}

/// Has an exception tell something else, of a function. One that takes neither is told as it was.
fn set_message(value: &Bound<'_, PyBaseException>, function: &str, told: String) {
    let _ = value.setattr("args", (told,)).and_then(|()| value.setattr(OP_ATTRIBUTE, function));
}

/// Has an error speak of the function that was called.
#[pyfunction]
pub(crate) fn _in_name_of(function: &str, error: &Bound<'_, PyAny>) {
    drop(rename_op(error.py(), function, PyErr::from_value(error.clone())));
}

/// A message with dtypes as Python calls them, `float32` for `f32`. The core writes them as plain words; names that somebody
/// else chose stand in backticks or are part of something longer.
fn translate_dtypes(message: &str) -> String {
    let mut told = String::with_capacity(message.len() + 16);
    for (at, part) in message.split('`').enumerate() {
        if at > 0 {
            told.push('`');
        }
        if at % 2 == 1 {
            told.push_str(part);
            continue;
        }
        let is_of_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.' | ':');
        let mut rest = part;
        while let Some(start) = rest.find(is_of_word) {
            let (before, from) = rest.split_at(start);
            let (word, behind) = from.split_at(from.find(|c| !is_of_word(c)).unwrap_or(from.len()));
            told.push_str(before);
            told.push_str(python_dtype_name(word));
            rest = behind;
        }
        told.push_str(rest);
    }
    told
}

/// What Python calls the dtype that a word is; the word where it is none. Text is `string` in sentences, too.
fn python_dtype_name(word: &str) -> &str {
    let dtype = Dtype::ALL.iter().find(|dtype| dtype.name() == word && **dtype != Dtype::String);
    dtype.map_or(word, |dtype| dtype.numpy_name())
}

/// The exception for an error of the core.
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
    let cause = crate::extension::function::take_exception(&message);
    if let Some(cause) = cause.as_ref()
        && Python::attach(|py| !cause.is_instance_of::<PyException>(py))
    {
        // An interrupt stays what it is.
        return Python::attach(|py| cause.clone_ref(py));
    }
    // What a function of Python raised is told in its own words.
    let message = if cause.is_some() { message } else { translate_dtypes(&message) };
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

/// What an error says of an object that is not what was expected: the name of its type.
#[cold]
pub(crate) fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "something else".to_owned(), |name| name.to_string())
}

/// Results of the core as results of Python.
pub(crate) trait OrRaise<T> {
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for oarlock_core::Result<T> {
    #[inline]
    fn or_raise(self) -> PyResult<T> {
        self.map_err(to_exception)
    }
}
