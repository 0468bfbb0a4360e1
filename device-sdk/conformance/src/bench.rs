//! The test bench: every call of the plugin goes through it and is recorded.

#![expect(unsafe_code, reason = "the tables of a plugin are shared between the threads of the suite")]

use std::ffi::c_void;
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use oarlock_abi as abi;

use crate::exceptions::ConformanceExceptions;
use crate::findings::{KernelNumbers, SpeedMeasurement};
use crate::float_mode::FloatMode;
use crate::process_state::ProcessState;
use crate::settings::SuiteSettings;
use crate::snapshot::RunSnapshot;
use crate::subject::{ConformanceSubject, ErrorText};

/// Limit on the errors that are recorded for the check that inspects all of them.
const MAX_ERRORS: usize = 1024;

/// The reason a check ends early.
#[derive(Debug)]
pub(crate) enum CheckAbort {
    /// The plugin broke the rule.
    Failed(String),
    /// The plugin leaves out an optional part that the check needs.
    Unsupported(String),
}

/// The result of a check, or of a step of one.
pub(crate) type Verdict<T = ()> = Result<T, CheckAbort>;

impl CheckAbort {
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    pub(crate) fn unsupported(reason: impl Into<String>) -> Self {
        Self::Unsupported(reason.into())
    }

    /// The result of a check that needs a slot which the plugin leaves empty.
    pub(crate) fn empty_slot(slot: &str) -> Self {
        Self::unsupported(format!("the slot `{slot}` is empty"))
    }

    pub(crate) fn into_message(self) -> String {
        match self {
            Self::Failed(message) | Self::Unsupported(message) => message,
        }
    }

    /// Adds the place of the failure to the message.
    pub(crate) fn at_location(self, place: impl fmt::Display) -> Self {
        match self {
            Self::Failed(message) => Self::Failed(format!("{place}: {message}")),
            unsupported @ Self::Unsupported(_) => unsupported,
        }
    }
}

/// Fails a check unless a condition holds.
macro_rules! ensure {
    ($holds:expr, $($message:tt)+) => {
        if !$holds {
            return Err($crate::bench::CheckAbort::failed(format!($($message)+)));
        }
    };
}
pub(crate) use ensure;

/// Calls a slot of a table, with the context that belongs to the table or another one first, and reads the error it may return. An empty slot
/// ends the check as unsupported.
macro_rules! slot {
    ($bench:expr, $table:expr, $slot:ident($($argument:expr),* $(,)?)) => {{
        let bound: $crate::bench::BoundTable<'_, _> = $table;
        $crate::bench::slot!($bench, bound.context => bound.table, $slot($($argument),*))
    }};
    ($bench:expr, $context:expr => $table:expr, $slot:ident($($argument:expr),* $(,)?)) => {{
        let bench: &$crate::bench::TestBench = $bench;
        let function = $table.$slot.ok_or_else(|| $crate::bench::CheckAbort::empty_slot(stringify!($slot)))?;
        bench.begin_call(stringify!($slot));
        let mode = $crate::float_mode::FloatMode::current();
        // SAFETY: whoever made the subject vouches for its tables, its kernels and their contexts. The arguments
        // belong to the suite: their targets stay valid, and writable where the slot writes, for as long as the contract requires.
        let error = unsafe { function($context, $($argument),*) };
        bench.compare_float_mode(stringify!($slot), mode);
        bench.finish_call(stringify!($slot), error)
    }};
}
pub(crate) use slot;

/// An error that a call returned, with the slot that returned it.
#[derive(Clone, Debug)]
pub(crate) struct CallError {
    pub(crate) slot: &'static str,
    pub(crate) text: ErrorText,
}

impl CallError {
    pub(crate) fn is_about_an_argument(&self) -> bool {
        [abi::Code::INVALID_ARGUMENT, abi::Code::NOT_FOUND].contains(&self.text.code)
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` failed with {}: {}", self.slot, code_name(self.text.code), self.text.message)
    }
}

impl From<CallError> for CheckAbort {
    fn from(error: CallError) -> Self {
        Self::failed(error.to_string())
    }
}

/// The name of a code for messages.
pub(crate) fn code_name(code: abi::Code) -> String {
    code.name().map_or_else(|| format!("the unknown code {}", code.0), |name| format!("`{name}`"))
}

/// A table with the first argument of its slots.
#[derive(Clone, Copy)]
pub(crate) struct BoundTable<'a, T> {
    pub(crate) context: *mut c_void,
    pub(crate) table: &'a T,
}

impl<T> Deref for BoundTable<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.table
    }
}

/// What the thread of a check tells the suite.
pub(crate) enum CheckMessage {
    /// A part of the check begins, which waits until somebody was told: it may end the process.
    Step(String, Sender<()>),
    /// The check ended; `None` if it panicked.
    Done(Option<Verdict>),
}

/// The plugin under test, and a record of the calls that were made.
pub(crate) struct TestBench {
    subject: ConformanceSubject,
    patience: Duration,
    last_call: Mutex<Option<&'static str>>,
    errors: Mutex<Vec<CallError>>,
    /// Where the running check says which of its parts begins.
    steps: Mutex<Option<Sender<CheckMessage>>>,
    /// What the kernels computed.
    pub(crate) numbers: Mutex<Vec<KernelNumbers>>,
    /// How fast a few things were.
    pub(crate) measurements: Mutex<Vec<SpeedMeasurement>>,
    /// What the manifest excepts.
    pub(crate) exceptions: ConformanceExceptions,
    /// The first slot that changed the mode of floats, with the mode before and after.
    pub(crate) mode_changed_by: Mutex<Option<(&'static str, FloatMode, FloatMode)>>,
    is_abandoned: AtomicBool,
    /// The process before the plugin was loaded, if the caller of the suite knows it.
    pub(crate) process_before: Option<ProcessState>,
    /// The state at the start, which must be the same at the end of the run.
    pub(crate) at_first: RunSnapshot,
}

// SAFETY: the functions of a plugin may be called on any thread (rule T-1), with its context; the rest is plain data.
unsafe impl Send for TestBench {}
// SAFETY: as above; what changes is behind locks.
unsafe impl Sync for TestBench {}

impl TestBench {
    pub(crate) fn new(subject: ConformanceSubject, settings: &SuiteSettings) -> Self {
        Self {
            at_first: RunSnapshot::capture(&subject),
            subject,
            patience: settings.patience,
            last_call: Mutex::new(None),
            errors: Mutex::new(Vec::new()),
            steps: Mutex::new(None),
            numbers: Mutex::new(Vec::new()),
            measurements: Mutex::new(Vec::new()),
            exceptions: settings.exceptions.clone(),
            mode_changed_by: Mutex::new(None),
            process_before: settings.process_before.clone(),
            is_abandoned: AtomicBool::new(false),
        }
    }

    pub(crate) fn subject(&self) -> &ConformanceSubject {
        &self.subject
    }

    /// Devices and their memory.
    pub(crate) fn core_table(&self) -> BoundTable<'_, abi::CoreTable> {
        BoundTable { context: self.subject.context, table: &self.subject.core }
    }

    /// Streams and events; unsupported without them.
    pub(crate) fn async_table(&self) -> Verdict<BoundTable<'_, abi::AsyncTable>> {
        let missing = || CheckAbort::unsupported("the plugin leaves the profile `async` out");
        let (context, table) = self.subject.asynchronous.as_ref().ok_or_else(missing)?;
        Ok(BoundTable { context: *context, table })
    }

    /// Limit on a single wait of a check.
    pub(crate) fn wait_limit(&self) -> Duration {
        self.patience
    }

    /// A device id that is not in the list, for calls that must fail.
    pub(crate) fn unknown_device(&self) -> u32 {
        let is_unknown = |id: &u32| !self.subject.devices.contains(id);
        (0..=u32::MAX).rev().find(is_unknown).unwrap_or(u32::MAX)
    }

    /// Sets where checks report their parts.
    pub(crate) fn report_steps_to(&self, steps: Sender<CheckMessage>) {
        *lock_unpoisoned(&self.steps) = Some(steps);
    }

    /// Says that a part of the running check begins, which has the whole patience again.
    pub(crate) fn begin_step(&self, step: String) {
        self.park_if_abandoned();
        if let Some(steps) = &*lock_unpoisoned(&self.steps) {
            let (told, is_told) = mpsc::channel();
            // Nobody listens to a check that took too long.
            let _ = steps.send(CheckMessage::Step(step, told));
            let _ = is_told.recv();
        }
    }

    /// Records the start of a call, so that a check that hangs can name the slot.
    pub(crate) fn begin_call(&self, slot: &'static str) {
        self.park_if_abandoned();
        *lock_unpoisoned(&self.last_call) = Some(slot);
    }

    /// Notes the first call that changes the mode of floats, and changes it back: the references compute with floats too.
    pub(crate) fn compare_float_mode(&self, slot: &'static str, before: FloatMode) {
        let now = FloatMode::current();
        if now != before {
            lock_unpoisoned(&self.mode_changed_by).get_or_insert((slot, before, now));
            before.restore();
        }
    }

    /// Records the end of a call and reads its error.
    pub(crate) fn finish_call(&self, slot: &'static str, error: abi::Error) -> Result<(), CallError> {
        self.park_if_abandoned();
        if !error.is_some() {
            return Ok(());
        }
        let failure = CallError { slot, text: (self.subject.read_error)(error) };
        let mut errors = lock_unpoisoned(&self.errors);
        if errors.len() < MAX_ERRORS {
            errors.push(failure.clone());
        }
        Err(failure)
    }

    /// Reads an error that a slot passed to a callback.
    pub(crate) fn check_callback_error(&self, slot: &'static str, error: abi::Error) -> Verdict {
        Ok(self.finish_call(slot, error)?)
    }

    /// The slot called last; if a check did not return, this slot is the likely culprit.
    pub(crate) fn last_call(&self) -> Option<&'static str> {
        *lock_unpoisoned(&self.last_call)
    }

    /// All errors that calls have returned so far.
    pub(crate) fn recorded_errors(&self) -> Vec<CallError> {
        lock_unpoisoned(&self.errors).clone()
    }

    /// Tells the thread of the running check that the suite has given up on it.
    pub(crate) fn abandon_check(&self) {
        self.is_abandoned.store(true, Ordering::SeqCst);
    }

    /// Parks a thread that was given up on: the caller of the suite assumes that the plugin is idle.
    fn park_if_abandoned(&self) {
        while self.is_abandoned.load(Ordering::SeqCst) {
            std::thread::park();
        }
    }
}

/// Locks a mutex even if it is poisoned: it guards plain data.
pub(crate) fn lock_unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes that are unlikely to occur by chance, different for each seed.
pub(crate) fn test_pattern(seed: u64, size: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..size).map(next).collect()
}

/// Fails at the first byte that differs.
pub(crate) fn expect_bytes(what: impl fmt::Display, expected: &[u8], found: &[u8]) -> Verdict {
    let wrong = expected.iter().zip(found).position(|(expected, found)| expected != found);
    match wrong {
        Some(at) => Err(CheckAbort::failed(format!(
            "{what}: expected {:#04x} at byte {at} of {}, found {:#04x}",
            expected[at],
            expected.len(),
            found[at]
        ))),
        None if expected.len() != found.len() => Err(CheckAbort::failed(format!(
            "{what}: expected {} bytes, found {}",
            expected.len(),
            found.len()
        ))),
        None => Ok(()),
    }
}
