//! What plugins and the core warn of, as warnings of Python. They may do so on any thread, with or without the lock of the
//! interpreter, so it is kept until a call of the package is about to return.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use oarlock_host::{LogLevel, LogSink};
use pyo3::prelude::*;

use crate::error::translate_calls;

/// The most warnings that wait; of more only the number is told.
const MAX_WAITING: usize = 100;

/// Hears what plugins and the core have to say, and keeps what they complain about.
pub(crate) struct WarningListener;

struct WarningQueue {
    warnings: VecDeque<(String, String)>,
    /// How many there were beyond those.
    more: usize,
}

static WARNING_QUEUE: Mutex<WarningQueue> = Mutex::new(WarningQueue { warnings: VecDeque::new(), more: 0 });

/// Whether any waits, without a lock.
static HAS_WARNINGS: AtomicBool = AtomicBool::new(false);

impl LogSink for WarningListener {
    fn log(&self, plugin: &str, level: LogLevel, message: &str) {
        if level.0 > LogLevel::WARNING.0 {
            return;
        }
        // Plugins choose their own words.
        let is_ours = plugin == "core";
        queue_warning(plugin, &if is_ours { translate_calls(message) } else { message.to_owned() });
    }
}

/// Keeps a warning until somebody can be warned.
pub(crate) fn queue_warning(plugin: &str, message: &str) {
    let mut waiting = WARNING_QUEUE.lock().unwrap_or_else(PoisonError::into_inner);
    if waiting.warnings.len() < MAX_WAITING {
        waiting.warnings.push_back((plugin.to_owned(), message.to_owned()));
    } else {
        waiting.more += 1;
    }
    HAS_WARNINGS.store(true, Ordering::Relaxed);
}

/// Warns of what was said since the last time. Where warnings are errors, the first one is, and the rest waits on.
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

/// The warning that waits longest.
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

/// Warns of what was said and nobody was told of yet.
#[pyfunction]
pub(crate) fn _tell_warnings(py: Python<'_>) -> PyResult<()> {
    emit_warnings(py)
}
