// Generated from `device-sdk/contract/oarlock.contract` by `cargo xtask generate`. Do not edit.

#![expect(unsafe_code, reason = "every function here is called through a pointer from C")]

use core::ffi::c_void;

use oarlock_abi as abi;

use super::arguments::encode_call;
use super::call_route::CallRoute;
use super::connection::ChildConnection;
use super::copies;
use super::kernel_proxy::{KernelProxy, stream_of_call};
use super::reply_reader::{ReplyReader, write_known};
use super::request_writer::ElementPolicy;
use crate::wire::WireBreach;
use crate::wire::generated as slots;

fn decode_version(reply: &mut ReplyReader<'_>) -> Result<abi::Version, WireBreach> {
    let mut value = abi::Version::EMPTY;
    value.major = reply.take_u32()?;
    value.minor = reply.take_u32()?;
    value.patch = reply.take_u32()?;
    value.build = reply.take_u32()?;
    Ok(value)
}

fn decode_device_info(reply: &mut ReplyReader<'_>) -> Result<abi::DeviceInfo, WireBreach> {
    let mut value = abi::DeviceInfo::EMPTY;
    value.name = reply.take_str()?;
    value.vendor = reply.take_str()?;
    value.bus_id = reply.take_str()?;
    value.bits = abi::DeviceFlags(reply.take_u64()?);
    value.compute_units = reply.take_u32()?;
    value.memory_alignment = reply.take_u32()?;
    // The plugin's addresses mean nothing here.
    value.bits = abi::DeviceFlags(
        value.bits.0 & !(abi::DeviceFlags::HOST_ADDRESSABLE.0 | abi::DeviceFlags::SHARES_HOST_MEMORY.0),
    );
    Ok(value)
}

unsafe extern "C" fn core_initialize(context: *mut c_void) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { ..CallRoute::to_slot(slots::CORE_INITIALIZE) };
    proxy.forward(&route, |_| Ok(()), |_| Ok(()))
}

unsafe extern "C" fn core_finalize(context: *mut c_void) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { frees: true, ..CallRoute::to_slot(slots::CORE_FINALIZE) };
    proxy.forward(&route, |_| Ok(()), |_| Ok(()))
}

unsafe extern "C" fn core_device_init(context: *mut c_void, device: u32) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { ..CallRoute::to_slot(slots::CORE_DEVICE_INIT) };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            Ok(())
        },
        |_| Ok(()),
    )
}

unsafe extern "C" fn core_device_deinit(context: *mut c_void, device: u32) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { frees: true, ..CallRoute::to_slot(slots::CORE_DEVICE_DEINIT) };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            Ok(())
        },
        |_| Ok(()),
    )
}

unsafe extern "C" fn core_device_synchronize(context: *mut c_void, device: u32) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { ..CallRoute::to_slot(slots::CORE_DEVICE_SYNCHRONIZE) };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            Ok(())
        },
        |_| Ok(()),
    )
}

unsafe extern "C" fn core_device_count(context: *mut c_void, count: *mut u32) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { ..CallRoute::to_slot(slots::CORE_DEVICE_COUNT) };
    proxy.forward(
        &route,
        |_| Ok(()),
        |reply| {
            let count_taken = reply.take_u32()?;
            // SAFETY: the caller gives places for the results.
            unsafe {
                count.write(count_taken);
            }
            Ok(())
        },
    )
}

unsafe extern "C" fn core_device_list(
    context: *mut c_void,
    ids: *mut u32,
    ids_capacity: u64,
    ids_count: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { ..CallRoute::to_slot(slots::CORE_DEVICE_LIST) };
    proxy.forward(
        &route,
        |request| {
            request.put_u64(ids_capacity);
            Ok(())
        },
        |reply| {
            // SAFETY: the caller gives a list with this capacity.
            let ids_total = unsafe { reply.fill_u32_list(ids, ids_capacity)? };
            // SAFETY: the caller gives places for the results.
            unsafe {
                ids_count.write(ids_total);
            }
            Ok(())
        },
    )
}

unsafe extern "C" fn core_device_info(
    context: *mut c_void,
    device: u32,
    info: *mut abi::DeviceInfo,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { ..CallRoute::to_slot(slots::CORE_DEVICE_INFO) };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            Ok(())
        },
        |reply| {
            let info_taken = decode_device_info(reply)?;
            // SAFETY: the caller gives places for the results.
            unsafe {
                write_known(info, info_taken);
            }
            Ok(())
        },
    )
}

unsafe extern "C" fn core_compute_capability(
    context: *mut c_void,
    device: u32,
    capability: *mut abi::Version,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { ..CallRoute::to_slot(slots::CORE_COMPUTE_CAPABILITY) };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            Ok(())
        },
        |reply| {
            let capability_taken = decode_version(reply)?;
            // SAFETY: the caller gives places for the results.
            unsafe {
                capability.write(capability_taken);
            }
            Ok(())
        },
    )
}

unsafe extern "C" fn core_runtime_version(context: *mut c_void, installed: *mut abi::Version) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { ..CallRoute::to_slot(slots::CORE_RUNTIME_VERSION) };
    proxy.forward(
        &route,
        |_| Ok(()),
        |reply| {
            let installed_taken = decode_version(reply)?;
            // SAFETY: the caller gives places for the results.
            unsafe {
                installed.write(installed_taken);
            }
            Ok(())
        },
    )
}

unsafe extern "C" fn core_driver_version(context: *mut c_void, installed: *mut abi::Version) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { ..CallRoute::to_slot(slots::CORE_DRIVER_VERSION) };
    proxy.forward(
        &route,
        |_| Ok(()),
        |reply| {
            let installed_taken = decode_version(reply)?;
            // SAFETY: the caller gives places for the results.
            unsafe {
                installed.write(installed_taken);
            }
            Ok(())
        },
    )
}

unsafe extern "C" fn core_memory_allocate(
    context: *mut c_void,
    device: u32,
    size: u64,
    block: *mut abi::Memory,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { ..CallRoute::to_slot(slots::CORE_MEMORY_ALLOCATE) };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            request.put_u64(size);
            Ok(())
        },
        |reply| {
            let block_taken = abi::Memory(reply.take_u64()?);
            // SAFETY: the caller gives places for the results.
            unsafe {
                block.write(block_taken);
            }
            Ok(())
        },
    )
}

unsafe extern "C" fn core_memory_deallocate(
    context: *mut c_void,
    device: u32,
    block: abi::Memory,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { frees: true, ..CallRoute::to_slot(slots::CORE_MEMORY_DEALLOCATE) };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            request.put_u64(block.0);
            request.put_u64(size);
            Ok(())
        },
        |_| Ok(()),
    )
}

unsafe extern "C" fn core_memory_copy_d2d(
    context: *mut c_void,
    device: u32,
    target: abi::Memory,
    target_offset: u64,
    source: abi::Memory,
    source_offset: u64,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { ..CallRoute::to_slot(slots::CORE_MEMORY_COPY_D2D) };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            request.put_u64(target.0);
            request.put_u64(target_offset);
            request.put_u64(source.0);
            request.put_u64(source_offset);
            request.put_u64(size);
            Ok(())
        },
        |_| Ok(()),
    )
}

unsafe extern "C" fn core_memory_copy_p2p(
    context: *mut c_void,
    target_device: u32,
    target: abi::Memory,
    target_offset: u64,
    source_device: u32,
    source: abi::Memory,
    source_offset: u64,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { ..CallRoute::to_slot(slots::CORE_MEMORY_COPY_P2P) };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(target_device);
            request.put_u64(target.0);
            request.put_u64(target_offset);
            request.put_u32(source_device);
            request.put_u64(source.0);
            request.put_u64(source_offset);
            request.put_u64(size);
            Ok(())
        },
        |_| Ok(()),
    )
}

unsafe extern "C" fn core_memory_set(
    context: *mut c_void,
    device: u32,
    target: abi::Memory,
    target_offset: u64,
    byte: u8,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { ..CallRoute::to_slot(slots::CORE_MEMORY_SET) };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            request.put_u64(target.0);
            request.put_u64(target_offset);
            request.put_u8(byte);
            request.put_u64(size);
            Ok(())
        },
        |_| Ok(()),
    )
}

unsafe extern "C" fn core_memory_stats(
    context: *mut c_void,
    device: u32,
    total: *mut u64,
    free: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { ..CallRoute::to_slot(slots::CORE_MEMORY_STATS) };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            Ok(())
        },
        |reply| {
            let total_taken = reply.take_u64()?;
            let free_taken = reply.take_u64()?;
            // SAFETY: the caller gives places for the results.
            unsafe {
                total.write(total_taken);
                free.write(free_taken);
            }
            Ok(())
        },
    )
}

unsafe extern "C" fn core_min_chunk_size(context: *mut c_void, device: u32, size: *mut u64) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { ..CallRoute::to_slot(slots::CORE_MIN_CHUNK_SIZE) };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            Ok(())
        },
        |reply| {
            let size_taken = reply.take_u64()?;
            // SAFETY: the caller gives places for the results.
            unsafe {
                size.write(size_taken);
            }
            Ok(())
        },
    )
}

unsafe extern "C" fn core_max_chunk_size(context: *mut c_void, device: u32, size: *mut u64) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { ..CallRoute::to_slot(slots::CORE_MAX_CHUNK_SIZE) };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            Ok(())
        },
        |reply| {
            let size_taken = reply.take_u64()?;
            // SAFETY: the caller gives places for the results.
            unsafe {
                size.write(size_taken);
            }
            Ok(())
        },
    )
}

unsafe extern "C" fn core_max_alloc_size(context: *mut c_void, device: u32, size: *mut u64) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { ..CallRoute::to_slot(slots::CORE_MAX_ALLOC_SIZE) };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            Ok(())
        },
        |reply| {
            let size_taken = reply.take_u64()?;
            // SAFETY: the caller gives places for the results.
            unsafe {
                size.write(size_taken);
            }
            Ok(())
        },
    )
}

unsafe extern "C" fn core_extra_padding_size(
    context: *mut c_void,
    device: u32,
    size: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { ..CallRoute::to_slot(slots::CORE_EXTRA_PADDING_SIZE) };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            Ok(())
        },
        |reply| {
            let size_taken = reply.take_u64()?;
            // SAFETY: the caller gives places for the results.
            unsafe {
                size.write(size_taken);
            }
            Ok(())
        },
    )
}

unsafe extern "C" fn core_init_alloc_size(context: *mut c_void, device: u32, size: *mut u64) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { ..CallRoute::to_slot(slots::CORE_INIT_ALLOC_SIZE) };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            Ok(())
        },
        |reply| {
            let size_taken = reply.take_u64()?;
            // SAFETY: the caller gives places for the results.
            unsafe {
                size.write(size_taken);
            }
            Ok(())
        },
    )
}

unsafe extern "C" fn core_realloc_size(context: *mut c_void, device: u32, size: *mut u64) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { ..CallRoute::to_slot(slots::CORE_REALLOC_SIZE) };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            Ok(())
        },
        |reply| {
            let size_taken = reply.take_u64()?;
            // SAFETY: the caller gives places for the results.
            unsafe {
                size.write(size_taken);
            }
            Ok(())
        },
    )
}

/// The proxies of the slots that the plugin has filled: bit n stands for slot n.
pub(super) fn proxied_core(filled: u64) -> abi::CoreTable {
    let has = |slot: u32| filled & (1 << slot) != 0;
    abi::CoreTable {
        initialize: if has(0) { Some(core_initialize) } else { None },
        finalize: if has(1) { Some(core_finalize) } else { None },
        device_init: if has(2) { Some(core_device_init) } else { None },
        device_deinit: if has(3) { Some(core_device_deinit) } else { None },
        device_synchronize: if has(4) { Some(core_device_synchronize) } else { None },
        device_count: if has(5) { Some(core_device_count) } else { None },
        device_list: if has(6) { Some(core_device_list) } else { None },
        device_info: if has(7) { Some(core_device_info) } else { None },
        compute_capability: if has(8) { Some(core_compute_capability) } else { None },
        runtime_version: if has(9) { Some(core_runtime_version) } else { None },
        driver_version: if has(10) { Some(core_driver_version) } else { None },
        memory_allocate: if has(11) { Some(core_memory_allocate) } else { None },
        memory_deallocate: if has(12) { Some(core_memory_deallocate) } else { None },
        host_memory_allocate: Some(copies::core_host_memory_allocate),
        host_memory_deallocate: Some(copies::core_host_memory_deallocate),
        memory_copy_h2d: if has(17) { Some(copies::core_memory_copy_h2d) } else { None },
        memory_copy_d2h: if has(18) { Some(copies::core_memory_copy_d2h) } else { None },
        memory_copy_d2d: if has(19) { Some(core_memory_copy_d2d) } else { None },
        memory_copy_p2p: if has(20) { Some(core_memory_copy_p2p) } else { None },
        memory_set: if has(21) { Some(core_memory_set) } else { None },
        memory_stats: if has(22) { Some(core_memory_stats) } else { None },
        min_chunk_size: if has(23) { Some(core_min_chunk_size) } else { None },
        max_chunk_size: if has(24) { Some(core_max_chunk_size) } else { None },
        max_alloc_size: if has(25) { Some(core_max_alloc_size) } else { None },
        extra_padding_size: if has(26) { Some(core_extra_padding_size) } else { None },
        init_alloc_size: if has(27) { Some(core_init_alloc_size) } else { None },
        realloc_size: if has(28) { Some(core_realloc_size) } else { None },
        ..abi::CoreTable::EMPTY
    }
}

unsafe extern "C" fn async_stream_create(
    context: *mut c_void,
    device: u32,
    priority: i32,
    queue: *mut abi::Stream,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { ..CallRoute::to_slot(slots::ASYNC_STREAM_CREATE) };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            request.put_i32(priority);
            Ok(())
        },
        |reply| {
            let queue_taken = abi::Stream(reply.take_u64()?);
            // SAFETY: the caller gives places for the results.
            unsafe {
                queue.write(queue_taken);
            }
            proxy.handles().add_stream(device, queue_taken);
            Ok(())
        },
    )
}

unsafe extern "C" fn async_stream_destroy(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { stream: queue.0, frees: true, ..CallRoute::to_slot(slots::ASYNC_STREAM_DESTROY) };
    proxy.handles().forget_stream(device, queue);
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            request.put_u64(queue.0);
            Ok(())
        },
        |_| Ok(()),
    )
}

unsafe extern "C" fn async_stream_query(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    done: *mut u32,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { stream: queue.0, ..CallRoute::to_slot(slots::ASYNC_STREAM_QUERY) };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            request.put_u64(queue.0);
            Ok(())
        },
        |reply| {
            let done_taken = reply.take_u32()?;
            // SAFETY: the caller gives places for the results.
            unsafe {
                done.write(done_taken);
            }
            Ok(())
        },
    )
}

unsafe extern "C" fn async_stream_synchronize(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { stream: queue.0, ..CallRoute::to_slot(slots::ASYNC_STREAM_SYNCHRONIZE) };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            request.put_u64(queue.0);
            Ok(())
        },
        |_| Ok(()),
    )
}

unsafe extern "C" fn async_stream_wait_event(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    point: abi::Event,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute {
        stream: queue.0,
        posts: proxy.handles().has_stream(device, queue) && proxy.handles().has_event(device, point),
        event: point.0,
        ..CallRoute::to_slot(slots::ASYNC_STREAM_WAIT_EVENT)
    };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            request.put_u64(queue.0);
            request.put_u64(point.0);
            Ok(())
        },
        |_| Ok(()),
    )
}

unsafe extern "C" fn async_event_create(
    context: *mut c_void,
    device: u32,
    point: *mut abi::Event,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { ..CallRoute::to_slot(slots::ASYNC_EVENT_CREATE) };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            Ok(())
        },
        |reply| {
            let point_taken = abi::Event(reply.take_u64()?);
            // SAFETY: the caller gives places for the results.
            unsafe {
                point.write(point_taken);
            }
            proxy.handles().add_event(device, point_taken);
            Ok(())
        },
    )
}

unsafe extern "C" fn async_event_destroy(context: *mut c_void, device: u32, point: abi::Event) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { event: point.0, frees: true, ..CallRoute::to_slot(slots::ASYNC_EVENT_DESTROY) };
    proxy.handles().forget_event(device, point);
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            request.put_u64(point.0);
            Ok(())
        },
        |_| Ok(()),
    )
}

unsafe extern "C" fn async_event_record(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    point: abi::Event,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute {
        stream: queue.0,
        posts: proxy.handles().has_stream(device, queue) && proxy.handles().has_event(device, point),
        event: point.0,
        ..CallRoute::to_slot(slots::ASYNC_EVENT_RECORD)
    };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            request.put_u64(queue.0);
            request.put_u64(point.0);
            Ok(())
        },
        |_| Ok(()),
    )
}

unsafe extern "C" fn async_event_query(
    context: *mut c_void,
    device: u32,
    point: abi::Event,
    done: *mut u32,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { event: point.0, ..CallRoute::to_slot(slots::ASYNC_EVENT_QUERY) };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            request.put_u64(point.0);
            Ok(())
        },
        |reply| {
            let done_taken = reply.take_u32()?;
            // SAFETY: the caller gives places for the results.
            unsafe {
                done.write(done_taken);
            }
            Ok(())
        },
    )
}

unsafe extern "C" fn async_event_synchronize(
    context: *mut c_void,
    device: u32,
    point: abi::Event,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { event: point.0, ..CallRoute::to_slot(slots::ASYNC_EVENT_SYNCHRONIZE) };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            request.put_u64(point.0);
            Ok(())
        },
        |_| Ok(()),
    )
}

unsafe extern "C" fn async_event_elapsed(
    context: *mut c_void,
    device: u32,
    start: abi::Event,
    end: abi::Event,
    nanoseconds: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { event: start.0, ..CallRoute::to_slot(slots::ASYNC_EVENT_ELAPSED) };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            request.put_u64(start.0);
            request.put_u64(end.0);
            Ok(())
        },
        |reply| {
            let nanoseconds_taken = reply.take_u64()?;
            // SAFETY: the caller gives places for the results.
            unsafe {
                nanoseconds.write(nanoseconds_taken);
            }
            Ok(())
        },
    )
}

unsafe extern "C" fn async_memory_copy_d2d_async(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    target: abi::Memory,
    target_offset: u64,
    source: abi::Memory,
    source_offset: u64,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute {
        stream: queue.0,
        posts: proxy.handles().has_stream(device, queue),
        ..CallRoute::to_slot(slots::ASYNC_MEMORY_COPY_D2D_ASYNC)
    };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            request.put_u64(queue.0);
            request.put_u64(target.0);
            request.put_u64(target_offset);
            request.put_u64(source.0);
            request.put_u64(source_offset);
            request.put_u64(size);
            Ok(())
        },
        |_| Ok(()),
    )
}

unsafe extern "C" fn async_memory_copy_p2p_async(
    context: *mut c_void,
    target_device: u32,
    target: abi::Memory,
    target_offset: u64,
    source_device: u32,
    queue: abi::Stream,
    source: abi::Memory,
    source_offset: u64,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute {
        stream: queue.0,
        posts: proxy.handles().has_stream(source_device, queue),
        ..CallRoute::to_slot(slots::ASYNC_MEMORY_COPY_P2P_ASYNC)
    };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(target_device);
            request.put_u64(target.0);
            request.put_u64(target_offset);
            request.put_u32(source_device);
            request.put_u64(queue.0);
            request.put_u64(source.0);
            request.put_u64(source_offset);
            request.put_u64(size);
            Ok(())
        },
        |_| Ok(()),
    )
}

unsafe extern "C" fn async_memory_set_async(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    target: abi::Memory,
    target_offset: u64,
    byte: u8,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute {
        stream: queue.0,
        posts: proxy.handles().has_stream(device, queue),
        ..CallRoute::to_slot(slots::ASYNC_MEMORY_SET_ASYNC)
    };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            request.put_u64(queue.0);
            request.put_u64(target.0);
            request.put_u64(target_offset);
            request.put_u8(byte);
            request.put_u64(size);
            Ok(())
        },
        |_| Ok(()),
    )
}

unsafe extern "C" fn async_memory_allocate_async(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    size: u64,
    block: *mut abi::Memory,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute { stream: queue.0, ..CallRoute::to_slot(slots::ASYNC_MEMORY_ALLOCATE_ASYNC) };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            request.put_u64(queue.0);
            request.put_u64(size);
            Ok(())
        },
        |reply| {
            let block_taken = abi::Memory(reply.take_u64()?);
            // SAFETY: the caller gives places for the results.
            unsafe {
                block.write(block_taken);
            }
            Ok(())
        },
    )
}

unsafe extern "C" fn async_memory_deallocate_async(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    block: abi::Memory,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<ChildConnection>() };
    let route = CallRoute {
        stream: queue.0,
        posts: proxy.handles().has_stream(device, queue),
        frees: true,
        ..CallRoute::to_slot(slots::ASYNC_MEMORY_DEALLOCATE_ASYNC)
    };
    proxy.forward(
        &route,
        |request| {
            request.put_u32(device);
            request.put_u64(queue.0);
            request.put_u64(block.0);
            request.put_u64(size);
            Ok(())
        },
        |_| Ok(()),
    )
}

/// The proxies of the slots that the plugin has filled: bit n stands for slot n.
pub(super) fn proxied_async(filled: u64) -> abi::AsyncTable {
    let has = |slot: u32| filled & (1 << slot) != 0;
    abi::AsyncTable {
        stream_create: if has(0) { Some(async_stream_create) } else { None },
        stream_destroy: if has(1) { Some(async_stream_destroy) } else { None },
        stream_query: if has(2) { Some(async_stream_query) } else { None },
        stream_synchronize: if has(3) { Some(async_stream_synchronize) } else { None },
        stream_add_callback: if has(4) { Some(copies::async_stream_add_callback) } else { None },
        stream_wait_event: if has(5) { Some(async_stream_wait_event) } else { None },
        event_create: if has(6) { Some(async_event_create) } else { None },
        event_destroy: if has(7) { Some(async_event_destroy) } else { None },
        event_record: if has(8) { Some(async_event_record) } else { None },
        event_query: if has(9) { Some(async_event_query) } else { None },
        event_synchronize: if has(10) { Some(async_event_synchronize) } else { None },
        event_elapsed: if has(11) { Some(async_event_elapsed) } else { None },
        memory_copy_h2d_async: if has(12) { Some(copies::async_memory_copy_h2d_async) } else { None },
        memory_copy_d2h_async: if has(13) { Some(copies::async_memory_copy_d2h_async) } else { None },
        memory_copy_d2d_async: if has(14) { Some(async_memory_copy_d2d_async) } else { None },
        memory_copy_p2p_async: if has(15) { Some(async_memory_copy_p2p_async) } else { None },
        memory_set_async: if has(16) { Some(async_memory_set_async) } else { None },
        memory_allocate_async: if has(17) { Some(async_memory_allocate_async) } else { None },
        memory_deallocate_async: if has(18) { Some(async_memory_deallocate_async) } else { None },
        ..abi::AsyncTable::EMPTY
    }
}

unsafe extern "C" fn kernel_supports(context: *mut c_void, call: *const abi::Call) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<KernelProxy>() };
    let route = CallRoute {
        elements: ElementPolicy::Attributes,
        call,
        // SAFETY: the host passes a call that is as the contract describes it.
        stream: unsafe { stream_of_call(call) },
        ..CallRoute::to_slot(slots::KERNEL_SUPPORTS)
    };
    proxy.connection().forward(
        &route,
        |request| {
            request.put_u32(proxy.index);
            // SAFETY: as above.
            unsafe { encode_call(request, call)? };
            Ok(())
        },
        |_| Ok(()),
    )
}

unsafe extern "C" fn kernel_infer(context: *mut c_void, call: *const abi::Call) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<KernelProxy>() };
    let route = CallRoute {
        elements: ElementPolicy::Constants,
        call,
        // SAFETY: the host passes a call that is as the contract describes it.
        stream: unsafe { stream_of_call(call) },
        ..CallRoute::to_slot(slots::KERNEL_INFER)
    };
    proxy.connection().forward(
        &route,
        |request| {
            request.put_u32(proxy.index);
            // SAFETY: as above.
            unsafe { encode_call(request, call)? };
            Ok(())
        },
        |_| Ok(()),
    )
}

unsafe extern "C" fn kernel_workspace(
    context: *mut c_void,
    call: *const abi::Call,
    size: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<KernelProxy>() };
    let route = CallRoute {
        elements: ElementPolicy::Constants,
        call,
        // SAFETY: the host passes a call that is as the contract describes it.
        stream: unsafe { stream_of_call(call) },
        ..CallRoute::to_slot(slots::KERNEL_WORKSPACE)
    };
    proxy.connection().forward(
        &route,
        |request| {
            request.put_u32(proxy.index);
            // SAFETY: as above.
            unsafe { encode_call(request, call)? };
            Ok(())
        },
        |reply| {
            let size_taken = reply.take_u64()?;
            // SAFETY: the caller gives places for the results.
            unsafe {
                size.write(size_taken);
            }
            Ok(())
        },
    )
}

unsafe extern "C" fn kernel_prepare(
    context: *mut c_void,
    call: *const abi::Call,
    state: *mut *mut c_void,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<KernelProxy>() };
    let route = CallRoute {
        elements: ElementPolicy::Constants,
        call,
        // SAFETY: the host passes a call that is as the contract describes it.
        stream: unsafe { stream_of_call(call) },
        ..CallRoute::to_slot(slots::KERNEL_PREPARE)
    };
    proxy.connection().forward(
        &route,
        |request| {
            request.put_u32(proxy.index);
            // SAFETY: as above.
            unsafe { encode_call(request, call)? };
            Ok(())
        },
        |reply| {
            let state_taken = reply.take_u64()? as *mut c_void;
            // SAFETY: the caller gives places for the results.
            unsafe {
                state.write(state_taken);
            }
            Ok(())
        },
    )
}

unsafe extern "C" fn kernel_run(
    context: *mut c_void,
    state: *mut c_void,
    call: *const abi::Call,
) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<KernelProxy>() };
    let route = CallRoute {
        elements: ElementPolicy::All,
        call,
        // SAFETY: the host passes a call that is as the contract describes it.
        stream: unsafe { stream_of_call(call) },
        // SAFETY: as above.
        posts: unsafe { proxy.may_post(call) },
        ..CallRoute::to_slot(slots::KERNEL_RUN)
    };
    proxy.connection().forward(
        &route,
        |request| {
            request.put_u32(proxy.index);
            request.put_u64(state as u64);
            // SAFETY: as above.
            unsafe { encode_call(request, call)? };
            Ok(())
        },
        |_| Ok(()),
    )
}

unsafe extern "C" fn kernel_release(context: *mut c_void, state: *mut c_void) -> abi::Error {
    // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.
    let proxy = unsafe { &*context.cast::<KernelProxy>() };
    let route = CallRoute { frees: true, ..CallRoute::to_slot(slots::KERNEL_RELEASE) };
    proxy.connection().forward(
        &route,
        |request| {
            request.put_u32(proxy.index);
            request.put_u64(state as u64);
            Ok(())
        },
        |_| Ok(()),
    )
}

/// The proxies of the slots that the plugin has filled: bit n stands for slot n.
pub(super) fn proxied_kernel(filled: u64, described: &abi::Kernel) -> abi::Kernel {
    let has = |slot: u32| filled & (1 << slot) != 0;
    abi::Kernel {
        supports: if has(0) { Some(kernel_supports) } else { None },
        infer: if has(1) { Some(kernel_infer) } else { None },
        workspace: if has(2) { Some(kernel_workspace) } else { None },
        prepare: if has(3) { Some(kernel_prepare) } else { None },
        run: if has(4) { Some(kernel_run) } else { None },
        release: if has(5) { Some(kernel_release) } else { None },
        ..*described
    }
}
