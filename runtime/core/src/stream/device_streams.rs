//! The streams of one device, and whether the device is lost.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};

use oarlock_host::{PluginDevice, PluginFailure};

use crate::stream::{Stream, StreamId, StreamTimeline, is_same_failure};
use crate::{Error, Result};

/// The progress of a stream. It outlives the stream, so that a later stream with the same number continues the count.
#[derive(Debug, Default)]
pub(super) struct StreamProgress {
    /// The number of launches so far.
    pub(super) position: AtomicU64,
    /// The launch up to which all work is known to be complete.
    pub(super) passed: AtomicU64,
}

impl StreamProgress {
    pub(super) fn advance_to(&self, passed: u64) {
        self.passed.fetch_max(passed, Ordering::Release);
    }
}

/// The slot of one stream number.
#[derive(Debug, Default)]
struct StreamSlot {
    progress: Arc<StreamProgress>,
    stream: Weak<StreamTimeline>,
}

/// State that the streams of a device share.
#[derive(Debug)]
pub(super) struct StreamsState {
    pub(super) device: PluginDevice,
    lost: OnceLock<PluginFailure>,
    /// True if an event is recorded after each launch.
    pub(super) has_events: bool,
    /// Indexed by stream number; 0 is the device's own queue.
    slots: RwLock<Vec<StreamSlot>>,
    /// A failure of a stream that was dropped before the failure was reported.
    orphaned: Mutex<Option<Error>>,
}

impl StreamsState {
    /// Turns a failure into an error of this device, and remembers whether the device is lost.
    #[cold]
    pub(super) fn device_error(&self, failure: PluginFailure) -> Error {
        if failure.is_device_lost() {
            // Keeps only the first failure.
            _ = self.lost.set(failure.clone());
        }
        Error::from(failure).with_device(&self.device)
    }

    /// Fails if the device is known to be lost.
    pub(super) fn check_device(&self) -> Result<()> {
        match self.lost.get() {
            None => Ok(()),
            Some(failure) => Err(self.device_error(failure.clone())),
        }
    }

    pub(super) fn keep_orphaned_error(&self, error: Error) {
        self.orphaned.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Finds the op that caused a failure in another stream, given that a wait passed the failure on to stream `reached`.
    pub(super) fn failure_origin(&self, reached: StreamId, failure: &PluginFailure) -> Option<String> {
        let began = |error: &Option<Error>| {
            let error = error.as_ref()?;
            error
                .plugin_failure()
                .filter(|began| is_same_failure(began, failure))
                .and(error.op())
                .map(str::to_owned)
        };
        let others = self.live_streams().into_iter().filter(|other| other.id != reached);
        let found = others.into_iter().find_map(|other| {
            other.poll_progress();
            began(&other.untold.lock().unwrap_or_else(PoisonError::into_inner))
        });
        found.or_else(|| began(&self.orphaned.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    fn live_streams(&self) -> Vec<Arc<StreamTimeline>> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.iter().filter_map(|slot| slot.stream.upgrade()).collect()
    }
}

/// The streams of one device, including its own queue.
#[derive(Debug)]
pub struct DeviceStreams {
    shared: Arc<StreamsState>,
    own: Stream,
}

impl DeviceStreams {
    /// At first there is only the device's own queue. `has_events` is
    /// [`PoolOptions::attribute_errors`](crate::memory::PoolOptions::attribute_errors).
    pub(crate) fn new(device: PluginDevice, has_events: bool) -> Self {
        let shared = Arc::new(StreamsState {
            device,
            lost: OnceLock::new(),
            has_events,
            slots: RwLock::new(vec![StreamSlot::default()]),
            orphaned: Mutex::new(None),
        });
        let own =
            Stream::from_timeline(StreamTimeline::new(&shared, StreamId::IMMEDIATE, Arc::default(), None));
        Self { shared, own }
    }

    /// The device that all these streams belong to.
    pub fn device(&self) -> &PluginDevice {
        &self.shared.device
    }

    /// True if a stream belongs to this device.
    #[inline]
    pub fn contains_stream(&self, stream: &Stream) -> bool {
        Arc::ptr_eq(&self.shared, &stream.0.shared)
    }

    /// The device's own queue, in which all work is done before a call returns.
    pub fn immediate_stream(&self) -> &Stream {
        &self.own
    }

    /// Creates a stream. Streams with a smaller priority number are served first, if the device supports that.
    pub fn create_stream(&self, priority: i32) -> Result<Stream> {
        self.check_device()?;
        let queue = self
            .shared
            .device
            .create_stream(priority)
            .map_err(|failure| self.shared.device_error(failure))?;
        let mut slots = self.shared.slots.write().unwrap_or_else(PoisonError::into_inner);
        // A number is free if only its slot still refers to the progress: then the previous stream with this number is gone.
        let free = slots.iter().skip(1).position(|slot| Arc::strong_count(&slot.progress) == 1);
        let number = free.map_or(slots.len(), |index| index + 1);
        if number == slots.len() {
            slots.push(StreamSlot::default());
        }
        let progress = slots[number].progress.clone();
        let timeline = StreamTimeline::new(&self.shared, StreamId(number as u32), progress, Some(queue));
        slots[number].stream = Arc::downgrade(&timeline);
        Ok(Stream::from_timeline(timeline))
    }

    /// Fails if the device is known to be lost.
    #[inline]
    pub fn check_device(&self) -> Result<()> {
        self.shared.check_device()
    }

    /// Waits for all work on the device. Returns the first failure of any stream.
    pub fn synchronize(&self) -> Result<()> {
        self.check_device()?;
        let mut first = Ok(());
        for stream in self.shared.live_streams() {
            first = first.and(stream.synchronize());
        }
        first = first.and(self.shared.device.synchronize().map_err(|failure| self.device_error(failure)));
        let orphaned = self.shared.orphaned.lock().unwrap_or_else(PoisonError::into_inner).take();
        first.and(orphaned.map_or(Ok(()), Err))
    }

    /// Waits for all work on the device. Failures are kept for the next wait for each stream.
    pub(crate) fn drain_silently(&self) {
        for stream in self.shared.live_streams() {
            stream.drain_silently();
        }
    }

    /// The number of launches of each stream, indexed by stream number.
    pub(crate) fn launch_positions(&self) -> Vec<u64> {
        self.read_progress(|progress| &progress.position)
    }

    /// Polls all streams. Returns the launch up to which each is complete, indexed by stream number.
    pub(crate) fn passed_positions(&self) -> Vec<u64> {
        for stream in self.shared.live_streams() {
            stream.poll_progress();
        }
        self.read_progress(|progress| &progress.passed)
    }

    fn read_progress(&self, which: impl Fn(&StreamProgress) -> &AtomicU64) -> Vec<u64> {
        let slots = self.shared.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.iter().map(|slot| which(&slot.progress).load(Ordering::Acquire)).collect()
    }

    /// The streams whose bits are set in `users` (see [`StreamId::bit`]), with their launch counts.
    pub(crate) fn streams_in_set(&self, users: u64) -> impl Iterator<Item = (u32, u64)> {
        let all = self.launch_positions().into_iter().enumerate().map(|(id, position)| (id as u32, position));
        all.filter(move |(id, _)| StreamId(*id).bit() & users != 0)
    }

    /// The stream with this number, if it still exists; the device's own queue for 0.
    pub(crate) fn find_stream(&self, id: StreamId) -> Option<Stream> {
        if id == StreamId::IMMEDIATE {
            return Some(self.own.clone());
        }
        let slots = self.shared.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.get(id.0 as usize)?.stream.upgrade().map(Stream::from_timeline)
    }

    /// Turns a failure into an error of this device, and remembers whether the device is lost.
    pub(crate) fn device_error(&self, failure: PluginFailure) -> Error {
        self.shared.device_error(failure)
    }
}
