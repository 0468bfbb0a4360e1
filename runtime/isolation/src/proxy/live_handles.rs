//! The streams and events of an isolated plugin that are alive.
//!
//! Nobody waits for a posted call, so a caller would learn too late that a handle means nothing. A call with such a handle is
//! waited for, and the plugin answers what it answers.

use std::collections::BTreeSet;
use std::sync::{PoisonError, RwLock};

use oarlock_abi as abi;

/// The live handles of all devices.
#[derive(Debug, Default)]
pub(crate) struct LiveHandles {
    streams: RwLock<BTreeSet<(u32, u64)>>,
    events: RwLock<BTreeSet<(u32, u64)>>,
}

impl LiveHandles {
    pub(crate) fn add_stream(&self, device: u32, stream: abi::Stream) {
        self.streams.write().unwrap_or_else(PoisonError::into_inner).insert((device, stream.0));
    }

    pub(crate) fn add_event(&self, device: u32, event: abi::Event) {
        self.events.write().unwrap_or_else(PoisonError::into_inner).insert((device, event.0));
    }

    pub(crate) fn forget_stream(&self, device: u32, stream: abi::Stream) {
        self.streams.write().unwrap_or_else(PoisonError::into_inner).remove(&(device, stream.0));
    }

    pub(crate) fn forget_event(&self, device: u32, event: abi::Event) {
        self.events.write().unwrap_or_else(PoisonError::into_inner).remove(&(device, event.0));
    }

    pub(crate) fn has_stream(&self, device: u32, stream: abi::Stream) -> bool {
        self.streams.read().unwrap_or_else(PoisonError::into_inner).contains(&(device, stream.0))
    }

    pub(crate) fn has_event(&self, device: u32, event: abi::Event) -> bool {
        self.events.read().unwrap_or_else(PoisonError::into_inner).contains(&(device, event.0))
    }
}
