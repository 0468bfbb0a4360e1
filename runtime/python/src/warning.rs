//! What plugins and the core warn of, as warnings of Python. They may do so on any thread, with or without the lock of the
//! interpreter, so it is kept until a call of the package is about to return.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use oarlock_host::{LogLevel, LogSink};
use pyo3::prelude::*;

use crate::error::with_calls_of_python;

/// The most warnings that wait; of more only the number is told.
const MOST: usize = 100;

/// Hears what plugins and the core have to say, and keeps what they complain about.
pub(crate) struct Listener;

struct Waiting {
    warnings: VecDeque<(String, String)>,
    /// How many there were beyond those.
    more: usize,
}

static WAITING: Mutex<Waiting> = Mutex::new(Waiting { warnings: VecDeque::new(), more: 0 });

/// Whether any waits, without a lock.
static IS_ANY: AtomicBool = AtomicBool::new(false);

impl LogSink for Listener {
    fn log(&self, plugin: &str, level: LogLevel, message: &str) {
        if level.0 > LogLevel::WARNING.0 {
            return;
        }
        // Plugins choose their own words.
        let is_ours = plugin == "core";
        keep(plugin, &if is_ours { with_calls_of_python(message) } else { message.to_owned() });
    }
}

/// Keeps a warning until somebody can be warned.
pub(crate) fn keep(plugin: &str, message: &str) {
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    if waiting.warnings.len() < MOST {
        waiting.warnings.push_back((plugin.to_owned(), message.to_owned()));
    } else {
        waiting.more += 1;
    }
    IS_ANY.store(true, Ordering::Relaxed);
}

/// Warns of what was said since the last time. Where warnings are errors, the first one is, and the rest waits on.
#[inline]
pub(crate) fn tell(py: Python<'_>) -> PyResult<()> {
    if IS_ANY.load(Ordering::Relaxed) { tell_all(py) } else { Ok(()) }
}

#[cold]
fn tell_all(py: Python<'_>) -> PyResult<()> {
    let warn = py.import("oarlock._warning")?.getattr("warn")?;
    while let Some((plugin, message)) = next() {
        warn.call1((format!("`{plugin}`: {message}"),))?;
    }
    Ok(())
}

/// The warning that waits longest.
fn next() -> Option<(String, String)> {
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    let next = waiting.warnings.pop_front();
    if next.is_none() && waiting.more > 0 {
        let more = std::mem::take(&mut waiting.more);
        return Some(("oarlock".to_owned(), format!("… and {more} warnings more")));
    }
    IS_ANY.store(next.is_some(), Ordering::Relaxed);
    next
}

/// Warns of what was said and nobody was told of yet.
#[pyfunction]
pub(crate) fn _tell_warnings(py: Python<'_>) -> PyResult<()> {
    tell(py)
}
