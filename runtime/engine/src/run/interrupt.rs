//! Runs that can be interrupted.

use std::cell::Cell;
use std::time::{Duration, Instant};

use oarlock_core::Result;

/// Minimum time between two checks: too short to notice, and a check may be expensive.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Asks the caller now and then whether the run should continue.
pub(crate) struct InterruptCheck<'a> {
    ask: &'a dyn Fn() -> Result<()>,
    last_check: Cell<Instant>,
}

impl<'a> InterruptCheck<'a> {
    pub(crate) fn new(ask: &'a dyn Fn() -> Result<()>) -> Self {
        Self { ask, last_check: Cell::new(Instant::now()) }
    }

    /// Asks if the last check was long enough ago; an error stops the run.
    #[inline]
    pub(super) fn check_interrupt(&self) -> Result<()> {
        let now = Instant::now();
        if now.duration_since(self.last_check.get()) < CHECK_INTERVAL {
            return Ok(());
        }
        self.last_check.set(now);
        (self.ask)()
    }
}
