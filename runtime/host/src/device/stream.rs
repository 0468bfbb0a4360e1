//! Streams and events of a device; on one without them, stand-ins for which everything has happened at once.

#![expect(unsafe_code, reason = "streams and events are passed to slots that trust them")]

use std::ffi::c_void;

use oarlock_abi as abi;

use crate::Device;
use crate::device::live::HandleKind;
use crate::generated::AsyncCalls;
use crate::services::errors::{Failure, outcome};

/// A queue of work on one device, freed when dropped.
#[derive(Debug)]
pub struct Stream {
    device: Device,
    queue: Option<(AsyncCalls, abi::Stream)>,
}

impl Stream {
    pub(crate) fn create(device: &Device, priority: i32) -> Result<Self, Failure> {
        let queue = match device.plugin().calls().r#async {
            Some(calls) => Some((calls, calls.stream_create(device.id(), priority)?)),
            None => None,
        };
        device.plugin().handles().taken(HandleKind::Stream);
        Ok(Self { device: device.clone(), queue })
    }

    /// The device it is on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The plugin's handle; 0, the device's own queue, on a device without streams.
    pub fn handle(&self) -> abi::Stream {
        self.queue.map_or(abi::Stream(0), |(_, stream)| stream)
    }

    pub(crate) fn queue(&self) -> Option<(AsyncCalls, abi::Stream)> {
        self.queue
    }

    /// Waits until all work in it is done. Reports what went wrong in it.
    pub fn synchronize(&self) -> Result<(), Failure> {
        match self.queue {
            // SAFETY: the stream is alive and of this device.
            Some((calls, queue)) => unsafe { calls.stream_synchronize(self.device.id(), queue) },
            None => self.device.synchronize(),
        }
    }

    /// Whether all work in it is done. A device that cannot tell waits until it is.
    pub fn is_done(&self) -> Result<bool, Failure> {
        // SAFETY: the stream is alive and of this device.
        let done =
            self.queue.and_then(|(calls, queue)| unsafe { calls.stream_query(self.device.id(), queue) });
        match done {
            Some(done) => done.map(|done| done != 0),
            None => self.synchronize().map(|()| true),
        }
    }

    /// Holds further work back until the event has happened.
    pub fn wait_for(&self, event: &Event) -> Result<(), Failure> {
        match (self.queue, event.point) {
            (Some((calls, queue)), Some((_, point))) if self.device.is(&event.device) => {
                // SAFETY: both are alive and of this device.
                unsafe { calls.stream_wait_event(self.device.id(), queue, point) }
            }
            // Events of other devices mean nothing to this one (rule A-3): the host waits for it.
            _ => event.synchronize(),
        }
    }

    /// Puts an event at the end.
    pub fn record(&self, event: &Event) -> Result<(), Failure> {
        match (self.queue, event.point) {
            (Some((calls, queue)), Some((_, point))) if self.device.is(&event.device) => {
                // SAFETY: both are alive and of this device.
                unsafe { calls.event_record(self.device.id(), queue, point) }
            }
            (None, None) if self.device.is(&event.device) => Ok(()),
            _ => Err(self.device.refuse(format_args!("an event of `{}`", self.device), &event.device, "A-3")),
        }
    }

    /// Has a function called with the stream's failure, if any, when the stream gets there. A device that cannot call
    /// back is waited for, and the function called at once.
    pub fn then(&self, reached: impl FnOnce(Result<(), Failure>) + Send + 'static) -> Result<(), Failure> {
        type Reached = Box<dyn FnOnce(Result<(), Failure>) + Send>;
        unsafe extern "C" fn call(
            _device: u32,
            _stream: abi::Stream,
            user: *mut c_void,
            failure: abi::Error,
        ) {
            // SAFETY: the pointer is the one made below, and the plugin calls this once (rule T-2).
            let reached = unsafe { Box::from_raw(user.cast::<Reached>()) };
            let result = outcome(failure);
            // What a caller's function panics with must not run through the plugin.
            _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| reached(result)));
        }
        let user = Box::into_raw(Box::new(Box::new(reached) as Reached));
        // SAFETY: the stream is alive and of this device; the function frees what it is given.
        let added = self.queue.and_then(|(calls, queue)| unsafe {
            calls.stream_add_callback(self.device.id(), queue, call, user.cast())
        });
        if let Some(Ok(())) = added {
            return Ok(());
        }
        // SAFETY: the plugin did not take the function over, so it is still the one made above.
        let reached = unsafe { Box::from_raw(user) };
        if let Some(Err(failure)) = added {
            return Err(failure);
        }
        reached(self.synchronize());
        Ok(())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let plugin = self.device.plugin();
        if let Some((calls, queue)) = self.queue {
            // SAFETY: the stream is alive and not used again.
            if let Err(failure) = unsafe { calls.stream_destroy(self.device.id(), queue) } {
                plugin.warn(&format!("a stream was not freed: {failure}"));
            }
        }
        plugin.handles().given_back(HandleKind::Stream);
    }
}

/// A point in a stream that others can wait for, freed when dropped.
#[derive(Debug)]
pub struct Event {
    device: Device,
    point: Option<(AsyncCalls, abi::Event)>,
}

impl Event {
    pub(crate) fn create(device: &Device) -> Result<Self, Failure> {
        let point = match device.plugin().calls().r#async {
            Some(calls) => Some((calls, calls.event_create(device.id())?)),
            None => None,
        };
        device.plugin().handles().taken(HandleKind::Event);
        Ok(Self { device: device.clone(), point })
    }

    /// Waits for it. Reports what went wrong before it.
    pub fn synchronize(&self) -> Result<(), Failure> {
        match self.point {
            // SAFETY: the event is alive and of this device.
            Some((calls, point)) => unsafe { calls.event_synchronize(self.device.id(), point) },
            None => self.device.synchronize(),
        }
    }

    /// Whether it has happened. A device that cannot tell waits until it has.
    pub fn has_happened(&self) -> Result<bool, Failure> {
        // SAFETY: the event is alive and of this device.
        let done =
            self.point.and_then(|(calls, point)| unsafe { calls.event_query(self.device.id(), point) });
        match done {
            Some(done) => done.map(|done| done != 0),
            None => self.synchronize().map(|()| true),
        }
    }

    /// The nanoseconds from this event to a later one; `None` where times are not known.
    pub fn nanoseconds_to(&self, end: &Self) -> Result<Option<u64>, Failure> {
        match (self.point, end.point) {
            (Some((calls, start)), Some((_, end_point))) if self.device.is(&end.device) => {
                // SAFETY: both are alive and of this device.
                unsafe { calls.event_elapsed(self.device.id(), start, end_point) }.transpose()
            }
            _ => Ok(None),
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let plugin = self.device.plugin();
        if let Some((calls, point)) = self.point {
            // SAFETY: the event is alive and not used again.
            if let Err(failure) = unsafe { calls.event_destroy(self.device.id(), point) } {
                plugin.warn(&format!("an event was not freed: {failure}"));
            }
        }
        plugin.handles().given_back(HandleKind::Event);
    }
}
