//! What stands before a table of another plugin.

use core::ffi::c_void;
use std::sync::Arc;

use oarlock_sdk::abi;

use crate::recorder::{TracePoint, TraceRecorder};

/// A table or kernel of another plugin, with what is needed to pass calls on and to note them.
pub(crate) struct TracedTable<T> {
    /// The context that the next table's functions want.
    pub(crate) context: *mut c_void,
    /// The next table, as far as its author knew it.
    pub(crate) next: T,
    pub(crate) recorder: Arc<TraceRecorder>,
    /// Which plugin, and of a kernel which op, the calls go to.
    pub(crate) label: Arc<str>,
}

impl<T> TracedTable<T> {
    /// Notes a call that came back, and returns what it returned.
    pub(crate) fn record_call(
        &self,
        site: &'static TracePoint,
        start: u64,
        values: &[u64],
        failure: abi::Error,
    ) -> abi::Error {
        self.recorder.record_call(site, &self.label, start, values, failure);
        failure
    }

    /// A slot that is empty below is empty here, so nobody calls this who keeps to the contract.
    pub(crate) fn missing_slot(&self, site: &'static TracePoint) -> abi::Error {
        self.recorder.unavailable_slot(site)
    }
}
