//! Warnings about nodes that fall back to the CPU, one for each op.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use oarlock_engine::FallbackListener;
use pyo3::prelude::*;

use super::Session;

/// Warnings deferred until the run returns: the engine reports fallback while it makes a plan, when no Python code may run.
#[derive(Default)]
pub(super) struct PendingFallbacks {
    sentences: Mutex<Vec<String>>,
    /// True if any are waiting; readable without a lock.
    is_any: AtomicBool,
}

impl PendingFallbacks {
    /// A listener that queues each report here.
    pub(super) fn fallback_listener(self: &Arc<Self>) -> FallbackListener {
        let untold = self.clone();
        FallbackListener::new(move |summary| {
            untold.sentences.lock().unwrap_or_else(PoisonError::into_inner).push(summary.to_string());
            untold.is_any.store(true, Ordering::Relaxed);
        })
    }

    /// Passes waiting reports to the Python class, which warns.
    #[inline]
    pub(super) fn report_fallbacks(&self, session: &Bound<'_, Session>) -> PyResult<()> {
        if self.is_any.load(Ordering::Relaxed) { self.report_pending(session) } else { Ok(()) }
    }

    #[cold]
    fn report_pending(&self, session: &Bound<'_, Session>) -> PyResult<()> {
        self.is_any.store(false, Ordering::Relaxed);
        let sentences = std::mem::take(&mut *self.sentences.lock().unwrap_or_else(PoisonError::into_inner));
        for sentence in sentences {
            session.call_method1("_tell_fallback", (sentence,))?;
        }
        Ok(())
    }
}
