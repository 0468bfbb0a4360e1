//! Functions that a plugin is to call, and what is known of each call.
//!
//! The plugin is handed a number instead of an address, so a call that comes twice, late or with another number is seen
//! and harms nothing.

#![expect(unsafe_code, reason = "a callback is a C function")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use oarlock_abi as abi;

use crate::bench::lock_unpoisoned;

/// One call of a callback.
#[derive(Clone, Debug)]
pub(crate) struct CallbackInvocation {
    pub(crate) device: u32,
    pub(crate) stream: abi::Stream,
    pub(crate) failure: abi::Error,
    pub(crate) thread: ThreadId,
    /// Whether the callback was not let go while it had patience.
    pub(crate) was_held_too_long: bool,
}

/// How long a callback that is held waits to be let go. Whoever waits for it before letting it go waits in vain.
const MAX_HOLD: Duration = Duration::from_secs(2);

struct CallbackLog {
    next: usize,
    held: BTreeSet<usize>,
    calls: BTreeMap<usize, Vec<CallbackInvocation>>,
}

static CALLBACK_LOG: Mutex<CallbackLog> =
    Mutex::new(CallbackLog { next: 1, held: BTreeSet::new(), calls: BTreeMap::new() });
static LOG_CHANGED: Condvar = Condvar::new();

/// A number to be handed to a plugin.
pub(crate) fn new_callback_number() -> usize {
    let mut books = lock_unpoisoned(&CALLBACK_LOG);
    let number = books.next;
    books.next += 1;
    books.calls.insert(number, Vec::new());
    number
}

/// The calls that came for a number so far.
pub(crate) fn invocations_for(number: usize) -> Vec<CallbackInvocation> {
    lock_unpoisoned(&CALLBACK_LOG).calls.get(&number).cloned().unwrap_or_default()
}

/// Makes calls for a number wait.
pub(crate) fn hold_callbacks(number: usize) {
    lock_unpoisoned(&CALLBACK_LOG).held.insert(number);
}

/// Lets calls for a number go on.
pub(crate) fn release_callbacks(number: usize) {
    lock_unpoisoned(&CALLBACK_LOG).held.remove(&number);
    LOG_CHANGED.notify_all();
}

/// Waits until something holds; the books, and whether it does.
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

/// Waits until a call came for a number; whether one did.
pub(crate) fn wait_for_call(number: usize, patience: Duration) -> bool {
    wait_until(patience, |books| books.calls.get(&number).is_some_and(|calls| !calls.is_empty())).1
}

/// The function that plugins call.
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
