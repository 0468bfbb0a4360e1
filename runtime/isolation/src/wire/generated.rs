// Generated from `device-sdk/contract/oarlock.contract` by `cargo xtask generate`. Do not edit.

/// `initialize` of `core`.
pub(crate) const CORE_INITIALIZE: u32 = 1;
/// `finalize` of `core`.
pub(crate) const CORE_FINALIZE: u32 = 2;
/// `device_init` of `core`.
pub(crate) const CORE_DEVICE_INIT: u32 = 3;
/// `device_deinit` of `core`.
pub(crate) const CORE_DEVICE_DEINIT: u32 = 4;
/// `device_synchronize` of `core`.
pub(crate) const CORE_DEVICE_SYNCHRONIZE: u32 = 5;
/// `device_count` of `core`.
pub(crate) const CORE_DEVICE_COUNT: u32 = 6;
/// `device_list` of `core`.
pub(crate) const CORE_DEVICE_LIST: u32 = 7;
/// `device_info` of `core`.
pub(crate) const CORE_DEVICE_INFO: u32 = 8;
/// `compute_capability` of `core`.
pub(crate) const CORE_COMPUTE_CAPABILITY: u32 = 9;
/// `runtime_version` of `core`.
pub(crate) const CORE_RUNTIME_VERSION: u32 = 10;
/// `driver_version` of `core`.
pub(crate) const CORE_DRIVER_VERSION: u32 = 11;
/// `memory_allocate` of `core`.
pub(crate) const CORE_MEMORY_ALLOCATE: u32 = 12;
/// `memory_deallocate` of `core`.
pub(crate) const CORE_MEMORY_DEALLOCATE: u32 = 13;
/// `host_memory_allocate` of `core`.
pub(crate) const CORE_HOST_MEMORY_ALLOCATE: u32 = 14;
/// `host_memory_deallocate` of `core`.
pub(crate) const CORE_HOST_MEMORY_DEALLOCATE: u32 = 15;
/// `memory_copy_h2d` of `core`.
pub(crate) const CORE_MEMORY_COPY_H2D: u32 = 18;
/// `memory_copy_d2h` of `core`.
pub(crate) const CORE_MEMORY_COPY_D2H: u32 = 19;
/// `memory_copy_d2d` of `core`.
pub(crate) const CORE_MEMORY_COPY_D2D: u32 = 20;
/// `memory_copy_p2p` of `core`.
pub(crate) const CORE_MEMORY_COPY_P2P: u32 = 21;
/// `memory_set` of `core`.
pub(crate) const CORE_MEMORY_SET: u32 = 22;
/// `memory_stats` of `core`.
pub(crate) const CORE_MEMORY_STATS: u32 = 23;
/// `min_chunk_size` of `core`.
pub(crate) const CORE_MIN_CHUNK_SIZE: u32 = 24;
/// `max_chunk_size` of `core`.
pub(crate) const CORE_MAX_CHUNK_SIZE: u32 = 25;
/// `max_alloc_size` of `core`.
pub(crate) const CORE_MAX_ALLOC_SIZE: u32 = 26;
/// `extra_padding_size` of `core`.
pub(crate) const CORE_EXTRA_PADDING_SIZE: u32 = 27;
/// `init_alloc_size` of `core`.
pub(crate) const CORE_INIT_ALLOC_SIZE: u32 = 28;
/// `realloc_size` of `core`.
pub(crate) const CORE_REALLOC_SIZE: u32 = 29;
/// `stream_create` of `async`.
pub(crate) const ASYNC_STREAM_CREATE: u32 = 31;
/// `stream_destroy` of `async`.
pub(crate) const ASYNC_STREAM_DESTROY: u32 = 32;
/// `stream_query` of `async`.
pub(crate) const ASYNC_STREAM_QUERY: u32 = 33;
/// `stream_synchronize` of `async`.
pub(crate) const ASYNC_STREAM_SYNCHRONIZE: u32 = 34;
/// `stream_add_callback` of `async`.
pub(crate) const ASYNC_STREAM_ADD_CALLBACK: u32 = 35;
/// `stream_wait_event` of `async`.
pub(crate) const ASYNC_STREAM_WAIT_EVENT: u32 = 36;
/// `event_create` of `async`.
pub(crate) const ASYNC_EVENT_CREATE: u32 = 37;
/// `event_destroy` of `async`.
pub(crate) const ASYNC_EVENT_DESTROY: u32 = 38;
/// `event_record` of `async`.
pub(crate) const ASYNC_EVENT_RECORD: u32 = 39;
/// `event_query` of `async`.
pub(crate) const ASYNC_EVENT_QUERY: u32 = 40;
/// `event_synchronize` of `async`.
pub(crate) const ASYNC_EVENT_SYNCHRONIZE: u32 = 41;
/// `event_elapsed` of `async`.
pub(crate) const ASYNC_EVENT_ELAPSED: u32 = 42;
/// `memory_copy_h2d_async` of `async`.
pub(crate) const ASYNC_MEMORY_COPY_H2D_ASYNC: u32 = 43;
/// `memory_copy_d2h_async` of `async`.
pub(crate) const ASYNC_MEMORY_COPY_D2H_ASYNC: u32 = 44;
/// `memory_copy_d2d_async` of `async`.
pub(crate) const ASYNC_MEMORY_COPY_D2D_ASYNC: u32 = 45;
/// `memory_copy_p2p_async` of `async`.
pub(crate) const ASYNC_MEMORY_COPY_P2P_ASYNC: u32 = 46;
/// `memory_set_async` of `async`.
pub(crate) const ASYNC_MEMORY_SET_ASYNC: u32 = 47;
/// `memory_allocate_async` of `async`.
pub(crate) const ASYNC_MEMORY_ALLOCATE_ASYNC: u32 = 48;
/// `memory_deallocate_async` of `async`.
pub(crate) const ASYNC_MEMORY_DEALLOCATE_ASYNC: u32 = 49;
/// `supports` of `kernel`.
pub(crate) const KERNEL_SUPPORTS: u32 = 50;
/// `infer` of `kernel`.
pub(crate) const KERNEL_INFER: u32 = 51;
/// `workspace` of `kernel`.
pub(crate) const KERNEL_WORKSPACE: u32 = 52;
/// `prepare` of `kernel`.
pub(crate) const KERNEL_PREPARE: u32 = 53;
/// `run` of `kernel`.
pub(crate) const KERNEL_RUN: u32 = 54;
/// `release` of `kernel`.
pub(crate) const KERNEL_RELEASE: u32 = 55;

/// The name of a slot, for messages.
pub(crate) fn slot_name(number: u32) -> &'static str {
    match number {
        CORE_INITIALIZE => "core.initialize",
        CORE_FINALIZE => "core.finalize",
        CORE_DEVICE_INIT => "core.device_init",
        CORE_DEVICE_DEINIT => "core.device_deinit",
        CORE_DEVICE_SYNCHRONIZE => "core.device_synchronize",
        CORE_DEVICE_COUNT => "core.device_count",
        CORE_DEVICE_LIST => "core.device_list",
        CORE_DEVICE_INFO => "core.device_info",
        CORE_COMPUTE_CAPABILITY => "core.compute_capability",
        CORE_RUNTIME_VERSION => "core.runtime_version",
        CORE_DRIVER_VERSION => "core.driver_version",
        CORE_MEMORY_ALLOCATE => "core.memory_allocate",
        CORE_MEMORY_DEALLOCATE => "core.memory_deallocate",
        CORE_HOST_MEMORY_ALLOCATE => "core.host_memory_allocate",
        CORE_HOST_MEMORY_DEALLOCATE => "core.host_memory_deallocate",
        CORE_MEMORY_COPY_H2D => "core.memory_copy_h2d",
        CORE_MEMORY_COPY_D2H => "core.memory_copy_d2h",
        CORE_MEMORY_COPY_D2D => "core.memory_copy_d2d",
        CORE_MEMORY_COPY_P2P => "core.memory_copy_p2p",
        CORE_MEMORY_SET => "core.memory_set",
        CORE_MEMORY_STATS => "core.memory_stats",
        CORE_MIN_CHUNK_SIZE => "core.min_chunk_size",
        CORE_MAX_CHUNK_SIZE => "core.max_chunk_size",
        CORE_MAX_ALLOC_SIZE => "core.max_alloc_size",
        CORE_EXTRA_PADDING_SIZE => "core.extra_padding_size",
        CORE_INIT_ALLOC_SIZE => "core.init_alloc_size",
        CORE_REALLOC_SIZE => "core.realloc_size",
        ASYNC_STREAM_CREATE => "async.stream_create",
        ASYNC_STREAM_DESTROY => "async.stream_destroy",
        ASYNC_STREAM_QUERY => "async.stream_query",
        ASYNC_STREAM_SYNCHRONIZE => "async.stream_synchronize",
        ASYNC_STREAM_ADD_CALLBACK => "async.stream_add_callback",
        ASYNC_STREAM_WAIT_EVENT => "async.stream_wait_event",
        ASYNC_EVENT_CREATE => "async.event_create",
        ASYNC_EVENT_DESTROY => "async.event_destroy",
        ASYNC_EVENT_RECORD => "async.event_record",
        ASYNC_EVENT_QUERY => "async.event_query",
        ASYNC_EVENT_SYNCHRONIZE => "async.event_synchronize",
        ASYNC_EVENT_ELAPSED => "async.event_elapsed",
        ASYNC_MEMORY_COPY_H2D_ASYNC => "async.memory_copy_h2d_async",
        ASYNC_MEMORY_COPY_D2H_ASYNC => "async.memory_copy_d2h_async",
        ASYNC_MEMORY_COPY_D2D_ASYNC => "async.memory_copy_d2d_async",
        ASYNC_MEMORY_COPY_P2P_ASYNC => "async.memory_copy_p2p_async",
        ASYNC_MEMORY_SET_ASYNC => "async.memory_set_async",
        ASYNC_MEMORY_ALLOCATE_ASYNC => "async.memory_allocate_async",
        ASYNC_MEMORY_DEALLOCATE_ASYNC => "async.memory_deallocate_async",
        KERNEL_SUPPORTS => "kernel.supports",
        KERNEL_INFER => "kernel.infer",
        KERNEL_WORKSPACE => "kernel.workspace",
        KERNEL_PREPARE => "kernel.prepare",
        KERNEL_RUN => "kernel.run",
        KERNEL_RELEASE => "kernel.release",
        crate::wire::header::SHUT_DOWN => "unload",
        _ => "a request",
    }
}
