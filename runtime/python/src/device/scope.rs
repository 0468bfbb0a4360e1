//! The current device and the current stream: those of the innermost enclosing block.

use pyo3::prelude::*;

use super::PyDevice;
use super::scope_stack::innermost_scope;
use super::stream::Stream;

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
