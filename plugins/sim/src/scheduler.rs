//! Streams as threads that share one token.
//!
//! Every stream has its own thread, so work really runs on another thread than the program that enqueued it. A thread takes work
//! only when it is handed the token, and the token is handed out only inside a call: on enqueueing, querying or waiting. What
//! runs when is thus a function of the calls and the seed, and a failing schedule can be reproduced. Between calls nothing runs,
//! which makes this the slowest device that a program may legally meet.
//!
//! Callbacks release the token while they run, so they may call the engine; kernels keep it, and may not. Only a call that needs
//! a callback waits for its end. A program may also wait for a callback without calling the engine at all: a stream with a
//! pending callback proceeds by itself when nothing else has happened for a while.

use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread;

use crate::device::SimDevice;
use crate::error::SimError;
use crate::scheduling_token::{SchedulerCore, shut_down_error};
use crate::stream::{
    EventId, EventRecording, ExecutionStep, GoalBlocker, QueuedWork, RecordingOutcome, SchedulerState,
    SchedulingMode, SimStream, StreamId, StreamWork, WaitGoal, unknown_stream_error,
};
use oarlock_fault_script::FaultKind;
use oarlock_fault_script::SplitMix64;

pub(crate) struct StreamScheduler {
    core: Arc<SchedulerCore>,
}

fn self_wait_error() -> SimError {
    SimError::invalid_argument("a callback waits for a stream that cannot go on before the callback returns")
}

impl StreamScheduler {
    pub(crate) fn new(mode: SchedulingMode, seed: u64, keep_log: bool) -> Self {
        let state = SchedulerState {
            mode,
            random: SplitMix64::new(seed),
            streams: Default::default(),
            events: Default::default(),
            token: None,
            log: keep_log.then(Vec::new),
            next_id: 1,
            closed: false,
        };
        Self { core: Arc::new(SchedulerCore { state: Mutex::new(state), changed: Condvar::new() }) }
    }

    pub(crate) fn create_stream(&self, device: Arc<SimDevice>) -> Result<StreamId, SimError> {
        let mut state = self.core.lock_open_state()?;
        let id = StreamId(state.next_unused_id());
        let core = Arc::clone(&self.core);
        let thread = thread::Builder::new().name(format!("sim stream {}", id.0));
        let worker = thread.spawn(move || core.run_stream_thread(id)).map_err(|error| {
            SimError::new(FaultKind::Unavailable, format!("cannot start a thread for a stream: {error}"))
        })?;
        let mut stream = SimStream::new(device);
        stream.worker = Some(worker);
        // The new thread looks up its stream under the lock held here, so it cannot look too early.
        state.streams.insert(id, stream);
        Ok(id)
    }

    /// Finishes all work of a stream and ends its thread. Returns an error that was not reported yet; the stream is gone all the
    /// same.
    pub(crate) fn destroy_stream(&self, device: u32, id: StreamId) -> Result<(), SimError> {
        let mut state = self.core.lock_open_state()?;
        let stream = state.find_stream(device, id)?;
        if stream.ending {
            return Err(unknown_stream_error(id));
        }
        stream.ending = true;
        let goal = WaitGoal::Items(id, stream.enqueued);
        drop(state);
        let reached = self.run_until(&goal);
        let mut state = self.core.lock_state();
        if let Err(error) = reached {
            if let Some(stream) = state.streams.get_mut(&id) {
                stream.ending = false;
            }
            return Err(error);
        }
        let Some(stream) = state.streams.remove(&id) else { return Err(unknown_stream_error(id)) };
        self.core.changed.notify_all();
        drop(state);
        if let Some(worker) = stream.worker {
            join_worker(worker);
        }
        stream.error.map_or(Ok(()), Err)
    }

    pub(crate) fn create_event(&self, device: Arc<SimDevice>) -> Result<EventId, SimError> {
        let mut state = self.core.lock_open_state()?;
        let id = EventId(state.next_unused_id());
        state.events.insert(id, (device, None));
        Ok(id)
    }

    /// Removes an event. Enqueued waits keep the recording that they wait for.
    pub(crate) fn destroy_event(&self, device: u32, id: EventId) -> Result<(), SimError> {
        let mut state = self.core.lock_open_state()?;
        state.latest_recording(device, id)?;
        state.events.remove(&id);
        Ok(())
    }

    pub(crate) fn enqueue_work(
        &self,
        device: u32,
        id: StreamId,
        call: &'static str,
        work: StreamWork,
    ) -> Result<(), SimError> {
        self.core.refuse_kernels()?;
        let mut state = self.core.lock_open_state()?;
        state.push_work(device, id, QueuedWork { call, work })?;
        // An idle stream must learn that it now owes a callback, even if nothing else happens.
        self.core.changed.notify_all();
        self.core.schedule_new_work(state);
        Ok(())
    }

    pub(crate) fn record_event(
        &self,
        device: u32,
        event: EventId,
        id: StreamId,
        call: &'static str,
    ) -> Result<(), SimError> {
        self.core.refuse_kernels()?;
        let mut state = self.core.lock_open_state()?;
        state.latest_recording(device, event)?;
        let ticket = Arc::new(EventRecording { stream: id, outcome: OnceLock::new() });
        state.push_work(device, id, QueuedWork { call, work: StreamWork::Record(Arc::clone(&ticket)) })?;
        if let Some((_, latest)) = state.events.get_mut(&event) {
            *latest = Some(ticket);
        }
        self.core.schedule_new_work(state);
        Ok(())
    }

    /// Blocks later work of the stream until the latest recording of the event is done. An event that was never recorded counts
    /// as done, as in CUDA.
    pub(crate) fn enqueue_wait(
        &self,
        device: u32,
        id: StreamId,
        event: EventId,
        call: &'static str,
    ) -> Result<(), SimError> {
        self.core.refuse_kernels()?;
        let mut state = self.core.lock_open_state()?;
        state.find_stream(device, id)?;
        if let Some(ticket) = state.latest_recording(device, event)? {
            state.push_work(device, id, QueuedWork { call, work: StreamWork::Wait(ticket) })?;
        }
        self.core.schedule_new_work(state);
        Ok(())
    }

    pub(crate) fn synchronize_stream(&self, device: u32, id: StreamId) -> Result<(), SimError> {
        let goal = self.goal_of_stream(device, id)?;
        self.run_until(&goal)?;
        self.take_error(id)
    }

    /// Waits for all work of the device, and returns the first error of its streams.
    pub(crate) fn synchronize_device(&self, device: u32) -> Result<(), SimError> {
        let state = self.core.lock_open_state()?;
        let here = state.streams.iter().filter(|(_, stream)| stream.device.device_id() == device);
        let goals: Vec<WaitGoal> = here.map(|(&id, stream)| WaitGoal::Items(id, stream.enqueued)).collect();
        drop(state);
        for goal in &goals {
            self.run_until(goal)?;
        }
        let mut first = Ok(());
        for goal in &goals {
            first = first.and(self.take_error(goal.awaited_stream()));
        }
        first
    }

    /// Waits for the latest recording of the event, and returns the error of the work before it, each time.
    pub(crate) fn synchronize_event(&self, device: u32, event: EventId) -> Result<(), SimError> {
        let ticket = self.core.lock_open_state()?.latest_recording(device, event)?;
        let Some(ticket) = ticket else { return Ok(()) };
        self.run_until(&WaitGoal::Recording(Arc::clone(&ticket)))?;
        recording_outcome(&ticket).map(|_| ())
    }

    /// True if all work of the stream is done. If not, some of it runs, so that a polling loop terminates.
    pub(crate) fn query_stream(&self, device: u32, id: StreamId) -> Result<bool, SimError> {
        let goal = self.goal_of_stream(device, id)?;
        let done = self.run_once_towards(&goal)?;
        if done { self.take_error(id).map(|()| true) } else { Ok(false) }
    }

    /// True if the latest recording of the event is done; makes progress like [`StreamScheduler::query_stream`].
    pub(crate) fn query_event(&self, device: u32, event: EventId) -> Result<bool, SimError> {
        let ticket = self.core.lock_open_state()?.latest_recording(device, event)?;
        let Some(ticket) = ticket else { return Ok(true) };
        let done = self.run_once_towards(&WaitGoal::Recording(Arc::clone(&ticket)))?;
        if done { recording_outcome(&ticket).map(|_| true) } else { Ok(false) }
    }

    /// Virtual time of the latest recording of the event, if there is one.
    pub(crate) fn event_time(&self, device: u32, event: EventId) -> Result<Option<u64>, SimError> {
        let ticket = self.core.lock_open_state()?.latest_recording(device, event)?;
        match ticket {
            Some(ticket) if ticket.outcome.get().is_some() => recording_outcome(&ticket).map(Some),
            _ => Ok(None),
        }
    }

    pub(crate) fn execution_log(&self) -> Vec<ExecutionStep> {
        self.core.lock_state().log.clone().unwrap_or_default()
    }

    /// Ends all threads. Work that did not run is dropped; a program that needed it would have waited.
    pub(crate) fn shut_down(&self) {
        let mut state = self.core.lock_state();
        state.closed = true;
        let streams = std::mem::take(&mut state.streams);
        state.events.clear();
        drop(state);
        self.core.changed.notify_all();
        for stream in streams.into_values() {
            if let Some(worker) = stream.worker {
                join_worker(worker);
            }
            // The rest of the queue is dropped here, outside the lock, because it may own handles of this engine.
        }
    }

    fn goal_of_stream(&self, device: u32, id: StreamId) -> Result<WaitGoal, SimError> {
        let mut state = self.core.lock_open_state()?;
        Ok(WaitGoal::Items(id, state.find_stream(device, id)?.enqueued))
    }

    fn take_error(&self, id: StreamId) -> Result<(), SimError> {
        let mut state = self.core.lock_state();
        state.streams.get_mut(&id).and_then(|stream| stream.error.take()).map_or(Ok(()), Err)
    }

    /// Hands out the token until the goal is reached.
    fn run_until(&self, goal: &WaitGoal) -> Result<(), SimError> {
        self.core.refuse_kernels()?;
        let own = self.core.callback_of_this_thread();
        let mut state = self.core.lock_open_state()?;
        state.set_waits_for(own, Some(goal.awaited_stream()));
        let result = loop {
            if state.is_reached(goal) {
                break Ok(());
            }
            if state.closed {
                break Err(shut_down_error());
            }
            if state.token.is_some() {
                state = self.core.wait_for_change(state);
                continue;
            }
            match state.next_blocker(goal) {
                GoalBlocker::Run(stream) => state = self.core.run_one(state, stream, true),
                GoalBlocker::Callback(blocking)
                    if own.is_some_and(|own| state.waits_in_cycle(blocking, own)) =>
                {
                    break Err(self_wait_error());
                }
                GoalBlocker::Callback(_) => state = self.core.wait_for_change(state),
            }
        };
        state.set_waits_for(own, None);
        result
    }

    /// True if the goal is reached; if not, runs one item on the way there.
    fn run_once_towards(&self, goal: &WaitGoal) -> Result<bool, SimError> {
        self.core.refuse_kernels()?;
        let mut state = self.core.lock_open_state()?;
        while state.token.is_some() && !state.closed {
            state = self.core.wait_for_change(state);
        }
        if state.is_reached(goal) {
            return Ok(true);
        }
        match state.next_blocker(goal) {
            GoalBlocker::Run(stream) => drop(self.core.run_one(state, stream, false)),
            GoalBlocker::Callback(blocking) => {
                let own = self.core.callback_of_this_thread();
                if own.is_some_and(|own| state.waits_in_cycle(blocking, own)) {
                    return Err(self_wait_error());
                }
            }
        }
        Ok(false)
    }
}

impl Drop for StreamScheduler {
    fn drop(&mut self) {
        self.shut_down();
    }
}

fn recording_outcome(ticket: &EventRecording) -> Result<u64, SimError> {
    match ticket.outcome.get() {
        Some(RecordingOutcome { error: Some(error), .. }) => Err(error.clone()),
        Some(outcome) => Ok(outcome.time),
        None => Err(shut_down_error()),
    }
}

fn join_worker(worker: thread::JoinHandle<()>) {
    // A callback may be shutting the engine down, and its thread cannot join itself.
    if worker.thread().id() != thread::current().id() {
        // Panics of work are caught where it runs, so joining cannot fail.
        let _ = worker.join();
    }
}
