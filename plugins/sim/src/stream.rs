//! What waits on streams, and which of it may or must run next. No threads and no locks here, only the choice.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use crate::device::SimDevice;
use crate::error::SimError;
use crate::random::SplitMix64;

/// When enqueued work runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As soon as it is enqueued.
    Eager,
    /// Only when somebody waits for it or asks after it, and then no more than is needed.
    Lazy,
    /// Whenever the seed says so, in any order that is allowed.
    Random,
}

impl Mode {
    /// Every mode with the word that a script uses for it.
    pub const WORDS: [(&'static str, Mode); 3] =
        [("eager", Mode::Eager), ("lazy", Mode::Lazy), ("random", Mode::Random)];
}

/// Names a stream of one engine. Never used again after the stream is destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// Names an event of one engine. Never used again after the event is destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub u64);

/// One entry of the log of what ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The stream it ran on.
    pub stream: StreamId,
    /// How many operations of that stream ran before it.
    pub position: u64,
    /// The name of the call that enqueued it.
    pub call: &'static str,
}

/// Work for a device, run on the thread of its stream.
pub type Task = Box<dyn FnOnce(&SimDevice) -> Result<(), SimError> + Send>;
/// A host callback; it gets the error of the work before it on its stream.
pub type Callback = Box<dyn FnOnce(Result<(), SimError>) + Send>;

pub(crate) enum Work {
    Task(Task),
    Callback(Callback),
    Record(Arc<Ticket>),
    Wait(Arc<Ticket>),
}

pub(crate) struct Item {
    pub(crate) call: &'static str,
    pub(crate) work: Work,
}

/// One recording of an event. Waits hold on to the recording that was the latest when they were enqueued.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) stream: StreamId,
    pub(crate) outcome: OnceLock<Outcome>,
}

/// How the work before a recording went.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) time: u64,
    pub(crate) error: Option<SimError>,
}

pub(crate) struct Stream {
    pub(crate) device: Arc<SimDevice>,
    pub(crate) queue: VecDeque<Item>,
    /// Whether an item was taken from the queue and did not finish yet.
    pub(crate) busy: bool,
    /// Whether the stream is being destroyed and takes no more work.
    pub(crate) ending: bool,
    pub(crate) enqueued: u64,
    pub(crate) finished: u64,
    /// The first failure that nobody was told of yet.
    pub(crate) error: Option<SimError>,
    /// The stream that a callback of this one waits for at this moment.
    pub(crate) waits_for: Option<StreamId>,
    pub(crate) worker: Option<JoinHandle<()>>,
}

impl Stream {
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

    /// Whether a callback waits anywhere in the queue.
    pub(crate) fn owes_a_callback(&self) -> bool {
        self.queue.iter().any(|item| matches!(item.work, Work::Callback(_)))
    }

    fn is_at_callback(&self) -> bool {
        self.queue.front().is_some_and(|item| matches!(item.work, Work::Callback(_)))
    }

    fn is_runnable(&self) -> bool {
        !self.busy
            && self.queue.front().is_some_and(|item| match &item.work {
                Work::Wait(ticket) => ticket.outcome.get().is_some(),
                _ => true,
            })
    }
}

/// What somebody waits for.
#[derive(Clone, Debug)]
pub(crate) enum Goal {
    /// The first so many items of a stream.
    Items(StreamId, u64),
    /// A recording of an event.
    Recording(Arc<Ticket>),
}

impl Goal {
    pub(crate) fn stream(&self) -> StreamId {
        match self {
            Goal::Items(stream, _) => *stream,
            Goal::Recording(ticket) => ticket.stream,
        }
    }
}

/// What holds a goal back.
pub(crate) enum Next {
    /// This stream can and should run its next item.
    Run(StreamId),
    /// A callback that runs on this stream must return first.
    Callback(StreamId),
}

pub(crate) struct State {
    pub(crate) mode: Mode,
    pub(crate) random: SplitMix64,
    pub(crate) streams: BTreeMap<StreamId, Stream>,
    /// The events, with their latest recording.
    pub(crate) events: BTreeMap<EventId, (Arc<SimDevice>, Option<Arc<Ticket>>)>,
    /// The stream that may take an item now.
    pub(crate) token: Option<StreamId>,
    pub(crate) log: Option<Vec<Step>>,
    pub(crate) next_id: u64,
    pub(crate) closed: bool,
}

impl State {
    pub(crate) fn is_reached(&self, goal: &Goal) -> bool {
        match goal {
            Goal::Items(id, count) => self.streams.get(id).is_none_or(|stream| stream.finished >= *count),
            Goal::Recording(ticket) => ticket.outcome.get().is_some(),
        }
    }

    /// Which stream runs next on the way to a goal that is not reached.
    pub(crate) fn next_towards(&mut self, goal: &Goal) -> Next {
        if self.mode == Mode::Random
            && self.random.coin()
            && let Some(stream) = self.any_runnable()
        {
            return Next::Run(stream);
        }
        self.needed(goal.stream())
    }

    /// Any stream that can run: the first, or the one that the seed picks.
    ///
    /// The seed never picks a callback. One that nobody needs yet may want a lock that the caller holds, and its end,
    /// which nobody waits for, would make the schedule depend on real time.
    pub(crate) fn any_runnable(&mut self) -> Option<StreamId> {
        let callbacks_too = self.mode != Mode::Random;
        let can_run = |stream: &Stream| stream.is_runnable() && (callbacks_too || !stream.is_at_callback());
        let runnable: Vec<StreamId> =
            self.streams.iter().filter(|(_, stream)| can_run(stream)).map(|(&id, _)| id).collect();
        let index = if self.mode == Mode::Random { self.random.below(runnable.len()) } else { 0 };
        runnable.get(index).copied()
    }

    /// The one stream that must run for the head of `id` to get on.
    ///
    /// A wait only names a recording that was enqueued before it, and a recording only stands behind items enqueued
    /// before it, so each turn of the loop moves to older work: it ends, and no two streams can wait for each other.
    pub(crate) fn needed(&self, mut id: StreamId) -> Next {
        loop {
            let Some(stream) = self.streams.get(&id) else { return Next::Callback(id) };
            if stream.busy {
                return Next::Callback(id);
            }
            match stream.queue.front().map(|item| &item.work) {
                Some(Work::Wait(ticket)) if ticket.outcome.get().is_none() => id = ticket.stream,
                Some(_) => return Next::Run(id),
                None => return Next::Callback(id),
            }
        }
    }

    /// Whether `blocking`, whose callback must return first, itself waits for a callback of `own` to return.
    pub(crate) fn waits_in_a_circle(&self, mut blocking: StreamId, own: StreamId) -> bool {
        for _ in 0..=self.streams.len() {
            if blocking == own {
                return true;
            }
            let Some(goal) = self.streams.get(&blocking).and_then(|stream| stream.waits_for) else {
                return false;
            };
            let Next::Callback(next) = self.needed(goal) else { return false };
            blocking = next;
        }
        false
    }
}

/// The books: who owns what, and what was put where.
impl State {
    pub(crate) fn take_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    pub(crate) fn stream(&mut self, device: u32, id: StreamId) -> Result<&mut Stream, SimError> {
        let stream = self.streams.get_mut(&id).ok_or_else(|| no_stream(id))?;
        match stream.device.id() {
            owner if owner == device => Ok(stream),
            owner => Err(SimError::invalid(format!(
                "stream {} belongs to device {owner}, not to device {device}",
                id.0
            ))),
        }
    }

    pub(crate) fn recording(&self, device: u32, id: EventId) -> Result<Option<Arc<Ticket>>, SimError> {
        let missing = || SimError::not_found(format!("there is no event {}", id.0));
        let (owner, latest) = self.events.get(&id).ok_or_else(missing)?;
        match owner.id() {
            owner if owner == device => Ok(latest.clone()),
            owner => Err(SimError::invalid(format!(
                "event {} belongs to device {owner}, not to device {device}",
                id.0
            ))),
        }
    }

    pub(crate) fn push(&mut self, device: u32, id: StreamId, item: Item) -> Result<(), SimError> {
        let stream = self.stream(device, id)?;
        if stream.ending {
            return Err(SimError::invalid(format!(
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

pub(crate) fn no_stream(id: StreamId) -> SimError {
    SimError::not_found(format!("there is no stream {}", id.0))
}
