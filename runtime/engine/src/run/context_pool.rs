//! Contexts that finished runs of a plan leave for later ones.

use std::sync::OnceLock;

use crossbeam_queue::ArrayQueue;

use super::RunContext;

/// Limit on pooled contexts beyond the first.
const MAX_EXTRA_CONTEXTS: usize = 63;

/// Pool of run contexts. Most graphs have many plans, each used by one thread at a time, so only one slot is allocated up
/// front.
pub(crate) struct RunContextPool {
    /// For runs one after another.
    first: ArrayQueue<RunContext>,
    /// For concurrent runs; allocated when the first slot is full.
    more: OnceLock<ArrayQueue<RunContext>>,
}

impl Default for RunContextPool {
    fn default() -> Self {
        Self { first: ArrayQueue::new(1), more: OnceLock::new() }
    }
}

impl RunContextPool {
    #[inline]
    pub(crate) fn take_context(&self) -> Option<RunContext> {
        self.first.pop().or_else(|| self.more.get()?.pop())
    }

    #[inline]
    pub(crate) fn return_context(&self, context: RunContext) {
        if let Err(context) = self.first.push(context) {
            // If the queue is full, the context is dropped.
            _ = self.more.get_or_init(|| ArrayQueue::new(MAX_EXTRA_CONTEXTS)).push(context);
        }
    }
}
