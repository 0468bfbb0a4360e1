//! What the CPU runs of a model for devices that have no kernel: as a dictionary for `explain`, and told once for each op.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use oarlock_engine::{FallbackListener, FallbackSummary};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::Session;

/// What is to be told when a run has returned: the engine says it while a plan is made, where no code of Python may run.
#[derive(Default)]
pub(super) struct PendingFallbacks {
    sentences: Mutex<Vec<String>>,
    /// Whether there are any, without a lock.
    is_any: AtomicBool,
}

impl PendingFallbacks {
    /// Who keeps it.
    pub(super) fn fallback_listener(self: &Arc<Self>) -> FallbackListener {
        let untold = self.clone();
        FallbackListener::new(move |summary| {
            untold.sentences.lock().unwrap_or_else(PoisonError::into_inner).push(summary.to_string());
            untold.is_any.store(true, Ordering::Relaxed);
        })
    }

    /// Has the session tell it, in whatever way its class does.
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

/// Which device runs how many nodes, and what the CPU runs for others.
pub(super) fn describe_fallback<'py>(
    py: Python<'py>,
    summary: &FallbackSummary,
) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("nodes", summary.fallback_nodes())?;
    all.set_item("of", summary.nodes)?;
    all.set_item("cpu_named", summary.is_cpu_named)?;
    all.set_item("devices", &summary.nodes_by_device)?;
    let ops = summary.ops.iter().map(|op| {
        let told = PyDict::new(py);
        told.set_item("op", &op.op)?;
        told.set_item("count", op.count)?;
        told.set_item("missing", op.missing.name())?;
        told.set_item("reason", &op.reason)?;
        told.set_item("first_node", &op.first_node)?;
        Ok(told)
    });
    all.set_item("ops", PyList::new(py, ops.collect::<PyResult<Vec<_>>>()?)?)?;
    all.set_item("shapes", summary.shape_nodes)?;
    all.set_item("text", summary.text_nodes)?;
    all.set_item("too_small", summary.small_nodes)?;
    Ok(all)
}
