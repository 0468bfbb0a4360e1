//! Streams, which order work on a device, and events, which mark a point in a stream.

use oarlock_host::PluginFailure;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::{PyDevice, resolve_device, scope_stack};
use crate::error::OrRaise as _;

/// A queue of work on a device. Inside `with stream:`, ops on arrays of its device run in the stream, concurrently with other
/// streams. An op waits until its operands are ready.
#[pyclass(frozen, module = "oarlock")]
pub(crate) struct Stream {
    pub(crate) queue: oarlock_core::stream::Stream,
    pub(crate) device: oarlock_core::Device,
}

#[pymethods]
impl Stream {
    /// Creates a stream on a device, by default the default device. A smaller priority is served earlier if the device
    /// supports it.
    #[new]
    #[pyo3(signature = (device=None, *, priority=0))]
    fn new(py: Python<'_>, device: Option<&Bound<'_, PyAny>>, priority: i32) -> PyResult<Self> {
        let device = resolve_device(py, device)?;
        Ok(Self { queue: device.create_stream(priority).or_raise()?, device })
    }

    /// The device of the stream.
    #[getter]
    fn device(&self) -> PyDevice {
        PyDevice(self.device.clone())
    }

    /// Waits until all work in the stream has finished.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.queue.synchronize()).or_raise()
    }

    /// Whether all work in the stream has finished.
    fn is_done(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| self.queue.is_done()).or_raise()
    }

    /// Makes later work in the stream wait for an event.
    fn wait_event(&self, py: Python<'_>, event: &Bound<'_, Event>) -> PyResult<()> {
        let event = &event.get().0;
        py.detach(|| self.queue.wait_for_event(event)).or_raise()
    }

    /// Makes later work in the stream wait for all work that another stream has now.
    fn wait_stream(&self, py: Python<'_>, stream: &Bound<'_, Self>) -> PyResult<()> {
        let other = &stream.get().queue;
        py.detach(|| self.queue.wait_for_stream(other)).or_raise()
    }

    /// Records an event, by default a new one, at the end of the stream, and returns it.
    #[pyo3(signature = (event=None))]
    fn record_event<'py>(
        &self,
        py: Python<'py>,
        event: Option<Bound<'py, Event>>,
    ) -> PyResult<Bound<'py, Event>> {
        let event = match event {
            Some(event) => event,
            None => Bound::new(py, Event::from_device(&self.device)?)?,
        };
        self.queue.record_event(&event.get().0).or_raise()?;
        Ok(event)
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        scope_stack::enter_scope(slf.as_any())?;
        Ok(slf)
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        scope_stack::leave_scope(py)
    }

    fn __repr__(&self) -> String {
        format!("Stream({})", self.device.name())
    }
}

/// A point in a stream that others can wait for.
#[pyclass(frozen, module = "oarlock")]
pub(crate) struct Event(oarlock_host::PluginEvent);

impl Event {
    fn from_device(device: &oarlock_core::Device) -> PyResult<Self> {
        device.host_device().create_event().map_err(failure_exception).map(Self)
    }
}

#[pymethods]
impl Event {
    /// An event of a device, or of the one that is used when none is named.
    #[new]
    #[pyo3(signature = (device=None))]
    fn new(py: Python<'_>, device: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        Self::from_device(&resolve_device(py, device)?)
    }

    /// Records the event at the end of a stream.
    fn record(&self, stream: &Bound<'_, Stream>) -> PyResult<()> {
        stream.get().queue.record_event(&self.0).or_raise()
    }

    /// Waits for the event.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.synchronize()).map_err(failure_exception)
    }

    /// Whether the event has happened.
    fn is_done(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| self.0.has_happened()).map_err(failure_exception)
    }

    /// The milliseconds from this event to another; `None` if the device does not measure time.
    fn elapsed_time(&self, py: Python<'_>, end: &Bound<'_, Self>) -> PyResult<Option<f64>> {
        let end = &end.get().0;
        let nanoseconds = py.detach(|| self.0.nanoseconds_to(end)).map_err(failure_exception)?;
        Ok(nanoseconds.map(|nanoseconds| nanoseconds as f64 / 1e6))
    }
}

fn failure_exception(failure: PluginFailure) -> PyErr {
    crate::error::to_exception(failure.into())
}
