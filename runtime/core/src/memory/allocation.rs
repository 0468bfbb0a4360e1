//! A piece of device memory that a program holds.

#![expect(unsafe_code, reason = "ranges of memory that several may know are read and written")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use oarlock_abi as abi;
use oarlock_host::{DeviceSpan, PluginDevice};

use crate::Result;
use crate::memory::MemoryPool;
use crate::memory::arena::NO_PIECE;
use crate::stream::{Stream, StreamId};

/// A piece of device memory, given back to its pool when dropped.
///
/// It is memory for one stream. A program that uses it in another one says so with [`DeviceAllocation::mark_used_on`] and sees to
/// the order between the two streams itself; the piece then comes back when both are past it.
#[derive(Debug)]
pub struct DeviceAllocation {
    pool: Arc<MemoryPool>,
    memory: abi::Memory,
    offset: u64,
    size: u64,
    piece: u32,
    stream: StreamId,
    /// The bits of the other streams it was used on.
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

    /// Memory of the host that is no pool's, for a device that can use it where it lies. Who holds this holds that memory too.
    pub(crate) fn from_host_bytes(pool: Arc<MemoryPool>, bytes: &[u8]) -> Self {
        let memory = abi::Memory(bytes.as_ptr() as u64);
        Self::new(pool, memory, 0, bytes.len() as u64, NO_PIECE, StreamId::IMMEDIATE)
    }

    /// The handle of the block it lies in; 0 for one of 0 bytes, which is no memory.
    pub fn block_handle(&self) -> abi::Memory {
        self.memory
    }

    /// Where in the block it begins, in bytes.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// How many bytes were asked for.
    pub fn requested_size(&self) -> u64 {
        self.size
    }

    /// The device it lies on.
    pub fn device(&self) -> &PluginDevice {
        self.pool.device()
    }

    /// The pool it goes back to.
    pub fn pool(&self) -> &Arc<MemoryPool> {
        &self.pool
    }

    /// The stream it is memory for.
    #[inline]
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// Notes that a stream of the device other than its own uses it.
    #[inline]
    pub fn mark_used_on(&self, stream: &Stream) {
        if stream.id() == self.stream || stream.is_immediate() {
            return;
        }
        let bit = stream.id().bit();
        // The order of the two does not matter: the mark is read when the memory is dropped, which comes after all use.
        if self.users.load(Ordering::Relaxed) & bit == 0 {
            self.users.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Whether a stream other than its own may still use it.
    pub(crate) fn is_used_elsewhere(&self) -> bool {
        self.users.load(Ordering::Relaxed) != 0
    }

    /// Its bytes, for copies from, to and within it.
    pub fn span(&self) -> DeviceSpan<'_> {
        // SAFETY: the pool keeps the block until this is dropped, and handed out a range inside it.
        unsafe { DeviceSpan::new(self.pool.device(), self.memory, self.offset, self.size) }
    }

    /// Copies from the host when a stream gets there, and waits for it.
    ///
    /// # Safety
    ///
    /// Nobody else uses what is written, but for work that is in the stream already.
    pub unsafe fn write_blocking(&self, stream: &Stream, offset: u64, source: &[u8]) -> Result<()> {
        // SAFETY: the caller keeps others away, and the source is borrowed until the stream is past the copy.
        unsafe { self.enqueue_write(stream, offset, source)? };
        stream.synchronize()
    }

    /// Copies to the host when a stream gets there, and waits for it. What went wrong in the stream before is told here.
    ///
    /// # Safety
    ///
    /// Nobody else changes what is read, but for work that is in the stream already.
    pub unsafe fn read_blocking(&self, stream: &Stream, offset: u64, target: &mut [u8]) -> Result<()> {
        // SAFETY: the caller keeps others away, and the target is borrowed until the stream is past the copy.
        unsafe { self.enqueue_read(stream, offset, target)? };
        stream.synchronize()
    }

    /// Copies from the host when a stream gets there.
    ///
    /// # Safety
    ///
    /// Until then nobody else uses what is written, and the source stays as it is.
    pub unsafe fn enqueue_write(&self, stream: &Stream, offset: u64, source: &[u8]) -> Result<()> {
        self.mark_used_on(stream);
        stream.launch("a copy from the host", || match stream.queue() {
            // SAFETY: the caller keeps both; the memory is not used again before the stream is past this.
            Some(queue) => unsafe { self.span().write_on_stream(queue, offset, source) },
            // SAFETY: the caller keeps others away.
            None => unsafe { self.span().write_bytes(offset, source) },
        })
    }

    /// Copies to the host when a stream gets there.
    ///
    /// # Safety
    ///
    /// Until then nobody changes what is read, and nobody touches the target.
    pub unsafe fn enqueue_read(&self, stream: &Stream, offset: u64, target: &mut [u8]) -> Result<()> {
        self.mark_used_on(stream);
        stream.launch("a copy to the host", || match stream.queue() {
            // SAFETY: the caller keeps both; the memory is not used again before the stream is past this.
            Some(queue) => unsafe { self.span().read_on_stream(queue, offset, target) },
            // SAFETY: the caller keeps others away.
            None => unsafe { self.span().read_bytes(offset, target) },
        })
    }

    /// Fills a range with one byte when a stream gets there.
    ///
    /// # Safety
    ///
    /// Until the stream gets there nobody else uses what is filled.
    pub unsafe fn enqueue_fill(&self, stream: &Stream, offset: u64, byte: u8, size: u64) -> Result<()> {
        self.mark_used_on(stream);
        stream.launch("a fill", || match stream.queue() {
            // SAFETY: the caller keeps others away; the memory is not used again before the stream is past this.
            Some(queue) => unsafe { self.span().fill_on_stream(queue, offset, byte, size) },
            // SAFETY: the caller keeps others away.
            None => unsafe { self.span().fill_bytes(offset, byte, size) },
        })
    }

    /// Copies from other memory, of any device, when a stream of that memory's device gets there.
    ///
    /// # Safety
    ///
    /// Until the stream gets there nobody else uses what is written, nor changes what is read, and this memory is not
    /// given back where it is of another device. The two do not overlap.
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
            // SAFETY: the caller keeps both.
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
