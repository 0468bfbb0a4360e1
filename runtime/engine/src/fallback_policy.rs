//! Whether the CPU may run nodes that no requested device has a kernel for, and who is told.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use oarlock_core::flags::FallbackScope;
use oarlock_core::{CpuFallback, Runtime};

use crate::fallback_summary::FallbackSummary;

/// Callback for fallbacks. Without one, they are logged as warnings of the runtime.
#[derive(Clone, Default)]
pub struct FallbackListener(Option<Arc<FallbackCallback>>);

type FallbackCallback = dyn Fn(&FallbackSummary) + Send + Sync;

impl FallbackListener {
    /// Calls `callback` whenever a new plan has the CPU run an op that was not reported before. The callback must not run the
    /// session: the session waits for the plan, so that would deadlock.
    pub fn new(callback: impl Fn(&FallbackSummary) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(callback)))
    }
}

impl fmt::Debug for FallbackListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "FallbackListener(a function)"
        } else {
            "FallbackListener(the log)"
        })
    }
}

#[derive(Clone)]
pub(crate) struct FallbackPolicy {
    pub(crate) is_cpu_named: bool,
    fallback: FallbackScope,
    listener: FallbackListener,
    /// Ops that were already reported.
    reported_ops: Arc<Mutex<BTreeSet<String>>>,
}

impl FallbackPolicy {
    pub(crate) fn new(is_cpu_named: bool, fallback: FallbackScope) -> Self {
        Self { is_cpu_named, fallback, listener: FallbackListener::default(), reported_ops: Arc::default() }
    }

    /// Applies the session's own settings over those of the runtime.
    pub(crate) fn with_overrides(self, fallback: Option<FallbackScope>, listener: FallbackListener) -> Self {
        Self { fallback: fallback.unwrap_or(self.fallback), listener, ..self }
    }

    pub(crate) fn allows_cpu(&self) -> bool {
        self.is_cpu_named || self.fallback.covers_models()
    }

    /// The CPU's part when a call that is dispatched during a run finds no kernel on its device.
    pub(crate) fn runtime_fallback(&self) -> CpuFallback {
        match (self.is_cpu_named, self.allows_cpu()) {
            (true, _) => CpuFallback::Silent,
            (false, true) => CpuFallback::WithWarning,
            (false, false) => CpuFallback::Never,
        }
    }

    /// Marks these ops as reported; true if one of them is new.
    pub(crate) fn mark_reported(&self, ops: BTreeSet<String>) -> bool {
        let mut reported_ops = self.reported_ops.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !ops.is_subset(&reported_ops);
        reported_ops.extend(ops);
        is_new
    }

    pub(crate) fn notify_listener(&self, summary: &FallbackSummary, runtime: &Runtime) {
        match &self.listener.0 {
            Some(callback) => callback(summary),
            None => runtime.log_warning(&format!("{summary}; `explain` says why for each node")),
        }
    }
}
