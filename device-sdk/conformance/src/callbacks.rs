//! Callbacks that are passed to the plugin, and a record of each call.
//!
//! The plugin gets a number instead of an address, so a call that is duplicate, late or has a wrong number is recorded and
//! harmless.

#![expect(unsafe_code, reason = "a callback is a C function")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use oarlock_abi as abi;

use crate::bench::lock_unpoisoned;

#[derive(Clone, Debug)]
pub(crate) struct CallbackInvocation {
    pub(crate) device: u32,
    pub(crate) stream: abi::Stream,
    pub(crate) failure: abi::Error,
    pub(crate) thread: ThreadId,
    /// True if the callback blocked until [`MAX_HOLD`] ran out.
    pub(crate) was_held_too_long: bool,
}

/// Limit on how long a held callback blocks the plugin. A plugin that waits for the callback before the check releases it would
/// hang otherwise.
const MAX_HOLD: Duration = Duration::from_secs(2);

struct CallbackLog {
    next: usize,
    held: BTreeSet<usize>,
    calls: BTreeMap<usize, Vec<CallbackInvocation>>,
}

static CALLBACK_LOG: Mutex<CallbackLog> =
    Mutex::new(CallbackLog { next: 1, held: BTreeSet::new(), calls: BTreeMap::new() });
static LOG_CHANGED: Condvar = Condvar::new();

/// A fresh number for a plugin to pass back.
pub(crate) fn new_callback_number() -> usize {
    let mut books = lock_unpoisoned(&CALLBACK_LOG);
    let number = books.next;
    books.next += 1;
    books.calls.insert(number, Vec::new());
    number
}

/// All calls for a number so far.
pub(crate) fn invocations_for(number: usize) -> Vec<CallbackInvocation> {
    lock_unpoisoned(&CALLBACK_LOG).calls.get(&number).cloned().unwrap_or_default()
}

/// Makes calls for a number block until [`release_callbacks`].
pub(crate) fn hold_callbacks(number: usize) {
    lock_unpoisoned(&CALLBACK_LOG).held.insert(number);
}

pub(crate) fn release_callbacks(number: usize) {
    lock_unpoisoned(&CALLBACK_LOG).held.remove(&number);
    LOG_CHANGED.notify_all();
}

/// Waits until a condition holds. Returns the record, and false if time ran out.
fn wait_until(
    patience: Duration,
    holds: impl Fn(&CallbackLog) -> bool,
) -> (MutexGuard<'static, CallbackLog>, bool) {
    let waited =
        LOG_CHANGED.wait_timeout_while(lock_unpoisoned(&CALLBACK_LOG), patience, |books| !holds(books));
    let (books, _) = waited.unwrap_or_else(PoisonError::into_inner);
    let holds = holds(&books);
    (books, holds)
}

/// Waits for a call for a number; false if time ran out.
pub(crate) fn wait_for_call(number: usize, patience: Duration) -> bool {
    wait_until(patience, |books| books.calls.get(&number).is_some_and(|calls| !calls.is_empty())).1
}

/// The callback that plugins get.
pub(crate) unsafe extern "C" fn on_stream_reached(
    device: u32,
    stream: abi::Stream,
    user: *mut c_void,
    failure: abi::Error,
) {
    let (number, thread) = (user.addr(), std::thread::current().id());
    let (mut books, is_let_go) = wait_until(MAX_HOLD, |books| !books.held.contains(&number));
    let call = CallbackInvocation { device, stream, failure, thread, was_held_too_long: !is_let_go };
    books.calls.entry(number).or_default().push(call);
    drop(books);
    LOG_CHANGED.notify_all();
}
