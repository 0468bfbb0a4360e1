//! Keeps Python functions that are ops safe while the interpreter shuts down and other threads call them.
//!
//! The interpreter ends such a thread at its next attempt to attach, by unwinding the stack, which Rust frames do not
//! survive. So shutdown gives running functions a moment to return, admits no new calls, and parks threads that stay too long
//! forever.

#![expect(unsafe_code, reason = "the interpreter is called so that it may unwind")]

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use oarlock_sdk::{PluginError, Result};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// Time that shutdown waits for running functions.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

struct ShutdownState {
    /// The thread that shuts the interpreter down, which may still call functions.
    ending: Option<ThreadId>,
    running: usize,
}

static SHUTDOWN_STATE: Mutex<ShutdownState> = Mutex::new(ShutdownState { ending: None, running: 0 });
static FUNCTION_RETURNED: Condvar = Condvar::new();

fn lock_state() -> MutexGuard<'static, ShutdownState> {
    SHUTDOWN_STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Permission to be inside a Python function; shutdown waits until all are dropped.
pub(super) struct CallPermit;

impl CallPermit {
    /// Fails once shutdown has begun. A thread of Python then never returns from here, because nothing waits for it.
    pub(super) fn acquire_permit() -> Result<Self> {
        let mut now = lock_state();
        if now.ending.is_none_or(|ending| ending == std::thread::current().id()) {
            now.running += 1;
            return Ok(Self);
        }
        drop(now);
        // SAFETY: the interpreter was initialized when the function became an op, and this query needs no lock.
        let is_of_python = unsafe { !ffi::PyGILState_GetThisThreadState().is_null() };
        if is_of_python {
            // A thread that holds the interpreter must release it before it parks.
            Python::try_attach(|py| py.detach(|| drop(ParkOnDrop)));
            drop(ParkOnDrop);
        }
        Err(PluginError::precondition_not_met("expected an interpreter that runs, found that it ends"))
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        lock_state().running -= 1;
        FUNCTION_RETURNED.notify_all();
    }
}

/// Parks the thread forever on drop.
struct ParkOnDrop;

impl Drop for ParkOnDrop {
    fn drop(&mut self) {
        loop {
            std::thread::park();
        }
    }
}

/// Lets nobody into functions any more, and waits a moment for who is in one. The interpreter calls it when it ends.
#[pyfunction]
pub(crate) fn _end_functions(py: Python<'_>) {
    // Only the forking thread exists in a child, so the threads inside functions are gone.
    if crate::startup::was_forked() {
        return;
    }
    py.detach(|| {
        let mut now = lock_state();
        now.ending = Some(std::thread::current().id());
        let waited = FUNCTION_RETURNED.wait_timeout_while(now, SHUTDOWN_TIMEOUT, |now| now.running > 0);
        drop(waited);
    });
}

/// Calls a function during which the interpreter may end this thread by unwinding.
pub(super) fn call_function<'py>(
    function: &Bound<'py, PyAny>,
    inputs: &Bound<'py, PyTuple>,
    attributes: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    type PlainCall = unsafe extern "C" fn(*mut PyObject, *mut PyObject, *mut PyObject) -> *mut PyObject;
    type UnwindingCall =
        unsafe extern "C-unwind" fn(*mut PyObject, *mut PyObject, *mut PyObject) -> *mut PyObject;
    // Hides the function from the optimizer, which knows that it is declared never to unwind.
    let plain = std::hint::black_box(ffi::PyObject_Call as PlainCall);
    // SAFETY: both types have the same calling convention; the new one only promises less.
    let unwinding = unsafe { std::mem::transmute::<PlainCall, UnwindingCall>(plain) };
    let stay = ParkOnDrop;
    // SAFETY: all are live objects during the call, and this thread is attached. If it is unwound, no frame below this one
    // observes it.
    let given = unsafe { unwinding(function.as_ptr(), inputs.as_ptr(), attributes.as_ptr()) };
    std::mem::forget(stay);
    // SAFETY: the result is an owned reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(function.py(), given) }
}
