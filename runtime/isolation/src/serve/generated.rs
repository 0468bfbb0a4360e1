// Generated from `device-sdk/contract/oarlock.contract` by `cargo xtask generate`. Do not edit.

#![expect(unsafe_code, reason = "slots of the plugin are called through pointers")]

use core::ffi::c_void;

use oarlock_abi as abi;

use super::served_plugin::{MAX_LIST, ServedPlugin};
use crate::wire::WireBreach;
use crate::wire::byte_writer::ByteWriter;
use crate::wire::generated as slots;
use crate::wire::stored_reader::StoredReader;

fn encode_version(reply: &mut ByteWriter<'_>, value: &abi::Version) {
    reply.put_u32(value.major);
    reply.put_u32(value.minor);
    reply.put_u32(value.patch);
    reply.put_u32(value.build);
}

fn encode_device_info(reply: &mut ByteWriter<'_>, value: &abi::DeviceInfo) {
    // SAFETY: the plugin keeps the text until it is unloaded (rule S-6).
    reply.put_bytes(unsafe { value.name.bytes() }.unwrap_or_default());
    // SAFETY: the plugin keeps the text until it is unloaded (rule S-6).
    reply.put_bytes(unsafe { value.vendor.bytes() }.unwrap_or_default());
    // SAFETY: the plugin keeps the text until it is unloaded (rule S-6).
    reply.put_bytes(unsafe { value.bus_id.bytes() }.unwrap_or_default());
    reply.put_u64(value.bits.0);
    reply.put_u32(value.compute_units);
    reply.put_u32(value.memory_alignment);
}

/// Calls a slot of the plugin: reads the arguments, and writes the results of a call that succeeds.
///
/// # Safety
///
/// The arguments come from a host that keeps to the contract.
pub(super) unsafe fn call_slot(
    plugin: &ServedPlugin,
    number: u32,
    request: &mut StoredReader<'_>,
    reply: &mut ByteWriter<'_>,
) -> Result<abi::Error, WireBreach> {
    let failure = match number {
        slots::CORE_INITIALIZE => {
            let (context, table) = plugin.core_table()?;
            let Some(slot) = table.initialize else {
                return Err(WireBreach::new("a function in `initialize`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe { slot(context) }
        }
        slots::CORE_FINALIZE => {
            let (context, table) = plugin.core_table()?;
            let Some(slot) = table.finalize else {
                return Err(WireBreach::new("a function in `finalize`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe { slot(context) }
        }
        slots::CORE_DEVICE_INIT => {
            let (context, table) = plugin.core_table()?;
            let device = request.take_u32()?;
            let Some(slot) = table.device_init else {
                return Err(WireBreach::new("a function in `device_init`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe { slot(context, device) }
        }
        slots::CORE_DEVICE_DEINIT => {
            let (context, table) = plugin.core_table()?;
            let device = request.take_u32()?;
            let Some(slot) = table.device_deinit else {
                return Err(WireBreach::new("a function in `device_deinit`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe { slot(context, device) }
        }
        slots::CORE_DEVICE_SYNCHRONIZE => {
            let (context, table) = plugin.core_table()?;
            let device = request.take_u32()?;
            let Some(slot) = table.device_synchronize else {
                return Err(WireBreach::new("a function in `device_synchronize`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe { slot(context, device) }
        }
        slots::CORE_DEVICE_COUNT => {
            let (context, table) = plugin.core_table()?;
            let mut count = 0;
            let Some(slot) = table.device_count else {
                return Err(WireBreach::new("a function in `device_count`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            let failure = unsafe { slot(context, &raw mut count) };
            if !failure.is_some() {
                reply.put_u32(count);
            }
            failure
        }
        slots::CORE_DEVICE_LIST => {
            let (context, table) = plugin.core_table()?;
            let mut ids = vec![0; request.take_u64()?.min(MAX_LIST) as usize];
            let mut ids_count = 0;
            let Some(slot) = table.device_list else {
                return Err(WireBreach::new("a function in `device_list`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            let failure = unsafe { slot(context, ids.as_mut_ptr(), ids.len() as u64, &raw mut ids_count) };
            if !failure.is_some() {
                reply.put_u64(ids_count);
                let filled = ids_count.min(ids.len() as u64);
                reply.put_u32(filled as u32);
                ids[..filled as usize].iter().for_each(|item| reply.put_u32(*item));
            }
            failure
        }
        slots::CORE_DEVICE_INFO => {
            let (context, table) = plugin.core_table()?;
            let device = request.take_u32()?;
            let mut info = abi::DeviceInfo::EMPTY;
            let Some(slot) = table.device_info else {
                return Err(WireBreach::new("a function in `device_info`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            let failure = unsafe { slot(context, device, &raw mut info) };
            if !failure.is_some() {
                encode_device_info(reply, &info);
            }
            failure
        }
        slots::CORE_COMPUTE_CAPABILITY => {
            let (context, table) = plugin.core_table()?;
            let device = request.take_u32()?;
            let mut capability = abi::Version::EMPTY;
            let Some(slot) = table.compute_capability else {
                return Err(WireBreach::new("a function in `compute_capability`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            let failure = unsafe { slot(context, device, &raw mut capability) };
            if !failure.is_some() {
                encode_version(reply, &capability);
            }
            failure
        }
        slots::CORE_RUNTIME_VERSION => {
            let (context, table) = plugin.core_table()?;
            let mut installed = abi::Version::EMPTY;
            let Some(slot) = table.runtime_version else {
                return Err(WireBreach::new("a function in `runtime_version`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            let failure = unsafe { slot(context, &raw mut installed) };
            if !failure.is_some() {
                encode_version(reply, &installed);
            }
            failure
        }
        slots::CORE_DRIVER_VERSION => {
            let (context, table) = plugin.core_table()?;
            let mut installed = abi::Version::EMPTY;
            let Some(slot) = table.driver_version else {
                return Err(WireBreach::new("a function in `driver_version`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            let failure = unsafe { slot(context, &raw mut installed) };
            if !failure.is_some() {
                encode_version(reply, &installed);
            }
            failure
        }
        slots::CORE_MEMORY_ALLOCATE => {
            let (context, table) = plugin.core_table()?;
            let device = request.take_u32()?;
            let size = request.take_u64()?;
            let mut block = abi::Memory(0);
            let Some(slot) = table.memory_allocate else {
                return Err(WireBreach::new("a function in `memory_allocate`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            let failure = unsafe { slot(context, device, size, &raw mut block) };
            if !failure.is_some() {
                reply.put_u64(block.0);
            }
            failure
        }
        slots::CORE_MEMORY_DEALLOCATE => {
            let (context, table) = plugin.core_table()?;
            let device = request.take_u32()?;
            let block = abi::Memory(request.take_u64()?);
            let size = request.take_u64()?;
            let Some(slot) = table.memory_deallocate else {
                return Err(WireBreach::new("a function in `memory_deallocate`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe { slot(context, device, block, size) }
        }
        slots::CORE_MEMORY_COPY_H2D => {
            let (context, table) = plugin.core_table()?;
            let device = request.take_u32()?;
            let target = abi::Memory(request.take_u64()?);
            let target_offset = request.take_u64()?;
            let (source, source_size) = request.take_range()?;
            let Some(slot) = table.memory_copy_h2d else {
                return Err(WireBreach::new("a function in `memory_copy_h2d`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe { slot(context, device, target, target_offset, source, source_size) }
        }
        slots::CORE_MEMORY_COPY_D2H => {
            let (context, table) = plugin.core_table()?;
            let device = request.take_u32()?;
            let (target, target_size) = request.take_range()?;
            let source = abi::Memory(request.take_u64()?);
            let source_offset = request.take_u64()?;
            let Some(slot) = table.memory_copy_d2h else {
                return Err(WireBreach::new("a function in `memory_copy_d2h`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe { slot(context, device, target, target_size, source, source_offset) }
        }
        slots::CORE_MEMORY_COPY_D2D => {
            let (context, table) = plugin.core_table()?;
            let device = request.take_u32()?;
            let target = abi::Memory(request.take_u64()?);
            let target_offset = request.take_u64()?;
            let source = abi::Memory(request.take_u64()?);
            let source_offset = request.take_u64()?;
            let size = request.take_u64()?;
            let Some(slot) = table.memory_copy_d2d else {
                return Err(WireBreach::new("a function in `memory_copy_d2d`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe { slot(context, device, target, target_offset, source, source_offset, size) }
        }
        slots::CORE_MEMORY_COPY_P2P => {
            let (context, table) = plugin.core_table()?;
            let target_device = request.take_u32()?;
            let target = abi::Memory(request.take_u64()?);
            let target_offset = request.take_u64()?;
            let source_device = request.take_u32()?;
            let source = abi::Memory(request.take_u64()?);
            let source_offset = request.take_u64()?;
            let size = request.take_u64()?;
            let Some(slot) = table.memory_copy_p2p else {
                return Err(WireBreach::new("a function in `memory_copy_p2p`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe {
                slot(
                    context,
                    target_device,
                    target,
                    target_offset,
                    source_device,
                    source,
                    source_offset,
                    size,
                )
            }
        }
        slots::CORE_MEMORY_SET => {
            let (context, table) = plugin.core_table()?;
            let device = request.take_u32()?;
            let target = abi::Memory(request.take_u64()?);
            let target_offset = request.take_u64()?;
            let byte = request.take_u8()?;
            let size = request.take_u64()?;
            let Some(slot) = table.memory_set else {
                return Err(WireBreach::new("a function in `memory_set`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe { slot(context, device, target, target_offset, byte, size) }
        }
        slots::CORE_MEMORY_STATS => {
            let (context, table) = plugin.core_table()?;
            let device = request.take_u32()?;
            let mut total = 0;
            let mut free = 0;
            let Some(slot) = table.memory_stats else {
                return Err(WireBreach::new("a function in `memory_stats`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            let failure = unsafe { slot(context, device, &raw mut total, &raw mut free) };
            if !failure.is_some() {
                reply.put_u64(total);
                reply.put_u64(free);
            }
            failure
        }
        slots::CORE_MIN_CHUNK_SIZE => {
            let (context, table) = plugin.core_table()?;
            let device = request.take_u32()?;
            let mut size = 0;
            let Some(slot) = table.min_chunk_size else {
                return Err(WireBreach::new("a function in `min_chunk_size`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            let failure = unsafe { slot(context, device, &raw mut size) };
            if !failure.is_some() {
                reply.put_u64(size);
            }
            failure
        }
        slots::CORE_MAX_CHUNK_SIZE => {
            let (context, table) = plugin.core_table()?;
            let device = request.take_u32()?;
            let mut size = 0;
            let Some(slot) = table.max_chunk_size else {
                return Err(WireBreach::new("a function in `max_chunk_size`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            let failure = unsafe { slot(context, device, &raw mut size) };
            if !failure.is_some() {
                reply.put_u64(size);
            }
            failure
        }
        slots::CORE_MAX_ALLOC_SIZE => {
            let (context, table) = plugin.core_table()?;
            let device = request.take_u32()?;
            let mut size = 0;
            let Some(slot) = table.max_alloc_size else {
                return Err(WireBreach::new("a function in `max_alloc_size`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            let failure = unsafe { slot(context, device, &raw mut size) };
            if !failure.is_some() {
                reply.put_u64(size);
            }
            failure
        }
        slots::CORE_EXTRA_PADDING_SIZE => {
            let (context, table) = plugin.core_table()?;
            let device = request.take_u32()?;
            let mut size = 0;
            let Some(slot) = table.extra_padding_size else {
                return Err(WireBreach::new("a function in `extra_padding_size`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            let failure = unsafe { slot(context, device, &raw mut size) };
            if !failure.is_some() {
                reply.put_u64(size);
            }
            failure
        }
        slots::CORE_INIT_ALLOC_SIZE => {
            let (context, table) = plugin.core_table()?;
            let device = request.take_u32()?;
            let mut size = 0;
            let Some(slot) = table.init_alloc_size else {
                return Err(WireBreach::new("a function in `init_alloc_size`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            let failure = unsafe { slot(context, device, &raw mut size) };
            if !failure.is_some() {
                reply.put_u64(size);
            }
            failure
        }
        slots::CORE_REALLOC_SIZE => {
            let (context, table) = plugin.core_table()?;
            let device = request.take_u32()?;
            let mut size = 0;
            let Some(slot) = table.realloc_size else {
                return Err(WireBreach::new("a function in `realloc_size`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            let failure = unsafe { slot(context, device, &raw mut size) };
            if !failure.is_some() {
                reply.put_u64(size);
            }
            failure
        }
        slots::ASYNC_STREAM_CREATE => {
            let (context, table) = plugin.async_table()?;
            let device = request.take_u32()?;
            let priority = request.take_i32()?;
            let mut queue = abi::Stream(0);
            let Some(slot) = table.stream_create else {
                return Err(WireBreach::new("a function in `stream_create`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            let failure = unsafe { slot(context, device, priority, &raw mut queue) };
            if !failure.is_some() {
                reply.put_u64(queue.0);
            }
            failure
        }
        slots::ASYNC_STREAM_DESTROY => {
            let (context, table) = plugin.async_table()?;
            let device = request.take_u32()?;
            let queue = abi::Stream(request.take_u64()?);
            let Some(slot) = table.stream_destroy else {
                return Err(WireBreach::new("a function in `stream_destroy`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe { slot(context, device, queue) }
        }
        slots::ASYNC_STREAM_QUERY => {
            let (context, table) = plugin.async_table()?;
            let device = request.take_u32()?;
            let queue = abi::Stream(request.take_u64()?);
            let mut done = 0;
            let Some(slot) = table.stream_query else {
                return Err(WireBreach::new("a function in `stream_query`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            let failure = unsafe { slot(context, device, queue, &raw mut done) };
            if !failure.is_some() {
                reply.put_u32(done);
            }
            failure
        }
        slots::ASYNC_STREAM_SYNCHRONIZE => {
            let (context, table) = plugin.async_table()?;
            let device = request.take_u32()?;
            let queue = abi::Stream(request.take_u64()?);
            let Some(slot) = table.stream_synchronize else {
                return Err(WireBreach::new("a function in `stream_synchronize`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe { slot(context, device, queue) }
        }
        slots::ASYNC_STREAM_WAIT_EVENT => {
            let (context, table) = plugin.async_table()?;
            let device = request.take_u32()?;
            let queue = abi::Stream(request.take_u64()?);
            let point = abi::Event(request.take_u64()?);
            let Some(slot) = table.stream_wait_event else {
                return Err(WireBreach::new("a function in `stream_wait_event`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe { slot(context, device, queue, point) }
        }
        slots::ASYNC_EVENT_CREATE => {
            let (context, table) = plugin.async_table()?;
            let device = request.take_u32()?;
            let mut point = abi::Event(0);
            let Some(slot) = table.event_create else {
                return Err(WireBreach::new("a function in `event_create`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            let failure = unsafe { slot(context, device, &raw mut point) };
            if !failure.is_some() {
                reply.put_u64(point.0);
            }
            failure
        }
        slots::ASYNC_EVENT_DESTROY => {
            let (context, table) = plugin.async_table()?;
            let device = request.take_u32()?;
            let point = abi::Event(request.take_u64()?);
            let Some(slot) = table.event_destroy else {
                return Err(WireBreach::new("a function in `event_destroy`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe { slot(context, device, point) }
        }
        slots::ASYNC_EVENT_RECORD => {
            let (context, table) = plugin.async_table()?;
            let device = request.take_u32()?;
            let queue = abi::Stream(request.take_u64()?);
            let point = abi::Event(request.take_u64()?);
            let Some(slot) = table.event_record else {
                return Err(WireBreach::new("a function in `event_record`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe { slot(context, device, queue, point) }
        }
        slots::ASYNC_EVENT_QUERY => {
            let (context, table) = plugin.async_table()?;
            let device = request.take_u32()?;
            let point = abi::Event(request.take_u64()?);
            let mut done = 0;
            let Some(slot) = table.event_query else {
                return Err(WireBreach::new("a function in `event_query`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            let failure = unsafe { slot(context, device, point, &raw mut done) };
            if !failure.is_some() {
                reply.put_u32(done);
            }
            failure
        }
        slots::ASYNC_EVENT_SYNCHRONIZE => {
            let (context, table) = plugin.async_table()?;
            let device = request.take_u32()?;
            let point = abi::Event(request.take_u64()?);
            let Some(slot) = table.event_synchronize else {
                return Err(WireBreach::new("a function in `event_synchronize`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe { slot(context, device, point) }
        }
        slots::ASYNC_EVENT_ELAPSED => {
            let (context, table) = plugin.async_table()?;
            let device = request.take_u32()?;
            let start = abi::Event(request.take_u64()?);
            let end = abi::Event(request.take_u64()?);
            let mut nanoseconds = 0;
            let Some(slot) = table.event_elapsed else {
                return Err(WireBreach::new("a function in `event_elapsed`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            let failure = unsafe { slot(context, device, start, end, &raw mut nanoseconds) };
            if !failure.is_some() {
                reply.put_u64(nanoseconds);
            }
            failure
        }
        slots::ASYNC_MEMORY_COPY_H2D_ASYNC => {
            let (context, table) = plugin.async_table()?;
            let device = request.take_u32()?;
            let queue = abi::Stream(request.take_u64()?);
            let target = abi::Memory(request.take_u64()?);
            let target_offset = request.take_u64()?;
            let source = request.take_address()?;
            let size = request.take_u64()?;
            let Some(slot) = table.memory_copy_h2d_async else {
                return Err(WireBreach::new("a function in `memory_copy_h2d_async`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe { slot(context, device, queue, target, target_offset, source, size) }
        }
        slots::ASYNC_MEMORY_COPY_D2H_ASYNC => {
            let (context, table) = plugin.async_table()?;
            let device = request.take_u32()?;
            let queue = abi::Stream(request.take_u64()?);
            let target = request.take_address()?;
            let source = abi::Memory(request.take_u64()?);
            let source_offset = request.take_u64()?;
            let size = request.take_u64()?;
            let Some(slot) = table.memory_copy_d2h_async else {
                return Err(WireBreach::new("a function in `memory_copy_d2h_async`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe { slot(context, device, queue, target, source, source_offset, size) }
        }
        slots::ASYNC_MEMORY_COPY_D2D_ASYNC => {
            let (context, table) = plugin.async_table()?;
            let device = request.take_u32()?;
            let queue = abi::Stream(request.take_u64()?);
            let target = abi::Memory(request.take_u64()?);
            let target_offset = request.take_u64()?;
            let source = abi::Memory(request.take_u64()?);
            let source_offset = request.take_u64()?;
            let size = request.take_u64()?;
            let Some(slot) = table.memory_copy_d2d_async else {
                return Err(WireBreach::new("a function in `memory_copy_d2d_async`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe { slot(context, device, queue, target, target_offset, source, source_offset, size) }
        }
        slots::ASYNC_MEMORY_COPY_P2P_ASYNC => {
            let (context, table) = plugin.async_table()?;
            let target_device = request.take_u32()?;
            let target = abi::Memory(request.take_u64()?);
            let target_offset = request.take_u64()?;
            let source_device = request.take_u32()?;
            let queue = abi::Stream(request.take_u64()?);
            let source = abi::Memory(request.take_u64()?);
            let source_offset = request.take_u64()?;
            let size = request.take_u64()?;
            let Some(slot) = table.memory_copy_p2p_async else {
                return Err(WireBreach::new("a function in `memory_copy_p2p_async`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe {
                slot(
                    context,
                    target_device,
                    target,
                    target_offset,
                    source_device,
                    queue,
                    source,
                    source_offset,
                    size,
                )
            }
        }
        slots::ASYNC_MEMORY_SET_ASYNC => {
            let (context, table) = plugin.async_table()?;
            let device = request.take_u32()?;
            let queue = abi::Stream(request.take_u64()?);
            let target = abi::Memory(request.take_u64()?);
            let target_offset = request.take_u64()?;
            let byte = request.take_u8()?;
            let size = request.take_u64()?;
            let Some(slot) = table.memory_set_async else {
                return Err(WireBreach::new("a function in `memory_set_async`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe { slot(context, device, queue, target, target_offset, byte, size) }
        }
        slots::ASYNC_MEMORY_ALLOCATE_ASYNC => {
            let (context, table) = plugin.async_table()?;
            let device = request.take_u32()?;
            let queue = abi::Stream(request.take_u64()?);
            let size = request.take_u64()?;
            let mut block = abi::Memory(0);
            let Some(slot) = table.memory_allocate_async else {
                return Err(WireBreach::new("a function in `memory_allocate_async`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            let failure = unsafe { slot(context, device, queue, size, &raw mut block) };
            if !failure.is_some() {
                reply.put_u64(block.0);
            }
            failure
        }
        slots::ASYNC_MEMORY_DEALLOCATE_ASYNC => {
            let (context, table) = plugin.async_table()?;
            let device = request.take_u32()?;
            let queue = abi::Stream(request.take_u64()?);
            let block = abi::Memory(request.take_u64()?);
            let size = request.take_u64()?;
            let Some(slot) = table.memory_deallocate_async else {
                return Err(WireBreach::new("a function in `memory_deallocate_async`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe { slot(context, device, queue, block, size) }
        }
        slots::KERNEL_SUPPORTS => {
            let kernel = plugin.kernel(request.take_u32()?)?;
            let (context, table) = (kernel.context, kernel);
            let call = plugin.read_call(request)?.cast_const();
            let Some(slot) = table.supports else {
                return Err(WireBreach::new("a function in `supports`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe { slot(context, call) }
        }
        slots::KERNEL_INFER => {
            let kernel = plugin.kernel(request.take_u32()?)?;
            let (context, table) = (kernel.context, kernel);
            let call = plugin.read_call(request)?.cast_const();
            let Some(slot) = table.infer else {
                return Err(WireBreach::new("a function in `infer`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe { slot(context, call) }
        }
        slots::KERNEL_WORKSPACE => {
            let kernel = plugin.kernel(request.take_u32()?)?;
            let (context, table) = (kernel.context, kernel);
            let call = plugin.read_call(request)?.cast_const();
            let mut size = 0;
            let Some(slot) = table.workspace else {
                return Err(WireBreach::new("a function in `workspace`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            let failure = unsafe { slot(context, call, &raw mut size) };
            if !failure.is_some() {
                reply.put_u64(size);
            }
            failure
        }
        slots::KERNEL_PREPARE => {
            let kernel = plugin.kernel(request.take_u32()?)?;
            let (context, table) = (kernel.context, kernel);
            let call = plugin.read_call(request)?.cast_const();
            let mut state = core::ptr::null_mut();
            let Some(slot) = table.prepare else {
                return Err(WireBreach::new("a function in `prepare`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            let failure = unsafe { slot(context, call, &raw mut state) };
            if !failure.is_some() {
                reply.put_u64(state as u64);
            }
            failure
        }
        slots::KERNEL_RUN => {
            let kernel = plugin.kernel(request.take_u32()?)?;
            let (context, table) = (kernel.context, kernel);
            let state = request.take_u64()? as *mut c_void;
            let call = plugin.read_call(request)?.cast_const();
            let Some(slot) = table.run else { return Err(WireBreach::new("a function in `run`", "none")) };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe { slot(context, state, call) }
        }
        slots::KERNEL_RELEASE => {
            let kernel = plugin.kernel(request.take_u32()?)?;
            let (context, table) = (kernel.context, kernel);
            let state = request.take_u64()? as *mut c_void;
            let Some(slot) = table.release else {
                return Err(WireBreach::new("a function in `release`", "none"));
            };
            // SAFETY: the context is the plugin's own, and the host vouches for the arguments.
            unsafe { slot(context, state) }
        }
        other => return Err(WireBreach::new("a slot", other.to_string())),
    };
    Ok(failure)
}

/// The slots that the plugin has filled: bit n stands for slot n.
pub(super) fn filled_core(table: &abi::CoreTable) -> u64 {
    let slots = [
        table.initialize.is_some(),
        table.finalize.is_some(),
        table.device_init.is_some(),
        table.device_deinit.is_some(),
        table.device_synchronize.is_some(),
        table.device_count.is_some(),
        table.device_list.is_some(),
        table.device_info.is_some(),
        table.compute_capability.is_some(),
        table.runtime_version.is_some(),
        table.driver_version.is_some(),
        table.memory_allocate.is_some(),
        table.memory_deallocate.is_some(),
        table.host_memory_allocate.is_some(),
        table.host_memory_deallocate.is_some(),
        table.unified_memory_allocate.is_some(),
        table.unified_memory_deallocate.is_some(),
        table.memory_copy_h2d.is_some(),
        table.memory_copy_d2h.is_some(),
        table.memory_copy_d2d.is_some(),
        table.memory_copy_p2p.is_some(),
        table.memory_set.is_some(),
        table.memory_stats.is_some(),
        table.min_chunk_size.is_some(),
        table.max_chunk_size.is_some(),
        table.max_alloc_size.is_some(),
        table.extra_padding_size.is_some(),
        table.init_alloc_size.is_some(),
        table.realloc_size.is_some(),
        table.experimental.is_some(),
    ];
    slots.iter().enumerate().map(|(bit, filled)| u64::from(*filled) << bit).sum()
}

/// The slots that the plugin has filled: bit n stands for slot n.
pub(super) fn filled_async(table: &abi::AsyncTable) -> u64 {
    let slots = [
        table.stream_create.is_some(),
        table.stream_destroy.is_some(),
        table.stream_query.is_some(),
        table.stream_synchronize.is_some(),
        table.stream_add_callback.is_some(),
        table.stream_wait_event.is_some(),
        table.event_create.is_some(),
        table.event_destroy.is_some(),
        table.event_record.is_some(),
        table.event_query.is_some(),
        table.event_synchronize.is_some(),
        table.event_elapsed.is_some(),
        table.memory_copy_h2d_async.is_some(),
        table.memory_copy_d2h_async.is_some(),
        table.memory_copy_d2d_async.is_some(),
        table.memory_copy_p2p_async.is_some(),
        table.memory_set_async.is_some(),
        table.memory_allocate_async.is_some(),
        table.memory_deallocate_async.is_some(),
    ];
    slots.iter().enumerate().map(|(bit, filled)| u64::from(*filled) << bit).sum()
}

/// The slots that the plugin has filled: bit n stands for slot n.
pub(super) fn filled_kernel(table: &abi::Kernel) -> u64 {
    let slots = [
        table.supports.is_some(),
        table.infer.is_some(),
        table.workspace.is_some(),
        table.prepare.is_some(),
        table.run.is_some(),
        table.release.is_some(),
    ];
    slots.iter().enumerate().map(|(bit, filled)| u64::from(*filled) << bit).sum()
}
