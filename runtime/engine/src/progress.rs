//! How far a session is with readying kernels, which may take long where they are compiled or constants are packed.

use std::fmt;
use std::sync::Arc;

/// Whoever wants to know how far a plan is: told how many nodes are ready, and of how many.
#[derive(Clone, Default)]
pub struct PrepareProgressListener(Option<Arc<dyn Fn(usize, usize) + Send + Sync>>);

impl PrepareProgressListener {
    /// Has a function be told.
    pub fn new(told: impl Fn(usize, usize) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(told)))
    }

    /// Tells it.
    pub(crate) fn report_progress(&self, ready: usize, all: usize) {
        if let Some(told) = &self.0 {
            told(ready, all);
        }
    }
}

impl fmt::Debug for PrepareProgressListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Progress(told)" } else { "Progress(not told)" })
    }
}
