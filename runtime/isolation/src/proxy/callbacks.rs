//! Callbacks that wait for a stream of the child.
//!
//! The child knows a callback by a number that is never used again, so it cannot make the host call anything else, or the same
//! callback twice. Each runs exactly once, also if the child dies.

#![expect(unsafe_code, reason = "a callback is a function of the caller")]

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use oarlock_abi as abi;

use crate::wire::failure::{HostFunctions, WireFailure};

/// A callback, with what it is called with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingCallback {
    pub(crate) reached: abi::StreamReached,
    pub(crate) device: u32,
    pub(crate) stream: abi::Stream,
    pub(crate) user: *mut c_void,
}

// SAFETY: the contract has callbacks called on a thread of the plugin, with what the caller passed.
unsafe impl Send for WaitingCallback {}

/// A callback whose stream has reached it.
type ReachedCallback = (WaitingCallback, Option<WireFailure>);

/// All waiting callbacks of a plugin.
#[derive(Debug, Default)]
pub(crate) struct CallbackTable {
    books: Mutex<CallbackBooks>,
}

#[derive(Debug, Default)]
struct CallbackBooks {
    last: u64,
    waiting: BTreeMap<u64, WaitingCallback>,
    /// Callbacks run on a thread of their own: one that blocks must not keep the host from noticing the child's death.
    runner: Option<(Sender<ReachedCallback>, JoinHandle<()>)>,
}

impl CallbackTable {
    fn lock_books(&self) -> MutexGuard<'_, CallbackBooks> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a callback and returns its number.
    pub(crate) fn add_callback(
        &self,
        callback: WaitingCallback,
        host: HostFunctions,
    ) -> std::io::Result<u64> {
        let mut books = self.lock_books();
        if books.runner.is_none() {
            let (sender, receiver) = channel::<ReachedCallback>();
            let run = move || {
                for (callback, failure) in receiver {
                    let failure = failure.map_or(abi::Error::NONE, |failure| host.create_error(&failure));
                    // SAFETY: the function and its pointer are the caller's, and this is the only call.
                    unsafe { (callback.reached)(callback.device, callback.stream, callback.user, failure) };
                }
            };
            books.runner =
                Some((sender, std::thread::Builder::new().name("oarlock-callbacks".into()).spawn(run)?));
        }
        books.last += 1;
        let number = books.last;
        books.waiting.insert(number, callback);
        Ok(number)
    }

    /// Takes a callback back that the plugin did not accept; false if it runs already.
    pub(crate) fn take_back(&self, number: u64) -> bool {
        self.lock_books().waiting.remove(&number).is_some()
    }

    /// Lets a callback run. False if the number stands for none.
    pub(crate) fn note_reached(&self, number: u64, failure: Option<WireFailure>) -> bool {
        let mut books = self.lock_books();
        let Some(callback) = books.waiting.remove(&number) else { return false };
        // The thread lives as long as the sender.
        books.runner.as_ref().is_some_and(|(sender, _)| sender.send((callback, failure)).is_ok())
    }

    /// Lets all waiting callbacks run with this failure.
    pub(crate) fn fail_all(&self, failure: &WireFailure) {
        let numbers: Vec<u64> = self.lock_books().waiting.keys().copied().collect();
        for number in numbers {
            self.note_reached(number, Some(failure.clone()));
        }
    }
}

impl Drop for CallbackTable {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.lock_books().runner.take() {
            drop(sender);
            // A callback may drop the last handle to the plugin; its thread cannot wait for itself.
            if thread.thread().id() != std::thread::current().id() {
                _ = thread.join();
            }
        }
    }
}
