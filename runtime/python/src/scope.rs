//! Which device is used where none is named, within `with device:`, and in which stream ops run, within `with stream:`. It
//! holds for what runs in the block, and not for other threads or tasks meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict as _, PyList, PyTuple};

use crate::device::Device;
use crate::stream::Stream;

/// The devices and streams of all blocks around, the innermost last.
static BLOCKS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Whether there ever was a block: looking for one takes longer than a small op.
static IS_USED: AtomicBool = AtomicBool::new(false);

fn blocks(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    let new = || {
        let empty = [("default", PyTuple::empty(py))].into_py_dict(py)?;
        let variable = py.import("contextvars")?.getattr("ContextVar")?;
        PyResult::Ok(variable.call(("oarlock.blocks",), Some(&empty))?.unbind())
    };
    Ok(BLOCKS.get_or_try_init(py, new)?.bind(py))
}

fn all<'py>(blocks: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    blocks.call_method0("get")?.try_iter()?.collect()
}

fn innermost(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    if IS_USED.load(Ordering::Relaxed) { Ok(all(blocks(py)?)?.pop()) } else { Ok(None) }
}

/// The device of the innermost block.
#[inline]
pub(crate) fn device(py: Python<'_>) -> PyResult<Option<oarlock_core::Device>> {
    let Some(block) = innermost(py)? else { return Ok(None) };
    Ok(Some(match block.cast::<Stream>() {
        Ok(stream) => stream.get().device.clone(),
        Err(_) => block.cast::<Device>()?.get().0.clone(),
    }))
}

/// The stream of the innermost block, if that is one of a stream of this device.
#[inline]
pub(crate) fn stream(
    py: Python<'_>,
    device: &oarlock_core::Device,
) -> PyResult<Option<oarlock_core::stream::Stream>> {
    let Some(block) = innermost(py)? else { return Ok(None) };
    let stream = block.cast::<Stream>().ok().filter(|stream| stream.get().device.is(device));
    Ok(stream.map(|stream| stream.get().queue.clone()))
}

/// Begins the block of a device or stream.
pub(crate) fn enter(block: &Bound<'_, PyAny>) -> PyResult<()> {
    let blocks = blocks(block.py())?;
    IS_USED.store(true, Ordering::Relaxed);
    let all = PyList::new(block.py(), all(blocks)?)?;
    all.append(block)?;
    blocks.call_method1("set", (all.to_tuple(),)).map(drop)
}

/// Ends the innermost block.
pub(crate) fn leave(py: Python<'_>) -> PyResult<()> {
    let blocks = blocks(py)?;
    let mut around = all(blocks)?;
    around.pop();
    blocks.call_method1("set", (PyTuple::new(py, around)?,)).map(drop)
}
