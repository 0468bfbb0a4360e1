//! Kernels that end early, because their caller wants them to stop.

#![expect(unsafe_code, reason = "threads that share the work of a call share its watch by a pointer")]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{PluginError, Result};

/// Minimum time between two questions of a thread: too short to notice, and the answer may take long.
const QUESTION_INTERVAL: Duration = Duration::from_millis(20);

/// Fails if the call is to stop.
pub(crate) type StopQuestion<'q> = dyn Fn() -> Result<()> + Sync + 'q;

/// Whether a call of a kernel is to stop. All threads that work on the call share it.
pub(crate) struct StopWatch<'q> {
    ask: &'q StopQuestion<'q>,
    is_stopped: AtomicBool,
    /// What the host answered when it wanted the call to stop.
    failure: Mutex<Option<PluginError>>,
}

/// What unwinds from a part of a call that is stopped.
struct WorkStopped;

thread_local! {
    /// The watch of the call that this thread works on, or null.
    static WATCH: Cell<*const StopWatch<'static>> = const { Cell::new(ptr::null()) };
    /// When this thread last asked its host.
    static LAST_QUESTION: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Ends the kernel that runs on this thread if its caller wants that: it unwinds to where the kernel was called, which returns an
/// error. Kernels that take long call this now and then, on any of the threads of
/// [`HostServices::parallel_for`](crate::HostServices::parallel_for).
#[inline]
pub fn end_if_stopped() {
    let watch = WATCH.get();
    if !watch.is_null() {
        // SAFETY: `run_watched` and `with_watch` set the pointer only while the watch lives.
        unsafe { &*watch }.end_if_stopped();
    }
}

/// Runs a call of a kernel, which [`end_if_stopped`] ends once `ask` fails.
pub(crate) fn run_watched(ask: &StopQuestion<'_>, call: impl FnOnce() -> Result<()>) -> Result<()> {
    let watch = StopWatch { ask, is_stopped: AtomicBool::new(false), failure: Mutex::new(None) };
    match with_watch((&raw const watch).cast(), || catch_unwind(AssertUnwindSafe(call))) {
        Ok(result) => result,
        Err(panic) if panic.is::<WorkStopped>() => {
            let failure = watch.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
            Err(failure.unwrap_or_else(|| PluginError::fatal("expected a reason to stop, found none")))
        }
        Err(panic) => resume_unwind(panic),
    }
}

/// The watch of the call that this thread works on, for threads that help.
pub(crate) fn current_watch() -> *const StopWatch<'static> {
    WATCH.get()
}

/// Runs a part of a call under its watch, which is null or lives until this returns. The part does not unwind.
pub(crate) fn with_watch<R>(watch: *const StopWatch<'static>, part: impl FnOnce() -> R) -> R {
    let outer = WATCH.replace(watch);
    let result = part();
    WATCH.set(outer);
    result
}

impl StopWatch<'_> {
    fn end_if_stopped(&self) {
        if self.is_stopped.load(Ordering::Relaxed) || self.ask_host() {
            resume_unwind(Box::new(WorkStopped));
        }
    }

    /// Asks if the last question was long enough ago. True if the call is to stop.
    fn ask_host(&self) -> bool {
        let now = Instant::now();
        if LAST_QUESTION.get().is_some_and(|last| now.duration_since(last) < QUESTION_INTERVAL) {
            return false;
        }
        LAST_QUESTION.set(Some(now));
        let Err(failure) = (self.ask)() else { return false };
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
        self.is_stopped.store(true, Ordering::Relaxed);
        true
    }
}
