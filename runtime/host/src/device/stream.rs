//! Streams and events of a device. A device without them gets stand-ins, on which everything has already happened.

#![expect(unsafe_code, reason = "streams and events are passed to slots that trust them")]

use std::ffi::c_void;

use oarlock_abi as abi;

use crate::PluginDevice;
use crate::generated::AsyncCalls;
use crate::live_handles::HandleKind;
use crate::services::errors::{PluginFailure, result_from_error};

/// A queue of work on one device, destroyed when dropped.
#[derive(Debug)]
pub struct PluginStream {
    device: PluginDevice,
    queue: Option<(AsyncCalls, abi::Stream)>,
}

impl PluginStream {
    pub(crate) fn create_on(device: &PluginDevice, priority: i32) -> Result<Self, PluginFailure> {
        let queue = match device.plugin().table_calls().r#async {
            Some(calls) => Some((calls, calls.stream_create(device.id(), priority)?)),
            None => None,
        };
        device.plugin().handle_counter().note_taken(HandleKind::Stream);
        Ok(Self { device: device.clone(), queue })
    }

    /// The device that runs the work.
    pub fn device(&self) -> &PluginDevice {
        &self.device
    }

    /// The plugin's handle, for calls of kernels. On a device without streams it is 0, the device's own queue.
    pub fn handle(&self) -> abi::Stream {
        self.queue.map_or(abi::Stream(0), |(_, stream)| stream)
    }

    pub(crate) fn async_queue(&self) -> Option<(AsyncCalls, abi::Stream)> {
        self.queue
    }

    /// Waits until all work in the stream is done. Returns the failure of that work, if any.
    pub fn synchronize(&self) -> Result<(), PluginFailure> {
        match self.queue {
            // SAFETY: the stream is alive and of this device.
            Some((calls, queue)) => unsafe { calls.stream_synchronize(self.device.id(), queue) },
            None => self.device.synchronize(),
        }
    }

    /// True if all work in the stream is done. If the device cannot tell, this waits until it is.
    pub fn is_done(&self) -> Result<bool, PluginFailure> {
        // SAFETY: the stream is alive and of this device.
        let done =
            self.queue.and_then(|(calls, queue)| unsafe { calls.stream_query(self.device.id(), queue) });
        match done {
            Some(done) => done.map(|done| done != 0),
            None => self.synchronize().map(|()| true),
        }
    }

    /// Makes later work in the stream wait until the event has happened.
    pub fn wait_for(&self, event: &PluginEvent) -> Result<(), PluginFailure> {
        match (self.queue, event.point) {
            (Some((calls, queue)), Some((_, point))) if self.device.is_same_device(&event.device) => {
                // SAFETY: both are alive and of this device.
                unsafe { calls.stream_wait_event(self.device.id(), queue, point) }
            }
            // This device does not know events of other devices (rule A-3), so the host waits.
            _ => event.synchronize(),
        }
    }

    /// Records the event: it happens when all work now in the stream is done.
    pub fn record_event(&self, event: &PluginEvent) -> Result<(), PluginFailure> {
        match (self.queue, event.point) {
            (Some((calls, queue)), Some((_, point))) if self.device.is_same_device(&event.device) => {
                // SAFETY: both are alive and of this device.
                unsafe { calls.event_record(self.device.id(), queue, point) }
            }
            (None, None) if self.device.is_same_device(&event.device) => Ok(()),
            _ => Err(self.device.caller_failure(
                format_args!("an event of `{}`", self.device),
                &event.device,
                "A-3",
            )),
        }
    }

    /// Calls `reached` with the stream's failure, if any, when the stream reaches this point. On a device without callbacks,
    /// this synchronizes the stream and then calls `reached`.
    pub fn add_callback(
        &self,
        reached: impl FnOnce(Result<(), PluginFailure>) + Send + 'static,
    ) -> Result<(), PluginFailure> {
        type Reached = Box<dyn FnOnce(Result<(), PluginFailure>) + Send>;
        unsafe extern "C" fn on_stream_reached(
            _device: u32,
            _stream: abi::Stream,
            user: *mut c_void,
            failure: abi::Error,
        ) {
            // SAFETY: the pointer is the one made below, and the plugin calls this once (rule T-2).
            let reached = unsafe { Box::from_raw(user.cast::<Reached>()) };
            let result = result_from_error(failure);
            // A panic in the caller's function must not unwind through the plugin.
            _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| reached(result)));
        }
        let user = Box::into_raw(Box::new(Box::new(reached) as Reached));
        // SAFETY: the stream is alive and of this device; the function frees what it is given.
        let added = self.queue.and_then(|(calls, queue)| unsafe {
            calls.stream_add_callback(self.device.id(), queue, on_stream_reached, user.cast())
        });
        if let Some(Ok(())) = added {
            return Ok(());
        }
        // SAFETY: the plugin did not accept the callback, so this function still owns the pointer made above.
        let reached = unsafe { Box::from_raw(user) };
        if let Some(Err(failure)) = added {
            return Err(failure);
        }
        reached(self.synchronize());
        Ok(())
    }
}

impl Drop for PluginStream {
    fn drop(&mut self) {
        let plugin = self.device.plugin();
        if let Some((calls, queue)) = self.queue {
            // SAFETY: the stream is alive and not used again.
            if let Err(failure) = unsafe { calls.stream_destroy(self.device.id(), queue) } {
                plugin.log_warning(&format!("a stream was not freed: {failure}"));
            }
        }
        plugin.handle_counter().note_returned(HandleKind::Stream);
    }
}

/// A point in a stream that other streams and the host can wait for, destroyed when dropped.
#[derive(Debug)]
pub struct PluginEvent {
    device: PluginDevice,
    point: Option<(AsyncCalls, abi::Event)>,
}

impl PluginEvent {
    pub(crate) fn create_on(device: &PluginDevice) -> Result<Self, PluginFailure> {
        let point = match device.plugin().table_calls().r#async {
            Some(calls) => Some((calls, calls.event_create(device.id())?)),
            None => None,
        };
        device.plugin().handle_counter().note_taken(HandleKind::Event);
        Ok(Self { device: device.clone(), point })
    }

    /// Waits for the event. Returns the failure of the work before it, if any.
    pub fn synchronize(&self) -> Result<(), PluginFailure> {
        match self.point {
            // SAFETY: the event is alive and of this device.
            Some((calls, point)) => unsafe { calls.event_synchronize(self.device.id(), point) },
            None => self.device.synchronize(),
        }
    }

    /// True if the event has happened. If the device cannot tell, this waits until it has.
    pub fn has_happened(&self) -> Result<bool, PluginFailure> {
        // SAFETY: the event is alive and of this device.
        let done =
            self.point.and_then(|(calls, point)| unsafe { calls.event_query(self.device.id(), point) });
        match done {
            Some(done) => done.map(|done| done != 0),
            None => self.synchronize().map(|()| true),
        }
    }

    /// The nanoseconds from this event to a later one; `None` if the device does not measure times.
    pub fn nanoseconds_to(&self, end: &Self) -> Result<Option<u64>, PluginFailure> {
        match (self.point, end.point) {
            (Some((calls, start)), Some((_, end_point))) if self.device.is_same_device(&end.device) => {
                // SAFETY: both are alive and of this device.
                unsafe { calls.event_elapsed(self.device.id(), start, end_point) }.transpose()
            }
            _ => Ok(None),
        }
    }
}

impl Drop for PluginEvent {
    fn drop(&mut self) {
        let plugin = self.device.plugin();
        if let Some((calls, point)) = self.point {
            // SAFETY: the event is alive and not used again.
            if let Err(failure) = unsafe { calls.event_destroy(self.device.id(), point) } {
                plugin.log_warning(&format!("an event was not freed: {failure}"));
            }
        }
        plugin.handle_counter().note_returned(HandleKind::Event);
    }
}
