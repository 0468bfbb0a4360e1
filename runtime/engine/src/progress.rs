//! Progress while kernels are prepared, which takes long where they are compiled or constants are packed.

use std::fmt;
use std::sync::Arc;

/// Callback for progress: called with the number of prepared nodes and the number of all nodes.
#[derive(Clone, Default)]
pub struct PrepareProgressListener(Option<Arc<dyn Fn(usize, usize) + Send + Sync>>);

impl PrepareProgressListener {
    /// Calls `listener` before each node is prepared, and after the last.
    pub fn new(listener: impl Fn(usize, usize) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    pub(crate) fn report_progress(&self, ready: usize, all: usize) {
        if let Some(listener) = &self.0 {
            listener(ready, all);
        }
    }
}

impl fmt::Debug for PrepareProgressListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Progress(told)" } else { "Progress(not told)" })
    }
}
