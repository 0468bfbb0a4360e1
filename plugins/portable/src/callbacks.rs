//! Host functions that run when a stream reaches them.
//!
//! A driver's callback thread must not block, so it only hands the call over to a thread of this crate.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};

use oarlock_sdk::{HostServices, PluginError, Result, Stream, StreamReached};

/// The thread that calls host functions; it starts with the first callback.
#[derive(Default)]
pub(crate) struct CallbackThread(Mutex<Option<Sender<PendingCallback>>>);

/// A host function to call, and the failure to report to it, if any.
struct PendingCallback {
    host: HostServices,
    device: u32,
    stream: Stream,
    function: StreamReached,
    failure: Option<PluginError>,
}

impl PendingCallback {
    fn invoke_callback(self) {
        match self.failure {
            None => self.function.notify(self.device, self.stream),
            Some(error) => self.function.notify_failure(&self.host, self.device, self.stream, &error),
        }
    }
}

/// A host function that runs once a stream reaches it.
pub struct StreamCallback {
    due: PendingCallback,
    thread: Sender<PendingCallback>,
}

impl StreamCallback {
    /// Queues the call on the callback thread. `failure` is what went wrong earlier in the stream, if anything did.
    pub fn queue_callback(self, failure: Option<PluginError>) {
        // The receiver lives as long as any sender, so this cannot fail.
        let _ = self.thread.send(PendingCallback { failure, ..self.due });
    }
}

impl CallbackThread {
    /// Wraps a host function into the value that a driver holds until the stream reaches it.
    pub(crate) fn create_callback(
        &self,
        host: HostServices,
        device: u32,
        stream: Stream,
        function: StreamReached,
    ) -> Result<StreamCallback> {
        Ok(StreamCallback {
            due: PendingCallback { host, device, stream, function, failure: None },
            // Started here, where a failure is an error of the call. Inside of a driver's callback nobody could be told.
            thread: self.callback_sender()?,
        })
    }

    fn callback_sender(&self) -> Result<Sender<PendingCallback>> {
        // Held until the thread is there: with two of them, callbacks of one stream could overtake each other.
        let mut thread = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = thread.as_ref() {
            return Ok(sender.clone());
        }
        // Unbounded, so that `send` never makes a driver's thread wait.
        let (sender, receiver) = channel::<PendingCallback>();
        // The loop ends when the last sender is gone, so nobody has to stop the thread.
        std::thread::Builder::new()
            .name("oarlock-reached".to_owned())
            .spawn(move || receiver.into_iter().for_each(PendingCallback::invoke_callback))
            .map_err(|error| {
                PluginError::resource_exhausted(format!("cannot start a thread for callbacks: {error}"))
            })?;
        Ok(thread.insert(sender).clone())
    }
}
