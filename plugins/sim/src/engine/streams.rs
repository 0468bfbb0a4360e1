//! The calls on streams and events.

use super::{AdmittedCall, SimEngine};
use crate::device::SimDevice;
use crate::error::SimError;
use crate::stream::{EventId, ExecutionStep, StreamId, StreamWork};

impl SimEngine {
    /// Makes a stream, with a thread of its own.
    pub fn stream_create(&self, device: u32) -> Result<StreamId, SimError> {
        let (device, _) = self.admit_call("stream_create", device)?.into_immediate()?;
        self.scheduler.create_stream(device)
    }

    /// Waits for all work of the stream and ends it. An error means that the work failed, or that the call was made from
    /// a callback of the stream; only in the second case does the stream live on. Also works on a lost device.
    pub fn stream_destroy(&self, device: u32, stream: StreamId) -> Result<(), SimError> {
        self.admit_to_free("stream_destroy", device)?.into_immediate()?;
        self.scheduler.destroy_stream(device, stream)
    }

    /// Whether all work of the stream is done, and its error if it is.
    pub fn stream_query(&self, device: u32, stream: StreamId) -> Result<bool, SimError> {
        self.admit_call("stream_query", device)?.into_immediate()?;
        self.scheduler.query_stream(device, stream)
    }

    /// Waits for all work that is on the stream now. Tells the first error since the last time, once.
    pub fn stream_synchronize(&self, device: u32, stream: StreamId) -> Result<(), SimError> {
        self.admit_call("stream_synchronize", device)?.into_immediate()?;
        self.scheduler.synchronize_stream(device, stream)
    }

    /// Has a function called on the stream's thread when the stream gets there. It gets the error of the work before it.
    /// It may call the engine, but not wait for its own end. If the engine is shut down first, it is never called.
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

    /// Holds later work of the stream back until the event has happened. An event that was never recorded has happened,
    /// as in CUDA. A failure before the event is a failure of this stream too.
    pub fn stream_wait_event(&self, device: u32, stream: StreamId, event: EventId) -> Result<(), SimError> {
        self.admit_call("stream_wait_event", device)?.into_immediate()?;
        self.scheduler.enqueue_wait(device, stream, event, "stream_wait_event")
    }

    /// Runs a kernel on a stream: any function over the device. A kernel that panics fails; it may not call the engine's
    /// streams and events, because it holds the device.
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

    /// Waits for all work that is on the stream now, and then runs a kernel at once, for one that cannot leave its work
    /// behind. When the work before it failed it is not run, and the failure is told here.
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

    /// Waits for all work that is on any stream of the device now. Tells the first error of its streams, once.
    pub fn device_synchronize(&self, device: u32) -> Result<(), SimError> {
        self.admit_call("device_synchronize", device)?.into_immediate()?;
        self.scheduler.synchronize_device(device)
    }

    /// Makes an event.
    pub fn event_create(&self, device: u32) -> Result<EventId, SimError> {
        let (device, _) = self.admit_call("event_create", device)?.into_immediate()?;
        self.scheduler.create_event(device)
    }

    /// Frees an event. Work that waits for it goes on waiting rightly. Also works on a lost device.
    pub fn event_destroy(&self, device: u32, event: EventId) -> Result<(), SimError> {
        self.admit_to_free("event_destroy", device)?.into_immediate()?;
        self.scheduler.destroy_event(device, event)
    }

    /// Puts the event at the end of the stream.
    pub fn event_record(&self, device: u32, stream: StreamId, event: EventId) -> Result<(), SimError> {
        self.admit_call("event_record", device)?.into_immediate()?;
        self.scheduler.record_event(device, event, stream, "event_record")
    }

    /// Whether the event has happened, and the error of the work before it if it has.
    pub fn event_query(&self, device: u32, event: EventId) -> Result<bool, SimError> {
        self.admit_call("event_query", device)?.into_immediate()?;
        self.scheduler.query_event(device, event)
    }

    /// Waits for the event. Tells the error of the work before it, every time until the event is recorded again.
    pub fn event_synchronize(&self, device: u32, event: EventId) -> Result<(), SimError> {
        self.admit_call("event_synchronize", device)?.into_immediate()?;
        self.scheduler.synchronize_event(device, event)
    }

    /// The virtual nanoseconds between two events of one device that have happened.
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

    /// What ran so far, in order; empty unless the script says `trace on`.
    pub fn execution_log(&self) -> Vec<ExecutionStep> {
        self.scheduler.execution_log()
    }
}
