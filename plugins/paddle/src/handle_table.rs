//! Streams and events by number.
//!
//! A custom device may use any address as a stream or an event, null included, and one address for all of them. The contract wants
//! numbers that are different and not 0, so the adapter gives out its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use oarlock_sdk::{PluginError, Result};

/// What lives behind numbers that were given out.
pub(crate) struct HandleTable<T> {
    /// What the numbers stand for, in messages.
    what: &'static str,
    entries: Mutex<HandleEntries<T>>,
}

struct HandleEntries<T> {
    last: u64,
    live: HashMap<u64, Arc<T>>,
}

impl<T> HandleTable<T> {
    pub(crate) fn new(what: &'static str) -> Self {
        Self { what, entries: Mutex::new(HandleEntries { last: 0, live: HashMap::new() }) }
    }

    pub(crate) fn insert(&self, value: T) -> u64 {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.last += 1;
        let number = entries.last;
        entries.live.insert(number, Arc::new(value));
        number
    }

    pub(crate) fn get(&self, number: u64) -> Result<Arc<T>> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.live.get(&number).cloned().ok_or_else(|| self.unknown_number(number))
    }

    pub(crate) fn remove(&self, number: u64) -> Result<Arc<T>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.live.remove(&number).ok_or_else(|| self.unknown_number(number))
    }

    fn unknown_number(&self, number: u64) -> PluginError {
        let what = self.what;
        PluginError::invalid_argument(format!(
            "expected {what} that was created and not destroyed, found {number}"
        ))
    }
}
