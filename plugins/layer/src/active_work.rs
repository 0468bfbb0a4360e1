//! The work of a layer from its beginning to its end.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oarlock_sdk::{LogLevel, Result};

use crate::exit::{EndedAtExit, end_at_exit};
use crate::layer_host::LayerHost;
use crate::work::LayerWork;

/// The work of a layer that has begun.
pub(crate) struct ActiveWork<W: LayerWork> {
    pub(crate) host: LayerHost,
    pub(crate) work: W,
    /// The process that began the work; a forked child must not end it.
    process: u32,
    is_finished: AtomicBool,
}

impl<W: LayerWork> ActiveWork<W> {
    /// Begins the work, which ends with the process at the latest.
    pub(crate) fn start_work(host: LayerHost) -> Result<Arc<Self>> {
        let started = Arc::new(Self {
            host,
            work: W::start_work(host)?,
            process: std::process::id(),
            is_finished: AtomicBool::new(false),
        });
        end_at_exit(&started);
        Ok(started)
    }

    fn finish(&self, tell: &dyn Fn(LogLevel, &str)) {
        if self.process == std::process::id() && !self.is_finished.swap(true, Ordering::AcqRel) {
            self.work.finish_work(tell);
        }
    }
}

impl<W: LayerWork> EndedAtExit for ActiveWork<W> {
    /// Later calls are lost. The host may no longer be able to log, so the report goes to standard error.
    fn end_at_exit(&self) {
        self.finish(&|level, message| {
            let word = match level {
                LogLevel::ERROR => "error",
                LogLevel::WARNING => "warning",
                _ => "note",
            };
            // Without standard error there is no way to report.
            _ = writeln!(std::io::stderr(), "{word}: `{}`: {message}", W::NAME);
        });
    }
}

impl<W: LayerWork> Drop for ActiveWork<W> {
    fn drop(&mut self) {
        self.finish(&|level, message| self.host.log(level, message));
    }
}
