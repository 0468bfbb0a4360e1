//! Work that signal handlers of Python can end, such as Ctrl-C.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use oarlock_core::{Error, Result, with_interrupt};
use pyo3::prelude::*;

/// Time between two checks: too short to wait for, and other threads may keep the interpreter for a while.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Lets the interpreter handle signals now and then, and keeps the exception that a handler raised.
pub(crate) struct SignalCheck {
    last: Cell<Instant>,
    raised: RefCell<Option<PyErr>>,
}

impl SignalCheck {
    pub(crate) fn new() -> Self {
        Self { last: Cell::new(Instant::now()), raised: RefCell::default() }
    }

    /// Fails if a signal handler raises.
    pub(crate) fn check_signals(&self) -> Result<()> {
        let now = Instant::now();
        if now.duration_since(self.last.get()) < CHECK_INTERVAL {
            return Ok(());
        }
        let checked = Python::attach(|py| py.check_signals());
        self.last.set(Instant::now());
        checked.map_err(|error| {
            *self.raised.borrow_mut() = Some(error);
            Error::precondition_not_met("expected to go on, found that a signal handler raised")
        })
    }

    /// The exception that a signal handler raised.
    pub(crate) fn into_raised(self) -> Option<PyErr> {
        self.raised.into_inner()
    }
}

/// Runs ops with the interpreter released. If a signal handler raises, they end with that exception.
pub(crate) fn detach_interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T> + Send,
) -> PyResult<Result<T>> {
    let (result, raised) = py.detach(|| {
        let signals = SignalCheck::new();
        let result = with_interrupt(&|| signals.check_signals(), work);
        (result, signals.into_raised())
    });
    raised.map_or(Ok(result), Err)
}
