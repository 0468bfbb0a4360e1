//! Marks of arrays: which trace made them.

use std::sync::{Arc, OnceLock};

use oarlock_core::Tensor;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::{GraphTrace, TRACES, is_traced, is_tracing, traced_function};

/// Where an array comes from.
#[derive(Default)]
pub(crate) struct TraceMark {
    /// The trace in which it was made; 0 outside of traces.
    scope: u64,
    /// Counts the arrays that depend on the arguments of that trace.
    alive: OnceLock<Arc<()>>,
}

impl TraceMark {
    /// The mark of an array that is made now.
    #[inline]
    pub(crate) fn new(tensor: &Tensor) -> Self {
        if is_tracing() { Self::of_innermost(tensor) } else { Self::default() }
    }

    #[cold]
    fn of_innermost(tensor: &Tensor) -> Self {
        let mark = TRACES.with_borrow(|traces| Self {
            scope: traces.last().map_or(0, GraphTrace::scope),
            alive: OnceLock::new(),
        });
        mark.count_if_traced(tensor);
        mark
    }

    /// Counts the array from now on if its new tensor depends on the arguments.
    pub(crate) fn count_if_traced(&self, tensor: &Tensor) {
        if is_traced(tensor) {
            TRACES.with_borrow(|traces| {
                traces.last().map(|trace| self.alive.get_or_init(|| trace.alive().clone()));
            });
        }
    }
}

/// Refuses an assignment that a graph would not repeat: to an array from outside, of elements that depend on the arguments, and any
/// in a branch or in the body of a loop.
pub(crate) fn check_assignment(mark: &TraceMark, is_dependent: bool) -> PyResult<()> {
    if !is_tracing() {
        return Ok(());
    }
    let is_repeated = TRACES.with_borrow(|traces| match traces.last() {
        Some(trace) => trace.scope() == mark.scope || traces.len() == 1 && !is_dependent,
        None => true,
    });
    if is_repeated {
        return Ok(());
    }
    let function = traced_function();
    Err(PyTypeError::new_err(format!(
        "expected an assignment to an array that `{function}` makes where it assigns, found one from outside\nhint: only the first call \
         would change it; return the new array instead, or assign to a copy"
    )))
}
