//! Calls on streams and events.

use super::{AdmittedCall, SimEngine};
use crate::device::SimDevice;
use crate::error::SimError;
use crate::stream::{EventId, ExecutionStep, StreamId, StreamWork};

impl SimEngine {
    /// Creates a stream, with a thread of its own.
    pub fn stream_create(&self, device: u32) -> Result<StreamId, SimError> {
        let (device, _) = self.admit_call("stream_create", device)?.into_immediate()?;
        self.scheduler.create_stream(device)
    }

    /// Waits for all work of the stream and destroys it. An error means that the work failed, or that the call came from a
    /// callback of the stream; only in the second case does the stream survive. Also works on a lost device.
    pub fn stream_destroy(&self, device: u32, stream: StreamId) -> Result<(), SimError> {
        self.admit_to_free("stream_destroy", device)?.into_immediate()?;
        self.scheduler.destroy_stream(device, stream)
    }

    /// True if all work of the stream is done; reports its error then.
    pub fn stream_query(&self, device: u32, stream: StreamId) -> Result<bool, SimError> {
        self.admit_call("stream_query", device)?.into_immediate()?;
        self.scheduler.query_stream(device, stream)
    }

    /// Waits for all work that is on the stream now. Reports the first error since the last wait, once.
    pub fn stream_synchronize(&self, device: u32, stream: StreamId) -> Result<(), SimError> {
        self.admit_call("stream_synchronize", device)?.into_immediate()?;
        self.scheduler.synchronize_stream(device, stream)
    }

    /// Calls a function on the stream's thread when the stream gets there, with the error of the work before it. The function may
    /// call the engine, but not wait for its own end. If the engine is shut down first, it is never called.
    pub fn stream_add_callback(
        &self,
        device: u32,
        stream: StreamId,
        callback: impl FnOnce(Result<(), SimError>) + Send + 'static,
    ) -> Result<(), SimError> {
        self.admit_call("stream_add_callback", device)?.into_immediate()?;
        self.scheduler.enqueue_work(
            device,
            stream,
            "stream_add_callback",
            StreamWork::Callback(Box::new(callback)),
        )
    }

    /// Blocks later work of the stream until the event has completed. An event that was never recorded counts as completed, as in
    /// CUDA. A failure before the event is a failure of this stream too.
    pub fn stream_wait_event(&self, device: u32, stream: StreamId, event: EventId) -> Result<(), SimError> {
        self.admit_call("stream_wait_event", device)?.into_immediate()?;
        self.scheduler.enqueue_wait(device, stream, event, "stream_wait_event")
    }

    /// Runs a kernel, which is any function on the device, on a stream. A panic becomes an error. The kernel holds the device, so
    /// it may not call the engine's streams and events.
    pub fn enqueue_kernel(
        &self,
        call: &'static str,
        device: u32,
        stream: StreamId,
        kernel: impl FnOnce(&SimDevice) -> Result<(), SimError> + Send + 'static,
    ) -> Result<(), SimError> {
        let AdmittedCall { later, .. } = self.admit_call(call, device)?;
        let task = move |device: &SimDevice| later.map_or_else(|| kernel(device), Err);
        self.scheduler.enqueue_work(device, stream, call, StreamWork::Task(Box::new(task)))
    }

    /// Waits for all work that is on the stream now, then runs a kernel synchronously, for kernels that cannot be deferred. If
    /// the earlier work failed, the kernel does not run and that failure is returned.
    pub fn execute_kernel(
        &self,
        call: &'static str,
        device: u32,
        stream: StreamId,
        kernel: impl FnOnce(&SimDevice) -> Result<(), SimError>,
    ) -> Result<(), SimError> {
        let (admitted, _) = self.admit_call(call, device)?.into_immediate()?;
        self.scheduler.synchronize_stream(device, stream)?;
        kernel(&admitted)
    }

    /// Waits for all work that is on any stream of the device now. Reports the first error of its streams, once.
    pub fn device_synchronize(&self, device: u32) -> Result<(), SimError> {
        self.admit_call("device_synchronize", device)?.into_immediate()?;
        self.scheduler.synchronize_device(device)
    }

    /// Creates an event.
    pub fn event_create(&self, device: u32) -> Result<EventId, SimError> {
        let (device, _) = self.admit_call("event_create", device)?.into_immediate()?;
        self.scheduler.create_event(device)
    }

    /// Destroys an event. Work that already waits for it is not affected. Also works on a lost device.
    pub fn event_destroy(&self, device: u32, event: EventId) -> Result<(), SimError> {
        self.admit_to_free("event_destroy", device)?.into_immediate()?;
        self.scheduler.destroy_event(device, event)
    }

    /// Records the event at the end of the stream.
    pub fn event_record(&self, device: u32, stream: StreamId, event: EventId) -> Result<(), SimError> {
        self.admit_call("event_record", device)?.into_immediate()?;
        self.scheduler.record_event(device, event, stream, "event_record")
    }

    /// True if the event has completed; reports the error of the work before it then.
    pub fn event_query(&self, device: u32, event: EventId) -> Result<bool, SimError> {
        self.admit_call("event_query", device)?.into_immediate()?;
        self.scheduler.query_event(device, event)
    }

    /// Waits for the event. Reports the error of the work before it, each time until the event is recorded again.
    pub fn event_synchronize(&self, device: u32, event: EventId) -> Result<(), SimError> {
        self.admit_call("event_synchronize", device)?.into_immediate()?;
        self.scheduler.synchronize_event(device, event)
    }

    /// Virtual nanoseconds between two completed events of one device.
    pub fn event_elapsed(&self, device: u32, start: EventId, end: EventId) -> Result<u64, SimError> {
        self.admit_call("event_elapsed", device)?.into_immediate()?;
        let time = |event: EventId| {
            let missing = || {
                SimError::invalid_argument(format!("event {} has not happened, wait for it first", event.0))
            };
            self.scheduler.event_time(device, event)?.ok_or_else(missing)
        };
        let (start_time, end_time) = (time(start)?, time(end)?);
        end_time.checked_sub(start_time).ok_or_else(|| {
            SimError::invalid_argument(format!(
                "event {} happened before event {}, expected the reverse",
                end.0, start.0
            ))
        })
    }

    /// Everything that ran so far, in order; empty unless the script says `trace on`.
    pub fn execution_log(&self) -> Vec<ExecutionStep> {
        self.scheduler.execution_log()
    }
}
