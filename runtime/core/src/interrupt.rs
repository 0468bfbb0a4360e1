//! Work that its caller can interrupt.

use oarlock_host::{Code, PluginFailure, with_stop_check};

use crate::Result;

/// Runs `work`. Kernels that it runs on this thread call `ask` now and then, if they take long; an error from it ends them, and
/// they return it.
pub fn with_interrupt<R>(ask: &dyn Fn() -> Result<()>, work: impl FnOnce() -> R) -> R {
    let answer =
        || ask().map_err(|error| PluginFailure::new("core", Code(error.kind() as u32), error.to_string()));
    with_stop_check(&answer, work)
}
