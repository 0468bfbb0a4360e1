//! Runs that somebody may want to stop.

use std::cell::Cell;
use std::time::{Duration, Instant};

use oarlock_core::Result;

/// How long a run goes on before it is asked about again. Nobody notices less, and asking may be expensive.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Asks now and then whether a run is to go on.
pub(crate) struct InterruptCheck<'a> {
    ask: &'a dyn Fn() -> Result<()>,
    asked: Cell<Instant>,
}

impl<'a> InterruptCheck<'a> {
    /// That of a run that begins.
    pub(crate) fn new(ask: &'a dyn Fn() -> Result<()>) -> Self {
        Self { ask, asked: Cell::new(Instant::now()) }
    }

    /// Asks, if it is long since it did: an error stops the run.
    #[inline]
    pub(super) fn check_interrupt(&self) -> Result<()> {
        let now = Instant::now();
        if now.duration_since(self.asked.get()) < CHECK_INTERVAL {
            return Ok(());
        }
        self.asked.set(now);
        (self.ask)()
    }
}
