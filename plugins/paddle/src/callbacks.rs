//! Host functions that run when a stream of a custom device reaches them.
//!
//! A custom device calls back with a number instead of the address of something, so one that calls twice, or never, does no
//! harm. The host's function runs on a thread of the adapter: it may call the custom device again, whose own thread could not
//! serve that.

#![expect(unsafe_code, reason = "the custom device calls a C function and expects a status to be written")]

use core::ffi::c_void;
use std::collections::HashMap;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};

use oarlock_sdk::{PluginError, Result, Stream, StreamReached};

use crate::foreign_functions::{DeviceAddress, StreamAddress};
use crate::status_report::{SUCCESS, StatusNumber};

/// A host function that a stream has not reached yet.
struct PendingCallback {
    device: u32,
    stream: Stream,
    function: StreamReached,
}

#[derive(Default)]
struct PendingCallbacks {
    last: usize,
    pending: Option<HashMap<usize, PendingCallback>>,
    thread: Option<Sender<PendingCallback>>,
}

static PENDING: Mutex<PendingCallbacks> =
    Mutex::new(PendingCallbacks { last: 0, pending: None, thread: None });

/// A number under which the host's function is called once.
pub(crate) fn register_callback(device: u32, stream: Stream, function: StreamReached) -> Result<usize> {
    let mut callbacks = PENDING.lock().unwrap_or_else(PoisonError::into_inner);
    if callbacks.thread.is_none() {
        let (sender, receiver) = channel::<PendingCallback>();
        let call = move || receiver.iter().for_each(|due| due.function.notify(due.device, due.stream));
        std::thread::Builder::new().name("paddle-callbacks".to_owned()).spawn(call).map_err(|error| {
            PluginError::resource_exhausted(format!(
                "expected a thread for callbacks to start, found: {error}"
            ))
        })?;
        callbacks.thread = Some(sender);
    }
    callbacks.last += 1;
    let number = callbacks.last;
    let pending = PendingCallback { device, stream, function };
    callbacks.pending.get_or_insert_default().insert(number, pending);
    Ok(number)
}

/// Takes a function back that will not be called; false if it was called already.
pub(crate) fn withdraw_callback(number: usize) -> bool {
    let mut callbacks = PENDING.lock().unwrap_or_else(PoisonError::into_inner);
    callbacks.pending.as_mut().is_some_and(|pending| pending.remove(&number).is_some())
}

/// Passed to a custom device: queues the host's function with the number in `user`.
pub(crate) unsafe extern "C" fn forward_reached(
    _device: DeviceAddress,
    _stream: StreamAddress,
    user: *mut c_void,
    status: *mut StatusNumber,
) {
    let mut callbacks = PENDING.lock().unwrap_or_else(PoisonError::into_inner);
    let due = callbacks.pending.as_mut().and_then(|pending| pending.remove(&user.addr()));
    if let (Some(due), Some(thread)) = (due, &callbacks.thread) {
        // The thread lives as long as the process, so this cannot fail.
        let _ = thread.send(due);
    }
    if !status.is_null() {
        // SAFETY: the custom device passes the address of a status, or null.
        unsafe { status.write(SUCCESS) };
    }
}
