//! The memory pool of a device: how requests are served, and how memory is released.
//!
//! One lock protects the bookkeeping. It is never held during calls to the device: such a call may wait for streams,
//! and a stream may wait for a callback of the program that releases memory.

#![expect(unsafe_code, reason = "memory that nobody holds is filled")]

mod allocation;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oarlock_abi as abi;
use oarlock_host::{Code, DeviceBlock, PluginDevice, PluginFailure};

use crate::memory::chunk_policy::{ChunkPolicy, RoundedRequest};
use crate::memory::chunk_table::{ChunkKind, ChunkTable, NO_PIECE, PieceHandle};
use crate::memory::staging::StagingCache;
use crate::memory::statistics::MemoryShortage;
use crate::memory::{FREED_POISON, FRESH_POISON, MemoryHolder, PoolOptions, PoolStatistics, StagingBuffer};
use crate::stream::{DeviceStreams, InternedLabel, StreamId};
use crate::{Error, Result};

pub use allocation::DeviceAllocation;

/// The memory and the streams of one device.
#[derive(Debug)]
pub struct MemoryPool {
    streams: DeviceStreams,
    options: PoolOptions,
    plan: ChunkPolicy,
    state: Mutex<PoolState>,
    staging: Arc<StagingCache>,
}

#[derive(Debug)]
struct PoolState {
    chunks: ChunkTable<DeviceBlock>,
    cooling: Vec<DeferredRelease>,
    statistics: PoolStatistics,
}

/// A piece that was released while streams other than its own still use it.
#[derive(Debug)]
struct DeferredRelease {
    piece: u32,
    /// Streams, and the launch count that each must reach.
    waits: Vec<(u32, u64)>,
}

#[derive(Clone, Copy)]
struct AllocationRequest {
    request: RoundedRequest,
    stream: StreamId,
    label: InternedLabel,
}

impl MemoryPool {
    /// Creates the pool of a device. Create only one for each device.
    pub fn new(device: PluginDevice, options: PoolOptions) -> Result<Arc<Self>> {
        let plan = ChunkPolicy::for_device(&device, &options)?;
        let state = PoolState {
            chunks: ChunkTable::new(plan.unit),
            cooling: Vec::new(),
            statistics: PoolStatistics::default(),
        };
        Ok(Arc::new(Self {
            streams: DeviceStreams::new(device, options.attribute_errors),
            options,
            plan,
            state: Mutex::new(state),
            staging: Arc::default(),
        }))
    }

    /// The device whose memory this is.
    pub fn device(&self) -> &PluginDevice {
        self.streams.device()
    }

    /// All streams of the device.
    pub fn streams(&self) -> &DeviceStreams {
        &self.streams
    }

    /// The alignment of every allocation, in bytes.
    pub fn alignment(&self) -> u64 {
        self.plan.unit
    }

    /// Allocates memory for a stream. `label` names the op or tensor that the memory is for, in messages. A size of 0
    /// returns an allocation without memory.
    #[inline(always)]
    pub fn allocate(
        self: &Arc<Self>,
        size: u64,
        stream: StreamId,
        label: impl Into<InternedLabel>,
    ) -> Result<DeviceAllocation> {
        self.streams.check_device()?;
        let label = label.into();
        if size == 0 {
            return Ok(DeviceAllocation::new(self.clone(), abi::Memory(0), 0, 0, NO_PIECE, stream));
        }
        let Some(request) = self.plan.round_request(size) else {
            return Err(self.too_large_error(size, label));
        };
        let wanted = AllocationRequest { request, stream, label };
        let at_hand = self.take_free(wanted);
        let (memory, place) = match at_hand {
            Some(found) => found,
            None => self.allocate_slow(wanted)?,
        };
        let allocation = DeviceAllocation::new(self.clone(), memory, place.offset, size, place.piece, stream);
        if self.options.poison {
            self.fill_poison(&allocation, FRESH_POISON)?;
        }
        Ok(allocation)
    }

    /// Returns a host buffer for copies, pinned if the device supports that.
    pub fn staging_buffer(&self, size: usize) -> Result<StagingBuffer> {
        self.streams.check_device()?;
        self.staging.take_buffer(self.device(), size).map_err(|failure| self.streams.device_error(failure))
    }

    /// A snapshot of the pool's counters.
    pub fn statistics(&self) -> PoolStatistics {
        self.lock_state().statistics
    }

    /// The labels of all allocated memory, the largest first.
    pub fn memory_holders(&self) -> Vec<MemoryHolder> {
        let holders = self.lock_state().chunks.holders();
        let mut holders: Vec<MemoryHolder> =
            holders.into_iter().map(|(label, (bytes, count))| MemoryHolder { label, bytes, count }).collect();
        holders.sort_by_key(|holder| (std::cmp::Reverse(holder.bytes), holder.label));
        holders
    }

    /// Restarts peak tracking from the current values.
    pub fn reset_peak(&self) {
        let statistics = &mut self.lock_state().statistics;
        statistics.peak_allocated = statistics.allocated;
        statistics.peak_reserved = statistics.reserved;
    }

    /// Returns chunks to the device that are not allocated and that no stream still uses. Returns the number of bytes.
    pub fn trim(&self) -> u64 {
        self.release_passed();
        self.staging.trim_cache();
        self.release_unused()
    }

    fn lock_state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves a request from free pieces.
    #[inline(always)]
    fn take_free(
        &self,
        AllocationRequest { request, stream, label }: AllocationRequest,
    ) -> Option<(abi::Memory, PieceHandle)> {
        if request.kind == ChunkKind::Straight {
            return None;
        }
        let state = &mut *self.lock_state();
        let place = state.chunks.take_free(request.size, stream.0, request.kind, label)?;
        let memory = state.chunks.chunk_block(place.chunk)?.memory();
        state.statistics.hits += 1;
        state.statistics.count_allocated(place.size);
        Some((memory, place))
    }

    /// Serves a request that no free piece satisfies: grows the pool, or waits for memory that streams still use.
    #[cold]
    fn allocate_slow(&self, wanted: AllocationRequest) -> Result<(abi::Memory, PieceHandle)> {
        self.release_passed();
        if let Some(found) = self.take_free(wanted) {
            return Ok(found);
        }
        self.lock_state().statistics.misses += 1;
        match self.grow_pool(wanted) {
            Ok(found) => return Ok(found),
            Err(refusal) => self.accept_shortage(refusal, wanted)?,
        };
        self.streams.drain_silently();
        self.streams.check_device()?;
        self.release_passed();
        if let Some(found) = self.take_free(wanted) {
            return Ok(found);
        }
        self.staging.trim_cache();
        self.release_unused();
        let refusal = match self.grow_pool(wanted) {
            Ok(found) => return Ok(found),
            Err(refusal) => self.accept_shortage(refusal, wanted)?,
        };
        Err(self.shortage_error(wanted, refusal))
    }

    /// Returns a refusal that is due to a lack of memory; turns any other into an error.
    fn accept_shortage(
        &self,
        refusal: Option<PluginFailure>,
        wanted: AllocationRequest,
    ) -> Result<Option<PluginFailure>> {
        match refusal {
            Some(failure) if failure.code != Code::RESOURCE_EXHAUSTED || failure.is_device_lost() => {
                Err(self.streams.device_error(failure).with_op(wanted.label))
            }
            refusal => Ok(refusal),
        }
    }

    /// Allocates a chunk from the device and serves the request from it. If that fails, returns the device's last refusal.
    fn grow_pool(
        &self,
        wanted: AllocationRequest,
    ) -> std::result::Result<(abi::Memory, PieceHandle), Option<PluginFailure>> {
        let AllocationRequest { request, stream, label } = wanted;
        let limit = self.options.limit.unwrap_or(u64::MAX);
        let reserved = self.lock_state().statistics.reserved;
        let mut refusal = None;
        for size in self.plan.chunk_sizes(request, reserved == 0, limit.saturating_sub(reserved)) {
            if !self.claim_bytes(size, limit) {
                continue;
            }
            match self.device().allocate(size) {
                Ok(block) => {
                    let memory = block.memory();
                    let state = &mut *self.lock_state();
                    let place =
                        state.chunks.add_chunk(block, size, request.kind, request.size, stream.0, label);
                    state.statistics.count_reserved();
                    state.statistics.count_allocated(place.size);
                    return Ok((memory, place));
                }
                Err(failure) => {
                    self.lock_state().statistics.reserved -= size;
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

    /// Reserves bytes for a chunk in advance, so that threads that grow the pool at the same time respect the limit together.
    fn claim_bytes(&self, size: u64, limit: u64) -> bool {
        let statistics = &mut self.lock_state().statistics;
        let is_room = statistics.reserved.checked_add(size).is_some_and(|total| total <= limit);
        if is_room {
            statistics.reserved += size;
        }
        is_room
    }

    /// Releases a piece that its own stream no longer uses. Streams in `users` may still have queued work that uses it.
    #[inline]
    pub(super) fn release_piece(&self, allocation: &DeviceAllocation, piece: u32, users: u64) {
        if self.options.poison && users == 0 {
            // If the fill fails, the freed memory is just not poisoned; a lost device is reported elsewhere.
            _ = self.fill_poison(allocation, FREED_POISON);
        }
        let mut state = self.lock_state();
        let size = state.chunks.piece_size(piece);
        state.statistics.allocated -= size;
        if users == 0 && !state.chunks.is_dedicated(piece) {
            state.chunks.release_piece(piece);
        } else {
            drop(state);
            self.defer_release(piece, allocation.stream(), users);
        }
    }

    /// Releases a piece that streams still use, or one whose block returns to the device.
    #[cold]
    fn defer_release(&self, piece: u32, stream: StreamId, users: u64) {
        let mut state = self.lock_state();
        let is_straight = state.chunks.is_dedicated(piece) && stream != StreamId::IMMEDIATE;
        let waits = self.streams.streams_in_set(users | if is_straight { stream.bit() } else { 0 });
        state.chunks.defer_release(piece);
        state.cooling.push(DeferredRelease { piece, waits: waits.collect() });
        let ended = state.end_deferred(&[]);
        drop(state);
        drop(ended);
    }

    /// Frees the pieces whose last use all streams are past by now.
    fn release_passed(&self) {
        let passed = self.streams.passed_positions();
        let mut state = self.lock_state();
        // A piece freed here first belongs to its own stream. It needs a launch count before other streams may use it.
        let ended = state.end_deferred(&passed);
        // Reading the launch counts under the lock ensures that they include all uses of the pieces released so far.
        // Pieces released later have no launch count yet, so they stay with their streams.
        state.chunks.date_free_pieces(&self.streams.launch_positions());
        drop(state);
        drop(ended);
        let passed = self.streams.passed_positions();
        self.lock_state().chunks.share_passed_pieces(&passed);
    }

    fn release_unused(&self) -> u64 {
        let mut state = self.lock_state();
        let unused = state.chunks.take_unused_chunks();
        let bytes = unused.iter().map(|(_, size)| size).sum();
        state.statistics.reserved -= bytes;
        drop(state);
        drop(unused);
        bytes
    }

    /// Fills an allocation in its stream. The caller itself may be enqueuing work in that stream right now, so this
    /// skips the fill instead of waiting for its turn.
    #[cold]
    fn fill_poison(&self, allocation: &DeviceAllocation, byte: u8) -> Result<()> {
        let Some(stream) = self.streams.find_stream(allocation.stream()) else { return Ok(()) };
        let span = allocation.span();
        let filled = stream.try_launch("a fill of unused memory", || match stream.queue() {
            // SAFETY: nobody uses the memory before it is allocated or after it is released, except for work of its stream.
            Some(queue) => unsafe { span.fill_on_stream(queue, 0, byte, span.size()) },
            // SAFETY: as above.
            None => unsafe { span.fill_bytes(0, byte, span.size()) },
        });
        filled.unwrap_or(Ok(()))
    }

    fn too_large_error(&self, size: u64, label: InternedLabel) -> Error {
        let message = format!("expected a size that memory can have, found {size} bytes for `{label}`");
        Error::resource_exhausted(message).with_device(self.device())
    }

    fn shortage_error(&self, wanted: AllocationRequest, refusal: Option<PluginFailure>) -> Error {
        let device_free = self.device().memory_stats().ok().map(|stats| stats.free);
        let holders = self.memory_holders();
        let mut state = self.lock_state();
        let shortage = MemoryShortage {
            size: wanted.request.size,
            label: wanted.label,
            statistics: state.statistics,
            largest_free: state.chunks.largest_free(wanted.stream.0),
            device_free,
            limit: self.options.limit,
            refusal,
            holders: &holders,
        };
        shortage.into_error().with_device(self.device())
    }
}

impl PoolState {
    /// Frees the pieces whose streams are past their use. Returns the blocks to release to the device.
    #[must_use]
    fn end_deferred(&mut self, passed: &[u64]) -> Vec<DeviceBlock> {
        let is_past =
            |(stream, position): &(u32, u64)| passed.get(*stream as usize).copied().unwrap_or(0) >= *position;
        let mut straight = Vec::new();
        let Self { chunks, cooling, statistics } = self;
        cooling.retain(|piece| {
            let is_past = piece.waits.iter().all(is_past);
            if is_past && let Some((block, size)) = chunks.release_piece(piece.piece) {
                statistics.reserved -= size;
                straight.push(block);
            }
            !is_past
        });
        straight
    }
}

impl Drop for MemoryPool {
    fn drop(&mut self) {
        // All memory has been released, but streams may still use released pieces.
        self.streams.drain_silently();
    }
}
