//! What runs of a plan leave for the next ones.

use std::sync::OnceLock;

use crossbeam_queue::ArrayQueue;

use crate::run::Context;

/// How many runs of one plan at the same time may leave something, beside the first.
const MORE_RUNS: usize = 63;

/// What runs of a plan left. Most plans of a program of many run once at a time, so little is made ready for more.
pub(crate) struct Contexts {
    /// What runs one after the other use,
    first: ArrayQueue<Context>,
    /// and those at the same time, if there ever are any.
    more: OnceLock<ArrayQueue<Context>>,
}

impl Default for Contexts {
    fn default() -> Self {
        Self { first: ArrayQueue::new(1), more: OnceLock::new() }
    }
}

impl Contexts {
    /// What a run left, if there is anything.
    #[inline]
    pub(crate) fn take(&self) -> Option<Context> {
        self.first.pop().or_else(|| self.more.get()?.pop())
    }

    /// Leaves it to the next run.
    #[inline]
    pub(crate) fn leave(&self, context: Context) {
        if let Err(context) = self.first.push(context) {
            // A full queue has enough.
            _ = self.more.get_or_init(|| ArrayQueue::new(MORE_RUNS)).push(context);
        }
    }
}
