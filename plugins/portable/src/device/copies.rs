//! Copies and fills. Each is enqueued on a stream; on the default stream it is done when the call returns.

#![expect(unsafe_code, reason = "copies name host memory by its address")]

use oarlock_sdk::{MemoryRange, Result, Stream};

use super::GpuDevices;
use crate::gpu::{BlockOffset, Gpu, GpuQueue as _};

type StreamLocation = (u32, Stream);

impl<G: Gpu> GpuDevices<G> {
    /// Copies from the host to the device.
    ///
    /// # Safety
    ///
    /// As many bytes at `source` stay readable until the stream has passed this copy.
    pub(super) unsafe fn write_memory(
        &self,
        (device, stream): StreamLocation,
        target: MemoryRange,
        source: *const u8,
    ) -> Result<()> {
        let session = self.device_session(device)?;
        let (queue, block) = (session.stream_queue(stream)?, session.block_with_range(target)?);
        if target.size == 0 {
            return Ok(());
        }
        // SAFETY: the caller guarantees that the source stays readable.
        unsafe {
            queue.enqueue_write(
                BlockOffset { block: &block, offset: target.offset },
                source,
                target.size as usize,
            )
        }
    }

    /// Copies from the device to the host.
    ///
    /// # Safety
    ///
    /// As many bytes at `target` stay writable, and nothing else touches them, until the stream has passed this copy.
    pub(super) unsafe fn read_memory(
        &self,
        (device, stream): StreamLocation,
        target: *mut u8,
        source: MemoryRange,
    ) -> Result<()> {
        let session = self.device_session(device)?;
        let (queue, block) = (session.stream_queue(stream)?, session.block_with_range(source)?);
        if source.size == 0 {
            return Ok(());
        }
        // SAFETY: the caller guarantees that the target stays writable and untouched.
        unsafe {
            queue.enqueue_read(
                target,
                BlockOffset { block: &block, offset: source.offset },
                source.size as usize,
            )
        }
    }

    pub(super) fn copy_memory(
        &self,
        (device, stream): StreamLocation,
        target: MemoryRange,
        source: MemoryRange,
    ) -> Result<()> {
        let session = self.device_session(device)?;
        let queue = session.stream_queue(stream)?;
        let (to, from) = (session.block_with_range(target)?, session.block_with_range(source)?);
        if source.size == 0 {
            return Ok(());
        }
        let target = BlockOffset { block: &to, offset: target.offset };
        let size = source.size as usize;
        queue.enqueue_copy(target, BlockOffset { block: &from, offset: source.offset }, size)
    }

    /// Copies to another device, on a stream of the source device.
    pub(super) fn copy_to_device(
        &self,
        (device, stream): StreamLocation,
        (target_device, target): (u32, MemoryRange),
        source: MemoryRange,
    ) -> Result<()> {
        let (here, there) = (self.device_session(device)?, self.device_session(target_device)?);
        let queue = here.stream_queue(stream)?;
        let (to, from) = (there.block_with_range(target)?, here.block_with_range(source)?);
        let size = source.size as usize;
        if size == 0 {
            return Ok(());
        }
        let target = BlockOffset { block: &to, offset: target.offset };
        let source = BlockOffset { block: &from, offset: source.offset };
        if device == target_device {
            return queue.enqueue_copy(target, source, size);
        }
        queue.enqueue_copy_to_peer((there.driver_gpu(), target), source, size)
    }

    pub(super) fn fill_memory(
        &self,
        (device, stream): StreamLocation,
        target: MemoryRange,
        byte: u8,
    ) -> Result<()> {
        let session = self.device_session(device)?;
        let (queue, block) = (session.stream_queue(stream)?, session.block_with_range(target)?);
        if target.size == 0 {
            return Ok(());
        }
        queue.enqueue_fill(BlockOffset { block: &block, offset: target.offset }, byte, target.size as usize)
    }
}
