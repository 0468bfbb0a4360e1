//! The slots whose arguments are addresses in this process: copies, pinned memory and callbacks.
//!
//! Pinned memory of the proxy is a piece of the arena, so the plugin reads and writes it in place. Other memory goes through the
//! staging buffers of the lane, and the next piece is copied while the plugin works on the last. An asynchronous copy from or to
//! ordinary memory synchronizes the stream first, as it does on a device that has no such slot.

#![expect(
    unsafe_code,
    reason = "these are functions of a table, and copy from and to addresses of the caller"
)]

use std::ffi::c_void;

use oarlock_abi as abi;

use super::call_route::{CallFailure, CallRoute};
use super::callbacks::WaitingCallback;
use super::connection::{ChildConnection, LaneInUse, write_request};
use super::crossed_memory::CrossedMemory;
use super::request_writer::RequestWriter;
use crate::shared::layout::{STAGING_BYTES, STAGING_PIECES};
use crate::shared::region::LaneMemory;
use crate::wire::WireBreach;
use crate::wire::failure::WireFailure;
use crate::wire::generated as slots;
use crate::wire::header::FENCE;

/// A range of device memory that is copied.
#[derive(Clone, Copy)]
struct DeviceRange {
    device: u32,
    block: abi::Memory,
    offset: u64,
}

/// # Safety
///
/// `context` is that of the proxy, which is alive.
unsafe fn connection_of<'a>(context: *mut c_void) -> &'a ChildConnection {
    // SAFETY: the context of the tables is the address of the connection, which lives as long as the proxy.
    unsafe { &*context.cast::<ChildConnection>() }
}

/// Sends one copy; the shared memory has `size` bytes at `shared`.
fn put_copy(request: &mut RequestWriter<'_, '_>, slot: u32, range: DeviceRange, shared: u64, size: u64) {
    request.put_u32(range.device);
    if slot == slots::CORE_MEMORY_COPY_H2D {
        request.put_u64(range.block.0);
        request.put_u64(range.offset);
        request.put_u64(shared);
        request.put_u64(size);
    } else {
        request.put_u64(shared);
        request.put_u64(size);
        request.put_u64(range.block.0);
        request.put_u64(range.offset);
    }
}

/// Posts a part of a copy that goes through the staging buffers.
fn post_piece(
    lane: &mut LaneInUse<'_>,
    slot: u32,
    range: DeviceRange,
    shared: u64,
    size: u64,
) -> Result<u32, CallFailure> {
    let route = CallRoute { posts: true, ..CallRoute::to_slot(slot) };
    send(lane, &route, |request| put_copy(request, slot, range, shared, size))
}

/// Sends a request of a copy on a lane that is in use.
fn send(
    lane: &mut LaneInUse<'_>,
    route: &CallRoute,
    put: impl FnOnce(&mut RequestWriter<'_, '_>),
) -> Result<u32, CallFailure> {
    let mut crossed = CrossedMemory::new(lane.connection.arena());
    let mut request = std::mem::take(&mut lane.ticket.request);
    let written = write_request(&mut request, route, &mut crossed, |request| {
        put(request);
        Ok(())
    });
    let sent = written.and_then(|()| lane.send_request(&mut request, &mut crossed));
    lane.ticket.request = request;
    sent
}

/// Waits for all pieces of a copy; returns the first failure among them.
fn finish_pieces(lane: &mut LaneInUse<'_>) -> Result<(), CallFailure> {
    let number = send(lane, &CallRoute::to_slot(FENCE), |_| {})?;
    lane.connection.wait_executed(lane.ticket.index, number, FENCE)?;
    lane.read_results(|_| Ok(()))
}

/// Offset and size of each piece of a copy.
fn staging_pieces(size: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..size.div_ceil(STAGING_BYTES)).map(move |index| {
        let at = index * STAGING_BYTES;
        (at, STAGING_BYTES.min(size - at))
    })
}

/// # Safety
///
/// `size` bytes can be read at `source`.
unsafe fn copy_to_device(
    connection: &ChildConnection,
    range: DeviceRange,
    source: *const u8,
    size: usize,
) -> Result<(), CallFailure> {
    connection.life().note_slot(slots::CORE_MEMORY_COPY_H2D);
    let mut lane = connection.take_lane()?;
    let (index, memory) = (lane.ticket.index, connection.region().lane(lane.ticket.index));
    let mut done_at = [None; STAGING_PIECES];
    for (piece, (at, length)) in staging_pieces(size).enumerate() {
        let place = &mut done_at[piece % STAGING_PIECES];
        if let Some(number) = *place {
            connection.wait_executed(index, number, slots::CORE_MEMORY_COPY_H2D)?;
        }
        // SAFETY: the caller vouches for the source, and the child is past what the buffer held.
        unsafe { std::ptr::copy_nonoverlapping(source.add(at), memory.staging(piece), length) };
        let part = DeviceRange { offset: range.offset + at as u64, ..range };
        let shared = LaneMemory::staging_offset(index, piece);
        *place = Some(post_piece(&mut lane, slots::CORE_MEMORY_COPY_H2D, part, shared, length as u64)?);
    }
    finish_pieces(&mut lane)
}

/// # Safety
///
/// `size` bytes can be written at `target`.
unsafe fn copy_from_device(
    connection: &ChildConnection,
    range: DeviceRange,
    target: *mut u8,
    size: usize,
) -> Result<(), CallFailure> {
    connection.life().note_slot(slots::CORE_MEMORY_COPY_D2H);
    let mut lane = connection.take_lane()?;
    let (index, memory) = (lane.ticket.index, connection.region().lane(lane.ticket.index));
    let mut requested = staging_pieces(size).enumerate();
    let mut waiting = std::collections::VecDeque::with_capacity(STAGING_PIECES);
    let is_single = size <= STAGING_BYTES;
    loop {
        while waiting.len() < STAGING_PIECES
            && let Some((piece, (at, length))) = requested.next()
        {
            let part = DeviceRange { offset: range.offset + at as u64, ..range };
            let shared = LaneMemory::staging_offset(index, piece);
            let number = post_piece(&mut lane, slots::CORE_MEMORY_COPY_D2H, part, shared, length as u64)?;
            waiting.push_back((piece, at, length, number));
        }
        let Some((piece, at, length, number)) = waiting.pop_front() else { break };
        connection.wait_executed(index, number, slots::CORE_MEMORY_COPY_D2H)?;
        if is_single {
            // The outputs of a call that failed stay as they are (rule R-1).
            finish_pieces(&mut lane)?;
        }
        // SAFETY: the caller vouches for the target, and the child has filled the buffer.
        unsafe { std::ptr::copy_nonoverlapping(memory.staging(piece), target.add(at), length) };
    }
    if is_single { Ok(()) } else { finish_pieces(&mut lane) }
}

/// A copy whose host side is in the arena, or `None` if it is elsewhere.
fn copy_in_arena(
    connection: &ChildConnection,
    slot: u32,
    range: DeviceRange,
    address: u64,
    size: u64,
) -> Option<abi::Error> {
    let shared = connection.region().arena_offset(address, size)?;
    let put = |request: &mut RequestWriter<'_, '_>| {
        put_copy(request, slot, range, shared, size);
        Ok(())
    };
    Some(connection.forward(&CallRoute::to_slot(slot), put, |_| Ok(())))
}

pub(super) unsafe extern "C" fn core_memory_copy_h2d(
    context: *mut c_void,
    device: u32,
    target: abi::Memory,
    target_offset: u64,
    source: *const c_void,
    source_size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy.
    let connection = unsafe { connection_of(context) };
    let range = DeviceRange { device, block: target, offset: target_offset };
    let slot = slots::CORE_MEMORY_COPY_H2D;
    copy_in_arena(connection, slot, range, source as u64, source_size).unwrap_or_else(|| {
        // SAFETY: the caller vouches for the source.
        let copied = unsafe { copy_to_device(connection, range, source.cast(), source_size as usize) };
        connection.settle(&CallRoute::to_slot(slot), copied)
    })
}

pub(super) unsafe extern "C" fn core_memory_copy_d2h(
    context: *mut c_void,
    device: u32,
    target: *mut c_void,
    target_size: u64,
    source: abi::Memory,
    source_offset: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy.
    let connection = unsafe { connection_of(context) };
    let range = DeviceRange { device, block: source, offset: source_offset };
    let slot = slots::CORE_MEMORY_COPY_D2H;
    copy_in_arena(connection, slot, range, target as u64, target_size).unwrap_or_else(|| {
        // SAFETY: the caller vouches for the target.
        let copied = unsafe { copy_from_device(connection, range, target.cast(), target_size as usize) };
        connection.settle(&CallRoute::to_slot(slot), copied)
    })
}

/// Waits for a stream before a copy that cannot run in it.
fn synchronize_first(connection: &ChildConnection, device: u32, queue: abi::Stream) -> abi::Error {
    let route = CallRoute { stream: queue.0, ..CallRoute::to_slot(slots::ASYNC_STREAM_SYNCHRONIZE) };
    let put = |request: &mut RequestWriter<'_, '_>| {
        request.put_u32(device);
        request.put_u64(queue.0);
        Ok(())
    };
    connection.forward(&route, put, |_| Ok(()))
}

pub(super) unsafe extern "C" fn async_memory_copy_h2d_async(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    target: abi::Memory,
    target_offset: u64,
    source: *const c_void,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy.
    let connection = unsafe { connection_of(context) };
    if let Some(shared) = connection.region().arena_offset(source as u64, size) {
        let slot = slots::ASYNC_MEMORY_COPY_H2D_ASYNC;
        let route = CallRoute {
            stream: queue.0,
            posts: connection.handles().has_stream(device, queue),
            ..CallRoute::to_slot(slot)
        };
        let put = |request: &mut RequestWriter<'_, '_>| {
            request.put_u32(device);
            for number in [queue.0, target.0, target_offset, shared, size] {
                request.put_u64(number);
            }
            Ok(())
        };
        return connection.forward(&route, put, |_| Ok(()));
    }
    let failure = synchronize_first(connection, device, queue);
    if failure.is_some() {
        return failure;
    }
    // SAFETY: the arguments are those of the other slot.
    unsafe { core_memory_copy_h2d(context, device, target, target_offset, source, size) }
}

pub(super) unsafe extern "C" fn async_memory_copy_d2h_async(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    target: *mut c_void,
    source: abi::Memory,
    source_offset: u64,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy.
    let connection = unsafe { connection_of(context) };
    if let Some(shared) = connection.region().arena_offset(target as u64, size) {
        let slot = slots::ASYNC_MEMORY_COPY_D2H_ASYNC;
        let route = CallRoute {
            stream: queue.0,
            posts: connection.handles().has_stream(device, queue),
            ..CallRoute::to_slot(slot)
        };
        let put = |request: &mut RequestWriter<'_, '_>| {
            request.put_u32(device);
            for number in [queue.0, shared, source.0, source_offset, size] {
                request.put_u64(number);
            }
            Ok(())
        };
        return connection.forward(&route, put, |_| Ok(()));
    }
    let failure = synchronize_first(connection, device, queue);
    if failure.is_some() {
        return failure;
    }
    // SAFETY: the arguments are those of the other slot.
    unsafe { core_memory_copy_d2h(context, device, target, size, source, source_offset) }
}

pub(super) unsafe extern "C" fn core_host_memory_allocate(
    context: *mut c_void,
    device: u32,
    size: u64,
    address: *mut *mut c_void,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy.
    let connection = unsafe { connection_of(context) };
    let route = CallRoute::to_slot(slots::CORE_HOST_MEMORY_ALLOCATE);
    // The plugin says whether there is such a device; the memory is the host's own.
    let asked = CallRoute::to_slot(slots::CORE_COMPUTE_CAPABILITY);
    let put = |request: &mut RequestWriter<'_, '_>| {
        request.put_u32(device);
        Ok(())
    };
    let failure = connection.forward(&asked, put, |_| Ok(()));
    if failure.is_some() {
        return failure;
    }
    let piece = connection
        .arena()
        .take_piece(size)
        .and_then(|offset| connection.region().range_address(offset, size).ok());
    let Some(piece) = piece else {
        let expected = format!("{size} bytes in the memory that is shared with the isolated plugin");
        let message = format!("expected {expected}, found less; free other pinned memory first");
        let failure = WireFailure::new(abi::Code::RESOURCE_EXHAUSTED, message);
        return connection.settle(&route, Err(CallFailure::Reported(failure)));
    };
    // SAFETY: the caller gives a place for the address.
    unsafe { address.write(piece.cast()) };
    abi::Error::NONE
}

pub(super) unsafe extern "C" fn core_host_memory_deallocate(
    context: *mut c_void,
    _device: u32,
    address: *mut c_void,
    _size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy.
    let connection = unsafe { connection_of(context) };
    let offset = connection.region().arena_offset(address as u64, 1);
    if offset.is_some_and(|offset| connection.arena().give_piece(offset)) {
        return abi::Error::NONE;
    }
    let message = "expected an address that `host_memory_allocate` returned, found another one";
    let failure = WireFailure::new(abi::Code::INVALID_ARGUMENT, message);
    let route = CallRoute::to_slot(slots::CORE_HOST_MEMORY_DEALLOCATE);
    connection.settle(&route, Err(CallFailure::Reported(failure)))
}

pub(super) unsafe extern "C" fn async_stream_add_callback(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    reached: Option<abi::StreamReached>,
    user: *mut c_void,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy.
    let connection = unsafe { connection_of(context) };
    let route = CallRoute { stream: queue.0, ..CallRoute::to_slot(slots::ASYNC_STREAM_ADD_CALLBACK) };
    let refuse = |message: String| {
        let failure = WireFailure::new(abi::Code::INVALID_ARGUMENT, message);
        connection.settle(&route, Err(CallFailure::Reported(failure)))
    };
    let Some(reached) = reached else { return refuse("expected a callback, found null".to_owned()) };
    let callback = WaitingCallback { reached, device, stream: queue, user };
    let number = match connection.callbacks().add_callback(callback, *connection.host()) {
        Ok(number) => number,
        Err(error) => return refuse(format!("expected a thread for callbacks, found: {error}")),
    };
    let put = |request: &mut RequestWriter<'_, '_>| {
        request.put_u32(device);
        request.put_u64(queue.0);
        request.put_u64(number);
        Ok::<(), WireBreach>(())
    };
    let failure = connection.forward(&route, put, |_| Ok(()));
    if !failure.is_some() || connection.callbacks().take_back(number) {
        return failure;
    }
    // The child died, and the callback has been told so already: it was accepted.
    connection.host().take_failure(failure);
    abi::Error::NONE
}
