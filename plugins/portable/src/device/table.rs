//! What the host has made on a device, by handle.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oarlock_sdk::{Error, Result};

/// The streams or the events of one device.
pub(super) struct Table<T> {
    /// What the entries are called in messages.
    what: &'static str,
    entries: Mutex<HashMap<u64, Arc<T>>>,
}

impl<T> Table<T> {
    pub(super) fn new(what: &'static str) -> Self {
        Self { what, entries: Mutex::default() }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<u64, Arc<T>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn insert(&self, handle: u64, entry: T) {
        self.entries().insert(handle, Arc::new(entry));
    }

    pub(super) fn get(&self, handle: u64) -> Result<Arc<T>> {
        self.entries().get(&handle).cloned().ok_or_else(|| self.unknown(handle))
    }

    pub(super) fn remove(&self, handle: u64) -> Result<Arc<T>> {
        self.entries().remove(&handle).ok_or_else(|| self.unknown(handle))
    }

    pub(super) fn all(&self) -> Vec<Arc<T>> {
        self.entries().values().cloned().collect()
    }

    fn unknown(&self, handle: u64) -> Error {
        let what = self.what;
        Error::not_found(format!("expected a live {what} of this device, found the handle {handle}"))
            .rule("A-3")
    }
}
