//! Functions of Python that are ops, when the interpreter ends while other threads call them.
//!
//! Such a thread is ended where it next asks for the interpreter, by unwinding it, which frames of Rust cannot bear. So those
//! that are in a function have a moment to come out of it, nobody gets into one any more, and who stays in one too long stays
//! there for ever.

#![expect(unsafe_code, reason = "the interpreter is called so that it may unwind")]

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use oarlock_sdk::{Error, Result};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// How long the end waits for functions that run.
const MOMENT: Duration = Duration::from_secs(1);

struct State {
    /// The thread that ends the interpreter, which may call functions to the last.
    ending: Option<ThreadId>,
    running: usize,
}

static STATE: Mutex<State> = Mutex::new(State { ending: None, running: 0 });
static CAME_OUT: Condvar = Condvar::new();

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// That a thread may be in a function.
pub(super) struct Turn;

impl Turn {
    /// Refuses it when the interpreter ends. A thread of Python does not come back then: it is one that nobody waits for.
    pub(super) fn take() -> Result<Self> {
        let mut now = state();
        if now.ending.is_none_or(|ending| ending == std::thread::current().id()) {
            now.running += 1;
            return Ok(Self);
        }
        drop(now);
        // SAFETY: the interpreter was there when the function was made an op, and answers this without its lock.
        let is_of_python = unsafe { !ffi::PyGILState_GetThisThreadState().is_null() };
        if is_of_python {
            // Whoever holds the interpreter gives it up first.
            Python::try_attach(|py| py.detach(|| drop(StayHere)));
            drop(StayHere);
        }
        Err(Error::precondition_not_met("expected an interpreter that runs, found that it ends"))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        state().running -= 1;
        CAME_OUT.notify_all();
    }
}

/// Never comes back from being dropped.
struct StayHere;

impl Drop for StayHere {
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
    if crate::start::was_forked() {
        return;
    }
    py.detach(|| {
        let mut now = state();
        now.ending = Some(std::thread::current().id());
        let waited = CAME_OUT.wait_timeout_while(now, MOMENT, |now| now.running > 0);
        drop(waited);
    });
}

/// Calls a function, in which the interpreter may end this thread by unwinding it.
pub(super) fn call<'py>(
    function: &Bound<'py, PyAny>,
    inputs: &Bound<'py, PyTuple>,
    attributes: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    type Plain = unsafe extern "C" fn(*mut PyObject, *mut PyObject, *mut PyObject) -> *mut PyObject;
    type Unwinding =
        unsafe extern "C-unwind" fn(*mut PyObject, *mut PyObject, *mut PyObject) -> *mut PyObject;
    // A compiler that sees which function it is knows it for one that never unwinds.
    let plain = std::hint::black_box(ffi::PyObject_Call as Plain);
    // SAFETY: both are called the same way; the one that is made only promises less.
    let unwinding = unsafe { std::mem::transmute::<Plain, Unwinding>(plain) };
    let stay = StayHere;
    // SAFETY: all are objects that live through the call, and this thread is attached. Where it is unwound, no frame behind
    // this one sees it.
    let given = unsafe { unwinding(function.as_ptr(), inputs.as_ptr(), attributes.as_ptr()) };
    std::mem::forget(stay);
    // SAFETY: what comes back is a reference of ours, or null beside an exception.
    unsafe { Bound::from_owned_ptr_or_err(function.py(), given) }
}
