// Generated from `device-sdk/contract/oarlock.contract` by `cargo xtask generate`. Do not edit.

#![expect(unsafe_code, reason = "every function here is called through a pointer from C")]
use core::ffi::c_void;

use oarlock_sdk::abi;

use crate::contract_names::{ContractSlot, HandleKind};
use crate::slot::{ParameterDescription, ParameterKind, SlotDescription};
use crate::word::{pointer_word, word_const_pointer, word_pointer};
use crate::work::LayerWork;
use crate::wrapped_table::WrappedTable;

/// Every slot that layers wrap, in the order of the contract.
pub static SLOTS: &[&SlotDescription] = &[
    &CORE_INITIALIZE,
    &CORE_FINALIZE,
    &CORE_DEVICE_INIT,
    &CORE_DEVICE_DEINIT,
    &CORE_DEVICE_SYNCHRONIZE,
    &CORE_DEVICE_COUNT,
    &CORE_DEVICE_LIST,
    &CORE_DEVICE_INFO,
    &CORE_COMPUTE_CAPABILITY,
    &CORE_RUNTIME_VERSION,
    &CORE_DRIVER_VERSION,
    &CORE_MEMORY_ALLOCATE,
    &CORE_MEMORY_DEALLOCATE,
    &CORE_HOST_MEMORY_ALLOCATE,
    &CORE_HOST_MEMORY_DEALLOCATE,
    &CORE_UNIFIED_MEMORY_ALLOCATE,
    &CORE_UNIFIED_MEMORY_DEALLOCATE,
    &CORE_MEMORY_COPY_H2D,
    &CORE_MEMORY_COPY_D2H,
    &CORE_MEMORY_COPY_D2D,
    &CORE_MEMORY_COPY_P2P,
    &CORE_MEMORY_SET,
    &CORE_MEMORY_STATS,
    &CORE_MIN_CHUNK_SIZE,
    &CORE_MAX_CHUNK_SIZE,
    &CORE_MAX_ALLOC_SIZE,
    &CORE_EXTRA_PADDING_SIZE,
    &CORE_INIT_ALLOC_SIZE,
    &CORE_REALLOC_SIZE,
    &CORE_EXPERIMENTAL,
    &ASYNC_STREAM_CREATE,
    &ASYNC_STREAM_DESTROY,
    &ASYNC_STREAM_QUERY,
    &ASYNC_STREAM_SYNCHRONIZE,
    &ASYNC_STREAM_ADD_CALLBACK,
    &ASYNC_STREAM_WAIT_EVENT,
    &ASYNC_EVENT_CREATE,
    &ASYNC_EVENT_DESTROY,
    &ASYNC_EVENT_RECORD,
    &ASYNC_EVENT_QUERY,
    &ASYNC_EVENT_SYNCHRONIZE,
    &ASYNC_EVENT_ELAPSED,
    &ASYNC_MEMORY_COPY_H2D_ASYNC,
    &ASYNC_MEMORY_COPY_D2H_ASYNC,
    &ASYNC_MEMORY_COPY_D2D_ASYNC,
    &ASYNC_MEMORY_COPY_P2P_ASYNC,
    &ASYNC_MEMORY_SET_ASYNC,
    &ASYNC_MEMORY_ALLOCATE_ASYNC,
    &ASYNC_MEMORY_DEALLOCATE_ASYNC,
    &KERNEL_SUPPORTS,
    &KERNEL_INFER,
    &KERNEL_WORKSPACE,
    &KERNEL_PREPARE,
    &KERNEL_RUN,
    &KERNEL_RELEASE,
];

static CORE_INITIALIZE: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreInitialize,
    table: "core",
    name: "initialize",
    device: None,
    queue: None,
    parameters: &[],
};

unsafe extern "C" fn core_initialize<W: LayerWork>(context: *mut c_void) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.initialize else { return this.missing_slot(&CORE_INITIALIZE) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&CORE_INITIALIZE, &[], &|_words| unsafe { next(this.context) })
}

static CORE_FINALIZE: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreFinalize,
    table: "core",
    name: "finalize",
    device: None,
    queue: None,
    parameters: &[],
};

unsafe extern "C" fn core_finalize<W: LayerWork>(context: *mut c_void) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.finalize else { return this.missing_slot(&CORE_FINALIZE) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&CORE_FINALIZE, &[], &|_words| unsafe { next(this.context) })
}

static CORE_DEVICE_INIT: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreDeviceInit,
    table: "core",
    name: "device_init",
    device: Some(0),
    queue: None,
    parameters: &[ParameterDescription { name: "device", kind: ParameterKind::Number }],
};

unsafe extern "C" fn core_device_init<W: LayerWork>(context: *mut c_void, device: u32) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.device_init else { return this.missing_slot(&CORE_DEVICE_INIT) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&CORE_DEVICE_INIT, &[u64::from(device)], &|words| unsafe {
        next(this.context, words[0] as u32)
    })
}

static CORE_DEVICE_DEINIT: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreDeviceDeinit,
    table: "core",
    name: "device_deinit",
    device: Some(0),
    queue: None,
    parameters: &[ParameterDescription { name: "device", kind: ParameterKind::Number }],
};

unsafe extern "C" fn core_device_deinit<W: LayerWork>(context: *mut c_void, device: u32) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.device_deinit else { return this.missing_slot(&CORE_DEVICE_DEINIT) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&CORE_DEVICE_DEINIT, &[u64::from(device)], &|words| unsafe {
        next(this.context, words[0] as u32)
    })
}

static CORE_DEVICE_SYNCHRONIZE: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreDeviceSynchronize,
    table: "core",
    name: "device_synchronize",
    device: Some(0),
    queue: None,
    parameters: &[ParameterDescription { name: "device", kind: ParameterKind::Number }],
};

unsafe extern "C" fn core_device_synchronize<W: LayerWork>(context: *mut c_void, device: u32) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.device_synchronize else { return this.missing_slot(&CORE_DEVICE_SYNCHRONIZE) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&CORE_DEVICE_SYNCHRONIZE, &[u64::from(device)], &|words| unsafe {
        next(this.context, words[0] as u32)
    })
}

static CORE_DEVICE_COUNT: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreDeviceCount,
    table: "core",
    name: "device_count",
    device: None,
    queue: None,
    parameters: &[ParameterDescription { name: "count", kind: ParameterKind::OutNumber(size_of::<u32>()) }],
};

unsafe extern "C" fn core_device_count<W: LayerWork>(context: *mut c_void, count: *mut u32) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.device_count else { return this.missing_slot(&CORE_DEVICE_COUNT) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&CORE_DEVICE_COUNT, &[pointer_word(count)], &|words| unsafe {
        next(this.context, word_pointer(words[0]))
    })
}

static CORE_DEVICE_LIST: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreDeviceList,
    table: "core",
    name: "device_list",
    device: None,
    queue: None,
    parameters: &[
        ParameterDescription { name: "ids", kind: ParameterKind::OutItems(size_of::<u32>()) },
        ParameterDescription { name: "ids_capacity", kind: ParameterKind::Number },
        ParameterDescription { name: "ids_count", kind: ParameterKind::OutNumber(8) },
    ],
};

unsafe extern "C" fn core_device_list<W: LayerWork>(
    context: *mut c_void,
    ids: *mut u32,
    ids_capacity: u64,
    ids_count: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.device_list else { return this.missing_slot(&CORE_DEVICE_LIST) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(
        &CORE_DEVICE_LIST,
        &[pointer_word(ids), ids_capacity, pointer_word(ids_count)],
        &|words| unsafe { next(this.context, word_pointer(words[0]), words[1], word_pointer(words[2])) },
    )
}

static CORE_DEVICE_INFO: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreDeviceInfo,
    table: "core",
    name: "device_info",
    device: Some(0),
    queue: None,
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "info", kind: ParameterKind::OutStruct(size_of::<abi::DeviceInfo>()) },
    ],
};

unsafe extern "C" fn core_device_info<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    info: *mut abi::DeviceInfo,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.device_info else { return this.missing_slot(&CORE_DEVICE_INFO) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&CORE_DEVICE_INFO, &[u64::from(device), pointer_word(info)], &|words| unsafe {
        next(this.context, words[0] as u32, word_pointer(words[1]))
    })
}

static CORE_COMPUTE_CAPABILITY: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreComputeCapability,
    table: "core",
    name: "compute_capability",
    device: Some(0),
    queue: None,
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "capability", kind: ParameterKind::OutValue(size_of::<abi::Version>()) },
    ],
};

unsafe extern "C" fn core_compute_capability<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    capability: *mut abi::Version,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.compute_capability else { return this.missing_slot(&CORE_COMPUTE_CAPABILITY) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(
        &CORE_COMPUTE_CAPABILITY,
        &[u64::from(device), pointer_word(capability)],
        &|words| unsafe { next(this.context, words[0] as u32, word_pointer(words[1])) },
    )
}

static CORE_RUNTIME_VERSION: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreRuntimeVersion,
    table: "core",
    name: "runtime_version",
    device: None,
    queue: None,
    parameters: &[ParameterDescription {
        name: "installed",
        kind: ParameterKind::OutValue(size_of::<abi::Version>()),
    }],
};

unsafe extern "C" fn core_runtime_version<W: LayerWork>(
    context: *mut c_void,
    installed: *mut abi::Version,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.runtime_version else { return this.missing_slot(&CORE_RUNTIME_VERSION) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&CORE_RUNTIME_VERSION, &[pointer_word(installed)], &|words| unsafe {
        next(this.context, word_pointer(words[0]))
    })
}

static CORE_DRIVER_VERSION: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreDriverVersion,
    table: "core",
    name: "driver_version",
    device: None,
    queue: None,
    parameters: &[ParameterDescription {
        name: "installed",
        kind: ParameterKind::OutValue(size_of::<abi::Version>()),
    }],
};

unsafe extern "C" fn core_driver_version<W: LayerWork>(
    context: *mut c_void,
    installed: *mut abi::Version,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.driver_version else { return this.missing_slot(&CORE_DRIVER_VERSION) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&CORE_DRIVER_VERSION, &[pointer_word(installed)], &|words| unsafe {
        next(this.context, word_pointer(words[0]))
    })
}

static CORE_MEMORY_ALLOCATE: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreMemoryAllocate,
    table: "core",
    name: "memory_allocate",
    device: Some(0),
    queue: None,
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "size", kind: ParameterKind::Number },
        ParameterDescription { name: "block", kind: ParameterKind::OutHandle(HandleKind::Memory) },
    ],
};

unsafe extern "C" fn core_memory_allocate<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    size: u64,
    block: *mut abi::Memory,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.memory_allocate else { return this.missing_slot(&CORE_MEMORY_ALLOCATE) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(
        &CORE_MEMORY_ALLOCATE,
        &[u64::from(device), size, pointer_word(block)],
        &|words| unsafe { next(this.context, words[0] as u32, words[1], word_pointer(words[2])) },
    )
}

static CORE_MEMORY_DEALLOCATE: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreMemoryDeallocate,
    table: "core",
    name: "memory_deallocate",
    device: Some(0),
    queue: None,
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "block", kind: ParameterKind::Handle(HandleKind::Memory) },
        ParameterDescription { name: "size", kind: ParameterKind::Number },
    ],
};

unsafe extern "C" fn core_memory_deallocate<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    block: abi::Memory,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.memory_deallocate else { return this.missing_slot(&CORE_MEMORY_DEALLOCATE) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&CORE_MEMORY_DEALLOCATE, &[u64::from(device), block.0, size], &|words| unsafe {
        next(this.context, words[0] as u32, abi::Memory(words[1]), words[2])
    })
}

static CORE_HOST_MEMORY_ALLOCATE: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreHostMemoryAllocate,
    table: "core",
    name: "host_memory_allocate",
    device: Some(0),
    queue: None,
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "size", kind: ParameterKind::Number },
        ParameterDescription { name: "address", kind: ParameterKind::OutAddress },
    ],
};

unsafe extern "C" fn core_host_memory_allocate<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    size: u64,
    address: *mut *mut c_void,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.host_memory_allocate else {
        return this.missing_slot(&CORE_HOST_MEMORY_ALLOCATE);
    };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(
        &CORE_HOST_MEMORY_ALLOCATE,
        &[u64::from(device), size, pointer_word(address)],
        &|words| unsafe { next(this.context, words[0] as u32, words[1], word_pointer(words[2])) },
    )
}

static CORE_HOST_MEMORY_DEALLOCATE: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreHostMemoryDeallocate,
    table: "core",
    name: "host_memory_deallocate",
    device: Some(0),
    queue: None,
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "address", kind: ParameterKind::Address },
        ParameterDescription { name: "size", kind: ParameterKind::Number },
    ],
};

unsafe extern "C" fn core_host_memory_deallocate<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    address: *mut c_void,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.host_memory_deallocate else {
        return this.missing_slot(&CORE_HOST_MEMORY_DEALLOCATE);
    };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(
        &CORE_HOST_MEMORY_DEALLOCATE,
        &[u64::from(device), pointer_word(address), size],
        &|words| unsafe { next(this.context, words[0] as u32, word_pointer(words[1]), words[2]) },
    )
}

static CORE_UNIFIED_MEMORY_ALLOCATE: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreUnifiedMemoryAllocate,
    table: "core",
    name: "unified_memory_allocate",
    device: Some(0),
    queue: None,
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "size", kind: ParameterKind::Number },
        ParameterDescription { name: "address", kind: ParameterKind::OutAddress },
    ],
};

unsafe extern "C" fn core_unified_memory_allocate<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    size: u64,
    address: *mut *mut c_void,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.unified_memory_allocate else {
        return this.missing_slot(&CORE_UNIFIED_MEMORY_ALLOCATE);
    };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(
        &CORE_UNIFIED_MEMORY_ALLOCATE,
        &[u64::from(device), size, pointer_word(address)],
        &|words| unsafe { next(this.context, words[0] as u32, words[1], word_pointer(words[2])) },
    )
}

static CORE_UNIFIED_MEMORY_DEALLOCATE: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreUnifiedMemoryDeallocate,
    table: "core",
    name: "unified_memory_deallocate",
    device: Some(0),
    queue: None,
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "address", kind: ParameterKind::Address },
        ParameterDescription { name: "size", kind: ParameterKind::Number },
    ],
};

unsafe extern "C" fn core_unified_memory_deallocate<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    address: *mut c_void,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.unified_memory_deallocate else {
        return this.missing_slot(&CORE_UNIFIED_MEMORY_DEALLOCATE);
    };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(
        &CORE_UNIFIED_MEMORY_DEALLOCATE,
        &[u64::from(device), pointer_word(address), size],
        &|words| unsafe { next(this.context, words[0] as u32, word_pointer(words[1]), words[2]) },
    )
}

static CORE_MEMORY_COPY_H2D: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreMemoryCopyH2d,
    table: "core",
    name: "memory_copy_h2d",
    device: Some(0),
    queue: None,
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "target", kind: ParameterKind::Handle(HandleKind::Memory) },
        ParameterDescription { name: "target_offset", kind: ParameterKind::Number },
        ParameterDescription { name: "source", kind: ParameterKind::InBytes },
        ParameterDescription { name: "source_size", kind: ParameterKind::Number },
    ],
};

unsafe extern "C" fn core_memory_copy_h2d<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    target: abi::Memory,
    target_offset: u64,
    source: *const c_void,
    source_size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.memory_copy_h2d else { return this.missing_slot(&CORE_MEMORY_COPY_H2D) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(
        &CORE_MEMORY_COPY_H2D,
        &[u64::from(device), target.0, target_offset, pointer_word(source), source_size],
        &|words| unsafe {
            next(
                this.context,
                words[0] as u32,
                abi::Memory(words[1]),
                words[2],
                word_const_pointer(words[3]),
                words[4],
            )
        },
    )
}

static CORE_MEMORY_COPY_D2H: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreMemoryCopyD2h,
    table: "core",
    name: "memory_copy_d2h",
    device: Some(0),
    queue: None,
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "target", kind: ParameterKind::OutBytes },
        ParameterDescription { name: "target_size", kind: ParameterKind::Number },
        ParameterDescription { name: "source", kind: ParameterKind::Handle(HandleKind::Memory) },
        ParameterDescription { name: "source_offset", kind: ParameterKind::Number },
    ],
};

unsafe extern "C" fn core_memory_copy_d2h<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    target: *mut c_void,
    target_size: u64,
    source: abi::Memory,
    source_offset: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.memory_copy_d2h else { return this.missing_slot(&CORE_MEMORY_COPY_D2H) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(
        &CORE_MEMORY_COPY_D2H,
        &[u64::from(device), pointer_word(target), target_size, source.0, source_offset],
        &|words| unsafe {
            next(
                this.context,
                words[0] as u32,
                word_pointer(words[1]),
                words[2],
                abi::Memory(words[3]),
                words[4],
            )
        },
    )
}

static CORE_MEMORY_COPY_D2D: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreMemoryCopyD2d,
    table: "core",
    name: "memory_copy_d2d",
    device: Some(0),
    queue: None,
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "target", kind: ParameterKind::Handle(HandleKind::Memory) },
        ParameterDescription { name: "target_offset", kind: ParameterKind::Number },
        ParameterDescription { name: "source", kind: ParameterKind::Handle(HandleKind::Memory) },
        ParameterDescription { name: "source_offset", kind: ParameterKind::Number },
        ParameterDescription { name: "size", kind: ParameterKind::Number },
    ],
};

unsafe extern "C" fn core_memory_copy_d2d<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    target: abi::Memory,
    target_offset: u64,
    source: abi::Memory,
    source_offset: u64,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.memory_copy_d2d else { return this.missing_slot(&CORE_MEMORY_COPY_D2D) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(
        &CORE_MEMORY_COPY_D2D,
        &[u64::from(device), target.0, target_offset, source.0, source_offset, size],
        &|words| unsafe {
            next(
                this.context,
                words[0] as u32,
                abi::Memory(words[1]),
                words[2],
                abi::Memory(words[3]),
                words[4],
                words[5],
            )
        },
    )
}

static CORE_MEMORY_COPY_P2P: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreMemoryCopyP2p,
    table: "core",
    name: "memory_copy_p2p",
    device: None,
    queue: None,
    parameters: &[
        ParameterDescription { name: "target_device", kind: ParameterKind::Number },
        ParameterDescription { name: "target", kind: ParameterKind::Handle(HandleKind::Memory) },
        ParameterDescription { name: "target_offset", kind: ParameterKind::Number },
        ParameterDescription { name: "source_device", kind: ParameterKind::Number },
        ParameterDescription { name: "source", kind: ParameterKind::Handle(HandleKind::Memory) },
        ParameterDescription { name: "source_offset", kind: ParameterKind::Number },
        ParameterDescription { name: "size", kind: ParameterKind::Number },
    ],
};

unsafe extern "C" fn core_memory_copy_p2p<W: LayerWork>(
    context: *mut c_void,
    target_device: u32,
    target: abi::Memory,
    target_offset: u64,
    source_device: u32,
    source: abi::Memory,
    source_offset: u64,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.memory_copy_p2p else { return this.missing_slot(&CORE_MEMORY_COPY_P2P) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(
        &CORE_MEMORY_COPY_P2P,
        &[
            u64::from(target_device),
            target.0,
            target_offset,
            u64::from(source_device),
            source.0,
            source_offset,
            size,
        ],
        &|words| unsafe {
            next(
                this.context,
                words[0] as u32,
                abi::Memory(words[1]),
                words[2],
                words[3] as u32,
                abi::Memory(words[4]),
                words[5],
                words[6],
            )
        },
    )
}

static CORE_MEMORY_SET: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreMemorySet,
    table: "core",
    name: "memory_set",
    device: Some(0),
    queue: None,
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "target", kind: ParameterKind::Handle(HandleKind::Memory) },
        ParameterDescription { name: "target_offset", kind: ParameterKind::Number },
        ParameterDescription { name: "byte", kind: ParameterKind::Number },
        ParameterDescription { name: "size", kind: ParameterKind::Number },
    ],
};

unsafe extern "C" fn core_memory_set<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    target: abi::Memory,
    target_offset: u64,
    byte: u8,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.memory_set else { return this.missing_slot(&CORE_MEMORY_SET) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(
        &CORE_MEMORY_SET,
        &[u64::from(device), target.0, target_offset, u64::from(byte), size],
        &|words| unsafe {
            next(this.context, words[0] as u32, abi::Memory(words[1]), words[2], words[3] as u8, words[4])
        },
    )
}

static CORE_MEMORY_STATS: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreMemoryStats,
    table: "core",
    name: "memory_stats",
    device: Some(0),
    queue: None,
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "total", kind: ParameterKind::OutNumber(size_of::<u64>()) },
        ParameterDescription { name: "free", kind: ParameterKind::OutNumber(size_of::<u64>()) },
    ],
};

unsafe extern "C" fn core_memory_stats<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    total: *mut u64,
    free: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.memory_stats else { return this.missing_slot(&CORE_MEMORY_STATS) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(
        &CORE_MEMORY_STATS,
        &[u64::from(device), pointer_word(total), pointer_word(free)],
        &|words| unsafe {
            next(this.context, words[0] as u32, word_pointer(words[1]), word_pointer(words[2]))
        },
    )
}

static CORE_MIN_CHUNK_SIZE: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreMinChunkSize,
    table: "core",
    name: "min_chunk_size",
    device: Some(0),
    queue: None,
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "size", kind: ParameterKind::OutNumber(size_of::<u64>()) },
    ],
};

unsafe extern "C" fn core_min_chunk_size<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    size: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.min_chunk_size else { return this.missing_slot(&CORE_MIN_CHUNK_SIZE) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&CORE_MIN_CHUNK_SIZE, &[u64::from(device), pointer_word(size)], &|words| unsafe {
        next(this.context, words[0] as u32, word_pointer(words[1]))
    })
}

static CORE_MAX_CHUNK_SIZE: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreMaxChunkSize,
    table: "core",
    name: "max_chunk_size",
    device: Some(0),
    queue: None,
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "size", kind: ParameterKind::OutNumber(size_of::<u64>()) },
    ],
};

unsafe extern "C" fn core_max_chunk_size<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    size: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.max_chunk_size else { return this.missing_slot(&CORE_MAX_CHUNK_SIZE) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&CORE_MAX_CHUNK_SIZE, &[u64::from(device), pointer_word(size)], &|words| unsafe {
        next(this.context, words[0] as u32, word_pointer(words[1]))
    })
}

static CORE_MAX_ALLOC_SIZE: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreMaxAllocSize,
    table: "core",
    name: "max_alloc_size",
    device: Some(0),
    queue: None,
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "size", kind: ParameterKind::OutNumber(size_of::<u64>()) },
    ],
};

unsafe extern "C" fn core_max_alloc_size<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    size: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.max_alloc_size else { return this.missing_slot(&CORE_MAX_ALLOC_SIZE) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&CORE_MAX_ALLOC_SIZE, &[u64::from(device), pointer_word(size)], &|words| unsafe {
        next(this.context, words[0] as u32, word_pointer(words[1]))
    })
}

static CORE_EXTRA_PADDING_SIZE: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreExtraPaddingSize,
    table: "core",
    name: "extra_padding_size",
    device: Some(0),
    queue: None,
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "size", kind: ParameterKind::OutNumber(size_of::<u64>()) },
    ],
};

unsafe extern "C" fn core_extra_padding_size<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    size: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.extra_padding_size else { return this.missing_slot(&CORE_EXTRA_PADDING_SIZE) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&CORE_EXTRA_PADDING_SIZE, &[u64::from(device), pointer_word(size)], &|words| unsafe {
        next(this.context, words[0] as u32, word_pointer(words[1]))
    })
}

static CORE_INIT_ALLOC_SIZE: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreInitAllocSize,
    table: "core",
    name: "init_alloc_size",
    device: Some(0),
    queue: None,
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "size", kind: ParameterKind::OutNumber(size_of::<u64>()) },
    ],
};

unsafe extern "C" fn core_init_alloc_size<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    size: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.init_alloc_size else { return this.missing_slot(&CORE_INIT_ALLOC_SIZE) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&CORE_INIT_ALLOC_SIZE, &[u64::from(device), pointer_word(size)], &|words| unsafe {
        next(this.context, words[0] as u32, word_pointer(words[1]))
    })
}

static CORE_REALLOC_SIZE: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreReallocSize,
    table: "core",
    name: "realloc_size",
    device: Some(0),
    queue: None,
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "size", kind: ParameterKind::OutNumber(size_of::<u64>()) },
    ],
};

unsafe extern "C" fn core_realloc_size<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    size: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.realloc_size else { return this.missing_slot(&CORE_REALLOC_SIZE) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&CORE_REALLOC_SIZE, &[u64::from(device), pointer_word(size)], &|words| unsafe {
        next(this.context, words[0] as u32, word_pointer(words[1]))
    })
}

static CORE_EXPERIMENTAL: SlotDescription = SlotDescription {
    slot: ContractSlot::CoreExperimental,
    table: "core",
    name: "experimental",
    device: None,
    queue: None,
    parameters: &[
        ParameterDescription { name: "name", kind: ParameterKind::Text },
        ParameterDescription { name: "name_size", kind: ParameterKind::Number },
        ParameterDescription { name: "function", kind: ParameterKind::OutAddress },
    ],
};

unsafe extern "C" fn core_experimental<W: LayerWork>(
    context: *mut c_void,
    name: abi::Str,
    function: *mut *mut c_void,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::CoreTable>>() };
    let Some(next) = this.next.experimental else { return this.missing_slot(&CORE_EXPERIMENTAL) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(
        &CORE_EXPERIMENTAL,
        &[pointer_word(name.data), name.size, pointer_word(function)],
        &|words| unsafe {
            next(
                this.context,
                abi::Str { data: word_const_pointer(words[0]), size: words[1] },
                word_pointer(words[2]),
            )
        },
    )
}

/// The table that stands before `next`; a slot that is empty below stays empty.
pub(crate) fn before_core<W: LayerWork>(next: &abi::CoreTable) -> abi::CoreTable {
    abi::CoreTable {
        initialize: next.initialize.and(Some(core_initialize::<W>)),
        finalize: next.finalize.and(Some(core_finalize::<W>)),
        device_init: next.device_init.and(Some(core_device_init::<W>)),
        device_deinit: next.device_deinit.and(Some(core_device_deinit::<W>)),
        device_synchronize: next.device_synchronize.and(Some(core_device_synchronize::<W>)),
        device_count: next.device_count.and(Some(core_device_count::<W>)),
        device_list: next.device_list.and(Some(core_device_list::<W>)),
        device_info: next.device_info.and(Some(core_device_info::<W>)),
        compute_capability: next.compute_capability.and(Some(core_compute_capability::<W>)),
        runtime_version: next.runtime_version.and(Some(core_runtime_version::<W>)),
        driver_version: next.driver_version.and(Some(core_driver_version::<W>)),
        memory_allocate: next.memory_allocate.and(Some(core_memory_allocate::<W>)),
        memory_deallocate: next.memory_deallocate.and(Some(core_memory_deallocate::<W>)),
        host_memory_allocate: next.host_memory_allocate.and(Some(core_host_memory_allocate::<W>)),
        host_memory_deallocate: next.host_memory_deallocate.and(Some(core_host_memory_deallocate::<W>)),
        unified_memory_allocate: next.unified_memory_allocate.and(Some(core_unified_memory_allocate::<W>)),
        unified_memory_deallocate: next
            .unified_memory_deallocate
            .and(Some(core_unified_memory_deallocate::<W>)),
        memory_copy_h2d: next.memory_copy_h2d.and(Some(core_memory_copy_h2d::<W>)),
        memory_copy_d2h: next.memory_copy_d2h.and(Some(core_memory_copy_d2h::<W>)),
        memory_copy_d2d: next.memory_copy_d2d.and(Some(core_memory_copy_d2d::<W>)),
        memory_copy_p2p: next.memory_copy_p2p.and(Some(core_memory_copy_p2p::<W>)),
        memory_set: next.memory_set.and(Some(core_memory_set::<W>)),
        memory_stats: next.memory_stats.and(Some(core_memory_stats::<W>)),
        min_chunk_size: next.min_chunk_size.and(Some(core_min_chunk_size::<W>)),
        max_chunk_size: next.max_chunk_size.and(Some(core_max_chunk_size::<W>)),
        max_alloc_size: next.max_alloc_size.and(Some(core_max_alloc_size::<W>)),
        extra_padding_size: next.extra_padding_size.and(Some(core_extra_padding_size::<W>)),
        init_alloc_size: next.init_alloc_size.and(Some(core_init_alloc_size::<W>)),
        realloc_size: next.realloc_size.and(Some(core_realloc_size::<W>)),
        experimental: next.experimental.and(Some(core_experimental::<W>)),
        size: size_of::<abi::CoreTable>() as u32,
        next: core::ptr::null(),
        ..*next
    }
}

static ASYNC_STREAM_CREATE: SlotDescription = SlotDescription {
    slot: ContractSlot::AsyncStreamCreate,
    table: "async",
    name: "stream_create",
    device: Some(0),
    queue: Some(2),
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "priority", kind: ParameterKind::Number },
        ParameterDescription { name: "queue", kind: ParameterKind::OutHandle(HandleKind::Stream) },
    ],
};

unsafe extern "C" fn async_stream_create<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    priority: i32,
    queue: *mut abi::Stream,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::AsyncTable>>() };
    let Some(next) = this.next.stream_create else { return this.missing_slot(&ASYNC_STREAM_CREATE) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(
        &ASYNC_STREAM_CREATE,
        &[u64::from(device), i64::from(priority).cast_unsigned(), pointer_word(queue)],
        &|words| unsafe { next(this.context, words[0] as u32, words[1] as i32, word_pointer(words[2])) },
    )
}

static ASYNC_STREAM_DESTROY: SlotDescription = SlotDescription {
    slot: ContractSlot::AsyncStreamDestroy,
    table: "async",
    name: "stream_destroy",
    device: Some(0),
    queue: Some(1),
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "queue", kind: ParameterKind::Handle(HandleKind::Stream) },
    ],
};

unsafe extern "C" fn async_stream_destroy<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::AsyncTable>>() };
    let Some(next) = this.next.stream_destroy else { return this.missing_slot(&ASYNC_STREAM_DESTROY) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&ASYNC_STREAM_DESTROY, &[u64::from(device), queue.0], &|words| unsafe {
        next(this.context, words[0] as u32, abi::Stream(words[1]))
    })
}

static ASYNC_STREAM_QUERY: SlotDescription = SlotDescription {
    slot: ContractSlot::AsyncStreamQuery,
    table: "async",
    name: "stream_query",
    device: Some(0),
    queue: Some(1),
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "queue", kind: ParameterKind::Handle(HandleKind::Stream) },
        ParameterDescription { name: "done", kind: ParameterKind::OutNumber(size_of::<u32>()) },
    ],
};

unsafe extern "C" fn async_stream_query<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    done: *mut u32,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::AsyncTable>>() };
    let Some(next) = this.next.stream_query else { return this.missing_slot(&ASYNC_STREAM_QUERY) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(
        &ASYNC_STREAM_QUERY,
        &[u64::from(device), queue.0, pointer_word(done)],
        &|words| unsafe {
            next(this.context, words[0] as u32, abi::Stream(words[1]), word_pointer(words[2]))
        },
    )
}

static ASYNC_STREAM_SYNCHRONIZE: SlotDescription = SlotDescription {
    slot: ContractSlot::AsyncStreamSynchronize,
    table: "async",
    name: "stream_synchronize",
    device: Some(0),
    queue: Some(1),
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "queue", kind: ParameterKind::Handle(HandleKind::Stream) },
    ],
};

unsafe extern "C" fn async_stream_synchronize<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::AsyncTable>>() };
    let Some(next) = this.next.stream_synchronize else {
        return this.missing_slot(&ASYNC_STREAM_SYNCHRONIZE);
    };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&ASYNC_STREAM_SYNCHRONIZE, &[u64::from(device), queue.0], &|words| unsafe {
        next(this.context, words[0] as u32, abi::Stream(words[1]))
    })
}

static ASYNC_STREAM_ADD_CALLBACK: SlotDescription = SlotDescription {
    slot: ContractSlot::AsyncStreamAddCallback,
    table: "async",
    name: "stream_add_callback",
    device: Some(0),
    queue: Some(1),
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "queue", kind: ParameterKind::Handle(HandleKind::Stream) },
        ParameterDescription { name: "reached", kind: ParameterKind::Callback },
        ParameterDescription { name: "user", kind: ParameterKind::Address },
    ],
};

unsafe extern "C" fn async_stream_add_callback<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    reached: Option<abi::StreamReached>,
    user: *mut c_void,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::AsyncTable>>() };
    let Some(next) = this.next.stream_add_callback else {
        return this.missing_slot(&ASYNC_STREAM_ADD_CALLBACK);
    };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(
        &ASYNC_STREAM_ADD_CALLBACK,
        &[
            u64::from(device),
            queue.0,
            reached.map_or(0, |function| pointer_word(function as *const c_void)),
            pointer_word(user),
        ],
        &|words| unsafe {
            next(
                this.context,
                words[0] as u32,
                abi::Stream(words[1]),
                core::mem::transmute::<*mut c_void, Option<abi::StreamReached>>(word_pointer(words[2])),
                word_pointer(words[3]),
            )
        },
    )
}

static ASYNC_STREAM_WAIT_EVENT: SlotDescription = SlotDescription {
    slot: ContractSlot::AsyncStreamWaitEvent,
    table: "async",
    name: "stream_wait_event",
    device: Some(0),
    queue: Some(1),
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "queue", kind: ParameterKind::Handle(HandleKind::Stream) },
        ParameterDescription { name: "point", kind: ParameterKind::Handle(HandleKind::Event) },
    ],
};

unsafe extern "C" fn async_stream_wait_event<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    point: abi::Event,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::AsyncTable>>() };
    let Some(next) = this.next.stream_wait_event else { return this.missing_slot(&ASYNC_STREAM_WAIT_EVENT) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&ASYNC_STREAM_WAIT_EVENT, &[u64::from(device), queue.0, point.0], &|words| unsafe {
        next(this.context, words[0] as u32, abi::Stream(words[1]), abi::Event(words[2]))
    })
}

static ASYNC_EVENT_CREATE: SlotDescription = SlotDescription {
    slot: ContractSlot::AsyncEventCreate,
    table: "async",
    name: "event_create",
    device: Some(0),
    queue: None,
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "point", kind: ParameterKind::OutHandle(HandleKind::Event) },
    ],
};

unsafe extern "C" fn async_event_create<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    point: *mut abi::Event,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::AsyncTable>>() };
    let Some(next) = this.next.event_create else { return this.missing_slot(&ASYNC_EVENT_CREATE) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&ASYNC_EVENT_CREATE, &[u64::from(device), pointer_word(point)], &|words| unsafe {
        next(this.context, words[0] as u32, word_pointer(words[1]))
    })
}

static ASYNC_EVENT_DESTROY: SlotDescription = SlotDescription {
    slot: ContractSlot::AsyncEventDestroy,
    table: "async",
    name: "event_destroy",
    device: Some(0),
    queue: None,
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "point", kind: ParameterKind::Handle(HandleKind::Event) },
    ],
};

unsafe extern "C" fn async_event_destroy<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    point: abi::Event,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::AsyncTable>>() };
    let Some(next) = this.next.event_destroy else { return this.missing_slot(&ASYNC_EVENT_DESTROY) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&ASYNC_EVENT_DESTROY, &[u64::from(device), point.0], &|words| unsafe {
        next(this.context, words[0] as u32, abi::Event(words[1]))
    })
}

static ASYNC_EVENT_RECORD: SlotDescription = SlotDescription {
    slot: ContractSlot::AsyncEventRecord,
    table: "async",
    name: "event_record",
    device: Some(0),
    queue: Some(1),
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "queue", kind: ParameterKind::Handle(HandleKind::Stream) },
        ParameterDescription { name: "point", kind: ParameterKind::Handle(HandleKind::Event) },
    ],
};

unsafe extern "C" fn async_event_record<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    point: abi::Event,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::AsyncTable>>() };
    let Some(next) = this.next.event_record else { return this.missing_slot(&ASYNC_EVENT_RECORD) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&ASYNC_EVENT_RECORD, &[u64::from(device), queue.0, point.0], &|words| unsafe {
        next(this.context, words[0] as u32, abi::Stream(words[1]), abi::Event(words[2]))
    })
}

static ASYNC_EVENT_QUERY: SlotDescription = SlotDescription {
    slot: ContractSlot::AsyncEventQuery,
    table: "async",
    name: "event_query",
    device: Some(0),
    queue: None,
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "point", kind: ParameterKind::Handle(HandleKind::Event) },
        ParameterDescription { name: "done", kind: ParameterKind::OutNumber(size_of::<u32>()) },
    ],
};

unsafe extern "C" fn async_event_query<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    point: abi::Event,
    done: *mut u32,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::AsyncTable>>() };
    let Some(next) = this.next.event_query else { return this.missing_slot(&ASYNC_EVENT_QUERY) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&ASYNC_EVENT_QUERY, &[u64::from(device), point.0, pointer_word(done)], &|words| unsafe {
        next(this.context, words[0] as u32, abi::Event(words[1]), word_pointer(words[2]))
    })
}

static ASYNC_EVENT_SYNCHRONIZE: SlotDescription = SlotDescription {
    slot: ContractSlot::AsyncEventSynchronize,
    table: "async",
    name: "event_synchronize",
    device: Some(0),
    queue: None,
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "point", kind: ParameterKind::Handle(HandleKind::Event) },
    ],
};

unsafe extern "C" fn async_event_synchronize<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    point: abi::Event,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::AsyncTable>>() };
    let Some(next) = this.next.event_synchronize else { return this.missing_slot(&ASYNC_EVENT_SYNCHRONIZE) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&ASYNC_EVENT_SYNCHRONIZE, &[u64::from(device), point.0], &|words| unsafe {
        next(this.context, words[0] as u32, abi::Event(words[1]))
    })
}

static ASYNC_EVENT_ELAPSED: SlotDescription = SlotDescription {
    slot: ContractSlot::AsyncEventElapsed,
    table: "async",
    name: "event_elapsed",
    device: Some(0),
    queue: None,
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "start", kind: ParameterKind::Handle(HandleKind::Event) },
        ParameterDescription { name: "end", kind: ParameterKind::Handle(HandleKind::Event) },
        ParameterDescription { name: "nanoseconds", kind: ParameterKind::OutNumber(size_of::<u64>()) },
    ],
};

unsafe extern "C" fn async_event_elapsed<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    start: abi::Event,
    end: abi::Event,
    nanoseconds: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::AsyncTable>>() };
    let Some(next) = this.next.event_elapsed else { return this.missing_slot(&ASYNC_EVENT_ELAPSED) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(
        &ASYNC_EVENT_ELAPSED,
        &[u64::from(device), start.0, end.0, pointer_word(nanoseconds)],
        &|words| unsafe {
            next(
                this.context,
                words[0] as u32,
                abi::Event(words[1]),
                abi::Event(words[2]),
                word_pointer(words[3]),
            )
        },
    )
}

static ASYNC_MEMORY_COPY_H2D_ASYNC: SlotDescription = SlotDescription {
    slot: ContractSlot::AsyncMemoryCopyH2dAsync,
    table: "async",
    name: "memory_copy_h2d_async",
    device: Some(0),
    queue: Some(1),
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "queue", kind: ParameterKind::Handle(HandleKind::Stream) },
        ParameterDescription { name: "target", kind: ParameterKind::Handle(HandleKind::Memory) },
        ParameterDescription { name: "target_offset", kind: ParameterKind::Number },
        ParameterDescription { name: "source", kind: ParameterKind::InAddress },
        ParameterDescription { name: "size", kind: ParameterKind::Number },
    ],
};

unsafe extern "C" fn async_memory_copy_h2d_async<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    target: abi::Memory,
    target_offset: u64,
    source: *const c_void,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::AsyncTable>>() };
    let Some(next) = this.next.memory_copy_h2d_async else {
        return this.missing_slot(&ASYNC_MEMORY_COPY_H2D_ASYNC);
    };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(
        &ASYNC_MEMORY_COPY_H2D_ASYNC,
        &[u64::from(device), queue.0, target.0, target_offset, pointer_word(source), size],
        &|words| unsafe {
            next(
                this.context,
                words[0] as u32,
                abi::Stream(words[1]),
                abi::Memory(words[2]),
                words[3],
                word_const_pointer(words[4]),
                words[5],
            )
        },
    )
}

static ASYNC_MEMORY_COPY_D2H_ASYNC: SlotDescription = SlotDescription {
    slot: ContractSlot::AsyncMemoryCopyD2hAsync,
    table: "async",
    name: "memory_copy_d2h_async",
    device: Some(0),
    queue: Some(1),
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "queue", kind: ParameterKind::Handle(HandleKind::Stream) },
        ParameterDescription { name: "target", kind: ParameterKind::Address },
        ParameterDescription { name: "source", kind: ParameterKind::Handle(HandleKind::Memory) },
        ParameterDescription { name: "source_offset", kind: ParameterKind::Number },
        ParameterDescription { name: "size", kind: ParameterKind::Number },
    ],
};

unsafe extern "C" fn async_memory_copy_d2h_async<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    target: *mut c_void,
    source: abi::Memory,
    source_offset: u64,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::AsyncTable>>() };
    let Some(next) = this.next.memory_copy_d2h_async else {
        return this.missing_slot(&ASYNC_MEMORY_COPY_D2H_ASYNC);
    };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(
        &ASYNC_MEMORY_COPY_D2H_ASYNC,
        &[u64::from(device), queue.0, pointer_word(target), source.0, source_offset, size],
        &|words| unsafe {
            next(
                this.context,
                words[0] as u32,
                abi::Stream(words[1]),
                word_pointer(words[2]),
                abi::Memory(words[3]),
                words[4],
                words[5],
            )
        },
    )
}

static ASYNC_MEMORY_COPY_D2D_ASYNC: SlotDescription = SlotDescription {
    slot: ContractSlot::AsyncMemoryCopyD2dAsync,
    table: "async",
    name: "memory_copy_d2d_async",
    device: Some(0),
    queue: Some(1),
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "queue", kind: ParameterKind::Handle(HandleKind::Stream) },
        ParameterDescription { name: "target", kind: ParameterKind::Handle(HandleKind::Memory) },
        ParameterDescription { name: "target_offset", kind: ParameterKind::Number },
        ParameterDescription { name: "source", kind: ParameterKind::Handle(HandleKind::Memory) },
        ParameterDescription { name: "source_offset", kind: ParameterKind::Number },
        ParameterDescription { name: "size", kind: ParameterKind::Number },
    ],
};

unsafe extern "C" fn async_memory_copy_d2d_async<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    target: abi::Memory,
    target_offset: u64,
    source: abi::Memory,
    source_offset: u64,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::AsyncTable>>() };
    let Some(next) = this.next.memory_copy_d2d_async else {
        return this.missing_slot(&ASYNC_MEMORY_COPY_D2D_ASYNC);
    };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(
        &ASYNC_MEMORY_COPY_D2D_ASYNC,
        &[u64::from(device), queue.0, target.0, target_offset, source.0, source_offset, size],
        &|words| unsafe {
            next(
                this.context,
                words[0] as u32,
                abi::Stream(words[1]),
                abi::Memory(words[2]),
                words[3],
                abi::Memory(words[4]),
                words[5],
                words[6],
            )
        },
    )
}

static ASYNC_MEMORY_COPY_P2P_ASYNC: SlotDescription = SlotDescription {
    slot: ContractSlot::AsyncMemoryCopyP2pAsync,
    table: "async",
    name: "memory_copy_p2p_async",
    device: None,
    queue: Some(4),
    parameters: &[
        ParameterDescription { name: "target_device", kind: ParameterKind::Number },
        ParameterDescription { name: "target", kind: ParameterKind::Handle(HandleKind::Memory) },
        ParameterDescription { name: "target_offset", kind: ParameterKind::Number },
        ParameterDescription { name: "source_device", kind: ParameterKind::Number },
        ParameterDescription { name: "queue", kind: ParameterKind::Handle(HandleKind::Stream) },
        ParameterDescription { name: "source", kind: ParameterKind::Handle(HandleKind::Memory) },
        ParameterDescription { name: "source_offset", kind: ParameterKind::Number },
        ParameterDescription { name: "size", kind: ParameterKind::Number },
    ],
};

unsafe extern "C" fn async_memory_copy_p2p_async<W: LayerWork>(
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
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::AsyncTable>>() };
    let Some(next) = this.next.memory_copy_p2p_async else {
        return this.missing_slot(&ASYNC_MEMORY_COPY_P2P_ASYNC);
    };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(
        &ASYNC_MEMORY_COPY_P2P_ASYNC,
        &[
            u64::from(target_device),
            target.0,
            target_offset,
            u64::from(source_device),
            queue.0,
            source.0,
            source_offset,
            size,
        ],
        &|words| unsafe {
            next(
                this.context,
                words[0] as u32,
                abi::Memory(words[1]),
                words[2],
                words[3] as u32,
                abi::Stream(words[4]),
                abi::Memory(words[5]),
                words[6],
                words[7],
            )
        },
    )
}

static ASYNC_MEMORY_SET_ASYNC: SlotDescription = SlotDescription {
    slot: ContractSlot::AsyncMemorySetAsync,
    table: "async",
    name: "memory_set_async",
    device: Some(0),
    queue: Some(1),
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "queue", kind: ParameterKind::Handle(HandleKind::Stream) },
        ParameterDescription { name: "target", kind: ParameterKind::Handle(HandleKind::Memory) },
        ParameterDescription { name: "target_offset", kind: ParameterKind::Number },
        ParameterDescription { name: "byte", kind: ParameterKind::Number },
        ParameterDescription { name: "size", kind: ParameterKind::Number },
    ],
};

unsafe extern "C" fn async_memory_set_async<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    target: abi::Memory,
    target_offset: u64,
    byte: u8,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::AsyncTable>>() };
    let Some(next) = this.next.memory_set_async else { return this.missing_slot(&ASYNC_MEMORY_SET_ASYNC) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(
        &ASYNC_MEMORY_SET_ASYNC,
        &[u64::from(device), queue.0, target.0, target_offset, u64::from(byte), size],
        &|words| unsafe {
            next(
                this.context,
                words[0] as u32,
                abi::Stream(words[1]),
                abi::Memory(words[2]),
                words[3],
                words[4] as u8,
                words[5],
            )
        },
    )
}

static ASYNC_MEMORY_ALLOCATE_ASYNC: SlotDescription = SlotDescription {
    slot: ContractSlot::AsyncMemoryAllocateAsync,
    table: "async",
    name: "memory_allocate_async",
    device: Some(0),
    queue: Some(1),
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "queue", kind: ParameterKind::Handle(HandleKind::Stream) },
        ParameterDescription { name: "size", kind: ParameterKind::Number },
        ParameterDescription { name: "block", kind: ParameterKind::OutHandle(HandleKind::Memory) },
    ],
};

unsafe extern "C" fn async_memory_allocate_async<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    size: u64,
    block: *mut abi::Memory,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::AsyncTable>>() };
    let Some(next) = this.next.memory_allocate_async else {
        return this.missing_slot(&ASYNC_MEMORY_ALLOCATE_ASYNC);
    };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(
        &ASYNC_MEMORY_ALLOCATE_ASYNC,
        &[u64::from(device), queue.0, size, pointer_word(block)],
        &|words| unsafe {
            next(this.context, words[0] as u32, abi::Stream(words[1]), words[2], word_pointer(words[3]))
        },
    )
}

static ASYNC_MEMORY_DEALLOCATE_ASYNC: SlotDescription = SlotDescription {
    slot: ContractSlot::AsyncMemoryDeallocateAsync,
    table: "async",
    name: "memory_deallocate_async",
    device: Some(0),
    queue: Some(1),
    parameters: &[
        ParameterDescription { name: "device", kind: ParameterKind::Number },
        ParameterDescription { name: "queue", kind: ParameterKind::Handle(HandleKind::Stream) },
        ParameterDescription { name: "block", kind: ParameterKind::Handle(HandleKind::Memory) },
        ParameterDescription { name: "size", kind: ParameterKind::Number },
    ],
};

unsafe extern "C" fn async_memory_deallocate_async<W: LayerWork>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    block: abi::Memory,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::AsyncTable>>() };
    let Some(next) = this.next.memory_deallocate_async else {
        return this.missing_slot(&ASYNC_MEMORY_DEALLOCATE_ASYNC);
    };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(
        &ASYNC_MEMORY_DEALLOCATE_ASYNC,
        &[u64::from(device), queue.0, block.0, size],
        &|words| unsafe {
            next(this.context, words[0] as u32, abi::Stream(words[1]), abi::Memory(words[2]), words[3])
        },
    )
}

/// The table that stands before `next`; a slot that is empty below stays empty.
pub(crate) fn before_async<W: LayerWork>(next: &abi::AsyncTable) -> abi::AsyncTable {
    abi::AsyncTable {
        stream_create: next.stream_create.and(Some(async_stream_create::<W>)),
        stream_destroy: next.stream_destroy.and(Some(async_stream_destroy::<W>)),
        stream_query: next.stream_query.and(Some(async_stream_query::<W>)),
        stream_synchronize: next.stream_synchronize.and(Some(async_stream_synchronize::<W>)),
        stream_add_callback: next.stream_add_callback.and(Some(async_stream_add_callback::<W>)),
        stream_wait_event: next.stream_wait_event.and(Some(async_stream_wait_event::<W>)),
        event_create: next.event_create.and(Some(async_event_create::<W>)),
        event_destroy: next.event_destroy.and(Some(async_event_destroy::<W>)),
        event_record: next.event_record.and(Some(async_event_record::<W>)),
        event_query: next.event_query.and(Some(async_event_query::<W>)),
        event_synchronize: next.event_synchronize.and(Some(async_event_synchronize::<W>)),
        event_elapsed: next.event_elapsed.and(Some(async_event_elapsed::<W>)),
        memory_copy_h2d_async: next.memory_copy_h2d_async.and(Some(async_memory_copy_h2d_async::<W>)),
        memory_copy_d2h_async: next.memory_copy_d2h_async.and(Some(async_memory_copy_d2h_async::<W>)),
        memory_copy_d2d_async: next.memory_copy_d2d_async.and(Some(async_memory_copy_d2d_async::<W>)),
        memory_copy_p2p_async: next.memory_copy_p2p_async.and(Some(async_memory_copy_p2p_async::<W>)),
        memory_set_async: next.memory_set_async.and(Some(async_memory_set_async::<W>)),
        memory_allocate_async: next.memory_allocate_async.and(Some(async_memory_allocate_async::<W>)),
        memory_deallocate_async: next.memory_deallocate_async.and(Some(async_memory_deallocate_async::<W>)),
        size: size_of::<abi::AsyncTable>() as u32,
        next: core::ptr::null(),
        ..*next
    }
}

static KERNEL_SUPPORTS: SlotDescription = SlotDescription {
    slot: ContractSlot::KernelSupports,
    table: "kernel",
    name: "supports",
    device: None,
    queue: None,
    parameters: &[ParameterDescription { name: "call", kind: ParameterKind::InStruct("call") }],
};

unsafe extern "C" fn kernel_supports<W: LayerWork>(
    context: *mut c_void,
    call: *const abi::Call,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::Kernel>>() };
    let Some(next) = this.next.supports else { return this.missing_slot(&KERNEL_SUPPORTS) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&KERNEL_SUPPORTS, &[pointer_word(call)], &|words| unsafe {
        next(this.context, word_const_pointer(words[0]))
    })
}

static KERNEL_INFER: SlotDescription = SlotDescription {
    slot: ContractSlot::KernelInfer,
    table: "kernel",
    name: "infer",
    device: None,
    queue: None,
    parameters: &[ParameterDescription { name: "call", kind: ParameterKind::InStruct("call") }],
};

unsafe extern "C" fn kernel_infer<W: LayerWork>(context: *mut c_void, call: *const abi::Call) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::Kernel>>() };
    let Some(next) = this.next.infer else { return this.missing_slot(&KERNEL_INFER) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&KERNEL_INFER, &[pointer_word(call)], &|words| unsafe {
        next(this.context, word_const_pointer(words[0]))
    })
}

static KERNEL_WORKSPACE: SlotDescription = SlotDescription {
    slot: ContractSlot::KernelWorkspace,
    table: "kernel",
    name: "workspace",
    device: None,
    queue: None,
    parameters: &[
        ParameterDescription { name: "call", kind: ParameterKind::InStruct("call") },
        ParameterDescription { name: "size", kind: ParameterKind::OutNumber(size_of::<u64>()) },
    ],
};

unsafe extern "C" fn kernel_workspace<W: LayerWork>(
    context: *mut c_void,
    call: *const abi::Call,
    size: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::Kernel>>() };
    let Some(next) = this.next.workspace else { return this.missing_slot(&KERNEL_WORKSPACE) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&KERNEL_WORKSPACE, &[pointer_word(call), pointer_word(size)], &|words| unsafe {
        next(this.context, word_const_pointer(words[0]), word_pointer(words[1]))
    })
}

static KERNEL_PREPARE: SlotDescription = SlotDescription {
    slot: ContractSlot::KernelPrepare,
    table: "kernel",
    name: "prepare",
    device: None,
    queue: None,
    parameters: &[
        ParameterDescription { name: "call", kind: ParameterKind::InStruct("call") },
        ParameterDescription { name: "state", kind: ParameterKind::OutAddress },
    ],
};

unsafe extern "C" fn kernel_prepare<W: LayerWork>(
    context: *mut c_void,
    call: *const abi::Call,
    state: *mut *mut c_void,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::Kernel>>() };
    let Some(next) = this.next.prepare else { return this.missing_slot(&KERNEL_PREPARE) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&KERNEL_PREPARE, &[pointer_word(call), pointer_word(state)], &|words| unsafe {
        next(this.context, word_const_pointer(words[0]), word_pointer(words[1]))
    })
}

static KERNEL_RUN: SlotDescription = SlotDescription {
    slot: ContractSlot::KernelRun,
    table: "kernel",
    name: "run",
    device: None,
    queue: None,
    parameters: &[
        ParameterDescription { name: "state", kind: ParameterKind::Address },
        ParameterDescription { name: "call", kind: ParameterKind::InStruct("call") },
    ],
};

unsafe extern "C" fn kernel_run<W: LayerWork>(
    context: *mut c_void,
    state: *mut c_void,
    call: *const abi::Call,
) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::Kernel>>() };
    let Some(next) = this.next.run else { return this.missing_slot(&KERNEL_RUN) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&KERNEL_RUN, &[pointer_word(state), pointer_word(call)], &|words| unsafe {
        next(this.context, word_pointer(words[0]), word_const_pointer(words[1]))
    })
}

static KERNEL_RELEASE: SlotDescription = SlotDescription {
    slot: ContractSlot::KernelRelease,
    table: "kernel",
    name: "release",
    device: None,
    queue: None,
    parameters: &[ParameterDescription { name: "state", kind: ParameterKind::Address }],
};

unsafe extern "C" fn kernel_release<W: LayerWork>(context: *mut c_void, state: *mut c_void) -> abi::Error {
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<WrappedTable<W, abi::Kernel>>() };
    let Some(next) = this.next.release else { return this.missing_slot(&KERNEL_RELEASE) };
    // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.
    this.around_call(&KERNEL_RELEASE, &[pointer_word(state)], &|words| unsafe {
        next(this.context, word_pointer(words[0]))
    })
}

/// The record that stands before `next`; its context is still that of `next`.
pub(crate) fn before_kernel<W: LayerWork>(next: &abi::Kernel) -> abi::Kernel {
    abi::Kernel {
        supports: next.supports.and(Some(kernel_supports::<W>)),
        infer: next.infer.and(Some(kernel_infer::<W>)),
        workspace: next.workspace.and(Some(kernel_workspace::<W>)),
        prepare: next.prepare.and(Some(kernel_prepare::<W>)),
        run: next.run.and(Some(kernel_run::<W>)),
        release: next.release.and(Some(kernel_release::<W>)),
        size: size_of::<abi::Kernel>() as u32,
        next: core::ptr::null(),
        ..*next
    }
}
