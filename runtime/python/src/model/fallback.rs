//! Nodes that fall back to the CPU: a dictionary for `explain`, and one warning per op.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use oarlock_engine::{FallbackListener, FallbackSummary};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

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

/// The number of nodes on each device, and the nodes that fell back.
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
