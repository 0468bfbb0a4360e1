//! Runs that end early, because of Ctrl-C or because nobody waits for the result any more.

use std::sync::atomic::{AtomicBool, Ordering};

use oarlock_core::{Error, Result};
use oarlock_engine::{RuntimeValue, Session};
use pyo3::prelude::*;

use crate::error::OrRaise as _;
use crate::recorder;
use crate::signals::SignalCheck;

/// Stops the run that it was passed to, once it is set.
#[pyclass(frozen, module = "oarlock")]
#[derive(Default)]
pub(crate) struct Stop(AtomicBool);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Stops the run: before its next step, or within one that takes long.
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a model with the interpreter released. If a signal handler raises, the run ends with that exception. A recorded run
/// always goes on to its end.
pub(super) fn run_interruptible(
    py: Python<'_>,
    session: &Session,
    inputs: &[RuntimeValue],
    stop: Option<&Stop>,
) -> PyResult<Vec<RuntimeValue>> {
    let stopped = |why: &str| Error::precondition_not_met(why);
    let is_stopped = || stop.is_some_and(|stop| stop.0.load(Ordering::Relaxed));
    // A short run ends before it checks for a stop.
    if is_stopped() {
        return Err(stopped("the run was stopped")).or_raise();
    }
    let (result, raised) = py.detach(|| {
        if let Some(recording) = recorder::active_recording() {
            return (recording.record_run(session, inputs), None);
        }
        let signals = SignalCheck::new();
        let ask = || -> Result<()> {
            if is_stopped() {
                return Err(stopped("the run was stopped"));
            }
            signals.check_signals()
        };
        let result = session.run_interruptible(inputs, &ask);
        (result, signals.into_raised())
    });
    if let Some(error) = raised {
        return Err(error);
    }
    let result = result.or_raise()?;
    crate::warning::emit_warnings(py)?;
    Ok(result)
}
