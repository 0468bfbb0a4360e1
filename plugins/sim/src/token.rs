//! The token: the one right to take work from a stream, and the life of the threads that take it.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::device::SimDevice;
use crate::error::{SimError, SimErrorKind};
use crate::stream::{Callback, Item, Mode, Next, Outcome, State, Step, Stream, StreamId, Work};

/// How long nothing must happen before a stream goes on by itself to a callback that it owes.
const PATIENCE: Duration = Duration::from_millis(100);

/// What the threads of an engine share.
pub(crate) struct Core {
    pub(crate) state: Mutex<State>,
    pub(crate) changed: Condvar,
}

/// What this thread is in the middle of, if it is the thread of a stream.
#[derive(Clone, Copy)]
struct Inside {
    /// Tells the engines of a process apart.
    core: usize,
    stream: StreamId,
    is_callback: bool,
}

thread_local! {
    static INSIDE: Cell<Option<Inside>> = const { Cell::new(None) };
}

pub(crate) fn shut_down() -> SimError {
    SimError::new(SimErrorKind::Unavailable, "the simulated device was shut down")
}

impl Core {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing under this lock panics half-way through a change; what can panic runs outside it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn open(&self) -> Result<MutexGuard<'_, State>, SimError> {
        let state = self.lock();
        if state.closed { Err(shut_down()) } else { Ok(state) }
    }

    pub(crate) fn pause<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn inside(&self) -> Option<Inside> {
        INSIDE.get().filter(|inside| inside.core == std::ptr::from_ref(self).addr())
    }

    pub(crate) fn callback_of_this_thread(&self) -> Option<StreamId> {
        self.inside().filter(|inside| inside.is_callback).map(|inside| inside.stream)
    }

    /// A kernel holds the token, so a call that hands it out would never return.
    pub(crate) fn refuse_kernels(&self) -> Result<(), SimError> {
        match self.inside() {
            Some(inside) if !inside.is_callback => {
                Err(SimError::invalid("a kernel may not enqueue work, ask after it or wait for it"))
            }
            _ => Ok(()),
        }
    }

    /// What happens to waiting work when more was enqueued.
    pub(crate) fn settle(&self, mut state: MutexGuard<'_, State>) {
        while !state.closed {
            if state.token.is_some() {
                state = self.pause(state);
                continue;
            }
            let go_on = match state.mode {
                Mode::Eager => true,
                Mode::Lazy => false,
                Mode::Random => state.random.coin(),
            };
            match go_on.then(|| state.any_runnable()).flatten() {
                Some(stream) => state = self.run_one(state, stream, false),
                None => return,
            }
        }
    }

    /// Hands the token, which must be free, to a stream that can run, and waits until it has run one item. The end of
    /// a callback is only waited for when `callbacks_too` says so.
    pub(crate) fn run_one<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        id: StreamId,
        callbacks_too: bool,
    ) -> MutexGuard<'a, State> {
        let Some(target) = state.streams.get(&id).map(|stream| stream.finished + 1) else { return state };
        state.token = Some(id);
        self.changed.notify_all();
        loop {
            let unfinished = state.streams.get(&id).is_some_and(|stream| stream.finished < target);
            let handed_back = state.token != Some(id);
            if state.closed || !unfinished || (handed_back && !callbacks_too) {
                return state;
            }
            state = self.pause(state);
        }
    }

    /// The life of a stream's thread.
    pub(crate) fn serve(&self, id: StreamId) {
        let mut state = self.lock();
        while !state.closed && state.streams.contains_key(&id) {
            if state.token == Some(id) {
                state = self.serve_one(state, id);
            } else if state.streams.get(&id).is_some_and(Stream::owes_a_callback) {
                state = self.pause_with_patience(state, id);
            } else {
                state = self.pause(state);
            }
        }
    }

    /// Waits for a change, and takes the token towards a callback that the stream owes when there is none for long.
    fn pause_with_patience<'a>(&self, state: MutexGuard<'a, State>, id: StreamId) -> MutexGuard<'a, State> {
        let (mut state, wait) =
            self.changed.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner);
        if wait.timed_out()
            && state.token.is_none()
            && let Next::Run(next) = state.needed(id)
        {
            state.token = Some(next);
            self.changed.notify_all();
        }
        state
    }

    fn serve_one<'a>(&'a self, mut state: MutexGuard<'a, State>, id: StreamId) -> MutexGuard<'a, State> {
        let Some(stream) = state.streams.get_mut(&id) else { return state };
        let Some(Item { call, work }) = stream.queue.pop_front() else {
            state.token = None;
            self.changed.notify_all();
            return state;
        };
        stream.busy = true;
        let (position, device, before) = (stream.finished, Arc::clone(&stream.device), stream.error.clone());
        if let Some(log) = &mut state.log {
            log.push(Step { stream: id, position, call });
        }
        let is_callback = matches!(work, Work::Callback(_));
        if is_callback {
            state.token = None;
            self.changed.notify_all();
        }
        drop(state);
        INSIDE.set(Some(Inside { core: std::ptr::from_ref(self).addr(), stream: id, is_callback }));
        let error = run(call, work, &device, before);
        INSIDE.set(None);
        let mut state = self.lock();
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

/// Runs one item after work that ended with `before`; what is wrong with the stream now. Work behind a failure would
/// only compute on rubbish, so it is skipped; recordings and callbacks carry the failure on.
fn run(call: &str, work: Work, device: &SimDevice, before: Option<SimError>) -> Option<SimError> {
    match work {
        Work::Record(ticket) => {
            // A ticket is recorded by the one item made for it, so the outcome is still unset.
            let _ = ticket.outcome.set(Outcome { time: device.now(), error: before.clone() });
            before
        }
        Work::Wait(ticket) => {
            before.or_else(|| ticket.outcome.get().and_then(|outcome| outcome.error.clone()))
        }
        Work::Task(_) if before.is_some() => before,
        Work::Task(task) => guarded(call, || device.alive().and_then(|()| task(device))).err(),
        Work::Callback(callback) => {
            let status = before.clone().map_or(Ok(()), Err);
            guarded(call, || run_callback(callback, status)).err().or(before)
        }
    }
}

fn run_callback(callback: Callback, status: Result<(), SimError>) -> Result<(), SimError> {
    callback(status);
    Ok(())
}

/// Turns a panic into an error: a stream's thread must outlive what runs on it.
fn guarded(call: &str, work: impl FnOnce() -> Result<(), SimError>) -> Result<(), SimError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let reason = reason(panic.as_ref());
        Err(SimError::new(SimErrorKind::Internal, format!("the work of `{call}` panicked: {reason}")))
    })
}

fn reason(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given")
}
