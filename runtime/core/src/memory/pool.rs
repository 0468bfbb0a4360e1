//! The pool of one device: what a request goes through, and how memory comes back.
//!
//! The books are under one lock, which is never held while a device is called: a device may wait for its streams, and
//! those for a callback of the program that gives memory back.

#![expect(unsafe_code, reason = "memory that nobody holds is filled")]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oarlock_abi as abi;
use oarlock_host::{Block, Code, Device, Failure};

use crate::memory::arena::{Arena, Kind, NONE, Place};
use crate::memory::plan::{Plan, Request};
use crate::memory::staging::StagingCache;
use crate::memory::statistics::Shortage;
use crate::memory::{Allocation, FREED_POISON, FRESH_POISON, Holder, PoolOptions, Staging, Statistics};
use crate::stream::{Label, StreamId, Streams};
use crate::{Error, Result};

/// The memory and the streams of one device.
#[derive(Debug)]
pub struct Pool {
    streams: Streams,
    options: PoolOptions,
    plan: Plan,
    books: Mutex<Books>,
    staging: Arc<StagingCache>,
}

#[derive(Debug)]
struct Books {
    arena: Arena<Block>,
    cooling: Vec<Cooling>,
    statistics: Statistics,
}

/// A piece that was given back while streams other than its own still work on it.
#[derive(Debug)]
struct Cooling {
    piece: u32,
    /// The numbers of the streams, and how many launches each must be past.
    waits: Vec<(u32, u64)>,
}

/// Who wants how much.
#[derive(Clone, Copy)]
struct Wanted {
    request: Request,
    stream: StreamId,
    label: Label,
}

impl Pool {
    /// The pool of a device. Each device has one.
    pub fn new(device: Device, options: PoolOptions) -> Result<Arc<Self>> {
        let plan = Plan::of(&device, &options)?;
        let books =
            Books { arena: Arena::new(plan.unit), cooling: Vec::new(), statistics: Statistics::default() };
        Ok(Arc::new(Self {
            streams: Streams::new(device, options.attribute_errors),
            options,
            plan,
            books: Mutex::new(books),
            staging: Arc::default(),
        }))
    }

    /// The device.
    pub fn device(&self) -> &Device {
        self.streams.device()
    }

    /// The streams of the device.
    pub fn streams(&self) -> &Streams {
        &self.streams
    }

    /// What every allocation is aligned to, in bytes.
    pub fn alignment(&self) -> u64 {
        self.plan.unit
    }

    /// Takes memory for a stream, under the name of the op or tensor that is going to hold it. A size of 0 gives an
    /// allocation that is no memory.
    #[inline(always)]
    pub fn allocate(
        self: &Arc<Self>,
        size: u64,
        stream: StreamId,
        label: impl Into<Label>,
    ) -> Result<Allocation> {
        self.streams.check()?;
        let label = label.into();
        if size == 0 {
            return Ok(Allocation::new(self.clone(), abi::Memory(0), 0, 0, NONE, stream));
        }
        let Some(request) = self.plan.request(size) else { return Err(self.too_large(size, label)) };
        let wanted = Wanted { request, stream, label };
        let at_hand = self.take(wanted);
        let (memory, place) = match at_hand {
            Some(found) => found,
            None => self.obtain(wanted)?,
        };
        let allocation = Allocation::new(self.clone(), memory, place.offset, size, place.piece, stream);
        if self.options.poison {
            self.poison(&allocation, FRESH_POISON)?;
        }
        Ok(allocation)
    }

    /// A buffer of the host to copy through.
    pub fn staging(&self, size: usize) -> Result<Staging> {
        self.streams.check()?;
        self.staging.take(self.device(), size).map_err(|failure| self.streams.error(failure))
    }

    /// What the pool has counted.
    pub fn statistics(&self) -> Statistics {
        self.books().statistics
    }

    /// Who holds memory, the largest holder first.
    pub fn holders(&self) -> Vec<Holder> {
        let holders = self.books().arena.holders();
        let mut holders: Vec<Holder> =
            holders.into_iter().map(|(label, (bytes, count))| Holder { label, bytes, count }).collect();
        holders.sort_by_key(|holder| (std::cmp::Reverse(holder.bytes), holder.label));
        holders
    }

    /// Begins to look for peaks anew.
    pub fn reset_peak(&self) {
        let statistics = &mut self.books().statistics;
        statistics.peak_allocated = statistics.allocated;
        statistics.peak_reserved = statistics.reserved;
    }

    /// Gives everything back to the device that nobody uses and no stream still works on; how many bytes that was.
    pub fn trim(&self) -> u64 {
        self.collect();
        self.staging.trim();
        self.give_unused_back()
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Meets a request with what is at hand.
    #[inline(always)]
    fn take(&self, Wanted { request, stream, label }: Wanted) -> Option<(abi::Memory, Place)> {
        if request.kind == Kind::Straight {
            return None;
        }
        let books = &mut *self.books();
        let place = books.arena.take(request.size, stream.0, request.kind, label)?;
        let memory = books.arena.block(place.chunk)?.memory();
        books.statistics.hits += 1;
        books.statistics.held(place.size);
        Some((memory, place))
    }

    /// Meets a request that cannot be met at once.
    #[cold]
    fn obtain(&self, wanted: Wanted) -> Result<(abi::Memory, Place)> {
        self.collect();
        if let Some(found) = self.take(wanted) {
            return Ok(found);
        }
        self.books().statistics.misses += 1;
        match self.grow(wanted) {
            Ok(found) => return Ok(found),
            Err(refusal) => self.accept_shortage(refusal, wanted)?,
        };
        self.streams.drain();
        self.streams.check()?;
        self.collect();
        if let Some(found) = self.take(wanted) {
            return Ok(found);
        }
        self.staging.trim();
        self.give_unused_back();
        let refusal = match self.grow(wanted) {
            Ok(found) => return Ok(found),
            Err(refusal) => self.accept_shortage(refusal, wanted)?,
        };
        Err(self.shortage(wanted, refusal))
    }

    /// Lets a refusal pass that means that there is no memory; any other is an error by itself.
    fn accept_shortage(&self, refusal: Option<Failure>, wanted: Wanted) -> Result<Option<Failure>> {
        match refusal {
            Some(failure) if failure.code != Code::RESOURCE_EXHAUSTED || failure.is_device_lost() => {
                Err(self.streams.error(failure).of_op(wanted.label))
            }
            refusal => Ok(refusal),
        }
    }

    /// Takes a chunk of the device, and the request out of it; what the device said where it refuses.
    fn grow(&self, wanted: Wanted) -> std::result::Result<(abi::Memory, Place), Option<Failure>> {
        let Wanted { request, stream, label } = wanted;
        let limit = self.options.limit.unwrap_or(u64::MAX);
        let reserved = self.books().statistics.reserved;
        let mut refusal = None;
        for size in self.plan.chunk_sizes(request, reserved == 0, limit.saturating_sub(reserved)) {
            if !self.claim(size, limit) {
                continue;
            }
            match self.device().allocate(size) {
                Ok(block) => {
                    let memory = block.memory();
                    let books = &mut *self.books();
                    let place = books.arena.add(block, size, request.kind, request.size, stream.0, label);
                    books.statistics.taken();
                    books.statistics.held(place.size);
                    return Ok((memory, place));
                }
                Err(failure) => {
                    self.books().statistics.reserved -= size;
                    let is_shortage = failure.code == Code::RESOURCE_EXHAUSTED && !failure.is_device_lost();
                    refusal = Some(failure);
                    if !is_shortage {
                        break;
                    }
                }
            }
        }
        Err(refusal)
    }

    /// Sets bytes aside for a chunk, so that threads that grow at the same time stay below the limit together.
    fn claim(&self, size: u64, limit: u64) -> bool {
        let statistics = &mut self.books().statistics;
        let is_room = statistics.reserved.checked_add(size).is_some_and(|total| total <= limit);
        if is_room {
            statistics.reserved += size;
        }
        is_room
    }

    /// Takes a piece back that its stream no longer uses, nor will those in `users` once they have done what they have.
    #[inline]
    pub(super) fn give_back(&self, allocation: &Allocation, piece: u32, users: u64) {
        if self.options.poison && users == 0 {
            // What cannot be filled is only not marked; a device that is lost says so elsewhere.
            _ = self.poison(allocation, FREED_POISON);
        }
        let mut books = self.books();
        let size = books.arena.size_of(piece);
        books.statistics.allocated -= size;
        if users == 0 && !books.arena.is_straight(piece) {
            books.arena.release(piece);
        } else {
            drop(books);
            self.cool(piece, allocation.stream(), users);
        }
    }

    /// Takes a piece back that streams still work on, or that the device gets back.
    #[cold]
    fn cool(&self, piece: u32, stream: StreamId, users: u64) {
        let mut books = self.books();
        let is_straight = books.arena.is_straight(piece) && stream != StreamId::OWN;
        let waits = self.streams.users(users | if is_straight { stream.bit() } else { 0 });
        books.arena.cool(piece);
        books.cooling.push(Cooling { piece, waits: waits.collect() });
        let ended = books.end_cooling(&[]);
        drop(books);
        drop(ended);
    }

    /// Frees what the streams are past by now.
    fn collect(&self) {
        let passed = self.streams.passed();
        let mut books = self.books();
        // What other streams are done with is its own stream's first, and has to be dated before it is everybody's.
        let ended = books.end_cooling(&passed);
        // The counts are read with the books locked, so that they include all use of what has come back. What comes back
        // from here on has no date yet, and stays its stream's.
        books.arena.date(&self.streams.positions());
        drop(books);
        drop(ended);
        let passed = self.streams.passed();
        self.books().arena.settle(&passed);
    }

    fn give_unused_back(&self) -> u64 {
        let mut books = self.books();
        let unused = books.arena.take_unused();
        let bytes = unused.iter().map(|(_, size)| size).sum();
        books.statistics.reserved -= bytes;
        drop(books);
        drop(unused);
        bytes
    }

    /// Fills an allocation in its stream. Whoever puts work into the stream right now may be the caller, so this does not
    /// wait for the turn, and leaves the memory as it is then.
    #[cold]
    fn poison(&self, allocation: &Allocation, byte: u8) -> Result<()> {
        let Some(stream) = self.streams.get(allocation.stream()) else { return Ok(()) };
        let span = allocation.span();
        let filled = stream.try_launch("a fill of unused memory", || match stream.queue() {
            // SAFETY: nobody uses the memory before it is handed out or after it came back, but for work of its stream.
            Some(queue) => unsafe { span.fill_in(queue, 0, byte, span.size()) },
            // SAFETY: as above.
            None => unsafe { span.fill(0, byte, span.size()) },
        });
        filled.unwrap_or(Ok(()))
    }

    fn too_large(&self, size: u64, label: Label) -> Error {
        let message = format!("expected a size that memory can have, found {size} bytes for `{label}`");
        Error::resource_exhausted(message).on_device(self.device())
    }

    fn shortage(&self, wanted: Wanted, refusal: Option<Failure>) -> Error {
        let device_free = self.device().memory_stats().ok().map(|stats| stats.free);
        let holders = self.holders();
        let mut books = self.books();
        let shortage = Shortage {
            size: wanted.request.size,
            label: wanted.label,
            statistics: books.statistics,
            largest_free: books.arena.largest_free(wanted.stream.0),
            device_free,
            limit: self.options.limit,
            refusal,
            holders: &holders,
        };
        shortage.error().on_device(self.device())
    }
}

impl Books {
    /// Frees the pieces whose streams are past their use; the blocks that go back to the device.
    #[must_use]
    fn end_cooling(&mut self, passed: &[u64]) -> Vec<Block> {
        let is_past =
            |(stream, position): &(u32, u64)| passed.get(*stream as usize).copied().unwrap_or(0) >= *position;
        let mut straight = Vec::new();
        let Self { arena, cooling, statistics } = self;
        cooling.retain(|piece| {
            let is_past = piece.waits.iter().all(is_past);
            if is_past && let Some((block, size)) = arena.release(piece.piece) {
                statistics.reserved -= size;
                straight.push(block);
            }
            !is_past
        });
        straight
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Nobody holds memory any more, but streams may still work on what was given back.
        self.streams.drain();
    }
}
