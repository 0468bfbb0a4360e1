//! Functions of the host that are called when a stream gets there.
//!
//! A driver calls back on a thread that must not be held up, so it only hands over to a thread of this crate.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};

use oarlock_sdk::{Error, Host, Result, Stream, StreamReached};

/// The thread that calls functions of the host, from the first one on.
#[derive(Default)]
pub(super) struct Callbacks(Mutex<Option<Sender<Due>>>);

/// A function to be called, and why it is told of a failure, if it is.
struct Due {
    host: Host,
    device: u32,
    stream: Stream,
    function: StreamReached,
    failure: Option<Error>,
}

impl Due {
    fn call(self) {
        match self.failure {
            None => self.function.call(self.device, self.stream),
            Some(error) => self.function.fail(&self.host, self.device, self.stream, &error),
        }
    }
}

/// A function of the host that waits for a stream to get there.
pub struct Reached {
    due: Due,
    thread: Sender<Due>,
}

impl Reached {
    /// Has the function called, soon and on another thread, and told what went wrong before, if anything did.
    pub fn hand_over(self, failure: Option<Error>) {
        // The thread lives as long as there is somebody to hand over to it.
        let _ = self.thread.send(Due { failure, ..self.due });
    }
}

impl Callbacks {
    /// What a driver holds until a stream gets there.
    pub(super) fn reached(
        &self,
        host: Host,
        device: u32,
        stream: Stream,
        function: StreamReached,
    ) -> Result<Reached> {
        Ok(Reached { due: Due { host, device, stream, function, failure: None }, thread: self.thread()? })
    }

    fn thread(&self) -> Result<Sender<Due>> {
        let mut thread = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = thread.as_ref() {
            return Ok(sender.clone());
        }
        let (sender, receiver) = channel::<Due>();
        std::thread::Builder::new()
            .name("oarlock-reached".to_owned())
            .spawn(move || receiver.into_iter().for_each(Due::call))
            .map_err(|error| {
                Error::resource_exhausted(format!("cannot start a thread for callbacks: {error}"))
            })?;
        Ok(thread.insert(sender).clone())
    }
}
