//! What a device has while it is in use: the driver's side of it, and the tables of what the host has made on it. Dropping
//! it gives everything back, also what the host has forgotten.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use oarlock_sdk::{Error, Event, HostPointer, Memory, Result, Stream, ensure};

use super::blocks::Blocks;
use super::faults::{Word, Words};
use super::table::Table;
use crate::gpu::{Event as _, Facts, Gpu, Queue as _};
use crate::program::Programs;

/// One device in use.
pub struct Session<G: Gpu> {
    gpu: G,
    pub(crate) programs: Programs<G::Program>,
    pub(super) blocks: Blocks<G::Block>,
    /// By address, each with its size.
    pinned: Mutex<HashMap<usize, (G::Pinned, u64)>>,
    own: Arc<G::Queue>,
    streams: Table<G::Queue>,
    pub(super) words: Words<G::Block>,
    pub(super) points: Table<Point<G>>,
}

impl<G: Gpu> Session<G> {
    pub(super) fn open(idle: &G::Idle) -> Result<Self> {
        let gpu = G::open(idle)?;
        let own = Arc::new(gpu.queue(Stream(0), 0)?);
        Ok(Self {
            gpu,
            programs: Programs::default(),
            blocks: Blocks::new(),
            pinned: Mutex::default(),
            own,
            streams: Table::new("stream"),
            words: Words::default(),
            points: Table::new("event"),
        })
    }

    /// The driver's side of the device.
    pub fn gpu(&self) -> &G {
        &self.gpu
    }

    /// The device's own stream.
    pub(super) fn own(&self) -> &G::Queue {
        &self.own
    }

    /// A stream of a call.
    pub fn queue(&self, stream: Stream) -> Result<Arc<G::Queue>> {
        if stream.0 == 0 { Ok(Arc::clone(&self.own)) } else { self.streams.get(stream.0) }
    }

    /// The block of a call, if `size` bytes from an offset on lie in it.
    pub fn block(&self, block: Memory, offset: u64, size: u64) -> Result<G::Block> {
        self.blocks.sized(block, offset, size)
    }

    /// The same for a range that is given by its first byte and the one behind its last.
    pub(crate) fn range(&self, block: Memory, begin: u64, end: u64) -> Result<G::Block> {
        self.blocks.range(block, begin, end)
    }

    pub(super) fn add_stream(&self, handle: u64, priority: i32) -> Result<Stream> {
        self.streams.insert(handle, self.gpu.queue(Stream(handle), priority)?);
        Ok(Stream(handle))
    }

    /// Waits for a stream, and tells what went wrong in it.
    pub(super) fn synchronize(&self, stream: Stream) -> Result<()> {
        let (queue, seen) = (self.queue(stream)?, self.seen(stream));
        queue.synchronize()?;
        self.tell(seen.as_ref())
    }

    /// Whether a stream is done, and what its kernels found if so.
    pub(super) fn is_done(&self, stream: Stream) -> Result<bool> {
        let (queue, seen) = (self.queue(stream)?, self.seen(stream));
        let is_done = queue.is_empty()?;
        if is_done {
            self.tell(seen.as_ref())?;
        }
        Ok(is_done)
    }

    /// What there is to read once everything that is in a stream now is done.
    fn seen(&self, stream: Stream) -> Option<Seen<G>> {
        self.words.find(stream).map(|word| Seen { launched: word.launched(), word })
    }

    pub(super) fn tell(&self, seen: Option<&Seen<G>>) -> Result<()> {
        seen.map_or(Ok(()), |seen| self.check(&seen.word, seen.launched))
    }

    /// Puts an event at the end of a stream.
    pub(super) fn record(&self, stream: Stream, point: &Point<G>) -> Result<()> {
        let (queue, seen) = (self.queue(stream)?, self.seen(stream));
        point.record(&queue, seen)
    }

    /// Ends a stream after what is in it.
    pub(super) fn end_stream(&self, stream: Stream) -> Result<()> {
        let drained = self.remove_stream(stream)?.drain();
        let word = self.words.remove(stream);
        drained.and(word.map_or(Ok(()), |word| self.end_word(&word)))
    }

    fn remove_stream(&self, stream: Stream) -> Result<Arc<G::Queue>> {
        if stream.0 == 0 {
            return Err(Error::invalid_argument("expected a stream that was made, found the device's own"));
        }
        self.streams.remove(stream.0)
    }

    pub(super) fn add_event(&self, handle: u64) -> Result<Event> {
        let (is_recorded, seen) = (AtomicBool::new(false), Mutex::new(None));
        let point = Point { event: self.gpu.event()?, is_recorded, seen };
        self.points.insert(handle, point);
        Ok(Event(handle))
    }

    /// Waits until every stream is done.
    pub(super) fn finish(&self) -> Result<()> {
        self.queues().try_for_each(|queue| queue.finish())
    }

    /// The same before everything is given back.
    pub(super) fn drain(&self) -> Result<()> {
        self.queues().try_for_each(|queue| queue.drain())
    }

    fn queues(&self) -> impl Iterator<Item = Arc<G::Queue>> {
        self.streams.all().into_iter().chain([Arc::clone(&self.own)])
    }

    pub(super) fn allocate(&self, facts: &Facts, handle: u64, size: u64) -> Result<Memory> {
        ensure!(size > 0, invalid_argument, "expected a request for 1 byte or more, found 0");
        // Drivers may put taking memory off until it is used, which is too late to say so.
        let most = facts.largest_block.min(facts.memory.saturating_sub(self.blocks.taken()));
        if size > most {
            return Err(Error::resource_exhausted(format!(
                "expected a block of at most {most} bytes on `{}`, found a request for {size}",
                facts.name
            ))
            .rule("M-3"));
        }
        Ok(self.blocks.insert(handle, self.gpu.allocate(size)?, size))
    }

    /// How many bytes the device has and how many of them are free.
    pub(super) fn memory(&self, facts: &Facts) -> Result<(u64, u64)> {
        let known = self.gpu.memory()?;
        Ok(known.unwrap_or_else(|| (facts.memory, facts.memory.saturating_sub(self.blocks.taken()))))
    }

    pub(super) fn allocate_pinned(&self, size: u64) -> Result<HostPointer> {
        ensure!(size > 0, invalid_argument, "expected a request for 1 byte or more, found 0");
        let (pointer, memory) = self.gpu.allocate_pinned(size)?;
        let key = pointer.address().addr();
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner).insert(key, (memory, size));
        Ok(pointer)
    }

    pub(super) fn free_pinned(&self, address: HostPointer, size: u64) -> Result<()> {
        let key = address.address().addr();
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

impl<G: Gpu> Drop for Session<G> {
    fn drop(&mut self) {
        let pinned = std::mem::take(&mut *self.pinned.lock().unwrap_or_else(PoisonError::into_inner));
        // There is nobody to tell of a failure.
        for (memory, _) in pinned.into_values() {
            let _ = self.gpu.free_pinned(memory);
        }
        for word in self.words.take() {
            let _ = self.end_word(&word);
        }
        for block in self.blocks.take() {
            let _ = self.gpu.free(block);
        }
    }
}

/// A word, and how many of the kernels that may write it come before a point in its stream.
pub(super) struct Seen<G: Gpu> {
    word: Arc<Word<G::Block>>,
    launched: u64,
}

/// An event, which may not have been recorded yet.
pub(super) struct Point<G: Gpu> {
    event: G::Event,
    is_recorded: AtomicBool,
    seen: Mutex<Option<Seen<G>>>,
}

impl<G: Gpu> Point<G> {
    fn record(&self, queue: &Arc<G::Queue>, seen: Option<Seen<G>>) -> Result<()> {
        self.event.record(queue)?;
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
        self.is_recorded.store(true, Ordering::Release);
        Ok(())
    }

    /// What there is to wait for: an event that was never recorded has happened.
    pub(super) fn recorded(&self) -> Option<&G::Event> {
        self.is_recorded.load(Ordering::Acquire).then_some(&self.event)
    }

    /// What there is to read once it has happened.
    pub(super) fn seen(&self) -> Option<Seen<G>> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.as_ref().map(|Seen { word, launched }| Seen { word: Arc::clone(word), launched: *launched })
    }

    /// The nanoseconds from another event to this one.
    pub(super) fn since(&self, start: &Self) -> Result<u64> {
        let happened = |point: &'_ Self| match point.recorded() {
            Some(event) => event.has_happened(),
            None => Ok(false),
        };
        ensure!(
            happened(start)? && happened(self)?,
            precondition_not_met,
            "expected two events that have happened, found one that has not"
        );
        self.event.since(&start.event)
    }
}
