//! Work that waits on streams, and the choice of what may or must run next. No threads and no locks here.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use crate::device::SimDevice;
use crate::error::SimError;
use oarlock_fault_script::SplitMix64;

/// Decides when enqueued work runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulingMode {
    /// As soon as it is enqueued.
    Eager,
    /// Only when something waits for it or queries it, and then no more than needed.
    Lazy,
    /// Whenever the seed says so, in any legal order.
    Random,
}

impl SchedulingMode {
    /// Every mode with its word in scripts.
    pub const SCRIPT_WORDS: [(&'static str, SchedulingMode); 3] = [
        ("eager", SchedulingMode::Eager),
        ("lazy", SchedulingMode::Lazy),
        ("random", SchedulingMode::Random),
    ];
}

/// Identifies a stream of one engine. Never reused after the stream is destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// Identifies an event of one engine. Never reused after the event is destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub u64);

/// One entry of the execution log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutionStep {
    /// The stream it ran on.
    pub stream: StreamId,
    /// Number of operations of that stream that ran before it.
    pub position: u64,
    /// The name of the call that enqueued it.
    pub call: &'static str,
}

/// Work for a device, run on the thread of its stream.
pub type DeviceTask = Box<dyn FnOnce(&SimDevice) -> Result<(), SimError> + Send>;
/// A host callback; it gets the error of the work before it on its stream.
pub type HostCallback = Box<dyn FnOnce(Result<(), SimError>) + Send>;

pub(crate) enum StreamWork {
    Task(DeviceTask),
    Callback(HostCallback),
    Record(Arc<EventRecording>),
    Wait(Arc<EventRecording>),
}

pub(crate) struct QueuedWork {
    pub(crate) call: &'static str,
    pub(crate) work: StreamWork,
}

/// One recording of an event. A wait keeps the recording that was the latest when it was enqueued.
#[derive(Debug)]
pub(crate) struct EventRecording {
    pub(crate) stream: StreamId,
    pub(crate) outcome: OnceLock<RecordingOutcome>,
}

/// Result of the work before a recording.
#[derive(Debug)]
pub(crate) struct RecordingOutcome {
    pub(crate) time: u64,
    pub(crate) error: Option<SimError>,
}

pub(crate) struct SimStream {
    pub(crate) device: Arc<SimDevice>,
    pub(crate) queue: VecDeque<QueuedWork>,
    /// True from when an item leaves the queue until it finishes.
    pub(crate) busy: bool,
    /// True while the stream is being destroyed and takes no more work.
    pub(crate) ending: bool,
    pub(crate) enqueued: u64,
    pub(crate) finished: u64,
    /// The first failure that was not reported yet.
    pub(crate) error: Option<SimError>,
    /// The stream that a callback of this one is waiting for.
    pub(crate) waits_for: Option<StreamId>,
    pub(crate) worker: Option<JoinHandle<()>>,
}

impl SimStream {
    pub(crate) fn new(device: Arc<SimDevice>) -> Self {
        Self {
            device,
            queue: VecDeque::new(),
            busy: false,
            ending: false,
            enqueued: 0,
            finished: 0,
            error: None,
            waits_for: None,
            worker: None,
        }
    }

    /// True if a callback is anywhere in the queue.
    pub(crate) fn has_queued_callback(&self) -> bool {
        self.queue.iter().any(|item| matches!(item.work, StreamWork::Callback(_)))
    }

    fn is_at_callback(&self) -> bool {
        self.queue.front().is_some_and(|item| matches!(item.work, StreamWork::Callback(_)))
    }

    fn is_runnable(&self) -> bool {
        !self.busy
            && self.queue.front().is_some_and(|item| match &item.work {
                StreamWork::Wait(ticket) => ticket.outcome.get().is_some(),
                _ => true,
            })
    }
}

/// What a call waits for.
#[derive(Clone, Debug)]
pub(crate) enum WaitGoal {
    /// The first items of a stream, by count.
    Items(StreamId, u64),
    /// A recording of an event.
    Recording(Arc<EventRecording>),
}

impl WaitGoal {
    pub(crate) fn awaited_stream(&self) -> StreamId {
        match self {
            WaitGoal::Items(stream, _) => *stream,
            WaitGoal::Recording(ticket) => ticket.stream,
        }
    }
}

/// The obstacle between the current state and a goal.
pub(crate) enum GoalBlocker {
    /// This stream can and should run its next item.
    Run(StreamId),
    /// A callback running on this stream must return first.
    Callback(StreamId),
}

pub(crate) struct SchedulerState {
    pub(crate) mode: SchedulingMode,
    pub(crate) random: SplitMix64,
    pub(crate) streams: BTreeMap<StreamId, SimStream>,
    /// Events with their latest recording.
    pub(crate) events: BTreeMap<EventId, (Arc<SimDevice>, Option<Arc<EventRecording>>)>,
    /// The stream that may take an item now.
    pub(crate) token: Option<StreamId>,
    pub(crate) log: Option<Vec<ExecutionStep>>,
    pub(crate) next_id: u64,
    pub(crate) closed: bool,
}

impl SchedulerState {
    pub(crate) fn is_reached(&self, goal: &WaitGoal) -> bool {
        match goal {
            WaitGoal::Items(id, count) => self.streams.get(id).is_none_or(|stream| stream.finished >= *count),
            WaitGoal::Recording(ticket) => ticket.outcome.get().is_some(),
        }
    }

    /// The stream that must run next to reach the goal.
    pub(crate) fn next_blocker(&mut self, goal: &WaitGoal) -> GoalBlocker {
        if self.mode == SchedulingMode::Random
            && self.random.flip_coin()
            && let Some(stream) = self.pick_runnable()
        {
            return GoalBlocker::Run(stream);
        }
        self.find_blocker(goal.awaited_stream())
    }

    /// Any stream that can run: the first, or the one that the seed picks.
    ///
    /// The seed never picks a callback. One that nothing needs yet may want a lock that the caller holds, and its end, which
    /// nothing waits for, would make the schedule depend on real time.
    pub(crate) fn pick_runnable(&mut self) -> Option<StreamId> {
        let callbacks_too = self.mode != SchedulingMode::Random;
        let can_run =
            |stream: &SimStream| stream.is_runnable() && (callbacks_too || !stream.is_at_callback());
        let runnable: Vec<StreamId> =
            self.streams.iter().filter(|(_, stream)| can_run(stream)).map(|(&id, _)| id).collect();
        let index =
            if self.mode == SchedulingMode::Random { self.random.next_below(runnable.len()) } else { 0 };
        runnable.get(index).copied()
    }

    /// The one stream that must run before the head of `id` can proceed.
    ///
    /// A wait names only a recording that was enqueued before it, and a recording only stands behind items enqueued before it, so
    /// each iteration moves to older work: the loop terminates, and no two streams can wait for each other.
    pub(crate) fn find_blocker(&self, mut id: StreamId) -> GoalBlocker {
        loop {
            let Some(stream) = self.streams.get(&id) else { return GoalBlocker::Callback(id) };
            if stream.busy {
                return GoalBlocker::Callback(id);
            }
            match stream.queue.front().map(|item| &item.work) {
                Some(StreamWork::Wait(ticket)) if ticket.outcome.get().is_none() => id = ticket.stream,
                Some(_) => return GoalBlocker::Run(id),
                None => return GoalBlocker::Callback(id),
            }
        }
    }

    /// True if `blocking`, whose callback must return first, itself waits for a callback of `own` to return.
    pub(crate) fn waits_in_cycle(&self, mut blocking: StreamId, own: StreamId) -> bool {
        for _ in 0..=self.streams.len() {
            if blocking == own {
                return true;
            }
            let Some(goal) = self.streams.get(&blocking).and_then(|stream| stream.waits_for) else {
                return false;
            };
            let GoalBlocker::Callback(next) = self.find_blocker(goal) else { return false };
            blocking = next;
        }
        false
    }
}

/// Ownership and queue bookkeeping.
impl SchedulerState {
    pub(crate) fn next_unused_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    pub(crate) fn find_stream(&mut self, device: u32, id: StreamId) -> Result<&mut SimStream, SimError> {
        let stream = self.streams.get_mut(&id).ok_or_else(|| unknown_stream_error(id))?;
        match stream.device.device_id() {
            owner if owner == device => Ok(stream),
            owner => Err(SimError::invalid_argument(format!(
                "stream {} belongs to device {owner}, not to device {device}",
                id.0
            ))),
        }
    }

    pub(crate) fn latest_recording(
        &self,
        device: u32,
        id: EventId,
    ) -> Result<Option<Arc<EventRecording>>, SimError> {
        let missing = || SimError::not_found(format!("there is no event {}", id.0));
        let (owner, latest) = self.events.get(&id).ok_or_else(missing)?;
        match owner.device_id() {
            owner if owner == device => Ok(latest.clone()),
            owner => Err(SimError::invalid_argument(format!(
                "event {} belongs to device {owner}, not to device {device}",
                id.0
            ))),
        }
    }

    pub(crate) fn push_work(&mut self, device: u32, id: StreamId, item: QueuedWork) -> Result<(), SimError> {
        let stream = self.find_stream(device, id)?;
        if stream.ending {
            return Err(SimError::invalid_argument(format!(
                "stream {} is being destroyed and takes no more work",
                id.0
            )));
        }
        stream.queue.push_back(item);
        stream.enqueued += 1;
        Ok(())
    }

    pub(crate) fn set_waits_for(&mut self, own: Option<StreamId>, goal: Option<StreamId>) {
        if let Some(stream) = own.and_then(|own| self.streams.get_mut(&own)) {
            stream.waits_for = goal;
        }
    }
}

pub(crate) fn unknown_stream_error(id: StreamId) -> SimError {
    SimError::not_found(format!("there is no stream {}", id.0))
}
