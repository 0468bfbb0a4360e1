//! Traces of Python functions: the ops that a function calls become the nodes of a graph.
//!
//! The function really runs on its first arguments, so that everything that depends on shapes is decided as in any call. An array
//! that depends on the arguments is *traced*; all others are constants. A function that reads the elements of a traced array is
//! refused, because the next call would have others.

mod graph_trace;
mod mark;

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};

use oarlock_core::schema::{OpFact, has_fact};
use oarlock_core::{Op, OpInvocation, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

pub(crate) use self::graph_trace::{
    FinishedGraph, GraphTrace, add_node, operand_value, traced_model, zeros_of,
};
pub(crate) use self::mark::{TraceMark, check_assignment};

thread_local! {
    /// What this thread traces: a function, and the branches and loop bodies that it is in, the innermost last.
    pub(crate) static TRACES: RefCell<Vec<GraphTrace>> = const { RefCell::new(Vec::new()) };
}

/// The number of traces of all threads.
pub(crate) static TRACE_COUNT: AtomicUsize = AtomicUsize::new(0);

/// One relaxed load, so that calls cost nothing extra if nothing is traced.
#[inline]
pub(crate) fn is_tracing() -> bool {
    TRACE_COUNT.load(Ordering::Relaxed) != 0
}

/// True if the tensor depends on the arguments of a function that this thread traces.
#[inline]
pub(crate) fn is_traced(tensor: &Tensor) -> bool {
    is_tracing() && TRACES.with_borrow(|traces| traces.iter().any(|trace| trace.has_value(tensor)))
}

/// The innermost trace of this thread; 0 if there is none.
pub(crate) fn innermost_scope() -> u64 {
    TRACES.with_borrow(|traces| traces.last().map_or(0, GraphTrace::scope))
}

/// True if this thread is in such a trace.
pub(crate) fn is_active(scope: u64) -> bool {
    TRACES.with_borrow(|traces| traces.iter().any(|trace| trace.scope() == scope))
}

/// Adds a call to the innermost trace if an input is traced. The results of other calls are constants of the graph.
pub(crate) fn record_call(
    py: Python<'_>,
    op: &Op,
    inputs: &[Option<&Tensor>],
    outputs: &[Tensor],
) -> PyResult<()> {
    if !is_tracing() {
        return Ok(());
    }
    if !inputs.iter().flatten().any(|input| is_traced(input)) {
        return inputs.iter().flatten().try_for_each(|input| refuse_other_thread(input));
    }
    let line = check_recorded(py, op)?;
    TRACES.with_borrow_mut(|traces| graph_trace::record_op(traces, op, inputs, outputs, line))
}

/// Adds a call in a branch or in the body of a loop without running it, since nobody knows yet whether it should run: a branch may
/// divide by what is zero in the other one. Returns its results with all elements zero; `None` for a call that has to run.
pub(crate) fn record_without_run(
    py: Python<'_>,
    op: &Op,
    call: &OpInvocation<'_>,
) -> PyResult<Option<Vec<Tensor>>> {
    let is_nested = is_tracing() && TRACES.with_borrow(|traces| traces.len() > 1);
    let Some(first) = call.inputs.iter().copied().flatten().find(|input| is_nested && is_traced(input))
    else {
        return Ok(None);
    };
    let line = check_recorded(py, op)?;
    let device = call.device.unwrap_or_else(|| first.device());
    TRACES.with_borrow_mut(|traces| graph_trace::record_zeros(traces, op, call, device, line))
}

/// Refuses a call that a graph cannot repeat. Returns the line of Python that its node is named after.
fn check_recorded(py: Python<'_>, op: &Op) -> PyResult<String> {
    if op.domain().is_empty() && has_fact(op.name(), OpFact::Random) {
        refuse_random()?;
    }
    python_line(py)
}

/// Refuses a tensor that another thread traces: nothing here would be in its graph.
fn refuse_other_thread(tensor: &Tensor) -> PyResult<()> {
    if !graph_trace::traced_anywhere().contains(&tensor.identity()) {
        return Ok(());
    }
    Err(PyTypeError::new_err(
        "expected an array of a traced function on the thread that traces it, found it on another one\nhint: what other threads compute \
         is not in the graph; compute it in the function itself",
    ))
}

/// Refuses to read the elements of a traced tensor.
#[inline]
pub(crate) fn refuse_read(tensor: &Tensor) -> PyResult<()> {
    if is_traced(tensor) { Err(read_error()) } else { Ok(()) }
}

#[cold]
fn read_error() -> PyErr {
    let function = traced_function();
    PyTypeError::new_err(format!(
        "expected an array whose elements are known while `{function}` is traced, found one that depends on its arguments\nhint: \
         the next call has other elements. Select with `oarlock.where`, branch with `oarlock.cond`, repeat with \
         `oarlock.while_loop`; or pass what decides as a Python number, which makes a graph for each value"
    ))
}

/// Refuses random numbers, which every call of the graph would repeat.
pub(crate) fn refuse_random() -> PyResult<()> {
    if !TRACES.with_borrow(|traces| traces.is_empty()) {
        let function = traced_function();
        return Err(PyTypeError::new_err(format!(
            "expected a function without random numbers, found that `{function}` draws some while it is traced\nhint: every call \
             would get the same ones; draw them outside, and pass them as an argument"
        )));
    }
    Ok(())
}

/// The name of the function that this thread traces.
fn traced_function() -> String {
    TRACES.with_borrow(|traces| traces.first().map_or_else(String::new, |trace| trace.function().to_owned()))
}

/// The innermost line of Python outside of this package, as `file.py:12`.
pub(crate) fn python_line(py: Python<'_>) -> PyResult<String> {
    let package = py.import("oarlock")?.getattr("__path__")?.get_item(0)?.extract::<String>()?;
    let mut frame = py.import("sys")?.call_method1("_getframe", (0,))?;
    loop {
        let file = frame.getattr("f_code")?.getattr("co_filename")?.extract::<String>()?;
        let outer = frame.getattr("f_back")?;
        if !file.starts_with(&package) || outer.is_none() {
            let name = file.rsplit('/').next().unwrap_or_default();
            return Ok(format!("{name}:{}", frame.getattr("f_lineno")?));
        }
        frame = outer;
    }
}
