//! Copies and fills. Each is put into a stream; in the device's own it is done when the call returns.

#![expect(unsafe_code, reason = "copies name host memory by its address")]

use oarlock_sdk::{Memory, Result, Stream};

use super::Gpus;
use crate::gpu::{Gpu, Place, Queue as _};

/// A device and a stream of it.
type Where = (u32, Stream);

/// A block, and the first byte in it.
type Start = (Memory, u64);

impl<G: Gpu> Gpus<G> {
    /// Copies from the host to the device.
    ///
    /// # Safety
    ///
    /// `size` bytes at `source` stay readable until the stream is past this.
    pub(super) unsafe fn write(
        &self,
        (device, stream): Where,
        (target, offset): Start,
        source: *const u8,
        size: u64,
    ) -> Result<()> {
        let session = self.session(device)?;
        let (queue, block) = (session.queue(stream)?, session.block(target, offset, size)?);
        if size == 0 {
            return Ok(());
        }
        // SAFETY: the caller vouches for the source.
        unsafe { queue.write(Place { block: &block, offset }, source, size as usize) }
    }

    /// Copies from the device to the host.
    ///
    /// # Safety
    ///
    /// `size` bytes at `target` stay writable, and nobody else touches them, until the stream is past this.
    pub(super) unsafe fn read(
        &self,
        (device, stream): Where,
        target: *mut u8,
        (source, offset): Start,
        size: u64,
    ) -> Result<()> {
        let session = self.session(device)?;
        let (queue, block) = (session.queue(stream)?, session.block(source, offset, size)?);
        if size == 0 {
            return Ok(());
        }
        // SAFETY: the caller vouches for the target.
        unsafe { queue.read(target, Place { block: &block, offset }, size as usize) }
    }

    /// Copies within a device.
    pub(super) fn copy(
        &self,
        (device, stream): Where,
        (target, target_offset): Start,
        (source, source_offset): Start,
        size: u64,
    ) -> Result<()> {
        let session = self.session(device)?;
        let queue = session.queue(stream)?;
        let to = session.block(target, target_offset, size)?;
        let from = session.block(source, source_offset, size)?;
        if size == 0 {
            return Ok(());
        }
        let target = Place { block: &to, offset: target_offset };
        queue.copy(target, Place { block: &from, offset: source_offset }, size as usize)
    }

    /// Copies from one device to another, in a stream of the first.
    pub(super) fn copy_across(
        &self,
        (device, stream): Where,
        (target_device, target, target_offset): (u32, Memory, u64),
        (source, source_offset): Start,
        size: u64,
    ) -> Result<()> {
        let (here, there) = (self.session(device)?, self.session(target_device)?);
        let queue = here.queue(stream)?;
        let to = there.block(target, target_offset, size)?;
        let from = here.block(source, source_offset, size)?;
        if size == 0 {
            return Ok(());
        }
        let target = Place { block: &to, offset: target_offset };
        let source = Place { block: &from, offset: source_offset };
        if device == target_device {
            return queue.copy(target, source, size as usize);
        }
        queue.copy_to_peer((there.gpu(), target), source, size as usize)
    }

    /// Fills device memory with one byte.
    pub(super) fn fill(
        &self,
        (device, stream): Where,
        (target, offset): Start,
        byte: u8,
        size: u64,
    ) -> Result<()> {
        let session = self.session(device)?;
        let (queue, block) = (session.queue(stream)?, session.block(target, offset, size)?);
        if size == 0 {
            return Ok(());
        }
        queue.fill(Place { block: &block, offset }, byte, size as usize)
    }
}
