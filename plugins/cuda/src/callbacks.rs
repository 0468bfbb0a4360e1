//! Functions of the host that are called when a stream gets there.
//!
//! The driver calls back on a thread that must not be held up, so it only hands over to a thread of this plugin.
//!
//! `cuStreamAddCallback` is the one that is also called when the stream failed, and says so; what `cuLaunchHostFunc` takes is
//! then never called.

#![expect(unsafe_code, reason = "the driver calls back with a pointer")]

use std::ffi::c_void;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::{CUresult, CUstream, cuStreamAddCallback};
use oarlock_sdk::{Error, Host, Result, Stream, StreamReached};

use crate::error::failed;
use crate::queue::Queue;

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

/// What the driver holds until the stream gets there. The function is taken out by whoever calls it.
struct Waiting {
    due: Mutex<Option<Due>>,
    thread: Sender<Due>,
}

impl Waiting {
    fn take(&self) -> Option<Due> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Callbacks {
    fn thread(&self) -> Result<Sender<Due>> {
        let mut thread = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = thread.as_ref() {
            return Ok(sender.clone());
        }
        let (sender, receiver) = channel::<Due>();
        std::thread::Builder::new()
            .name("oarlock-cuda".to_owned())
            .spawn(move || receiver.into_iter().for_each(Due::call))
            .map_err(|error| {
                Error::resource_exhausted(format!("cannot start a thread for callbacks: {error}"))
            })?;
        Ok(thread.insert(sender).clone())
    }

    /// Has a function called when a stream gets there.
    pub(crate) fn add(
        &self,
        host: Host,
        device: u32,
        stream: Stream,
        queue: &Queue,
        reached: StreamReached,
    ) -> Result<()> {
        let due = Mutex::new(Some(Due { host, device, stream, reached, failure: None }));
        let waiting = Arc::new(Waiting { due, thread: self.thread()? });
        let held = Arc::into_raw(Arc::clone(&waiting)).cast_mut().cast();
        let added = queue.mark("cuStreamAddCallback", |stream| {
            // SAFETY: the stream is alive, and the driver hands the pointer to `hand_over` once or never.
            unsafe { cuStreamAddCallback(stream, Some(hand_over), held, 0) }.result()
        });
        if added.is_err() {
            // The driver may tell of an earlier failure here and call back nevertheless, so what it holds is left to it, empty.
            waiting.take();
        }
        added
    }
}

unsafe extern "C" fn hand_over(_stream: CUstream, status: CUresult, held: *mut c_void) {
    // SAFETY: the driver hands back the pointer of `add`, once.
    let waiting = unsafe { Arc::from_raw(held.cast_const().cast::<Waiting>()) };
    if let Some(mut due) = waiting.take() {
        due.failure = status.result().err().map(|error| failed("work before the callback", error));
        // The thread lives as long as there is somebody to hand over to it.
        let _ = waiting.thread.send(due);
    }
}
