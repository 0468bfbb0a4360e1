//! Counts a plugin's live handles: the plugin must not be unloaded while there are any.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;

#[derive(Clone, Copy, Debug)]
pub(crate) enum HandleKind {
    Block,
    Pinned,
    Stream,
    Event,
    KernelState,
}

/// One counter for each kind of handle.
#[derive(Debug, Default)]
pub(crate) struct LiveHandles {
    counts: [AtomicUsize; 5],
}

impl LiveHandles {
    pub(crate) fn note_taken(&self, kind: HandleKind) {
        self.counts[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_returned(&self, kind: HandleKind) {
        self.counts[kind as usize].fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn counts(&self) -> LiveHandleCounts {
        let count = |kind: HandleKind| self.counts[kind as usize].load(Ordering::Relaxed);
        LiveHandleCounts {
            blocks: count(HandleKind::Block),
            pinned: count(HandleKind::Pinned),
            streams: count(HandleKind::Stream),
            events: count(HandleKind::Event),
            kernel_states: count(HandleKind::KernelState),
        }
    }
}

/// The number of live handles of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LiveHandleCounts {
    /// Blocks of device memory that were not freed yet.
    pub blocks: usize,
    /// Blocks of pinned memory that were not freed yet.
    pub pinned: usize,
    /// Streams that were not destroyed yet.
    pub streams: usize,
    /// Events that were not destroyed yet.
    pub events: usize,
    /// Prepared kernels that were not released yet.
    pub kernel_states: usize,
}

impl fmt::Display for LiveHandleCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            (self.blocks, "block of memory", "blocks of memory"),
            (self.pinned, "block of pinned memory", "blocks of pinned memory"),
            (self.streams, "stream", "streams"),
            (self.events, "event", "events"),
            (self.kernel_states, "state of a kernel", "states of kernels"),
        ];
        let parts: Vec<String> = all
            .iter()
            .filter(|(count, ..)| *count > 0)
            .map(|(count, one, several)| format!("{count} {}", if *count == 1 { one } else { several }))
            .collect();
        if parts.is_empty() { f.write_str("no handles") } else { f.write_str(&parts.join(", ")) }
    }
}
