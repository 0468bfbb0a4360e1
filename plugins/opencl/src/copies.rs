//! Copies and fills. Each is put into a queue; in the device's own it is done when the call returns.

#![expect(unsafe_code, reason = "commands of the driver are C functions")]

use oarlock_sdk::{Memory, Result, Stream};
use opencl3::command_queue::{
    enqueue_copy_buffer, enqueue_fill_buffer, enqueue_read_buffer, enqueue_write_buffer,
};
use opencl3::memory::ClMem;
use opencl3::types::CL_FALSE;

use crate::state::OpenCl;

/// A device and a stream of it.
type Place = (u32, Stream);

/// A block, and the first byte in it.
type Start = (Memory, u64);

/// Copies from the host to the device.
///
/// # Safety
///
/// `size` bytes at `source` stay readable until the queue is past this.
pub(crate) unsafe fn write(
    state: &OpenCl,
    place: Place,
    (target, offset): Start,
    source: *const u8,
    size: u64,
) -> Result<()> {
    let (device, queue) = state.queue(place.0, place.1)?;
    let block = device.blocks.sized(target, offset, size)?;
    if size == 0 {
        return Ok(());
    }
    queue.put("clEnqueueWriteBuffer", |queue| {
        let (offset, size) = (offset as usize, size as usize);
        let source = source.cast_mut().cast();
        // SAFETY: queue and buffer are alive, the range lies inside, and the caller vouches for the source.
        unsafe {
            enqueue_write_buffer(
                queue,
                block.buffer.get(),
                CL_FALSE,
                offset,
                size,
                source,
                0,
                std::ptr::null(),
            )
        }
    })
}

/// Copies from the device to the host.
///
/// # Safety
///
/// `size` bytes at `target` stay writable, and nobody else touches them, until the queue is past this.
pub(crate) unsafe fn read(
    state: &OpenCl,
    place: Place,
    target: *mut u8,
    (source, offset): Start,
    size: u64,
) -> Result<()> {
    let (device, queue) = state.queue(place.0, place.1)?;
    let block = device.blocks.sized(source, offset, size)?;
    if size == 0 {
        return Ok(());
    }
    queue.put("clEnqueueReadBuffer", |queue| {
        let (offset, size) = (offset as usize, size as usize);
        let target = target.cast();
        // SAFETY: queue and buffer are alive, the range lies inside, and the caller vouches for the target.
        unsafe {
            enqueue_read_buffer(
                queue,
                block.buffer.get(),
                CL_FALSE,
                offset,
                size,
                target,
                0,
                std::ptr::null(),
            )
        }
    })
}

/// Copies within a device.
pub(crate) fn copy(
    state: &OpenCl,
    place: Place,
    (target, target_offset): Start,
    (source, source_offset): Start,
    size: u64,
) -> Result<()> {
    let (device, queue) = state.queue(place.0, place.1)?;
    let to = device.blocks.sized(target, target_offset, size)?;
    let from = device.blocks.sized(source, source_offset, size)?;
    if size == 0 {
        return Ok(());
    }
    queue.put("clEnqueueCopyBuffer", |queue| {
        let (from_offset, to_offset, size) = (source_offset as usize, target_offset as usize, size as usize);
        let (from, to) = (from.buffer.get(), to.buffer.get());
        // SAFETY: queue and buffers are alive and the ranges lie inside. The driver refuses ranges that overlap.
        unsafe { enqueue_copy_buffer(queue, from, to, from_offset, to_offset, size, 0, std::ptr::null()) }
    })
}

/// Fills device memory with one byte.
pub(crate) fn fill(state: &OpenCl, place: Place, (target, offset): Start, byte: u8, size: u64) -> Result<()> {
    let (device, queue) = state.queue(place.0, place.1)?;
    let block = device.blocks.sized(target, offset, size)?;
    if size == 0 {
        return Ok(());
    }
    queue.put("clEnqueueFillBuffer", |queue| {
        let (pattern, offset, size) = ((&raw const byte).cast_mut().cast(), offset as usize, size as usize);
        // SAFETY: queue and buffer are alive, the range lies inside, and the pattern is read before the call returns.
        unsafe {
            enqueue_fill_buffer(queue, block.buffer.get(), pattern, 1, offset, size, 0, std::ptr::null())
        }
    })
}
