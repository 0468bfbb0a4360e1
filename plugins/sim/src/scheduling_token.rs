//! The token, which is the exclusive right to take work from a stream, and the loop of the threads that take it.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::device::SimDevice;
use crate::error::SimError;
use crate::stream::{
    ExecutionStep, GoalBlocker, HostCallback, QueuedWork, RecordingOutcome, SchedulerState, SchedulingMode,
    SimStream, StreamId, StreamWork,
};
use oarlock_fault_script::FaultKind;

/// How long nothing must happen before a stream proceeds by itself to a pending callback.
const CALLBACK_PATIENCE: Duration = Duration::from_millis(100);

/// Shared by the threads of an engine.
pub(crate) struct SchedulerCore {
    pub(crate) state: Mutex<SchedulerState>,
    pub(crate) changed: Condvar,
}

/// The work that this thread is in the middle of, if it is the thread of a stream.
#[derive(Clone, Copy)]
struct CurrentWork {
    /// Identifies the engine within the process.
    core: usize,
    stream: StreamId,
    is_callback: bool,
}

thread_local! {
    static CURRENT_WORK: Cell<Option<CurrentWork>> = const { Cell::new(None) };
}

pub(crate) fn shut_down_error() -> SimError {
    SimError::new(FaultKind::Unavailable, "the simulated device was shut down")
}

impl SchedulerCore {
    pub(crate) fn lock_state(&self) -> MutexGuard<'_, SchedulerState> {
        // Nothing panics halfway through a change under this lock; whatever can panic runs outside it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock_open_state(&self) -> Result<MutexGuard<'_, SchedulerState>, SimError> {
        let state = self.lock_state();
        if state.closed { Err(shut_down_error()) } else { Ok(state) }
    }

    pub(crate) fn wait_for_change<'a>(
        &self,
        state: MutexGuard<'a, SchedulerState>,
    ) -> MutexGuard<'a, SchedulerState> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn current_work(&self) -> Option<CurrentWork> {
        CURRENT_WORK.get().filter(|inside| inside.core == std::ptr::from_ref(self).addr())
    }

    pub(crate) fn callback_of_this_thread(&self) -> Option<StreamId> {
        self.current_work().filter(|inside| inside.is_callback).map(|inside| inside.stream)
    }

    /// Refuses calls from a kernel: it holds the token, so a call that hands it out would never return.
    pub(crate) fn refuse_kernels(&self) -> Result<(), SimError> {
        match self.current_work() {
            Some(inside) if !inside.is_callback => {
                Err(SimError::invalid_argument("a kernel may not enqueue work, ask after it or wait for it"))
            }
            _ => Ok(()),
        }
    }

    /// Runs waiting work after an enqueue, as the mode demands.
    pub(crate) fn schedule_new_work(&self, mut state: MutexGuard<'_, SchedulerState>) {
        while !state.closed {
            if state.token.is_some() {
                state = self.wait_for_change(state);
                continue;
            }
            let go_on = match state.mode {
                SchedulingMode::Eager => true,
                SchedulingMode::Lazy => false,
                SchedulingMode::Random => state.random.flip_coin(),
            };
            match go_on.then(|| state.pick_runnable()).flatten() {
                Some(stream) => state = self.run_one(state, stream, false),
                None => return,
            }
        }
    }

    /// Hands the token, which must be free, to a stream that can run, and waits until it has run one item. Waits for the end of a
    /// callback only if `callbacks_too` is set.
    pub(crate) fn run_one<'a>(
        &self,
        mut state: MutexGuard<'a, SchedulerState>,
        id: StreamId,
        callbacks_too: bool,
    ) -> MutexGuard<'a, SchedulerState> {
        let Some(target) = state.streams.get(&id).map(|stream| stream.finished + 1) else { return state };
        state.token = Some(id);
        self.changed.notify_all();
        loop {
            let unfinished = state.streams.get(&id).is_some_and(|stream| stream.finished < target);
            let handed_back = state.token != Some(id);
            if state.closed || !unfinished || (handed_back && !callbacks_too) {
                return state;
            }
            state = self.wait_for_change(state);
        }
    }

    /// Main loop of a stream's thread.
    pub(crate) fn run_stream_thread(&self, id: StreamId) {
        let mut state = self.lock_state();
        while !state.closed && state.streams.contains_key(&id) {
            if state.token == Some(id) {
                state = self.serve_one(state, id);
            } else if state.streams.get(&id).is_some_and(SimStream::has_queued_callback) {
                state = self.wait_with_patience(state, id);
            } else {
                state = self.wait_for_change(state);
            }
        }
    }

    /// Waits for a change. After a long time without one, takes the token to reach a pending callback.
    fn wait_with_patience<'a>(
        &self,
        state: MutexGuard<'a, SchedulerState>,
        id: StreamId,
    ) -> MutexGuard<'a, SchedulerState> {
        let (mut state, wait) =
            self.changed.wait_timeout(state, CALLBACK_PATIENCE).unwrap_or_else(PoisonError::into_inner);
        if wait.timed_out()
            && state.token.is_none()
            && let GoalBlocker::Run(next) = state.find_blocker(id)
        {
            state.token = Some(next);
            self.changed.notify_all();
        }
        state
    }

    fn serve_one<'a>(
        &'a self,
        mut state: MutexGuard<'a, SchedulerState>,
        id: StreamId,
    ) -> MutexGuard<'a, SchedulerState> {
        let Some(stream) = state.streams.get_mut(&id) else { return state };
        let Some(QueuedWork { call, work }) = stream.queue.pop_front() else {
            state.token = None;
            self.changed.notify_all();
            return state;
        };
        stream.busy = true;
        let (position, device, before) = (stream.finished, Arc::clone(&stream.device), stream.error.clone());
        if let Some(log) = &mut state.log {
            log.push(ExecutionStep { stream: id, position, call });
        }
        let is_callback = matches!(work, StreamWork::Callback(_));
        if is_callback {
            state.token = None;
            self.changed.notify_all();
        }
        drop(state);
        CURRENT_WORK.set(Some(CurrentWork {
            core: std::ptr::from_ref(self).addr(),
            stream: id,
            is_callback,
        }));
        let error = run_work(call, work, &device, before);
        CURRENT_WORK.set(None);
        let mut state = self.lock_state();
        if !is_callback {
            state.token = None;
        }
        if let Some(stream) = state.streams.get_mut(&id) {
            stream.busy = false;
            stream.finished += 1;
            if stream.error.is_none() {
                stream.error = error;
            }
        }
        self.changed.notify_all();
        state
    }
}

/// Runs one item after work that ended with `before`; returns the stream's error afterwards. Work after a failure would compute
/// on garbage, so it is skipped; recordings and callbacks pass the failure on.
fn run_work(call: &str, work: StreamWork, device: &SimDevice, before: Option<SimError>) -> Option<SimError> {
    match work {
        StreamWork::Record(ticket) => {
            // A recording is written by the one item created for it, so the outcome is still unset.
            let _ = ticket.outcome.set(RecordingOutcome { time: device.now(), error: before.clone() });
            before
        }
        StreamWork::Wait(ticket) => {
            before.or_else(|| ticket.outcome.get().and_then(|outcome| outcome.error.clone()))
        }
        StreamWork::Task(_) if before.is_some() => before,
        StreamWork::Task(task) => {
            catch_panic(call, || device.check_alive().and_then(|()| task(device))).err()
        }
        StreamWork::Callback(callback) => {
            let status = before.clone().map_or(Ok(()), Err);
            catch_panic(call, || run_callback(callback, status)).err().or(before)
        }
    }
}

fn run_callback(callback: HostCallback, status: Result<(), SimError>) -> Result<(), SimError> {
    callback(status);
    Ok(())
}

/// Converts a panic into an error, so that the stream's thread survives.
fn catch_panic(call: &str, work: impl FnOnce() -> Result<(), SimError>) -> Result<(), SimError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let reason = panic_message(panic.as_ref());
        Err(SimError::new(FaultKind::Internal, format!("the work of `{call}` panicked: {reason}")))
    })
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given")
}
