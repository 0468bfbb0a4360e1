// Generated from `device-sdk/contract/oarlock.contract` by `cargo xtask generate`. Do not edit.

/// What a handle stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandleKind {
    /// An error, stored by the host. 0 means success.
    Error,
    /// A block of memory on a device. If the device is `host_addressable`, handle plus offset is the address of a byte.
    Memory,
    /// An ordered queue of work on one device. 0 is the device's synchronous queue: calls finish before they return.
    Stream,
    /// A point in a stream that other streams and the host can wait for.
    Event,
}

/// A slot that layers wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContractSlot {
    /// `initialize` of `core`.
    CoreInitialize,
    /// `finalize` of `core`.
    CoreFinalize,
    /// `device_init` of `core`.
    CoreDeviceInit,
    /// `device_deinit` of `core`.
    CoreDeviceDeinit,
    /// `device_synchronize` of `core`.
    CoreDeviceSynchronize,
    /// `device_count` of `core`.
    CoreDeviceCount,
    /// `device_list` of `core`.
    CoreDeviceList,
    /// `device_info` of `core`.
    CoreDeviceInfo,
    /// `compute_capability` of `core`.
    CoreComputeCapability,
    /// `runtime_version` of `core`.
    CoreRuntimeVersion,
    /// `driver_version` of `core`.
    CoreDriverVersion,
    /// `memory_allocate` of `core`.
    CoreMemoryAllocate,
    /// `memory_deallocate` of `core`.
    CoreMemoryDeallocate,
    /// `host_memory_allocate` of `core`.
    CoreHostMemoryAllocate,
    /// `host_memory_deallocate` of `core`.
    CoreHostMemoryDeallocate,
    /// `unified_memory_allocate` of `core`.
    CoreUnifiedMemoryAllocate,
    /// `unified_memory_deallocate` of `core`.
    CoreUnifiedMemoryDeallocate,
    /// `memory_copy_h2d` of `core`.
    CoreMemoryCopyH2d,
    /// `memory_copy_d2h` of `core`.
    CoreMemoryCopyD2h,
    /// `memory_copy_d2d` of `core`.
    CoreMemoryCopyD2d,
    /// `memory_copy_p2p` of `core`.
    CoreMemoryCopyP2p,
    /// `memory_set` of `core`.
    CoreMemorySet,
    /// `memory_stats` of `core`.
    CoreMemoryStats,
    /// `min_chunk_size` of `core`.
    CoreMinChunkSize,
    /// `max_chunk_size` of `core`.
    CoreMaxChunkSize,
    /// `max_alloc_size` of `core`.
    CoreMaxAllocSize,
    /// `extra_padding_size` of `core`.
    CoreExtraPaddingSize,
    /// `init_alloc_size` of `core`.
    CoreInitAllocSize,
    /// `realloc_size` of `core`.
    CoreReallocSize,
    /// `experimental` of `core`.
    CoreExperimental,
    /// `stream_create` of `async`.
    AsyncStreamCreate,
    /// `stream_destroy` of `async`.
    AsyncStreamDestroy,
    /// `stream_query` of `async`.
    AsyncStreamQuery,
    /// `stream_synchronize` of `async`.
    AsyncStreamSynchronize,
    /// `stream_add_callback` of `async`.
    AsyncStreamAddCallback,
    /// `stream_wait_event` of `async`.
    AsyncStreamWaitEvent,
    /// `event_create` of `async`.
    AsyncEventCreate,
    /// `event_destroy` of `async`.
    AsyncEventDestroy,
    /// `event_record` of `async`.
    AsyncEventRecord,
    /// `event_query` of `async`.
    AsyncEventQuery,
    /// `event_synchronize` of `async`.
    AsyncEventSynchronize,
    /// `event_elapsed` of `async`.
    AsyncEventElapsed,
    /// `memory_copy_h2d_async` of `async`.
    AsyncMemoryCopyH2dAsync,
    /// `memory_copy_d2h_async` of `async`.
    AsyncMemoryCopyD2hAsync,
    /// `memory_copy_d2d_async` of `async`.
    AsyncMemoryCopyD2dAsync,
    /// `memory_copy_p2p_async` of `async`.
    AsyncMemoryCopyP2pAsync,
    /// `memory_set_async` of `async`.
    AsyncMemorySetAsync,
    /// `memory_allocate_async` of `async`.
    AsyncMemoryAllocateAsync,
    /// `memory_deallocate_async` of `async`.
    AsyncMemoryDeallocateAsync,
    /// `supports` of `kernel`.
    KernelSupports,
    /// `infer` of `kernel`.
    KernelInfer,
    /// `workspace` of `kernel`.
    KernelWorkspace,
    /// `prepare` of `kernel`.
    KernelPrepare,
    /// `run` of `kernel`.
    KernelRun,
    /// `release` of `kernel`.
    KernelRelease,
}
