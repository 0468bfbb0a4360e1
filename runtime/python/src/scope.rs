//! Which device is used where none is named, within `with device:`. It holds for what runs in the block, and not for other
//! threads or tasks meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyTuple};

use crate::device::Device;

/// The devices of all blocks around, the innermost last.
static BLOCKS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Whether there ever was a block: looking for one takes longer than making a small array.
static IS_USED: AtomicBool = AtomicBool::new(false);

fn blocks(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    let new = || {
        let empty = [("default", PyTuple::empty(py))];
        let empty = pyo3::types::IntoPyDict::into_py_dict(empty, py)?;
        let variable = py.import("contextvars")?.getattr("ContextVar")?;
        PyResult::Ok(variable.call(("oarlock.device",), Some(&empty))?.unbind())
    };
    Ok(BLOCKS.get_or_try_init(py, new)?.bind(py))
}

fn devices<'py>(blocks: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    blocks.call_method0("get")?.try_iter()?.collect()
}

/// The device of the innermost block.
#[inline]
pub(crate) fn innermost(py: Python<'_>) -> PyResult<Option<oarlock_core::Device>> {
    if !IS_USED.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let innermost = devices(blocks(py)?)?.pop();
    innermost.map(|device| Ok(device.cast::<Device>()?.get().0.clone())).transpose()
}

/// Begins a block.
pub(crate) fn enter(device: &Bound<'_, Device>) -> PyResult<()> {
    let blocks = blocks(device.py())?;
    IS_USED.store(true, Ordering::Relaxed);
    let around = devices(blocks)?;
    let all = PyList::new(device.py(), around)?;
    all.append(device)?;
    blocks.call_method1("set", (all.to_tuple(),)).map(drop)
}

/// Ends the innermost block.
pub(crate) fn leave(py: Python<'_>) -> PyResult<()> {
    let blocks = blocks(py)?;
    let mut around = devices(blocks)?;
    around.pop();
    blocks.call_method1("set", (PyTuple::new(py, around)?,)).map(drop)
}
