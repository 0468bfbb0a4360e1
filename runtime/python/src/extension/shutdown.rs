//! Functions of Python that are ops, when the interpreter ends while other threads call them.
//!
//! Such a thread is ended where it next asks for the interpreter, by unwinding it, which frames of Rust cannot bear. So those
//! that are in a function have a moment to come out of it, nobody gets into one any more, and who stays in one too long stays
//! there for ever.

#![expect(unsafe_code, reason = "the interpreter is called so that it may unwind")]

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use oarlock_sdk::{PluginError, Result};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// How long the end waits for functions that run.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

struct ShutdownState {
    /// The thread that ends the interpreter, which may call functions to the last.
    ending: Option<ThreadId>,
    running: usize,
}

static SHUTDOWN_STATE: Mutex<ShutdownState> = Mutex::new(ShutdownState { ending: None, running: 0 });
static FUNCTION_RETURNED: Condvar = Condvar::new();

fn lock_state() -> MutexGuard<'static, ShutdownState> {
    SHUTDOWN_STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// That a thread may be in a function.
pub(super) struct CallPermit;

impl CallPermit {
    /// Refuses it when the interpreter ends. A thread of Python does not come back then: it is one that nobody waits for.
    pub(super) fn acquire_permit() -> Result<Self> {
        let mut now = lock_state();
        if now.ending.is_none_or(|ending| ending == std::thread::current().id()) {
            now.running += 1;
            return Ok(Self);
        }
        drop(now);
        // SAFETY: the interpreter was there when the function was made an op, and answers this without its lock.
        let is_of_python = unsafe { !ffi::PyGILState_GetThisThreadState().is_null() };
        if is_of_python {
            // Whoever holds the interpreter gives it up first.
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

/// Never comes back from being dropped.
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
    // In a child the threads that were in functions are not there.
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

/// Calls a function, in which the interpreter may end this thread by unwinding it.
pub(super) fn call_function<'py>(
    function: &Bound<'py, PyAny>,
    inputs: &Bound<'py, PyTuple>,
    attributes: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    type PlainCall = unsafe extern "C" fn(*mut PyObject, *mut PyObject, *mut PyObject) -> *mut PyObject;
    type UnwindingCall =
        unsafe extern "C-unwind" fn(*mut PyObject, *mut PyObject, *mut PyObject) -> *mut PyObject;
    // A compiler that sees which function it is knows it for one that never unwinds.
    let plain = std::hint::black_box(ffi::PyObject_Call as PlainCall);
    // SAFETY: both are called the same way; the one that is made only promises less.
    let unwinding = unsafe { std::mem::transmute::<PlainCall, UnwindingCall>(plain) };
    let stay = ParkOnDrop;
    // SAFETY: all are objects that live through the call, and this thread is attached. Where it is unwound, no frame behind
    // this one sees it.
    let given = unsafe { unwinding(function.as_ptr(), inputs.as_ptr(), attributes.as_ptr()) };
    std::mem::forget(stay);
    // SAFETY: what comes back is a reference of ours, or null beside an exception.
    unsafe { Bound::from_owned_ptr_or_err(function.py(), given) }
}
