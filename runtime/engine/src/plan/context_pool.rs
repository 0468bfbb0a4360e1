//! What runs of a plan leave for the next ones.

use std::sync::OnceLock;

use crossbeam_queue::ArrayQueue;

use crate::run::RunContext;

/// How many runs of one plan at the same time may leave something, beside the first.
const MOST_EXTRA_CONTEXTS: usize = 63;

/// What runs of a plan left. Most plans of a program of many run once at a time, so little is made ready for more.
pub(crate) struct RunContextPool {
    /// What runs one after the other use,
    first: ArrayQueue<RunContext>,
    /// and those at the same time, if there ever are any.
    more: OnceLock<ArrayQueue<RunContext>>,
}

impl Default for RunContextPool {
    fn default() -> Self {
        Self { first: ArrayQueue::new(1), more: OnceLock::new() }
    }
}

impl RunContextPool {
    /// What a run left, if there is anything.
    #[inline]
    pub(crate) fn take_context(&self) -> Option<RunContext> {
        self.first.pop().or_else(|| self.more.get()?.pop())
    }

    /// Leaves it to the next run.
    #[inline]
    pub(crate) fn return_context(&self, context: RunContext) {
        if let Err(context) = self.first.push(context) {
            // A full queue has enough.
            _ = self.more.get_or_init(|| ArrayQueue::new(MOST_EXTRA_CONTEXTS)).push(context);
        }
    }
}
