//! Streams: one in-order command queue each.
//!
//! Queues are in order, since a kernel may rely on what the one before it wrote. Every command is flushed at once: a queue
//! that waits for an event of another one would otherwise wait for a command the driver was never given.

#![expect(unsafe_code, reason = "commands of the driver are C functions")]

use std::sync::{Mutex, MutexGuard, PoisonError};

use oarlock_sdk::{Error, Result, Stream};
use opencl3::command_queue::{
    CL_QUEUE_PROFILING_ENABLE, CommandQueue, enqueue_barrier_with_wait_list, enqueue_marker_with_wait_list,
};
use opencl3::context::Context;
use opencl3::event::{CL_COMPLETE, Event};
use opencl3::types::{cl_command_queue, cl_event};

use crate::error::failed;

/// After this many commands the queue is looked through for those that are done.
const MANY: usize = 256;

/// One stream.
pub(crate) struct Queue {
    handle: Stream,
    commands: CommandQueue,
    pending: Mutex<Pending>,
}

/// The commands that may not be done yet, and the first that failed since somebody asked.
#[derive(Default)]
struct Pending {
    events: Vec<Event>,
    failure: Option<i32>,
}

impl Pending {
    /// Forgets what is done and remembers what failed.
    fn look_through(&mut self) {
        let failure = &mut self.failure;
        self.events.retain(|event| match status(event) {
            status if status < CL_COMPLETE => {
                failure.get_or_insert(status);
                false
            }
            status => status != CL_COMPLETE,
        });
    }
}

/// Where a command is: `CL_COMPLETE` is 0, what fails is below, what is on its way above.
fn status(event: &Event) -> i32 {
    event.command_execution_status().map_or_else(|error| error.0, |status| status.0)
}

/// Waits for one command.
pub(crate) fn wait(event: &Event) -> Result<()> {
    let waited = event.wait();
    match status(event) {
        code if code < CL_COMPLETE => Err(failed("a command", code)),
        _ => waited.map_err(|error| failed("clWaitForEvents", error)),
    }
}

/// Whether one command is done.
pub(crate) fn is_done(event: &Event) -> bool {
    status(event) <= CL_COMPLETE
}

impl Queue {
    /// A queue for a stream; 0 is the device's own, in which calls finish before they return.
    pub(crate) fn new(context: &Context, handle: Stream) -> Result<Self> {
        let device = context.default_device();
        // SAFETY: the device is the context's. The older of two functions is used, which every driver has.
        let commands = unsafe { CommandQueue::create(context, device, CL_QUEUE_PROFILING_ENABLE) };
        let commands = commands.map_err(|error| failed("clCreateCommandQueue", error))?;
        Ok(Self { handle, commands, pending: Mutex::default() })
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a command into the queue with a function that returns its event. In the device's own queue the command is
    /// done when this returns.
    pub(crate) fn put(
        &self,
        function: &str,
        enqueue: impl FnOnce(cl_command_queue) -> Result<cl_event, i32>,
    ) -> Result<()> {
        let event = Event::new(enqueue(self.commands.get()).map_err(|code| failed(function, code))?);
        self.flush()?;
        if self.handle.0 == 0 {
            return wait(&event);
        }
        let mut pending = self.pending();
        if pending.events.len() >= MANY {
            pending.look_through();
        }
        pending.events.push(event);
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        self.commands.flush().map_err(|error| failed("clFlush", error))
    }

    /// A point behind everything that is in the queue.
    pub(crate) fn mark(&self) -> Result<Event> {
        // SAFETY: the queue is alive and there is no list to wait for.
        let event = unsafe { enqueue_marker_with_wait_list(self.commands.get(), 0, std::ptr::null()) };
        let event = Event::new(event.map_err(|code| failed("clEnqueueMarkerWithWaitList", code))?);
        self.flush()?;
        Ok(event)
    }

    /// Holds what comes after back until an event of any queue of the device has happened.
    pub(crate) fn wait_for(&self, event: &Event) -> Result<()> {
        let event = event.get();
        self.put("clEnqueueBarrierWithWaitList", |queue| {
            // SAFETY: the queue and the event, the only one in the list, are alive and of one context.
            unsafe { enqueue_barrier_with_wait_list(queue, 1, &raw const event) }
        })
    }

    /// Waits for everything in the queue.
    pub(crate) fn finish(&self) -> Result<()> {
        self.commands.finish().map_err(|error| failed("clFinish", error))
    }

    /// What went wrong in the queue since this was last asked.
    pub(crate) fn take_failure(&self) -> Result<()> {
        let mut pending = self.pending();
        pending.look_through();
        match pending.failure.take() {
            Some(code) => Err(self.failed(code)),
            None => Ok(()),
        }
    }

    /// The same, to be told again to whoever waits for the stream.
    pub(crate) fn failure(&self) -> Result<()> {
        let mut pending = self.pending();
        pending.look_through();
        match pending.failure {
            Some(code) => Err(self.failed(code)),
            None => Ok(()),
        }
    }

    fn failed(&self, code: i32) -> Error {
        failed(&format!("a command in stream {}", self.handle.0), code).rule("A-2")
    }

    pub(crate) fn is_empty(&self) -> bool {
        let mut pending = self.pending();
        pending.look_through();
        pending.events.is_empty()
    }
}
