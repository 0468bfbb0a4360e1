//! Streams and events that the host created, by handle.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oarlock_sdk::{PluginError, Result};

pub(super) struct HandleTable<T> {
    /// The noun for an entry in error messages.
    what: &'static str,
    entries: Mutex<HashMap<u64, Arc<T>>>,
}

impl<T> HandleTable<T> {
    pub(super) fn new(what: &'static str) -> Self {
        Self { what, entries: Mutex::default() }
    }

    fn lock_entries(&self) -> MutexGuard<'_, HashMap<u64, Arc<T>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn insert_entry(&self, handle: u64, entry: T) {
        self.lock_entries().insert(handle, Arc::new(entry));
    }

    pub(super) fn get(&self, handle: u64) -> Result<Arc<T>> {
        self.lock_entries().get(&handle).cloned().ok_or_else(|| self.unknown_handle(handle))
    }

    pub(super) fn remove_entry(&self, handle: u64) -> Result<Arc<T>> {
        self.lock_entries().remove(&handle).ok_or_else(|| self.unknown_handle(handle))
    }

    pub(super) fn all_entries(&self) -> Vec<Arc<T>> {
        self.lock_entries().values().cloned().collect()
    }

    fn unknown_handle(&self, handle: u64) -> PluginError {
        let what = self.what;
        PluginError::not_found(format!("expected a live {what} of this device, found the handle {handle}"))
            .with_rule("A-3")
    }
}
