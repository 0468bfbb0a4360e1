//! Allocations: pieces of device memory that a program owns.

#![expect(unsafe_code, reason = "ranges of memory that several may know are read and written")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use oarlock_abi as abi;
use oarlock_host::{DeviceSpan, PluginDevice};

use crate::Result;
use crate::memory::MemoryPool;
use crate::memory::chunk_table::NO_PIECE;
use crate::stream::{Stream, StreamId};

/// A piece of device memory, which returns to its pool when dropped.
///
/// It belongs to one stream. A program that uses it on another stream must call [`DeviceAllocation::mark_used_on`]
/// and order the two streams itself; the piece then becomes free when both are past it.
#[derive(Debug)]
pub struct DeviceAllocation {
    pool: Arc<MemoryPool>,
    memory: abi::Memory,
    offset: u64,
    size: u64,
    piece: u32,
    stream: StreamId,
    /// The set of other streams that have used it, as bits.
    users: AtomicU64,
}

impl DeviceAllocation {
    pub(super) fn new(
        pool: Arc<MemoryPool>,
        memory: abi::Memory,
        offset: u64,
        size: u64,
        piece: u32,
        stream: StreamId,
    ) -> Self {
        Self { pool, memory, offset, size, piece, stream, users: AtomicU64::new(0) }
    }

    /// Wraps host memory that did not come from the pool, for a device that can use it in place. The caller must keep
    /// the memory alive as long as this allocation.
    pub(crate) fn from_host_bytes(pool: Arc<MemoryPool>, bytes: &[u8]) -> Self {
        let memory = abi::Memory(bytes.as_ptr() as u64);
        Self::new(pool, memory, 0, bytes.len() as u64, NO_PIECE, StreamId::IMMEDIATE)
    }

    /// The handle of the block that contains it; 0 for an allocation of 0 bytes, which has no memory.
    pub fn block_handle(&self) -> abi::Memory {
        self.memory
    }

    /// The offset in the block, in bytes.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The requested size in bytes, before rounding.
    pub fn requested_size(&self) -> u64 {
        self.size
    }

    /// The device that owns the memory.
    pub fn device(&self) -> &PluginDevice {
        self.pool.device()
    }

    /// The pool that it returns to.
    pub fn pool(&self) -> &Arc<MemoryPool> {
        &self.pool
    }

    /// The stream that it was allocated for.
    #[inline]
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// Records that another stream of the device uses it, so that the pool waits for that stream too.
    #[inline]
    pub fn mark_used_on(&self, stream: &Stream) {
        if stream.id() == self.stream || stream.is_immediate() {
            return;
        }
        let bit = stream.id().bit();
        // Relaxed is enough: the mark is read when the allocation is dropped, which happens after every use.
        if self.users.load(Ordering::Relaxed) & bit == 0 {
            self.users.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// True if a stream other than its own may still use it.
    pub(crate) fn is_used_elsewhere(&self) -> bool {
        self.users.load(Ordering::Relaxed) != 0
    }

    /// Its memory as a span, for copies.
    pub fn span(&self) -> DeviceSpan<'_> {
        // SAFETY: the pool keeps the block until this is dropped, and the piece lies inside the block.
        unsafe { DeviceSpan::new(self.pool.device(), self.memory, self.offset, self.size) }
    }

    /// Copies from the host in stream order, and waits for the copy.
    ///
    /// # Safety
    ///
    /// Nobody else may use the range that is written, except for work that is already in the stream.
    pub unsafe fn write_blocking(&self, stream: &Stream, offset: u64, source: &[u8]) -> Result<()> {
        // SAFETY: the caller keeps others away, and the source is borrowed until the stream is past the copy.
        unsafe { self.enqueue_write(stream, offset, source)? };
        stream.synchronize()
    }

    /// Copies to the host in stream order, and waits for the copy. Also reports earlier failures of the stream.
    ///
    /// # Safety
    ///
    /// Nobody else may change the range that is read, except for work that is already in the stream.
    pub unsafe fn read_blocking(&self, stream: &Stream, offset: u64, target: &mut [u8]) -> Result<()> {
        // SAFETY: the caller keeps others away, and the target is borrowed until the stream is past the copy.
        unsafe { self.enqueue_read(stream, offset, target)? };
        stream.synchronize()
    }

    /// Enqueues a copy from the host.
    ///
    /// # Safety
    ///
    /// Until the stream is past the copy, nobody else may use the range that is written, and the source must not change.
    pub unsafe fn enqueue_write(&self, stream: &Stream, offset: u64, source: &[u8]) -> Result<()> {
        self.mark_used_on(stream);
        stream.launch("a copy from the host", || match stream.queue() {
            // SAFETY: the caller guarantees both; the memory is not reused before the stream is past this.
            Some(queue) => unsafe { self.span().write_on_stream(queue, offset, source) },
            // SAFETY: the caller keeps others away.
            None => unsafe { self.span().write_bytes(offset, source) },
        })
    }

    /// Enqueues a copy to the host.
    ///
    /// # Safety
    ///
    /// Until the stream is past the copy, nobody may change the range that is read, and nobody may access the target.
    pub unsafe fn enqueue_read(&self, stream: &Stream, offset: u64, target: &mut [u8]) -> Result<()> {
        self.mark_used_on(stream);
        stream.launch("a copy to the host", || match stream.queue() {
            // SAFETY: the caller guarantees both; the memory is not reused before the stream is past this.
            Some(queue) => unsafe { self.span().read_on_stream(queue, offset, target) },
            // SAFETY: the caller keeps others away.
            None => unsafe { self.span().read_bytes(offset, target) },
        })
    }

    /// Enqueues a fill of a range with one byte.
    ///
    /// # Safety
    ///
    /// Until the stream is past the fill, nobody else may use the range.
    pub unsafe fn enqueue_fill(&self, stream: &Stream, offset: u64, byte: u8, size: u64) -> Result<()> {
        self.mark_used_on(stream);
        stream.launch("a fill", || match stream.queue() {
            // SAFETY: the caller keeps others away; the memory is not reused before the stream is past this.
            Some(queue) => unsafe { self.span().fill_on_stream(queue, offset, byte, size) },
            // SAFETY: the caller keeps others away.
            None => unsafe { self.span().fill_bytes(offset, byte, size) },
        })
    }

    /// Enqueues a copy from other memory, of any device, in a stream of that memory's device.
    ///
    /// # Safety
    ///
    /// Until the stream is past the copy, nobody else may use the range that is written or change the one that is
    /// read, and if this memory is on another device, it must not be released. The two ranges must not overlap.
    pub unsafe fn enqueue_copy(
        &self,
        stream: &Stream,
        offset: u64,
        source: &Self,
        source_offset: u64,
        size: u64,
    ) -> Result<()> {
        source.mark_used_on(stream);
        if Arc::ptr_eq(&self.pool, &source.pool) {
            self.mark_used_on(stream);
        }
        stream.launch("a copy within devices", || match stream.queue() {
            // SAFETY: the caller guarantees both.
            Some(queue) => unsafe {
                self.span().copy_from_on_stream(queue, offset, source.span(), source_offset, size)
            },
            // SAFETY: the caller keeps others away.
            None => unsafe { self.span().copy_from(offset, source.span(), source_offset, size) },
        })
    }
}

impl Drop for DeviceAllocation {
    #[inline]
    fn drop(&mut self) {
        if self.piece != NO_PIECE {
            self.pool.release_piece(self, self.piece, self.users.load(Ordering::Relaxed));
        }
    }
}
