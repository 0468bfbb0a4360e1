//! All streams of one device, and whether the device is still there.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};

use oarlock_host::{Device, Failure};

use crate::stream::{Stream, StreamId, Timeline, is_same};
use crate::{Error, Result};

/// How far a stream is. It outlives the stream, so that a later one with the same number goes on counting.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// How many launches were put into the stream.
    pub(super) position: AtomicU64,
    /// Up to which of them everything has happened, as far as anybody knows.
    pub(super) passed: AtomicU64,
}

impl Progress {
    pub(super) fn advance(&self, passed: u64) {
        self.passed.fetch_max(passed, Ordering::Release);
    }
}

/// One number of a stream.
#[derive(Debug, Default)]
struct Slot {
    progress: Arc<Progress>,
    stream: Weak<Timeline>,
}

/// What the streams of a device share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) device: Device,
    lost: OnceLock<Failure>,
    /// Whether an event is put behind every launch.
    pub(super) has_events: bool,
    /// By number; number 0 is the device's own queue.
    slots: RwLock<Vec<Slot>>,
    /// What went wrong in streams that nobody holds any more.
    orphaned: Mutex<Option<Error>>,
}

impl Shared {
    /// Turns a failure into an error of this device, and remembers when the device is gone.
    #[cold]
    pub(super) fn error(&self, failure: Failure) -> Error {
        if failure.is_device_lost() {
            // Only the first loss is told.
            _ = self.lost.set(failure.clone());
        }
        Error::from(failure).on_device(&self.device)
    }

    /// Fails when the device is known to be gone.
    pub(super) fn check(&self) -> Result<()> {
        match self.lost.get() {
            None => Ok(()),
            Some(failure) => Err(self.error(failure.clone())),
        }
    }

    pub(super) fn orphan(&self, error: Error) {
        self.orphaned.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// The op with which a failure began that has reached a stream from another one.
    pub(super) fn origin(&self, reached: StreamId, failure: &Failure) -> Option<String> {
        let began = |error: &Option<Error>| {
            let error = error.as_ref()?;
            error.failure().filter(|began| is_same(began, failure)).and(error.op()).map(str::to_owned)
        };
        let others = self.live().into_iter().filter(|other| other.id != reached);
        let found = others.into_iter().find_map(|other| {
            other.look();
            began(&other.untold.lock().unwrap_or_else(PoisonError::into_inner))
        });
        found.or_else(|| began(&self.orphaned.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    fn live(&self) -> Vec<Arc<Timeline>> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.iter().filter_map(|slot| slot.stream.upgrade()).collect()
    }
}

/// The streams of one device.
#[derive(Debug)]
pub struct Streams {
    shared: Arc<Shared>,
    own: Stream,
}

impl Streams {
    /// The streams of a device, which are only its own queue at first. Whether an event is put behind every asynchronous
    /// launch decides how well a failure can name the op that caused it.
    pub(crate) fn new(device: Device, has_events: bool) -> Self {
        let shared = Arc::new(Shared {
            device,
            lost: OnceLock::new(),
            has_events,
            slots: RwLock::new(vec![Slot::default()]),
            orphaned: Mutex::new(None),
        });
        let own = Stream::of(Timeline::new(&shared, StreamId::OWN, Arc::default(), None));
        Self { shared, own }
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.shared.device
    }

    /// Whether a stream is one of these.
    #[inline]
    pub fn has(&self, stream: &Stream) -> bool {
        Arc::ptr_eq(&self.shared, &stream.0.shared)
    }

    /// The device's own queue, in which everything is done before a call returns.
    pub fn own(&self) -> &Stream {
        &self.own
    }

    /// Makes a stream. A smaller priority number is served earlier, where the device can.
    pub fn create(&self, priority: i32) -> Result<Stream> {
        self.check()?;
        let queue =
            self.shared.device.create_stream(priority).map_err(|failure| self.shared.error(failure))?;
        let mut slots = self.shared.slots.write().unwrap_or_else(PoisonError::into_inner);
        // A number is free once nothing holds its progress but the slot: the stream before it has come to its end.
        let free = slots.iter().skip(1).position(|slot| Arc::strong_count(&slot.progress) == 1);
        let number = free.map_or(slots.len(), |index| index + 1);
        if number == slots.len() {
            slots.push(Slot::default());
        }
        let progress = slots[number].progress.clone();
        let timeline = Timeline::new(&self.shared, StreamId(number as u32), progress, Some(queue));
        slots[number].stream = Arc::downgrade(&timeline);
        Ok(Stream::of(timeline))
    }

    /// Fails when the device is known to be gone.
    #[inline]
    pub fn check(&self) -> Result<()> {
        self.shared.check()
    }

    /// Waits until all work on the device is done; the first failure of any of its streams.
    pub fn synchronize(&self) -> Result<()> {
        self.check()?;
        let mut first = Ok(());
        for stream in self.shared.live() {
            first = first.and(stream.synchronize());
        }
        first = first.and(self.shared.device.synchronize().map_err(|failure| self.error(failure)));
        let orphaned = self.shared.orphaned.lock().unwrap_or_else(PoisonError::into_inner).take();
        first.and(orphaned.map_or(Ok(()), Err))
    }

    /// Waits until all work on the device is done, and leaves failures to those who wait for the streams.
    pub(crate) fn drain(&self) {
        for stream in self.shared.live() {
            stream.drain();
        }
    }

    /// How many launches each stream has had, by number.
    pub(crate) fn positions(&self) -> Vec<u64> {
        self.progress(|progress| &progress.position)
    }

    /// Asks each stream how far it is: up to which launch everything has happened, by number.
    pub(crate) fn passed(&self) -> Vec<u64> {
        for stream in self.shared.live() {
            stream.look();
        }
        self.progress(|progress| &progress.passed)
    }

    fn progress(&self, which: impl Fn(&Progress) -> &AtomicU64) -> Vec<u64> {
        let slots = self.shared.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.iter().map(|slot| which(&slot.progress).load(Ordering::Acquire)).collect()
    }

    /// The streams among those whose bits are set in `users` (see [`StreamId::bit`]), with how many launches each has
    /// had.
    pub(crate) fn users(&self, users: u64) -> impl Iterator<Item = (u32, u64)> {
        let all = self.positions().into_iter().enumerate().map(|(id, position)| (id as u32, position));
        all.filter(move |(id, _)| StreamId(*id).bit() & users != 0)
    }

    /// The stream with this number, if anybody holds it; the device's own queue for 0.
    pub(crate) fn get(&self, id: StreamId) -> Option<Stream> {
        if id == StreamId::OWN {
            return Some(self.own.clone());
        }
        let slots = self.shared.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.get(id.0 as usize)?.stream.upgrade().map(Stream::of)
    }

    /// Turns a failure into an error of this device, and remembers when the device is gone.
    pub(crate) fn error(&self, failure: Failure) -> Error {
        self.shared.error(failure)
    }
}
