//! Copies and fills. Each is enqueued on a stream; on the default stream it is done when the call returns.

#![expect(unsafe_code, reason = "copies name host memory by its address")]

use oarlock_sdk::{Memory, Result, Stream};

use super::GpuDevices;
use crate::gpu::{BlockOffset, Gpu, GpuQueue as _};

type StreamLocation = (u32, Stream);

type MemoryOffset = (Memory, u64);

impl<G: Gpu> GpuDevices<G> {
    /// Copies from the host to the device.
    ///
    /// # Safety
    ///
    /// `size` bytes at `source` stay readable until the stream has passed this copy.
    pub(super) unsafe fn write_memory(
        &self,
        (device, stream): StreamLocation,
        (target, offset): MemoryOffset,
        source: *const u8,
        size: u64,
    ) -> Result<()> {
        let session = self.device_session(device)?;
        let (queue, block) = (session.stream_queue(stream)?, session.block_with_size(target, offset, size)?);
        if size == 0 {
            return Ok(());
        }
        // SAFETY: the caller guarantees that the source stays readable.
        unsafe { queue.enqueue_write(BlockOffset { block: &block, offset }, source, size as usize) }
    }

    /// Copies from the device to the host.
    ///
    /// # Safety
    ///
    /// `size` bytes at `target` stay writable, and nothing else touches them, until the stream has passed this copy.
    pub(super) unsafe fn read_memory(
        &self,
        (device, stream): StreamLocation,
        target: *mut u8,
        (source, offset): MemoryOffset,
        size: u64,
    ) -> Result<()> {
        let session = self.device_session(device)?;
        let (queue, block) = (session.stream_queue(stream)?, session.block_with_size(source, offset, size)?);
        if size == 0 {
            return Ok(());
        }
        // SAFETY: the caller guarantees that the target stays writable and untouched.
        unsafe { queue.enqueue_read(target, BlockOffset { block: &block, offset }, size as usize) }
    }

    pub(super) fn copy_memory(
        &self,
        (device, stream): StreamLocation,
        (target, target_offset): MemoryOffset,
        (source, source_offset): MemoryOffset,
        size: u64,
    ) -> Result<()> {
        let session = self.device_session(device)?;
        let queue = session.stream_queue(stream)?;
        let to = session.block_with_size(target, target_offset, size)?;
        let from = session.block_with_size(source, source_offset, size)?;
        if size == 0 {
            return Ok(());
        }
        let target = BlockOffset { block: &to, offset: target_offset };
        queue.enqueue_copy(target, BlockOffset { block: &from, offset: source_offset }, size as usize)
    }

    /// Copies to another device, on a stream of the source device.
    pub(super) fn copy_to_device(
        &self,
        (device, stream): StreamLocation,
        (target_device, target, target_offset): (u32, Memory, u64),
        (source, source_offset): MemoryOffset,
        size: u64,
    ) -> Result<()> {
        let (here, there) = (self.device_session(device)?, self.device_session(target_device)?);
        let queue = here.stream_queue(stream)?;
        let to = there.block_with_size(target, target_offset, size)?;
        let from = here.block_with_size(source, source_offset, size)?;
        if size == 0 {
            return Ok(());
        }
        let target = BlockOffset { block: &to, offset: target_offset };
        let source = BlockOffset { block: &from, offset: source_offset };
        if device == target_device {
            return queue.enqueue_copy(target, source, size as usize);
        }
        queue.enqueue_copy_to_peer((there.driver_gpu(), target), source, size as usize)
    }

    pub(super) fn fill_memory(
        &self,
        (device, stream): StreamLocation,
        (target, offset): MemoryOffset,
        byte: u8,
        size: u64,
    ) -> Result<()> {
        let session = self.device_session(device)?;
        let (queue, block) = (session.stream_queue(stream)?, session.block_with_size(target, offset, size)?);
        if size == 0 {
            return Ok(());
        }
        queue.enqueue_fill(BlockOffset { block: &block, offset }, byte, size as usize)
    }
}
