//! Streams: queues of work on a device. They attribute a failure that the device reports late to the op that caused it.
//!
//! Number 0 is the device's own queue, in which calls finish before they return; it needs neither a log nor events.
//! In other streams, work continues after the call that enqueued it has returned. Each launch is counted. These
//! counts are the clock of the memory pool: memory released at some count can be used elsewhere once the stream is
//! past that count.

mod device_streams;
mod label;
mod launch_log;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use oarlock_abi as abi;
use oarlock_host::{PluginDevice, PluginEvent, PluginFailure};

pub use device_streams::DeviceStreams;
pub use label::InternedLabel;

use crate::stream::device_streams::{StreamProgress, StreamsState};
use crate::stream::launch_log::{LaunchLog, PolledProgress};
use crate::{Error, Result};

/// The label of a wait of one stream for another.
const WAIT_LABEL: &str = "a wait for an event";

/// The number of a stream among those of its device. Numbers are reused after a stream is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub(crate) u32);

impl StreamId {
    /// The device's own queue.
    pub const IMMEDIATE: Self = Self(0);

    /// The bit for the stream in a set of streams. Several streams may share a bit.
    pub(crate) fn bit(self) -> u64 {
        1 << (self.0 % 64)
    }
}

/// A queue of work on one device. Clones refer to the same queue.
#[derive(Clone, Debug)]
pub struct Stream(Arc<StreamTimeline>);

/// The shared state behind clones of a stream.
#[derive(Debug)]
pub(crate) struct StreamTimeline {
    id: StreamId,
    shared: Arc<StreamsState>,
    progress: Arc<StreamProgress>,
    queue: Option<oarlock_host::PluginStream>,
    /// Locked while work is enqueued, since two threads must not enqueue concurrently (rule T-1).
    turn: Mutex<()>,
    log: Mutex<LaunchLog>,
    /// A failure found while polling, which the next wait reports.
    untold: Mutex<Option<Error>>,
}

impl Stream {
    fn from_timeline(timeline: Arc<StreamTimeline>) -> Self {
        Self(timeline)
    }

    /// Its number among the streams of its device.
    #[inline]
    pub fn id(&self) -> StreamId {
        self.0.id
    }

    /// The device that runs its work.
    pub fn device(&self) -> &PluginDevice {
        &self.0.shared.device
    }

    /// The plugin's handle; 0 for the device's own queue.
    pub fn handle(&self) -> abi::Stream {
        self.0.queue.as_ref().map_or(abi::Stream(0), oarlock_host::PluginStream::handle)
    }

    /// The host's stream; `None` for the device's own queue.
    pub fn queue(&self) -> Option<&oarlock_host::PluginStream> {
        self.0.queue.as_ref()
    }

    /// True if work is complete when the call that enqueues it returns.
    pub fn is_immediate(&self) -> bool {
        self.handle() == abi::Stream(0)
    }

    /// Enqueues work under a label. No other thread enqueues work while `enqueue` runs. `enqueue` itself must not use
    /// the stream.
    pub fn launch<R>(
        &self,
        label: impl Into<InternedLabel>,
        enqueue: impl FnOnce() -> std::result::Result<R, PluginFailure>,
    ) -> Result<R> {
        let turn = (!self.is_immediate()).then(|| self.0.lock_enqueue());
        self.0.launch_locked(label.into(), enqueue, turn)
    }

    /// Like `launch`, but returns `None` if a thread is enqueuing work right now.
    pub(crate) fn try_launch<R>(
        &self,
        label: impl Into<InternedLabel>,
        enqueue: impl FnOnce() -> std::result::Result<R, PluginFailure>,
    ) -> Option<Result<R>> {
        let turn = if self.is_immediate() { None } else { Some(self.0.try_lock_enqueue()?) };
        Some(self.0.launch_locked(label.into(), enqueue, turn))
    }

    /// Waits for all work in it. A failure names the op that caused it, or all ops that may have.
    pub fn synchronize(&self) -> Result<()> {
        self.0.synchronize()
    }

    /// True if all work in it is complete. If the device cannot tell, this waits for the work.
    pub fn is_done(&self) -> Result<bool> {
        self.0.shared.check_device()?;
        let Some(queue) = &self.0.queue else { return Ok(true) };
        let through = self.0.progress.position.load(Ordering::Acquire);
        match queue.is_done() {
            Ok(false) => Ok(false),
            Ok(true) => self.0.settle_wait(through, Ok(())).map(|()| true),
            Err(failure) => self.0.settle_wait(through, Err(failure)).map(|()| true),
        }
    }

    /// Makes further work wait for an event.
    pub fn wait_for_event(&self, event: &PluginEvent) -> Result<()> {
        match &self.0.queue {
            None => event.synchronize().map_err(|failure| self.0.shared.device_error(failure)),
            Some(queue) => self.launch(WAIT_LABEL, || queue.wait_for(event)),
        }
    }

    /// Makes further work wait for everything that is now in the other stream.
    pub fn wait_for_stream(&self, other: &Self) -> Result<()> {
        if other.is_immediate() || Arc::ptr_eq(&self.0, &other.0) {
            return Ok(());
        }
        let event = other.device().create_event().map_err(|failure| other.0.shared.device_error(failure))?;
        other.record_event(&event)?;
        self.wait_for_event(&event)
    }

    /// Records an event behind all work so far.
    pub fn record_event(&self, event: &PluginEvent) -> Result<()> {
        let Some(queue) = &self.0.queue else { return self.0.shared.check_device() };
        self.0.shared.check_device()?;
        let _turn = self.0.lock_enqueue();
        queue.record_event(event).map_err(|failure| self.0.shared.device_error(failure))
    }

    /// Calls a function once the stream reaches this point, with the stream's failure, if any. The call is made on a thread
    /// of the plugin, or immediately if the device does not support callbacks. The function must not use the stream,
    /// and must not panic: on a thread of the plugin, the panic would go unnoticed.
    pub fn add_callback(&self, reached: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        self.0.shared.check_device()?;
        let shared = self.0.shared.clone();
        let reached = move |result: std::result::Result<(), PluginFailure>| {
            reached(result.map_err(|failure| shared.device_error(failure)));
        };
        match &self.0.queue {
            None => {
                reached(Ok(()));
                Ok(())
            }
            Some(queue) => self.launch("a callback", || queue.add_callback(reached)),
        }
    }
}

impl StreamTimeline {
    fn new(
        shared: &Arc<StreamsState>,
        id: StreamId,
        progress: Arc<StreamProgress>,
        queue: Option<oarlock_host::PluginStream>,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            shared: shared.clone(),
            progress,
            queue,
            turn: Mutex::default(),
            log: Mutex::default(),
            untold: Mutex::default(),
        })
    }

    fn lock_enqueue(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_lock_enqueue(&self) -> Option<MutexGuard<'_, ()>> {
        match self.turn.try_lock() {
            Ok(turn) => Some(turn),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn launch_locked<R>(
        &self,
        label: InternedLabel,
        enqueue: impl FnOnce() -> std::result::Result<R, PluginFailure>,
        turn: Option<MutexGuard<'_, ()>>,
    ) -> Result<R> {
        self.shared.check_device()?;
        let launched = enqueue().map_err(|failure| self.launch_error(failure, label))?;
        if let Some(turn) = &turn {
            self.note_launch(label, turn);
        }
        Ok(launched)
    }

    /// The error of a failed launch. Some devices refuse work after a failure; this then returns the error of the
    /// earlier launch.
    #[cold]
    fn launch_error(&self, failure: PluginFailure, label: InternedLabel) -> Error {
        self.poll_progress();
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        match untold
            .take_if(|error| error.plugin_failure().is_some_and(|earlier| is_same_failure(earlier, &failure)))
        {
            Some(earlier) => earlier,
            None => self.shared.device_error(failure).with_op(label),
        }
    }

    fn lock_log(&self) -> MutexGuard<'_, LaunchLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts and logs a launch. `_turn` proves that no other thread is enqueuing work.
    fn note_launch(&self, label: InternedLabel, _turn: &MutexGuard<'_, ()>) {
        let mut log = self.lock_log();
        let seen = log.make_room();
        let event = if self.shared.has_events { self.recorded_event(&mut log) } else { None };
        log.push_launch(self.progress.position.fetch_add(1, Ordering::AcqRel) + 1, label, event);
        drop(log);
        if let Some(seen) = seen {
            self.apply_progress(seen);
        }
    }

    /// Records an event at the end of the queue. If that fails, the queue has failed, and the next wait reports it.
    fn recorded_event(&self, log: &mut LaunchLog) -> Option<PluginEvent> {
        let event = log.take_event(&self.shared.device).ok()?;
        self.queue.as_ref()?.record_event(&event).ok()?;
        Some(event)
    }

    /// Updates the progress of the stream. Never waits for the turn, since the caller may hold it.
    fn poll_progress(&self) {
        let position = self.progress.position.load(Ordering::Acquire);
        if self.progress.passed.load(Ordering::Acquire) >= position {
            return;
        }
        let turn = self.try_lock_enqueue();
        let mut log = self.lock_log();
        if turn.is_some()
            && !log.has_event_behind(position)
            && let Some(event) = self.recorded_event(&mut log)
        {
            log.attach_event(position, event);
        }
        let seen = log.poll_events();
        drop(log);
        self.apply_progress(seen);
    }

    fn apply_progress(&self, seen: PolledProgress) {
        self.progress.advance_to(seen.passed);
        if let Some((failure, culprit)) = seen.failure {
            let error = self.failure_error(failure, culprit);
            self.untold.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }

    /// Turns a failure into an error. If it arrived through a wait for another stream, the error names the op there.
    /// The caller must not hold a log lock, since this looks at other streams' logs.
    fn failure_error(&self, failure: PluginFailure, culprit: String) -> Error {
        let origin =
            if culprit.contains(WAIT_LABEL) { self.shared.failure_origin(self.id, &failure) } else { None };
        let culprit = origin.unwrap_or(culprit);
        let error = self.shared.device_error(failure);
        if culprit.is_empty() { error } else { error.with_op(culprit) }
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        self.shared.check_device()?;
        let through = self.progress.position.load(Ordering::Acquire);
        match &self.queue {
            Some(queue) => self.settle_wait(through, queue.synchronize()),
            // The caller that enqueued the work has already received its failure.
            None if through == self.progress.passed.load(Ordering::Acquire) => Ok(()),
            None => self.settle_wait(through, Ok(())),
        }
    }

    /// Waits, and keeps a failure for the next wait.
    fn drain_silently(&self) {
        if let Err(error) = self.synchronize() {
            self.untold.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }

    /// Processes the result of a wait for all work up to a position.
    fn settle_wait(&self, through: u64, result: std::result::Result<(), PluginFailure>) -> Result<()> {
        let culprit = self.lock_log().settle_through(through, result.as_ref().err());
        self.progress.advance_to(through);
        let untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner).take();
        let result = result.map_err(|failure| self.failure_error(failure, culprit.unwrap_or_default()));
        untold.map_or(Ok(()), Err).and(result)
    }
}

impl Drop for StreamTimeline {
    fn drop(&mut self) {
        if self.queue.is_none() {
            return;
        }
        let has_work =
            self.progress.passed.load(Ordering::Acquire) < self.progress.position.load(Ordering::Acquire);
        let waited = if has_work { self.synchronize() } else { Ok(()) };
        let untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Err(error) = untold.map_or(waited, Err) {
            self.shared.keep_orphaned_error(error);
        }
        // In either case, the queue ends here, and so does its use of memory.
        self.progress.advance_to(self.progress.position.load(Ordering::Acquire));
    }
}

/// True if the two are reports of one failure.
fn is_same_failure(one: &PluginFailure, other: &PluginFailure) -> bool {
    (one.code, &one.message) == (other.code, &other.message)
}
