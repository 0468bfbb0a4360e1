//! Functions of the host that are called when a stream gets there.
//!
//! The driver calls back on a thread that must not be held up, so it only hands over to a thread of this plugin.

#![expect(unsafe_code, reason = "the driver calls back with a pointer")]

use std::ffi::c_void;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};

use oarlock_sdk::{Error, Host, Result, Stream, StreamReached};
use opencl3::event::{CL_COMPLETE, Event};
use opencl3::types::{cl_event, cl_int};

use crate::error::failed;

/// The thread that calls functions of the host, from the first one on.
#[derive(Default)]
pub(crate) struct Callbacks(Mutex<Option<Sender<Due>>>);

/// A function to be called, and why it is told of a failure, if it is.
struct Due {
    host: Host,
    device: u32,
    stream: Stream,
    reached: StreamReached,
    failure: Option<Error>,
}

impl Due {
    fn call(self) {
        match self.failure {
            None => self.reached.call(self.device, self.stream),
            Some(error) => self.reached.fail(&self.host, self.device, self.stream, &error),
        }
    }
}

/// What the driver holds until the event has happened.
struct Waiting {
    due: Due,
    thread: Sender<Due>,
}

impl Callbacks {
    fn thread(&self) -> Result<Sender<Due>> {
        let mut thread = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = thread.as_ref() {
            return Ok(sender.clone());
        }
        let (sender, receiver) = channel::<Due>();
        std::thread::Builder::new()
            .name("oarlock-opencl".to_owned())
            .spawn(move || receiver.into_iter().for_each(Due::call))
            .map_err(|error| {
                Error::resource_exhausted(format!("cannot start a thread for callbacks: {error}"))
            })?;
        Ok(thread.insert(sender).clone())
    }

    /// Has a function called when an event has happened.
    pub(crate) fn add(
        &self,
        host: Host,
        device: u32,
        stream: Stream,
        event: &Event,
        reached: StreamReached,
    ) -> Result<()> {
        let due = Due { host, device, stream, reached, failure: None };
        let waiting = Box::into_raw(Box::new(Waiting { due, thread: self.thread()? }));
        event.set_callback(CL_COMPLETE, hand_over, waiting.cast()).map_err(|error| {
            // SAFETY: the driver did not take the pointer, which came from a box.
            drop(unsafe { Box::from_raw(waiting) });
            failed("clSetEventCallback", error)
        })
    }
}

extern "C" fn hand_over(_event: cl_event, status: cl_int, waiting: *mut c_void) {
    // SAFETY: the driver hands back the pointer of `add`, once.
    let Waiting { mut due, thread } = *unsafe { Box::from_raw(waiting.cast::<Waiting>()) };
    if status < CL_COMPLETE {
        due.failure = Some(failed("a command before the callback", status));
    }
    // The thread lives as long as there is somebody to hand over to it.
    let _ = thread.send(due);
}
