//! State of a device in use: the driver's side of it, and tables of everything the host created on it. Dropping it frees
//! everything, including what the host forgot.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use oarlock_sdk::{Event, HostPointer, Memory, MemoryRange, PluginError, Result, Stream, ensure};

use super::blocks::BlockTable;
use super::fault_words::{FaultWord, FaultWords};
use super::handle_table::HandleTable;
use crate::gpu::{DeviceProperties, Gpu, GpuEvent as _, GpuQueue as _};
use crate::program_cache::ProgramCache;

/// One open device.
pub struct DeviceSession<G: Gpu> {
    gpu: G,
    pub(crate) programs: ProgramCache<G::Program>,
    pub(super) blocks: BlockTable<G::Block>,
    /// Pinned memory by address, with sizes.
    pinned: Mutex<HashMap<usize, (G::Pinned, u64)>>,
    own: Arc<G::Queue>,
    streams: HandleTable<G::Queue>,
    pub(super) words: FaultWords<G::Block>,
    pub(super) points: HandleTable<RecordedEvent<G>>,
}

impl<G: Gpu> DeviceSession<G> {
    pub(super) fn open_session(idle: &G::DetectedDevice) -> Result<Self> {
        let gpu = G::open_device(idle)?;
        let own = Arc::new(gpu.create_queue(Stream(0), 0)?);
        Ok(Self {
            gpu,
            programs: ProgramCache::default(),
            blocks: BlockTable::new(),
            pinned: Mutex::default(),
            own,
            streams: HandleTable::new("stream"),
            words: FaultWords::default(),
            points: HandleTable::new("event"),
        })
    }

    /// The driver's side of the device.
    pub fn driver_gpu(&self) -> &G {
        &self.gpu
    }

    pub(super) fn default_queue(&self) -> &G::Queue {
        &self.own
    }

    /// Looks up the queue of a stream handle.
    pub fn stream_queue(&self, stream: Stream) -> Result<Arc<G::Queue>> {
        if stream.0 == 0 { Ok(Arc::clone(&self.own)) } else { self.streams.get(stream.0) }
    }

    /// Looks up a block and checks that the range lies inside it.
    pub fn block_with_range(&self, range: MemoryRange) -> Result<G::Block> {
        self.blocks.block_with_range(range)
    }

    /// Looks up a block and checks that `begin..end` lies inside it.
    pub(crate) fn block_range(&self, block: Memory, begin: u64, end: u64) -> Result<G::Block> {
        self.blocks.block_range(block, begin, end)
    }

    pub(super) fn add_stream(&self, handle: u64, priority: i32) -> Result<Stream> {
        self.streams.insert_entry(handle, self.gpu.create_queue(Stream(handle), priority)?);
        Ok(Stream(handle))
    }

    /// Waits for a stream, then reports driver errors and kernel faults.
    pub(super) fn synchronize_stream(&self, stream: Stream) -> Result<()> {
        let (queue, seen) = (self.stream_queue(stream)?, self.fault_checkpoint(stream));
        queue.synchronize_queue()?;
        self.report_faults(seen.as_ref())
    }

    /// True if the stream is idle. An idle stream also reports the faults its kernels found.
    pub(super) fn is_stream_done(&self, stream: Stream) -> Result<bool> {
        let (queue, seen) = (self.stream_queue(stream)?, self.fault_checkpoint(stream));
        let is_done = queue.is_empty()?;
        if is_done {
            self.report_faults(seen.as_ref())?;
        }
        Ok(is_done)
    }

    /// Captures what to read once everything now on the stream is done.
    fn fault_checkpoint(&self, stream: Stream) -> Option<FaultCheckpoint<G>> {
        self.words.find_word(stream).map(|word| FaultCheckpoint { launched: word.launch_count(), word })
    }

    pub(super) fn report_faults(&self, seen: Option<&FaultCheckpoint<G>>) -> Result<()> {
        seen.map_or(Ok(()), |seen| self.check_faults(&seen.word, seen.launched))
    }

    pub(super) fn record_event(&self, stream: Stream, point: &RecordedEvent<G>) -> Result<()> {
        let (queue, seen) = (self.stream_queue(stream)?, self.fault_checkpoint(stream));
        point.record_on_queue(&queue, seen)
    }

    /// Destroys a stream after its work has drained.
    pub(super) fn destroy_stream(&self, stream: Stream) -> Result<()> {
        let drained = self.remove_stream(stream)?.drain_queue();
        let word = self.words.remove_word(stream);
        drained.and(word.map_or(Ok(()), |word| self.free_word(&word)))
    }

    fn remove_stream(&self, stream: Stream) -> Result<Arc<G::Queue>> {
        if stream.0 == 0 {
            return Err(PluginError::invalid_argument(
                "expected a stream that was made, found the device's own",
            ));
        }
        self.streams.remove_entry(stream.0)
    }

    pub(super) fn add_event(&self, handle: u64) -> Result<Event> {
        let (is_recorded, seen) = (AtomicBool::new(false), Mutex::new(None));
        let point = RecordedEvent { event: self.gpu.create_event()?, is_recorded, seen };
        self.points.insert_entry(handle, point);
        Ok(Event(handle))
    }

    pub(super) fn finish_queues(&self) -> Result<()> {
        self.all_queues().try_for_each(|queue| queue.finish_queue())
    }

    /// Waits for every stream before teardown; a lost device has nothing left to wait for.
    pub(super) fn drain_queues(&self) -> Result<()> {
        self.all_queues().try_for_each(|queue| queue.drain_queue())
    }

    fn all_queues(&self) -> impl Iterator<Item = Arc<G::Queue>> {
        self.streams.all_entries().into_iter().chain([Arc::clone(&self.own)])
    }

    pub(super) fn allocate_memory(&self, facts: &DeviceProperties, handle: u64, size: u64) -> Result<Memory> {
        ensure!(size > 0, invalid_argument, "expected a request for 1 byte or more, found 0");
        // Drivers may commit memory only on first use, which is too late to report that there is none.
        let most = facts.largest_block.min(facts.memory.saturating_sub(self.blocks.allocated_bytes()));
        if size > most {
            return Err(PluginError::resource_exhausted(format!(
                "expected a block of at most {most} bytes on `{}`, found a request for {size}",
                facts.name
            ))
            .with_rule("M-3"));
        }
        Ok(self.blocks.insert_block(handle, self.gpu.allocate_block(size)?, size))
    }

    /// Total and free bytes. If the driver does not know, whatever was not allocated here counts as free.
    pub(super) fn memory_usage(&self, facts: &DeviceProperties) -> Result<(u64, u64)> {
        let known = self.gpu.memory_usage()?;
        Ok(known
            .unwrap_or_else(|| (facts.memory, facts.memory.saturating_sub(self.blocks.allocated_bytes()))))
    }

    pub(super) fn allocate_pinned(&self, size: u64) -> Result<HostPointer> {
        ensure!(size > 0, invalid_argument, "expected a request for 1 byte or more, found 0");
        let (pointer, memory) = self.gpu.allocate_pinned(size)?;
        let key = pointer.as_ptr().addr();
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner).insert(key, (memory, size));
        Ok(pointer)
    }

    pub(super) fn free_pinned(&self, address: HostPointer, size: u64) -> Result<()> {
        let key = address.as_ptr().addr();
        let mut pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(
            pinned.get(&key).is_some_and(|(_, known)| *known == size),
            invalid_argument,
            "expected page-locked memory of this device with the size it was taken with, found {size} bytes at {key:#x}"
        );
        let memory = pinned.remove(&key);
        drop(pinned);
        memory.map_or(Ok(()), |(memory, _)| self.gpu.free_pinned(memory))
    }
}

impl<G: Gpu> Drop for DeviceSession<G> {
    fn drop(&mut self) {
        let pinned = std::mem::take(&mut *self.pinned.lock().unwrap_or_else(PoisonError::into_inner));
        // `drop` cannot report a failure.
        for (memory, _) in pinned.into_values() {
            let _ = self.gpu.free_pinned(memory);
        }
        for word in self.words.take_all_words() {
            let _ = self.free_word(&word);
        }
        for block in self.blocks.take_all_blocks() {
            let _ = self.gpu.free_block(block);
        }
    }
}

/// A fault word, and the number of launches that precede a point in its stream.
pub(super) struct FaultCheckpoint<G: Gpu> {
    word: Arc<FaultWord<G::Block>>,
    launched: u64,
}

/// An event; waiting for one that was never recorded returns at once.
pub(super) struct RecordedEvent<G: Gpu> {
    event: G::Event,
    is_recorded: AtomicBool,
    seen: Mutex<Option<FaultCheckpoint<G>>>,
}

impl<G: Gpu> RecordedEvent<G> {
    fn record_on_queue(&self, queue: &Arc<G::Queue>, seen: Option<FaultCheckpoint<G>>) -> Result<()> {
        self.event.record_on_queue(queue)?;
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
        self.is_recorded.store(true, Ordering::Release);
        Ok(())
    }

    /// The driver's event to wait for, or `None` if it was never recorded and so counts as completed.
    pub(super) fn recorded_event(&self) -> Option<&G::Event> {
        self.is_recorded.load(Ordering::Acquire).then_some(&self.event)
    }

    /// The fault word to read once the event has completed.
    pub(super) fn fault_checkpoint(&self) -> Option<FaultCheckpoint<G>> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.as_ref().map(|FaultCheckpoint { word, launched }| FaultCheckpoint {
            word: Arc::clone(word),
            launched: *launched,
        })
    }

    /// Nanoseconds between two completed events.
    pub(super) fn elapsed_since(&self, start: &Self) -> Result<u64> {
        let happened = |point: &'_ Self| match point.recorded_event() {
            Some(event) => event.has_happened(),
            None => Ok(false),
        };
        ensure!(
            happened(start)? && happened(self)?,
            precondition_not_met,
            "expected two events that have happened, found one that has not"
        );
        self.event.elapsed_since(&start.event)
    }
}
