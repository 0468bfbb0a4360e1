//! Warnings of plugins and the core as Python warnings. They may come from any thread, attached or not, so they are queued
//! until a call of the package is about to return.

use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use oarlock_host::{LogLevel, LogSink};
use pyo3::prelude::*;

use crate::error::translate_calls;

/// Limit of the queue; further warnings are only counted.
const MAX_WAITING: usize = 100;

/// Queues complaints of plugins and the core.
pub(crate) struct WarningListener;

struct WarningQueue {
    warnings: VecDeque<(String, String)>,
    /// Count of warnings beyond the limit.
    more: usize,
}

static WARNING_QUEUE: Mutex<WarningQueue> = Mutex::new(WarningQueue { warnings: VecDeque::new(), more: 0 });

/// True if the queue is not empty; readable without a lock.
static HAS_WARNINGS: AtomicBool = AtomicBool::new(false);

impl LogSink for WarningListener {
    fn log(&self, plugin: &str, level: LogLevel, message: &str) {
        if level.0 > LogLevel::WARNING.0 {
            return;
        }
        // Messages of plugins are left in their own words.
        let is_ours = plugin == "core";
        queue_warning(plugin, &if is_ours { translate_calls(message) } else { message.to_owned() });
    }
}

/// Writes at once, for when the thread that would raise a warning is stuck.
pub(crate) struct StderrLog;

impl LogSink for StderrLog {
    fn log(&self, _plugin: &str, _level: LogLevel, message: &str) {
        // If standard error fails, there is nowhere left to say it.
        _ = writeln!(std::io::stderr(), "oarlock: {}", oarlock_host::sanitize_text(message));
    }
}

/// Queues a warning until a thread can raise it.
pub(crate) fn queue_warning(plugin: &str, message: &str) {
    let mut waiting = WARNING_QUEUE.lock().unwrap_or_else(PoisonError::into_inner);
    if waiting.warnings.len() < MAX_WAITING {
        waiting.warnings.push_back((plugin.to_owned(), message.to_owned()));
    } else {
        waiting.more += 1;
    }
    HAS_WARNINGS.store(true, Ordering::Relaxed);
}

/// Raises queued warnings. If warnings are errors, the first is raised and the rest stay queued.
#[inline]
pub(crate) fn emit_warnings(py: Python<'_>) -> PyResult<()> {
    if HAS_WARNINGS.load(Ordering::Relaxed) { emit_queued(py) } else { Ok(()) }
}

#[cold]
fn emit_queued(py: Python<'_>) -> PyResult<()> {
    let warn = py.import("oarlock._warning")?.getattr("warn")?;
    while let Some((plugin, message)) = next() {
        warn.call1((format!("`{plugin}`: {message}"),))?;
    }
    Ok(())
}

/// Takes the oldest warning.
fn next() -> Option<(String, String)> {
    let mut waiting = WARNING_QUEUE.lock().unwrap_or_else(PoisonError::into_inner);
    let next = waiting.warnings.pop_front();
    if next.is_none() && waiting.more > 0 {
        let more = std::mem::take(&mut waiting.more);
        return Some(("oarlock".to_owned(), format!("… and {more} warnings more")));
    }
    HAS_WARNINGS.store(next.is_some(), Ordering::Relaxed);
    next
}

/// Raises warnings for messages that were not reported yet.
#[pyfunction]
pub(crate) fn _tell_warnings(py: Python<'_>) -> PyResult<()> {
    emit_warnings(py)
}
