//! Copies and fills. Each is put into a stream; in the device's own it is done when the call returns.

#![expect(unsafe_code, reason = "the driver's functions are C functions")]

use cudarc::driver::result::{memcpy_dtod_async, memcpy_peer_async, memset_d8_async};
use cudarc::driver::sys::{cuMemcpyDtoHAsync_v2, cuMemcpyHtoDAsync_v2};
use oarlock_sdk::{Memory, Result, Stream};

use crate::state::Cuda;

/// A device and a stream of it.
type Place = (u32, Stream);

/// A block, and the first byte in it.
type Start = (Memory, u64);

/// Copies from the host to the device.
///
/// # Safety
///
/// `size` bytes at `source` stay readable until the stream is past this.
pub(crate) unsafe fn write(
    state: &Cuda,
    (device, stream): Place,
    (target, offset): Start,
    source: *const u8,
    size: u64,
) -> Result<()> {
    let session = state.session(device)?;
    let (queue, target) = (session.queue(stream)?, session.blocks.sized(target, offset, size)?);
    if size == 0 {
        return Ok(());
    }
    queue.put("cuMemcpyHtoDAsync", |stream| {
        // SAFETY: the range lies in a block that is alive, and the caller vouches for the source.
        unsafe { cuMemcpyHtoDAsync_v2(target, source.cast(), size as usize, stream) }.result()
    })
}

/// Copies from the device to the host.
///
/// # Safety
///
/// `size` bytes at `target` stay writable, and nobody else touches them, until the stream is past this.
pub(crate) unsafe fn read(
    state: &Cuda,
    (device, stream): Place,
    target: *mut u8,
    (source, offset): Start,
    size: u64,
) -> Result<()> {
    let session = state.session(device)?;
    let (queue, source) = (session.queue(stream)?, session.blocks.sized(source, offset, size)?);
    if size == 0 {
        return Ok(());
    }
    queue.put("cuMemcpyDtoHAsync", |stream| {
        // SAFETY: the range lies in a block that is alive, and the caller vouches for the target.
        unsafe { cuMemcpyDtoHAsync_v2(target.cast(), source, size as usize, stream) }.result()
    })
}

/// Copies within a device.
pub(crate) fn copy(
    state: &Cuda,
    (device, stream): Place,
    (target, target_offset): Start,
    (source, source_offset): Start,
    size: u64,
) -> Result<()> {
    let session = state.session(device)?;
    let queue = session.queue(stream)?;
    let target = session.blocks.sized(target, target_offset, size)?;
    let source = session.blocks.sized(source, source_offset, size)?;
    if size == 0 {
        return Ok(());
    }
    queue.put("cuMemcpyDtoDAsync", |stream| {
        // SAFETY: both ranges lie in blocks that are alive.
        unsafe { memcpy_dtod_async(target, source, size as usize, stream) }
    })
}

/// Copies from one device to another, in a stream of the first. The driver goes by way of the host where it must.
pub(crate) fn across(
    state: &Cuda,
    (device, stream): Place,
    (target_device, target, target_offset): (u32, Memory, u64),
    (source, source_offset): Start,
    size: u64,
) -> Result<()> {
    let (here, there) = (state.session(device)?, state.session(target_device)?);
    let queue = here.queue(stream)?;
    let target = there.blocks.sized(target, target_offset, size)?;
    let source = here.blocks.sized(source, source_offset, size)?;
    if size == 0 {
        return Ok(());
    }
    queue.put("cuMemcpyPeerAsync", |stream| {
        let (here, there) = (here.context.raw(), there.context.raw());
        // SAFETY: both ranges lie in blocks that are alive, each of the device whose context is named.
        unsafe { memcpy_peer_async(there, target, here, source, size as usize, stream) }
    })
}

/// Fills device memory with one byte.
pub(crate) fn fill(
    state: &Cuda,
    (device, stream): Place,
    (target, offset): Start,
    byte: u8,
    size: u64,
) -> Result<()> {
    let session = state.session(device)?;
    let (queue, target) = (session.queue(stream)?, session.blocks.sized(target, offset, size)?);
    if size == 0 {
        return Ok(());
    }
    queue.put("cuMemsetD8Async", |stream| {
        // SAFETY: the range lies in a block that is alive.
        unsafe { memset_d8_async(target, byte, size as usize, stream) }
    })
}
