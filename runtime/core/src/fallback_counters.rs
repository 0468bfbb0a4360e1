//! The cost of CPU fallback, counted for each op and device.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::Device;

/// The cost of falling back for one op on one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FallbackCount {
    /// Calls that the CPU ran.
    pub calls: u64,
    /// Bytes copied to the CPU and back.
    pub bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct FallbackCounters(Mutex<BTreeMap<(String, String), FallbackCount>>);

impl FallbackCounters {
    pub(crate) fn list_counts(&self) -> Vec<(String, String, FallbackCount)> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|((op, device), count)| (op.clone(), device.clone(), *count)).collect()
    }

    /// Counts one call; true if it is the first of its op on its device.
    pub(crate) fn count_fallback(&self, op: &str, device: &Device, bytes: u64) -> bool {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry((op.to_owned(), device.name().to_owned())).or_default();
        count.calls += 1;
        count.bytes += bytes;
        count.calls == 1
    }
}
