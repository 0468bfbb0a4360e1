//! The blocks `with device:` and `with stream:` that enclose the running code. They apply to code that runs in the block, not to
//! other threads or tasks.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict as _, PyList, PyTuple};

/// The devices and streams of all enclosing blocks, the innermost last.
static SCOPE_STACK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// False until the first block: looking one up takes longer than a small op.
static WAS_ENTERED: AtomicBool = AtomicBool::new(false);

fn scope_stack(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    let new = || {
        let empty = [("default", PyTuple::empty(py))].into_py_dict(py)?;
        let variable = py.import("contextvars")?.getattr("ContextVar")?;
        PyResult::Ok(variable.call(("oarlock.blocks",), Some(&empty))?.unbind())
    };
    Ok(SCOPE_STACK.get_or_try_init(py, new)?.bind(py))
}

fn list_scopes<'py>(blocks: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    blocks.call_method0("get")?.try_iter()?.collect()
}

pub(super) fn innermost_scope(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    if WAS_ENTERED.load(Ordering::Relaxed) { Ok(list_scopes(scope_stack(py)?)?.pop()) } else { Ok(None) }
}

pub(super) fn enter_scope(block: &Bound<'_, PyAny>) -> PyResult<()> {
    let blocks = scope_stack(block.py())?;
    WAS_ENTERED.store(true, Ordering::Relaxed);
    let all = PyList::new(block.py(), list_scopes(blocks)?)?;
    all.append(block)?;
    blocks.call_method1("set", (all.to_tuple(),)).map(drop)
}

pub(super) fn leave_scope(py: Python<'_>) -> PyResult<()> {
    let blocks = scope_stack(py)?;
    let mut around = list_scopes(blocks)?;
    around.pop();
    blocks.call_method1("set", (PyTuple::new(py, around)?,)).map(drop)
}
