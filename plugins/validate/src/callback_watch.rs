//! Watches the callbacks of streams: each runs exactly once, on a thread of the plugin (rule T-2).

#![expect(unsafe_code, reason = "a callback is a function pointer with a pointer of the caller")]

use core::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;

use oarlock_sdk::abi;

use crate::breach::{BreachLog, BreachSite, CallBreach};
use crate::plugin_ledger::PluginLedger;
use crate::stream_order::StreamClock;

/// One callback that was added to a stream. The plugin gets its address in place of the caller's.
pub(crate) struct CallbackWatch {
    function: abi::StreamReached,
    user: *mut c_void,
    ledger: Arc<PluginLedger>,
    log: Arc<BreachLog>,
    /// What is done once the callback runs.
    clock: StreamClock,
    /// The thread that added it, until `stream_add_callback` has returned.
    adding: Mutex<Option<ThreadId>>,
    call: u64,
    runs: AtomicU32,
}

// SAFETY: the pointer of the caller is only passed back, once, as the caller expects from the plugin.
unsafe impl Send for CallbackWatch {}
// SAFETY: as above.
unsafe impl Sync for CallbackWatch {}

impl CallbackWatch {
    pub(crate) fn new(
        function: abi::StreamReached,
        user: *mut c_void,
        ledger: &Arc<PluginLedger>,
        log: &Arc<BreachLog>,
        clock: StreamClock,
        call: u64,
    ) -> Arc<Self> {
        Arc::new(Self {
            function,
            user,
            ledger: ledger.clone(),
            log: log.clone(),
            clock,
            adding: Mutex::new(Some(std::thread::current().id())),
            call,
            runs: AtomicU32::new(0),
        })
    }

    /// `stream_add_callback` has returned.
    pub(crate) fn end_adding(&self) {
        *self.adding.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) fn has_run(&self) -> bool {
        self.runs.load(Ordering::Acquire) > 0
    }

    /// The plugin is gone, and the callback has not run.
    pub(crate) fn report_missing(&self) {
        self.report("expected the callback to run once, found that it never ran");
    }

    fn report(&self, message: &str) {
        let site =
            BreachSite { plugin: &self.ledger.plugin, place: "async.stream_add_callback", call: self.call };
        self.log.report_breach(site, &CallBreach::by_plugin("T-2", message));
    }
}

/// What the plugin calls in place of the caller's function.
pub(crate) unsafe extern "C" fn reach_watched_callback(
    device: u32,
    stream: abi::Stream,
    user: *mut c_void,
    failure: abi::Error,
) {
    // SAFETY: the layer passed the address of a watch, which it keeps as long as the plugin may call.
    let watch = unsafe { &*user.cast_const().cast::<CallbackWatch>() };
    let is_adding =
        *watch.adding.lock().unwrap_or_else(PoisonError::into_inner) == Some(std::thread::current().id());
    if is_adding {
        watch.report("expected the callback to run on a thread of the plugin, found it run by the thread that added it");
    }
    if watch.runs.fetch_add(1, Ordering::AcqRel) > 0 {
        watch.report("expected the callback to run once, found it run again");
        return;
    }
    watch.ledger.lock_state().order.finish_clock(&watch.clock);
    // SAFETY: the caller vouched for its function and its pointer, and the function runs once.
    unsafe { (watch.function)(device, stream, watch.user, failure) };
}
