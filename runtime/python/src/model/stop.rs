//! Runs that end early: because somebody pressed Ctrl-C, or nobody waits for them any more.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};

use oarlock_core::{Error, Result};
use oarlock_engine::{RuntimeValue, Session};
use pyo3::prelude::*;

use super::recorder;
use crate::error::OrRaise as _;

/// Ends the run that it was given to, once it is set.
#[pyclass(frozen, module = "oarlock")]
#[derive(Default)]
pub(crate) struct Stop(AtomicBool);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Has the run end before its next step.
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a model while other threads of Python run. A signal whose handler raises ends it with what the handler raised. A run
/// that is noted, step by step, goes on to its end.
pub(super) fn run_interruptible(
    py: Python<'_>,
    session: &Session,
    inputs: &[RuntimeValue],
    stop: Option<&Stop>,
) -> PyResult<Vec<RuntimeValue>> {
    let stopped = |why: &str| Error::precondition_not_met(why);
    let is_stopped = || stop.is_some_and(|stop| stop.0.load(Ordering::Relaxed));
    // A run that is short would not ask.
    if is_stopped() {
        return Err(stopped("the run was stopped")).or_raise();
    }
    let (made, raised) = py.detach(|| {
        if let Some(recording) = recorder::active_recording() {
            return (recording.record_run(session, inputs), None);
        }
        let raised = RefCell::new(None);
        let ask = || -> Result<()> {
            if is_stopped() {
                return Err(stopped("the run was stopped"));
            }
            match Python::attach(|py| py.check_signals()) {
                Ok(()) => Ok(()),
                Err(error) => {
                    *raised.borrow_mut() = Some(error);
                    Err(stopped("a signal stopped the run"))
                }
            }
        };
        let made = session.run_watched(inputs, &ask);
        (made, raised.into_inner())
    });
    if let Some(error) = raised {
        return Err(error);
    }
    let made = made.or_raise()?;
    crate::warning::emit_warnings(py)?;
    Ok(made)
}
