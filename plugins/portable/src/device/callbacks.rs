//! Functions of the host that are called when a stream gets there.
//!
//! A driver calls back on a thread that must not be held up, so it only hands over to a thread of this crate.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};

use oarlock_sdk::{HostServices, PluginError, Result, Stream, StreamReached};

/// The thread that calls functions of the host, from the first one on.
#[derive(Default)]
pub(super) struct CallbackThread(Mutex<Option<Sender<PendingCallback>>>);

/// A function to be called, and why it is told of a failure, if it is.
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

/// A function of the host that waits for a stream to get there.
pub struct StreamCallback {
    due: PendingCallback,
    thread: Sender<PendingCallback>,
}

impl StreamCallback {
    /// Has the function called, soon and on another thread, and told what went wrong before, if anything did.
    pub fn queue_callback(self, failure: Option<PluginError>) {
        // The thread lives as long as there is somebody to hand over to it.
        let _ = self.thread.send(PendingCallback { failure, ..self.due });
    }
}

impl CallbackThread {
    /// What a driver holds until a stream gets there.
    pub(super) fn create_callback(
        &self,
        host: HostServices,
        device: u32,
        stream: Stream,
        function: StreamReached,
    ) -> Result<StreamCallback> {
        Ok(StreamCallback {
            due: PendingCallback { host, device, stream, function, failure: None },
            thread: self.callback_sender()?,
        })
    }

    fn callback_sender(&self) -> Result<Sender<PendingCallback>> {
        let mut thread = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = thread.as_ref() {
            return Ok(sender.clone());
        }
        let (sender, receiver) = channel::<PendingCallback>();
        std::thread::Builder::new()
            .name("oarlock-reached".to_owned())
            .spawn(move || receiver.into_iter().for_each(PendingCallback::invoke_callback))
            .map_err(|error| {
                PluginError::resource_exhausted(format!("cannot start a thread for callbacks: {error}"))
            })?;
        Ok(thread.insert(sender).clone())
    }
}
