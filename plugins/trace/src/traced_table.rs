//! A wrapper around a table of another plugin.

use core::ffi::c_void;
use std::sync::Arc;

use oarlock_sdk::abi;

use crate::recorder::{TracePoint, TraceRecorder};

/// A table or kernel of another plugin, with what is needed to forward calls and record them.
pub(crate) struct TracedTable<T> {
    /// The context for the next table's functions.
    pub(crate) context: *mut c_void,
    /// The next table, as far as its author's version of the contract went.
    pub(crate) next: T,
    pub(crate) recorder: Arc<TraceRecorder>,
    /// The plugin that the calls go to and, for a kernel, its op.
    pub(crate) label: Arc<str>,
}

impl<T> TracedTable<T> {
    /// Records a call that returned, and passes on its result.
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

    /// A slot that is empty below is empty here too, so only a caller that breaks the contract gets here.
    pub(crate) fn missing_slot(&self, site: &'static TracePoint) -> abi::Error {
        self.recorder.unavailable_slot(site)
    }
}
