//! The current device inside `with device:` and the current stream inside `with stream:`. They apply to code that runs in the
//! block, not to other threads or tasks.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict as _, PyList, PyTuple};

use super::PyDevice;
use super::stream::Stream;

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

fn innermost_scope(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    if WAS_ENTERED.load(Ordering::Relaxed) { Ok(list_scopes(scope_stack(py)?)?.pop()) } else { Ok(None) }
}

#[inline]
pub(crate) fn scope_device(py: Python<'_>) -> PyResult<Option<oarlock_core::Device>> {
    let Some(block) = innermost_scope(py)? else { return Ok(None) };
    Ok(Some(match block.cast::<Stream>() {
        Ok(stream) => stream.get().device.clone(),
        Err(_) => block.cast::<PyDevice>()?.get().0.clone(),
    }))
}

/// The stream of the innermost block, if it is a stream of this device.
#[inline]
pub(crate) fn scope_stream(
    py: Python<'_>,
    device: &oarlock_core::Device,
) -> PyResult<Option<oarlock_core::stream::Stream>> {
    let Some(block) = innermost_scope(py)? else { return Ok(None) };
    let stream = block.cast::<Stream>().ok().filter(|stream| stream.get().device.is_same_device(device));
    Ok(stream.map(|stream| stream.get().queue.clone()))
}

pub(crate) fn enter_scope(block: &Bound<'_, PyAny>) -> PyResult<()> {
    let blocks = scope_stack(block.py())?;
    WAS_ENTERED.store(true, Ordering::Relaxed);
    let all = PyList::new(block.py(), list_scopes(blocks)?)?;
    all.append(block)?;
    blocks.call_method1("set", (all.to_tuple(),)).map(drop)
}

pub(crate) fn leave_scope(py: Python<'_>) -> PyResult<()> {
    let blocks = scope_stack(py)?;
    let mut around = list_scopes(blocks)?;
    around.pop();
    blocks.call_method1("set", (PyTuple::new(py, around)?,)).map(drop)
}
