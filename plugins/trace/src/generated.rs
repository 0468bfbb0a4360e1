// Generated from `device-sdk/contract/oarlock.contract` by `cargo xtask generate`. Do not edit.

#![expect(unsafe_code, reason = "every function here is called through a pointer from C")]
use core::ffi::c_void;

use oarlock_sdk::abi;

use crate::recorder::TracePoint;
use crate::traced_table::TracedTable;

unsafe extern "C" fn core_initialize(context: *mut c_void) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "core.initialize", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.initialize else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context) };
    this.record_call(&SITE, began, &[], failure)
}

unsafe extern "C" fn core_finalize(context: *mut c_void) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "core.finalize", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.finalize else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context) };
    this.record_call(&SITE, began, &[], failure)
}

unsafe extern "C" fn core_device_init(context: *mut c_void, device: u32) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "core.device_init", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.device_init else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device) };
    this.record_call(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn core_device_deinit(context: *mut c_void, device: u32) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "core.device_deinit", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.device_deinit else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device) };
    this.record_call(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn core_device_synchronize(context: *mut c_void, device: u32) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "core.device_synchronize", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.device_synchronize else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device) };
    this.record_call(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn core_device_count(context: *mut c_void, count: *mut u32) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "core.device_count", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.device_count else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, count) };
    this.record_call(&SITE, began, &[], failure)
}

unsafe extern "C" fn core_device_list(
    context: *mut c_void,
    ids: *mut u32,
    ids_capacity: u64,
    ids_count: *mut u64,
) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "core.device_list", arguments: &["ids_capacity"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.device_list else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, ids, ids_capacity, ids_count) };
    this.record_call(&SITE, began, &[ids_capacity], failure)
}

unsafe extern "C" fn core_device_info(
    context: *mut c_void,
    device: u32,
    info: *mut abi::DeviceInfo,
) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "core.device_info", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.device_info else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, info) };
    this.record_call(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn core_compute_capability(
    context: *mut c_void,
    device: u32,
    capability: *mut abi::Version,
) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "core.compute_capability", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.compute_capability else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, capability) };
    this.record_call(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn core_runtime_version(context: *mut c_void, installed: *mut abi::Version) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "core.runtime_version", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.runtime_version else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, installed) };
    this.record_call(&SITE, began, &[], failure)
}

unsafe extern "C" fn core_driver_version(context: *mut c_void, installed: *mut abi::Version) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "core.driver_version", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.driver_version else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, installed) };
    this.record_call(&SITE, began, &[], failure)
}

unsafe extern "C" fn core_memory_allocate(
    context: *mut c_void,
    device: u32,
    size: u64,
    block: *mut abi::Memory,
) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "core.memory_allocate", arguments: &["device", "size"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.memory_allocate else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, size, block) };
    this.record_call(&SITE, began, &[u64::from(device), size], failure)
}

unsafe extern "C" fn core_memory_deallocate(
    context: *mut c_void,
    device: u32,
    block: abi::Memory,
    size: u64,
) -> abi::Error {
    static SITE: TracePoint =
        TracePoint { name: "core.memory_deallocate", arguments: &["device", "block", "size"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.memory_deallocate else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, block, size) };
    this.record_call(&SITE, began, &[u64::from(device), block.0, size], failure)
}

unsafe extern "C" fn core_host_memory_allocate(
    context: *mut c_void,
    device: u32,
    size: u64,
    address: *mut *mut c_void,
) -> abi::Error {
    static SITE: TracePoint =
        TracePoint { name: "core.host_memory_allocate", arguments: &["device", "size"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.host_memory_allocate else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, size, address) };
    this.record_call(&SITE, began, &[u64::from(device), size], failure)
}

unsafe extern "C" fn core_host_memory_deallocate(
    context: *mut c_void,
    device: u32,
    address: *mut c_void,
    size: u64,
) -> abi::Error {
    static SITE: TracePoint =
        TracePoint { name: "core.host_memory_deallocate", arguments: &["device", "size"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.host_memory_deallocate else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, address, size) };
    this.record_call(&SITE, began, &[u64::from(device), size], failure)
}

unsafe extern "C" fn core_unified_memory_allocate(
    context: *mut c_void,
    device: u32,
    size: u64,
    address: *mut *mut c_void,
) -> abi::Error {
    static SITE: TracePoint =
        TracePoint { name: "core.unified_memory_allocate", arguments: &["device", "size"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.unified_memory_allocate else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, size, address) };
    this.record_call(&SITE, began, &[u64::from(device), size], failure)
}

unsafe extern "C" fn core_unified_memory_deallocate(
    context: *mut c_void,
    device: u32,
    address: *mut c_void,
    size: u64,
) -> abi::Error {
    static SITE: TracePoint =
        TracePoint { name: "core.unified_memory_deallocate", arguments: &["device", "size"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.unified_memory_deallocate else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, address, size) };
    this.record_call(&SITE, began, &[u64::from(device), size], failure)
}

unsafe extern "C" fn core_memory_copy_h2d(
    context: *mut c_void,
    device: u32,
    target: abi::Memory,
    target_offset: u64,
    source: *const c_void,
    source_size: u64,
) -> abi::Error {
    static SITE: TracePoint = TracePoint {
        name: "core.memory_copy_h2d",
        arguments: &["device", "target", "target_offset", "source_size"],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.memory_copy_h2d else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, target, target_offset, source, source_size) };
    this.record_call(&SITE, began, &[u64::from(device), target.0, target_offset, source_size], failure)
}

unsafe extern "C" fn core_memory_copy_d2h(
    context: *mut c_void,
    device: u32,
    target: *mut c_void,
    target_size: u64,
    source: abi::Memory,
    source_offset: u64,
) -> abi::Error {
    static SITE: TracePoint = TracePoint {
        name: "core.memory_copy_d2h",
        arguments: &["device", "target_size", "source", "source_offset"],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.memory_copy_d2h else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, target, target_size, source, source_offset) };
    this.record_call(&SITE, began, &[u64::from(device), target_size, source.0, source_offset], failure)
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
    static SITE: TracePoint = TracePoint {
        name: "core.memory_copy_d2d",
        arguments: &["device", "target", "target_offset", "source", "source_offset", "size"],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.memory_copy_d2d else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, target, target_offset, source, source_offset, size) };
    this.record_call(
        &SITE,
        began,
        &[u64::from(device), target.0, target_offset, source.0, source_offset, size],
        failure,
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
    static SITE: TracePoint = TracePoint {
        name: "core.memory_copy_p2p",
        arguments: &[
            "target_device",
            "target",
            "target_offset",
            "source_device",
            "source",
            "source_offset",
            "size",
        ],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.memory_copy_p2p else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe {
        next(this.context, target_device, target, target_offset, source_device, source, source_offset, size)
    };
    this.record_call(
        &SITE,
        began,
        &[
            u64::from(target_device),
            target.0,
            target_offset,
            u64::from(source_device),
            source.0,
            source_offset,
            size,
        ],
        failure,
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
    static SITE: TracePoint = TracePoint {
        name: "core.memory_set",
        arguments: &["device", "target", "target_offset", "byte", "size"],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.memory_set else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, target, target_offset, byte, size) };
    this.record_call(
        &SITE,
        began,
        &[u64::from(device), target.0, target_offset, u64::from(byte), size],
        failure,
    )
}

unsafe extern "C" fn core_memory_stats(
    context: *mut c_void,
    device: u32,
    total: *mut u64,
    free: *mut u64,
) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "core.memory_stats", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.memory_stats else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, total, free) };
    this.record_call(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn core_min_chunk_size(context: *mut c_void, device: u32, size: *mut u64) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "core.min_chunk_size", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.min_chunk_size else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, size) };
    this.record_call(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn core_max_chunk_size(context: *mut c_void, device: u32, size: *mut u64) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "core.max_chunk_size", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.max_chunk_size else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, size) };
    this.record_call(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn core_max_alloc_size(context: *mut c_void, device: u32, size: *mut u64) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "core.max_alloc_size", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.max_alloc_size else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, size) };
    this.record_call(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn core_extra_padding_size(
    context: *mut c_void,
    device: u32,
    size: *mut u64,
) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "core.extra_padding_size", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.extra_padding_size else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, size) };
    this.record_call(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn core_init_alloc_size(context: *mut c_void, device: u32, size: *mut u64) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "core.init_alloc_size", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.init_alloc_size else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, size) };
    this.record_call(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn core_realloc_size(context: *mut c_void, device: u32, size: *mut u64) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "core.realloc_size", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.realloc_size else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, size) };
    this.record_call(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn core_experimental(
    context: *mut c_void,
    name: abi::Str,
    function: *mut *mut c_void,
) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "core.experimental", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::CoreTable>>() };
    let Some(next) = this.next.experimental else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, name, function) };
    this.record_call(&SITE, began, &[], failure)
}

/// The table that stands before `next`; a slot that is empty below stays empty.
pub(crate) fn before_core(next: &abi::CoreTable) -> abi::CoreTable {
    abi::CoreTable {
        initialize: next.initialize.and(Some(core_initialize)),
        finalize: next.finalize.and(Some(core_finalize)),
        device_init: next.device_init.and(Some(core_device_init)),
        device_deinit: next.device_deinit.and(Some(core_device_deinit)),
        device_synchronize: next.device_synchronize.and(Some(core_device_synchronize)),
        device_count: next.device_count.and(Some(core_device_count)),
        device_list: next.device_list.and(Some(core_device_list)),
        device_info: next.device_info.and(Some(core_device_info)),
        compute_capability: next.compute_capability.and(Some(core_compute_capability)),
        runtime_version: next.runtime_version.and(Some(core_runtime_version)),
        driver_version: next.driver_version.and(Some(core_driver_version)),
        memory_allocate: next.memory_allocate.and(Some(core_memory_allocate)),
        memory_deallocate: next.memory_deallocate.and(Some(core_memory_deallocate)),
        host_memory_allocate: next.host_memory_allocate.and(Some(core_host_memory_allocate)),
        host_memory_deallocate: next.host_memory_deallocate.and(Some(core_host_memory_deallocate)),
        unified_memory_allocate: next.unified_memory_allocate.and(Some(core_unified_memory_allocate)),
        unified_memory_deallocate: next.unified_memory_deallocate.and(Some(core_unified_memory_deallocate)),
        memory_copy_h2d: next.memory_copy_h2d.and(Some(core_memory_copy_h2d)),
        memory_copy_d2h: next.memory_copy_d2h.and(Some(core_memory_copy_d2h)),
        memory_copy_d2d: next.memory_copy_d2d.and(Some(core_memory_copy_d2d)),
        memory_copy_p2p: next.memory_copy_p2p.and(Some(core_memory_copy_p2p)),
        memory_set: next.memory_set.and(Some(core_memory_set)),
        memory_stats: next.memory_stats.and(Some(core_memory_stats)),
        min_chunk_size: next.min_chunk_size.and(Some(core_min_chunk_size)),
        max_chunk_size: next.max_chunk_size.and(Some(core_max_chunk_size)),
        max_alloc_size: next.max_alloc_size.and(Some(core_max_alloc_size)),
        extra_padding_size: next.extra_padding_size.and(Some(core_extra_padding_size)),
        init_alloc_size: next.init_alloc_size.and(Some(core_init_alloc_size)),
        realloc_size: next.realloc_size.and(Some(core_realloc_size)),
        experimental: next.experimental.and(Some(core_experimental)),
        size: size_of::<abi::CoreTable>() as u32,
        next: core::ptr::null(),
        ..*next
    }
}

unsafe extern "C" fn async_stream_create(
    context: *mut c_void,
    device: u32,
    priority: i32,
    queue: *mut abi::Stream,
) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "async.stream_create", arguments: &["device", "priority"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::AsyncTable>>() };
    let Some(next) = this.next.stream_create else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, priority, queue) };
    this.record_call(&SITE, began, &[u64::from(device), priority as u64], failure)
}

unsafe extern "C" fn async_stream_destroy(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "async.stream_destroy", arguments: &["device", "queue"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::AsyncTable>>() };
    let Some(next) = this.next.stream_destroy else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, queue) };
    this.record_call(&SITE, began, &[u64::from(device), queue.0], failure)
}

unsafe extern "C" fn async_stream_query(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    done: *mut u32,
) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "async.stream_query", arguments: &["device", "queue"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::AsyncTable>>() };
    let Some(next) = this.next.stream_query else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, queue, done) };
    this.record_call(&SITE, began, &[u64::from(device), queue.0], failure)
}

unsafe extern "C" fn async_stream_synchronize(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
) -> abi::Error {
    static SITE: TracePoint =
        TracePoint { name: "async.stream_synchronize", arguments: &["device", "queue"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::AsyncTable>>() };
    let Some(next) = this.next.stream_synchronize else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, queue) };
    this.record_call(&SITE, began, &[u64::from(device), queue.0], failure)
}

unsafe extern "C" fn async_stream_add_callback(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    reached: Option<abi::StreamReached>,
    user: *mut c_void,
) -> abi::Error {
    static SITE: TracePoint =
        TracePoint { name: "async.stream_add_callback", arguments: &["device", "queue"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::AsyncTable>>() };
    let Some(next) = this.next.stream_add_callback else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, queue, reached, user) };
    this.record_call(&SITE, began, &[u64::from(device), queue.0], failure)
}

unsafe extern "C" fn async_stream_wait_event(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    point: abi::Event,
) -> abi::Error {
    static SITE: TracePoint =
        TracePoint { name: "async.stream_wait_event", arguments: &["device", "queue", "point"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::AsyncTable>>() };
    let Some(next) = this.next.stream_wait_event else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, queue, point) };
    this.record_call(&SITE, began, &[u64::from(device), queue.0, point.0], failure)
}

unsafe extern "C" fn async_event_create(
    context: *mut c_void,
    device: u32,
    point: *mut abi::Event,
) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "async.event_create", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::AsyncTable>>() };
    let Some(next) = this.next.event_create else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, point) };
    this.record_call(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn async_event_destroy(context: *mut c_void, device: u32, point: abi::Event) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "async.event_destroy", arguments: &["device", "point"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::AsyncTable>>() };
    let Some(next) = this.next.event_destroy else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, point) };
    this.record_call(&SITE, began, &[u64::from(device), point.0], failure)
}

unsafe extern "C" fn async_event_record(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    point: abi::Event,
) -> abi::Error {
    static SITE: TracePoint =
        TracePoint { name: "async.event_record", arguments: &["device", "queue", "point"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::AsyncTable>>() };
    let Some(next) = this.next.event_record else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, queue, point) };
    this.record_call(&SITE, began, &[u64::from(device), queue.0, point.0], failure)
}

unsafe extern "C" fn async_event_query(
    context: *mut c_void,
    device: u32,
    point: abi::Event,
    done: *mut u32,
) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "async.event_query", arguments: &["device", "point"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::AsyncTable>>() };
    let Some(next) = this.next.event_query else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, point, done) };
    this.record_call(&SITE, began, &[u64::from(device), point.0], failure)
}

unsafe extern "C" fn async_event_synchronize(
    context: *mut c_void,
    device: u32,
    point: abi::Event,
) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "async.event_synchronize", arguments: &["device", "point"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::AsyncTable>>() };
    let Some(next) = this.next.event_synchronize else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, point) };
    this.record_call(&SITE, began, &[u64::from(device), point.0], failure)
}

unsafe extern "C" fn async_event_elapsed(
    context: *mut c_void,
    device: u32,
    start: abi::Event,
    end: abi::Event,
    nanoseconds: *mut u64,
) -> abi::Error {
    static SITE: TracePoint =
        TracePoint { name: "async.event_elapsed", arguments: &["device", "start", "end"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::AsyncTable>>() };
    let Some(next) = this.next.event_elapsed else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, start, end, nanoseconds) };
    this.record_call(&SITE, began, &[u64::from(device), start.0, end.0], failure)
}

unsafe extern "C" fn async_memory_copy_h2d_async(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    target: abi::Memory,
    target_offset: u64,
    source: *const c_void,
    size: u64,
) -> abi::Error {
    static SITE: TracePoint = TracePoint {
        name: "async.memory_copy_h2d_async",
        arguments: &["device", "queue", "target", "target_offset", "size"],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::AsyncTable>>() };
    let Some(next) = this.next.memory_copy_h2d_async else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, queue, target, target_offset, source, size) };
    this.record_call(&SITE, began, &[u64::from(device), queue.0, target.0, target_offset, size], failure)
}

unsafe extern "C" fn async_memory_copy_d2h_async(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    target: *mut c_void,
    source: abi::Memory,
    source_offset: u64,
    size: u64,
) -> abi::Error {
    static SITE: TracePoint = TracePoint {
        name: "async.memory_copy_d2h_async",
        arguments: &["device", "queue", "source", "source_offset", "size"],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::AsyncTable>>() };
    let Some(next) = this.next.memory_copy_d2h_async else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, queue, target, source, source_offset, size) };
    this.record_call(&SITE, began, &[u64::from(device), queue.0, source.0, source_offset, size], failure)
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
    static SITE: TracePoint = TracePoint {
        name: "async.memory_copy_d2d_async",
        arguments: &["device", "queue", "target", "target_offset", "source", "source_offset", "size"],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::AsyncTable>>() };
    let Some(next) = this.next.memory_copy_d2d_async else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure =
        unsafe { next(this.context, device, queue, target, target_offset, source, source_offset, size) };
    this.record_call(
        &SITE,
        began,
        &[u64::from(device), queue.0, target.0, target_offset, source.0, source_offset, size],
        failure,
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
    static SITE: TracePoint = TracePoint {
        name: "async.memory_copy_p2p_async",
        arguments: &[
            "target_device",
            "target",
            "target_offset",
            "source_device",
            "queue",
            "source",
            "source_offset",
            "size",
        ],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::AsyncTable>>() };
    let Some(next) = this.next.memory_copy_p2p_async else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe {
        next(
            this.context,
            target_device,
            target,
            target_offset,
            source_device,
            queue,
            source,
            source_offset,
            size,
        )
    };
    this.record_call(
        &SITE,
        began,
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
        failure,
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
    static SITE: TracePoint = TracePoint {
        name: "async.memory_set_async",
        arguments: &["device", "queue", "target", "target_offset", "byte", "size"],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::AsyncTable>>() };
    let Some(next) = this.next.memory_set_async else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, queue, target, target_offset, byte, size) };
    this.record_call(
        &SITE,
        began,
        &[u64::from(device), queue.0, target.0, target_offset, u64::from(byte), size],
        failure,
    )
}

unsafe extern "C" fn async_memory_allocate_async(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    size: u64,
    block: *mut abi::Memory,
) -> abi::Error {
    static SITE: TracePoint =
        TracePoint { name: "async.memory_allocate_async", arguments: &["device", "queue", "size"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::AsyncTable>>() };
    let Some(next) = this.next.memory_allocate_async else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, queue, size, block) };
    this.record_call(&SITE, began, &[u64::from(device), queue.0, size], failure)
}

unsafe extern "C" fn async_memory_deallocate_async(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    block: abi::Memory,
    size: u64,
) -> abi::Error {
    static SITE: TracePoint = TracePoint {
        name: "async.memory_deallocate_async",
        arguments: &["device", "queue", "block", "size"],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::AsyncTable>>() };
    let Some(next) = this.next.memory_deallocate_async else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, queue, block, size) };
    this.record_call(&SITE, began, &[u64::from(device), queue.0, block.0, size], failure)
}

/// The table that stands before `next`; a slot that is empty below stays empty.
pub(crate) fn before_async(next: &abi::AsyncTable) -> abi::AsyncTable {
    abi::AsyncTable {
        stream_create: next.stream_create.and(Some(async_stream_create)),
        stream_destroy: next.stream_destroy.and(Some(async_stream_destroy)),
        stream_query: next.stream_query.and(Some(async_stream_query)),
        stream_synchronize: next.stream_synchronize.and(Some(async_stream_synchronize)),
        stream_add_callback: next.stream_add_callback.and(Some(async_stream_add_callback)),
        stream_wait_event: next.stream_wait_event.and(Some(async_stream_wait_event)),
        event_create: next.event_create.and(Some(async_event_create)),
        event_destroy: next.event_destroy.and(Some(async_event_destroy)),
        event_record: next.event_record.and(Some(async_event_record)),
        event_query: next.event_query.and(Some(async_event_query)),
        event_synchronize: next.event_synchronize.and(Some(async_event_synchronize)),
        event_elapsed: next.event_elapsed.and(Some(async_event_elapsed)),
        memory_copy_h2d_async: next.memory_copy_h2d_async.and(Some(async_memory_copy_h2d_async)),
        memory_copy_d2h_async: next.memory_copy_d2h_async.and(Some(async_memory_copy_d2h_async)),
        memory_copy_d2d_async: next.memory_copy_d2d_async.and(Some(async_memory_copy_d2d_async)),
        memory_copy_p2p_async: next.memory_copy_p2p_async.and(Some(async_memory_copy_p2p_async)),
        memory_set_async: next.memory_set_async.and(Some(async_memory_set_async)),
        memory_allocate_async: next.memory_allocate_async.and(Some(async_memory_allocate_async)),
        memory_deallocate_async: next.memory_deallocate_async.and(Some(async_memory_deallocate_async)),
        size: size_of::<abi::AsyncTable>() as u32,
        next: core::ptr::null(),
        ..*next
    }
}

unsafe extern "C" fn kernel_supports(context: *mut c_void, call: *const abi::Call) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "kernel.supports", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::Kernel>>() };
    let Some(next) = this.next.supports else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, call) };
    this.record_call(&SITE, began, &[], failure)
}

unsafe extern "C" fn kernel_infer(context: *mut c_void, call: *const abi::Call) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "kernel.infer", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::Kernel>>() };
    let Some(next) = this.next.infer else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, call) };
    this.record_call(&SITE, began, &[], failure)
}

unsafe extern "C" fn kernel_workspace(
    context: *mut c_void,
    call: *const abi::Call,
    size: *mut u64,
) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "kernel.workspace", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::Kernel>>() };
    let Some(next) = this.next.workspace else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, call, size) };
    this.record_call(&SITE, began, &[], failure)
}

unsafe extern "C" fn kernel_prepare(
    context: *mut c_void,
    call: *const abi::Call,
    state: *mut *mut c_void,
) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "kernel.prepare", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::Kernel>>() };
    let Some(next) = this.next.prepare else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, call, state) };
    this.record_call(&SITE, began, &[], failure)
}

unsafe extern "C" fn kernel_run(
    context: *mut c_void,
    state: *mut c_void,
    call: *const abi::Call,
) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "kernel.run", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::Kernel>>() };
    let Some(next) = this.next.run else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, state, call) };
    this.record_call(&SITE, began, &[], failure)
}

unsafe extern "C" fn kernel_release(context: *mut c_void, state: *mut c_void) -> abi::Error {
    static SITE: TracePoint = TracePoint { name: "kernel.release", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<TracedTable<abi::Kernel>>() };
    let Some(next) = this.next.release else { return this.missing_slot(&SITE) };
    let began = this.recorder.elapsed_nanoseconds();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, state) };
    this.record_call(&SITE, began, &[], failure)
}

/// The record that stands before `next`; its context is still that of `next`.
pub(crate) fn before_kernel(next: &abi::Kernel) -> abi::Kernel {
    abi::Kernel {
        supports: next.supports.and(Some(kernel_supports)),
        infer: next.infer.and(Some(kernel_infer)),
        workspace: next.workspace.and(Some(kernel_workspace)),
        prepare: next.prepare.and(Some(kernel_prepare)),
        run: next.run.and(Some(kernel_run)),
        release: next.release.and(Some(kernel_release)),
        size: size_of::<abi::Kernel>() as u32,
        next: core::ptr::null(),
        ..*next
    }
}
