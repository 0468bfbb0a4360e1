// Generated from `device-sdk/contract/oarlock.contract` by `cargo xtask generate`. Do not edit.

#![expect(unsafe_code, reason = "every function here is called through a pointer from C")]
use core::ffi::c_void;

use oarlock_sdk::abi;

use crate::recorder::CallSite;
use crate::wrapped::Wrapped;

unsafe extern "C" fn core_initialize(context: *mut c_void) -> abi::Error {
    static SITE: CallSite = CallSite { name: "core.initialize", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.initialize else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context) };
    this.note(&SITE, began, &[], failure)
}

unsafe extern "C" fn core_finalize(context: *mut c_void) -> abi::Error {
    static SITE: CallSite = CallSite { name: "core.finalize", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.finalize else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context) };
    this.note(&SITE, began, &[], failure)
}

unsafe extern "C" fn core_device_init(context: *mut c_void, device: u32) -> abi::Error {
    static SITE: CallSite = CallSite { name: "core.device_init", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.device_init else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device) };
    this.note(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn core_device_deinit(context: *mut c_void, device: u32) -> abi::Error {
    static SITE: CallSite = CallSite { name: "core.device_deinit", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.device_deinit else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device) };
    this.note(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn core_device_synchronize(context: *mut c_void, device: u32) -> abi::Error {
    static SITE: CallSite = CallSite { name: "core.device_synchronize", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.device_synchronize else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device) };
    this.note(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn core_device_count(context: *mut c_void, count: *mut u32) -> abi::Error {
    static SITE: CallSite = CallSite { name: "core.device_count", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.device_count else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, count) };
    this.note(&SITE, began, &[], failure)
}

unsafe extern "C" fn core_device_list(
    context: *mut c_void,
    ids: *mut u32,
    ids_capacity: u64,
    ids_count: *mut u64,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "core.device_list", arguments: &["ids_capacity"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.device_list else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, ids, ids_capacity, ids_count) };
    this.note(&SITE, began, &[ids_capacity], failure)
}

unsafe extern "C" fn core_device_info(
    context: *mut c_void,
    device: u32,
    info: *mut abi::DeviceInfo,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "core.device_info", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.device_info else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, info) };
    this.note(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn core_compute_capability(
    context: *mut c_void,
    device: u32,
    capability: *mut abi::Version,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "core.compute_capability", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.compute_capability else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, capability) };
    this.note(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn core_runtime_version(context: *mut c_void, installed: *mut abi::Version) -> abi::Error {
    static SITE: CallSite = CallSite { name: "core.runtime_version", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.runtime_version else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, installed) };
    this.note(&SITE, began, &[], failure)
}

unsafe extern "C" fn core_driver_version(context: *mut c_void, installed: *mut abi::Version) -> abi::Error {
    static SITE: CallSite = CallSite { name: "core.driver_version", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.driver_version else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, installed) };
    this.note(&SITE, began, &[], failure)
}

unsafe extern "C" fn core_memory_allocate(
    context: *mut c_void,
    device: u32,
    size: u64,
    block: *mut abi::Memory,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "core.memory_allocate", arguments: &["device", "size"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.memory_allocate else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, size, block) };
    this.note(&SITE, began, &[u64::from(device), size], failure)
}

unsafe extern "C" fn core_memory_deallocate(
    context: *mut c_void,
    device: u32,
    block: abi::Memory,
    size: u64,
) -> abi::Error {
    static SITE: CallSite =
        CallSite { name: "core.memory_deallocate", arguments: &["device", "block", "size"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.memory_deallocate else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, block, size) };
    this.note(&SITE, began, &[u64::from(device), block.0, size], failure)
}

unsafe extern "C" fn core_host_memory_allocate(
    context: *mut c_void,
    device: u32,
    size: u64,
    address: *mut *mut c_void,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "core.host_memory_allocate", arguments: &["device", "size"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.host_memory_allocate else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, size, address) };
    this.note(&SITE, began, &[u64::from(device), size], failure)
}

unsafe extern "C" fn core_host_memory_deallocate(
    context: *mut c_void,
    device: u32,
    address: *mut c_void,
    size: u64,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "core.host_memory_deallocate", arguments: &["device", "size"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.host_memory_deallocate else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, address, size) };
    this.note(&SITE, began, &[u64::from(device), size], failure)
}

unsafe extern "C" fn core_unified_memory_allocate(
    context: *mut c_void,
    device: u32,
    size: u64,
    address: *mut *mut c_void,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "core.unified_memory_allocate", arguments: &["device", "size"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.unified_memory_allocate else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, size, address) };
    this.note(&SITE, began, &[u64::from(device), size], failure)
}

unsafe extern "C" fn core_unified_memory_deallocate(
    context: *mut c_void,
    device: u32,
    address: *mut c_void,
    size: u64,
) -> abi::Error {
    static SITE: CallSite =
        CallSite { name: "core.unified_memory_deallocate", arguments: &["device", "size"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.unified_memory_deallocate else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, address, size) };
    this.note(&SITE, began, &[u64::from(device), size], failure)
}

unsafe extern "C" fn core_memory_copy_h2d(
    context: *mut c_void,
    device: u32,
    target: abi::Memory,
    target_offset: u64,
    source: *const c_void,
    source_size: u64,
) -> abi::Error {
    static SITE: CallSite = CallSite {
        name: "core.memory_copy_h2d",
        arguments: &["device", "target", "target_offset", "source_size"],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.memory_copy_h2d else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, target, target_offset, source, source_size) };
    this.note(&SITE, began, &[u64::from(device), target.0, target_offset, source_size], failure)
}

unsafe extern "C" fn core_memory_copy_d2h(
    context: *mut c_void,
    device: u32,
    target: *mut c_void,
    target_size: u64,
    source: abi::Memory,
    source_offset: u64,
) -> abi::Error {
    static SITE: CallSite = CallSite {
        name: "core.memory_copy_d2h",
        arguments: &["device", "target_size", "source", "source_offset"],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.memory_copy_d2h else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, target, target_size, source, source_offset) };
    this.note(&SITE, began, &[u64::from(device), target_size, source.0, source_offset], failure)
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
    static SITE: CallSite = CallSite {
        name: "core.memory_copy_d2d",
        arguments: &["device", "target", "target_offset", "source", "source_offset", "size"],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.memory_copy_d2d else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, target, target_offset, source, source_offset, size) };
    this.note(
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
    static SITE: CallSite = CallSite {
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
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.memory_copy_p2p else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe {
        next(this.context, target_device, target, target_offset, source_device, source, source_offset, size)
    };
    this.note(
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
    static SITE: CallSite = CallSite {
        name: "core.memory_set",
        arguments: &["device", "target", "target_offset", "byte", "size"],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.memory_set else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, target, target_offset, byte, size) };
    this.note(&SITE, began, &[u64::from(device), target.0, target_offset, u64::from(byte), size], failure)
}

unsafe extern "C" fn core_memory_stats(
    context: *mut c_void,
    device: u32,
    total: *mut u64,
    free: *mut u64,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "core.memory_stats", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.memory_stats else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, total, free) };
    this.note(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn core_min_chunk_size(context: *mut c_void, device: u32, size: *mut u64) -> abi::Error {
    static SITE: CallSite = CallSite { name: "core.min_chunk_size", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.min_chunk_size else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, size) };
    this.note(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn core_max_chunk_size(context: *mut c_void, device: u32, size: *mut u64) -> abi::Error {
    static SITE: CallSite = CallSite { name: "core.max_chunk_size", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.max_chunk_size else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, size) };
    this.note(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn core_max_alloc_size(context: *mut c_void, device: u32, size: *mut u64) -> abi::Error {
    static SITE: CallSite = CallSite { name: "core.max_alloc_size", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.max_alloc_size else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, size) };
    this.note(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn core_extra_padding_size(
    context: *mut c_void,
    device: u32,
    size: *mut u64,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "core.extra_padding_size", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.extra_padding_size else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, size) };
    this.note(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn core_init_alloc_size(context: *mut c_void, device: u32, size: *mut u64) -> abi::Error {
    static SITE: CallSite = CallSite { name: "core.init_alloc_size", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.init_alloc_size else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, size) };
    this.note(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn core_realloc_size(context: *mut c_void, device: u32, size: *mut u64) -> abi::Error {
    static SITE: CallSite = CallSite { name: "core.realloc_size", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.realloc_size else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, size) };
    this.note(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn core_experimental(
    context: *mut c_void,
    name: abi::Str,
    function: *mut *mut c_void,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "core.experimental", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CoreTable>>() };
    let Some(next) = this.next.experimental else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, name, function) };
    this.note(&SITE, began, &[], failure)
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
    static SITE: CallSite = CallSite { name: "async.stream_create", arguments: &["device", "priority"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::AsyncTable>>() };
    let Some(next) = this.next.stream_create else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, priority, queue) };
    this.note(&SITE, began, &[u64::from(device), priority as u64], failure)
}

unsafe extern "C" fn async_stream_destroy(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "async.stream_destroy", arguments: &["device", "queue"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::AsyncTable>>() };
    let Some(next) = this.next.stream_destroy else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, queue) };
    this.note(&SITE, began, &[u64::from(device), queue.0], failure)
}

unsafe extern "C" fn async_stream_query(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    done: *mut u32,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "async.stream_query", arguments: &["device", "queue"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::AsyncTable>>() };
    let Some(next) = this.next.stream_query else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, queue, done) };
    this.note(&SITE, began, &[u64::from(device), queue.0], failure)
}

unsafe extern "C" fn async_stream_synchronize(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "async.stream_synchronize", arguments: &["device", "queue"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::AsyncTable>>() };
    let Some(next) = this.next.stream_synchronize else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, queue) };
    this.note(&SITE, began, &[u64::from(device), queue.0], failure)
}

unsafe extern "C" fn async_stream_add_callback(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    reached: Option<abi::StreamReached>,
    user: *mut c_void,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "async.stream_add_callback", arguments: &["device", "queue"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::AsyncTable>>() };
    let Some(next) = this.next.stream_add_callback else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, queue, reached, user) };
    this.note(&SITE, began, &[u64::from(device), queue.0], failure)
}

unsafe extern "C" fn async_stream_wait_event(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    point: abi::Event,
) -> abi::Error {
    static SITE: CallSite =
        CallSite { name: "async.stream_wait_event", arguments: &["device", "queue", "point"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::AsyncTable>>() };
    let Some(next) = this.next.stream_wait_event else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, queue, point) };
    this.note(&SITE, began, &[u64::from(device), queue.0, point.0], failure)
}

unsafe extern "C" fn async_event_create(
    context: *mut c_void,
    device: u32,
    point: *mut abi::Event,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "async.event_create", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::AsyncTable>>() };
    let Some(next) = this.next.event_create else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, point) };
    this.note(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn async_event_destroy(context: *mut c_void, device: u32, point: abi::Event) -> abi::Error {
    static SITE: CallSite = CallSite { name: "async.event_destroy", arguments: &["device", "point"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::AsyncTable>>() };
    let Some(next) = this.next.event_destroy else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, point) };
    this.note(&SITE, began, &[u64::from(device), point.0], failure)
}

unsafe extern "C" fn async_event_record(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    point: abi::Event,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "async.event_record", arguments: &["device", "queue", "point"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::AsyncTable>>() };
    let Some(next) = this.next.event_record else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, queue, point) };
    this.note(&SITE, began, &[u64::from(device), queue.0, point.0], failure)
}

unsafe extern "C" fn async_event_query(
    context: *mut c_void,
    device: u32,
    point: abi::Event,
    done: *mut u32,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "async.event_query", arguments: &["device", "point"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::AsyncTable>>() };
    let Some(next) = this.next.event_query else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, point, done) };
    this.note(&SITE, began, &[u64::from(device), point.0], failure)
}

unsafe extern "C" fn async_event_synchronize(
    context: *mut c_void,
    device: u32,
    point: abi::Event,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "async.event_synchronize", arguments: &["device", "point"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::AsyncTable>>() };
    let Some(next) = this.next.event_synchronize else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, point) };
    this.note(&SITE, began, &[u64::from(device), point.0], failure)
}

unsafe extern "C" fn async_event_elapsed(
    context: *mut c_void,
    device: u32,
    start: abi::Event,
    end: abi::Event,
    nanoseconds: *mut u64,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "async.event_elapsed", arguments: &["device", "start", "end"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::AsyncTable>>() };
    let Some(next) = this.next.event_elapsed else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, start, end, nanoseconds) };
    this.note(&SITE, began, &[u64::from(device), start.0, end.0], failure)
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
    static SITE: CallSite = CallSite {
        name: "async.memory_copy_h2d_async",
        arguments: &["device", "queue", "target", "target_offset", "size"],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::AsyncTable>>() };
    let Some(next) = this.next.memory_copy_h2d_async else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, queue, target, target_offset, source, size) };
    this.note(&SITE, began, &[u64::from(device), queue.0, target.0, target_offset, size], failure)
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
    static SITE: CallSite = CallSite {
        name: "async.memory_copy_d2h_async",
        arguments: &["device", "queue", "source", "source_offset", "size"],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::AsyncTable>>() };
    let Some(next) = this.next.memory_copy_d2h_async else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, queue, target, source, source_offset, size) };
    this.note(&SITE, began, &[u64::from(device), queue.0, source.0, source_offset, size], failure)
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
    static SITE: CallSite = CallSite {
        name: "async.memory_copy_d2d_async",
        arguments: &["device", "queue", "target", "target_offset", "source", "source_offset", "size"],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::AsyncTable>>() };
    let Some(next) = this.next.memory_copy_d2d_async else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure =
        unsafe { next(this.context, device, queue, target, target_offset, source, source_offset, size) };
    this.note(
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
    static SITE: CallSite = CallSite {
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
    let this = unsafe { &*context.cast::<Wrapped<abi::AsyncTable>>() };
    let Some(next) = this.next.memory_copy_p2p_async else { return this.missing(&SITE) };
    let began = this.recorder.now();
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
    this.note(
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
    static SITE: CallSite = CallSite {
        name: "async.memory_set_async",
        arguments: &["device", "queue", "target", "target_offset", "byte", "size"],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::AsyncTable>>() };
    let Some(next) = this.next.memory_set_async else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, queue, target, target_offset, byte, size) };
    this.note(
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
    static SITE: CallSite =
        CallSite { name: "async.memory_allocate_async", arguments: &["device", "queue", "size"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::AsyncTable>>() };
    let Some(next) = this.next.memory_allocate_async else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, queue, size, block) };
    this.note(&SITE, began, &[u64::from(device), queue.0, size], failure)
}

unsafe extern "C" fn async_memory_deallocate_async(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    block: abi::Memory,
    size: u64,
) -> abi::Error {
    static SITE: CallSite =
        CallSite { name: "async.memory_deallocate_async", arguments: &["device", "queue", "block", "size"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::AsyncTable>>() };
    let Some(next) = this.next.memory_deallocate_async else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, queue, block, size) };
    this.note(&SITE, began, &[u64::from(device), queue.0, block.0, size], failure)
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
    static SITE: CallSite = CallSite { name: "kernel.supports", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::Kernel>>() };
    let Some(next) = this.next.supports else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, call) };
    this.note(&SITE, began, &[], failure)
}

unsafe extern "C" fn kernel_infer(context: *mut c_void, call: *const abi::Call) -> abi::Error {
    static SITE: CallSite = CallSite { name: "kernel.infer", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::Kernel>>() };
    let Some(next) = this.next.infer else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, call) };
    this.note(&SITE, began, &[], failure)
}

unsafe extern "C" fn kernel_workspace(
    context: *mut c_void,
    call: *const abi::Call,
    size: *mut u64,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "kernel.workspace", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::Kernel>>() };
    let Some(next) = this.next.workspace else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, call, size) };
    this.note(&SITE, began, &[], failure)
}

unsafe extern "C" fn kernel_prepare(
    context: *mut c_void,
    call: *const abi::Call,
    state: *mut *mut c_void,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "kernel.prepare", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::Kernel>>() };
    let Some(next) = this.next.prepare else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, call, state) };
    this.note(&SITE, began, &[], failure)
}

unsafe extern "C" fn kernel_run(
    context: *mut c_void,
    state: *mut c_void,
    call: *const abi::Call,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "kernel.run", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::Kernel>>() };
    let Some(next) = this.next.run else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, state, call) };
    this.note(&SITE, began, &[], failure)
}

unsafe extern "C" fn kernel_release(context: *mut c_void, state: *mut c_void) -> abi::Error {
    static SITE: CallSite = CallSite { name: "kernel.release", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::Kernel>>() };
    let Some(next) = this.next.release else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, state) };
    this.note(&SITE, began, &[], failure)
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

unsafe extern "C" fn graph_graph_supports(
    context: *mut c_void,
    device: u32,
    graph: *const abi::Graph,
    taken: *mut u8,
    taken_capacity: u64,
    taken_count: *mut u64,
) -> abi::Error {
    static SITE: CallSite =
        CallSite { name: "graph.graph_supports", arguments: &["device", "taken_capacity"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::GraphTable>>() };
    let Some(next) = this.next.graph_supports else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, graph, taken, taken_capacity, taken_count) };
    this.note(&SITE, began, &[u64::from(device), taken_capacity], failure)
}

unsafe extern "C" fn graph_graph_compile(
    context: *mut c_void,
    device: u32,
    graph: *const abi::Graph,
    options: *const *const abi::Attribute,
    options_count: u64,
    program: *mut abi::Executable,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "graph.graph_compile", arguments: &["device", "options_count"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::GraphTable>>() };
    let Some(next) = this.next.graph_compile else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, graph, options, options_count, program) };
    this.note(&SITE, began, &[u64::from(device), options_count], failure)
}

unsafe extern "C" fn graph_graph_run(
    context: *mut c_void,
    program: abi::Executable,
    call: *const abi::Call,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "graph.graph_run", arguments: &["program"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::GraphTable>>() };
    let Some(next) = this.next.graph_run else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, program, call) };
    this.note(&SITE, began, &[program.0], failure)
}

unsafe extern "C" fn graph_graph_workspace(
    context: *mut c_void,
    program: abi::Executable,
    size: *mut u64,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "graph.graph_workspace", arguments: &["program"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::GraphTable>>() };
    let Some(next) = this.next.graph_workspace else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, program, size) };
    this.note(&SITE, began, &[program.0], failure)
}

unsafe extern "C" fn graph_graph_destroy(context: *mut c_void, program: abi::Executable) -> abi::Error {
    static SITE: CallSite = CallSite { name: "graph.graph_destroy", arguments: &["program"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::GraphTable>>() };
    let Some(next) = this.next.graph_destroy else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, program) };
    this.note(&SITE, began, &[program.0], failure)
}

unsafe extern "C" fn graph_graph_save(
    context: *mut c_void,
    program: abi::Executable,
    sink: Option<abi::ByteSink>,
    user: *mut c_void,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "graph.graph_save", arguments: &["program"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::GraphTable>>() };
    let Some(next) = this.next.graph_save else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, program, sink, user) };
    this.note(&SITE, began, &[program.0], failure)
}

unsafe extern "C" fn graph_graph_compatible(
    context: *mut c_void,
    device: u32,
    saved: *const c_void,
    saved_size: u64,
    usable: *mut u32,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "graph.graph_compatible", arguments: &["device", "saved_size"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::GraphTable>>() };
    let Some(next) = this.next.graph_compatible else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, saved, saved_size, usable) };
    this.note(&SITE, began, &[u64::from(device), saved_size], failure)
}

unsafe extern "C" fn graph_graph_load(
    context: *mut c_void,
    device: u32,
    saved: *const c_void,
    saved_size: u64,
    program: *mut abi::Executable,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "graph.graph_load", arguments: &["device", "saved_size"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::GraphTable>>() };
    let Some(next) = this.next.graph_load else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, saved, saved_size, program) };
    this.note(&SITE, began, &[u64::from(device), saved_size], failure)
}

/// The table that stands before `next`; a slot that is empty below stays empty.
pub(crate) fn before_graph(next: &abi::GraphTable) -> abi::GraphTable {
    abi::GraphTable {
        graph_supports: next.graph_supports.and(Some(graph_graph_supports)),
        graph_compile: next.graph_compile.and(Some(graph_graph_compile)),
        graph_run: next.graph_run.and(Some(graph_graph_run)),
        graph_workspace: next.graph_workspace.and(Some(graph_graph_workspace)),
        graph_destroy: next.graph_destroy.and(Some(graph_graph_destroy)),
        graph_save: next.graph_save.and(Some(graph_graph_save)),
        graph_compatible: next.graph_compatible.and(Some(graph_graph_compatible)),
        graph_load: next.graph_load.and(Some(graph_graph_load)),
        size: size_of::<abi::GraphTable>() as u32,
        next: core::ptr::null(),
        ..*next
    }
}

unsafe extern "C" fn collective_unique_id_size(context: *mut c_void, size: *mut u64) -> abi::Error {
    static SITE: CallSite = CallSite { name: "collective.unique_id_size", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CollectiveTable>>() };
    let Some(next) = this.next.unique_id_size else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, size) };
    this.note(&SITE, began, &[], failure)
}

unsafe extern "C" fn collective_unique_id(context: *mut c_void, id: *mut c_void, id_size: u64) -> abi::Error {
    static SITE: CallSite = CallSite { name: "collective.unique_id", arguments: &["id_size"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CollectiveTable>>() };
    let Some(next) = this.next.unique_id else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, id, id_size) };
    this.note(&SITE, began, &[id_size], failure)
}

unsafe extern "C" fn collective_communicator_create(
    context: *mut c_void,
    device: u32,
    id: *const c_void,
    id_size: u64,
    rank: u32,
    ranks: u32,
    member: *mut abi::Communicator,
) -> abi::Error {
    static SITE: CallSite = CallSite {
        name: "collective.communicator_create",
        arguments: &["device", "id_size", "rank", "ranks"],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CollectiveTable>>() };
    let Some(next) = this.next.communicator_create else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, id, id_size, rank, ranks, member) };
    this.note(&SITE, began, &[u64::from(device), id_size, u64::from(rank), u64::from(ranks)], failure)
}

unsafe extern "C" fn collective_communicator_destroy(
    context: *mut c_void,
    member: abi::Communicator,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "collective.communicator_destroy", arguments: &["member"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CollectiveTable>>() };
    let Some(next) = this.next.communicator_destroy else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, member) };
    this.note(&SITE, began, &[member.0], failure)
}

unsafe extern "C" fn collective_all_reduce(
    context: *mut c_void,
    member: abi::Communicator,
    queue: abi::Stream,
    send: abi::Memory,
    send_offset: u64,
    receive: abi::Memory,
    receive_offset: u64,
    count: u64,
    dtype: abi::Dtype,
    how: abi::Reduction,
) -> abi::Error {
    static SITE: CallSite = CallSite {
        name: "collective.all_reduce",
        arguments: &[
            "member",
            "queue",
            "send",
            "send_offset",
            "receive",
            "receive_offset",
            "count",
            "dtype",
            "how",
        ],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CollectiveTable>>() };
    let Some(next) = this.next.all_reduce else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe {
        next(this.context, member, queue, send, send_offset, receive, receive_offset, count, dtype, how)
    };
    this.note(
        &SITE,
        began,
        &[
            member.0,
            queue.0,
            send.0,
            send_offset,
            receive.0,
            receive_offset,
            count,
            u64::from(dtype.0),
            u64::from(how.0),
        ],
        failure,
    )
}

unsafe extern "C" fn collective_broadcast(
    context: *mut c_void,
    member: abi::Communicator,
    queue: abi::Stream,
    block: abi::Memory,
    offset: u64,
    count: u64,
    dtype: abi::Dtype,
    root: u32,
) -> abi::Error {
    static SITE: CallSite = CallSite {
        name: "collective.broadcast",
        arguments: &["member", "queue", "block", "offset", "count", "dtype", "root"],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CollectiveTable>>() };
    let Some(next) = this.next.broadcast else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, member, queue, block, offset, count, dtype, root) };
    this.note(
        &SITE,
        began,
        &[member.0, queue.0, block.0, offset, count, u64::from(dtype.0), u64::from(root)],
        failure,
    )
}

unsafe extern "C" fn collective_reduce(
    context: *mut c_void,
    member: abi::Communicator,
    queue: abi::Stream,
    send: abi::Memory,
    send_offset: u64,
    receive: abi::Memory,
    receive_offset: u64,
    count: u64,
    dtype: abi::Dtype,
    how: abi::Reduction,
    root: u32,
) -> abi::Error {
    static SITE: CallSite = CallSite {
        name: "collective.reduce",
        arguments: &[
            "member",
            "queue",
            "send",
            "send_offset",
            "receive",
            "receive_offset",
            "count",
            "dtype",
            "how",
            "root",
        ],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CollectiveTable>>() };
    let Some(next) = this.next.reduce else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe {
        next(this.context, member, queue, send, send_offset, receive, receive_offset, count, dtype, how, root)
    };
    this.note(
        &SITE,
        began,
        &[
            member.0,
            queue.0,
            send.0,
            send_offset,
            receive.0,
            receive_offset,
            count,
            u64::from(dtype.0),
            u64::from(how.0),
            u64::from(root),
        ],
        failure,
    )
}

unsafe extern "C" fn collective_all_gather(
    context: *mut c_void,
    member: abi::Communicator,
    queue: abi::Stream,
    send: abi::Memory,
    send_offset: u64,
    receive: abi::Memory,
    receive_offset: u64,
    count: u64,
    dtype: abi::Dtype,
) -> abi::Error {
    static SITE: CallSite = CallSite {
        name: "collective.all_gather",
        arguments: &["member", "queue", "send", "send_offset", "receive", "receive_offset", "count", "dtype"],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CollectiveTable>>() };
    let Some(next) = this.next.all_gather else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe {
        next(this.context, member, queue, send, send_offset, receive, receive_offset, count, dtype)
    };
    this.note(
        &SITE,
        began,
        &[member.0, queue.0, send.0, send_offset, receive.0, receive_offset, count, u64::from(dtype.0)],
        failure,
    )
}

unsafe extern "C" fn collective_reduce_scatter(
    context: *mut c_void,
    member: abi::Communicator,
    queue: abi::Stream,
    send: abi::Memory,
    send_offset: u64,
    receive: abi::Memory,
    receive_offset: u64,
    count: u64,
    dtype: abi::Dtype,
    how: abi::Reduction,
) -> abi::Error {
    static SITE: CallSite = CallSite {
        name: "collective.reduce_scatter",
        arguments: &[
            "member",
            "queue",
            "send",
            "send_offset",
            "receive",
            "receive_offset",
            "count",
            "dtype",
            "how",
        ],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CollectiveTable>>() };
    let Some(next) = this.next.reduce_scatter else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe {
        next(this.context, member, queue, send, send_offset, receive, receive_offset, count, dtype, how)
    };
    this.note(
        &SITE,
        began,
        &[
            member.0,
            queue.0,
            send.0,
            send_offset,
            receive.0,
            receive_offset,
            count,
            u64::from(dtype.0),
            u64::from(how.0),
        ],
        failure,
    )
}

unsafe extern "C" fn collective_group_start(context: *mut c_void) -> abi::Error {
    static SITE: CallSite = CallSite { name: "collective.group_start", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CollectiveTable>>() };
    let Some(next) = this.next.group_start else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context) };
    this.note(&SITE, began, &[], failure)
}

unsafe extern "C" fn collective_group_end(context: *mut c_void) -> abi::Error {
    static SITE: CallSite = CallSite { name: "collective.group_end", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CollectiveTable>>() };
    let Some(next) = this.next.group_end else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context) };
    this.note(&SITE, began, &[], failure)
}

unsafe extern "C" fn collective_send(
    context: *mut c_void,
    member: abi::Communicator,
    queue: abi::Stream,
    block: abi::Memory,
    offset: u64,
    count: u64,
    dtype: abi::Dtype,
    to: u32,
) -> abi::Error {
    static SITE: CallSite = CallSite {
        name: "collective.send",
        arguments: &["member", "queue", "block", "offset", "count", "dtype", "to"],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CollectiveTable>>() };
    let Some(next) = this.next.send else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, member, queue, block, offset, count, dtype, to) };
    this.note(
        &SITE,
        began,
        &[member.0, queue.0, block.0, offset, count, u64::from(dtype.0), u64::from(to)],
        failure,
    )
}

unsafe extern "C" fn collective_receive(
    context: *mut c_void,
    member: abi::Communicator,
    queue: abi::Stream,
    block: abi::Memory,
    offset: u64,
    count: u64,
    dtype: abi::Dtype,
    from: u32,
) -> abi::Error {
    static SITE: CallSite = CallSite {
        name: "collective.receive",
        arguments: &["member", "queue", "block", "offset", "count", "dtype", "from"],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CollectiveTable>>() };
    let Some(next) = this.next.receive else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, member, queue, block, offset, count, dtype, from) };
    this.note(
        &SITE,
        began,
        &[member.0, queue.0, block.0, offset, count, u64::from(dtype.0), u64::from(from)],
        failure,
    )
}

unsafe extern "C" fn collective_all_to_all(
    context: *mut c_void,
    member: abi::Communicator,
    queue: abi::Stream,
    send: abi::Memory,
    send_offset: u64,
    receive: abi::Memory,
    receive_offset: u64,
    count: u64,
    dtype: abi::Dtype,
) -> abi::Error {
    static SITE: CallSite = CallSite {
        name: "collective.all_to_all",
        arguments: &["member", "queue", "send", "send_offset", "receive", "receive_offset", "count", "dtype"],
    };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::CollectiveTable>>() };
    let Some(next) = this.next.all_to_all else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe {
        next(this.context, member, queue, send, send_offset, receive, receive_offset, count, dtype)
    };
    this.note(
        &SITE,
        began,
        &[member.0, queue.0, send.0, send_offset, receive.0, receive_offset, count, u64::from(dtype.0)],
        failure,
    )
}

/// The table that stands before `next`; a slot that is empty below stays empty.
pub(crate) fn before_collective(next: &abi::CollectiveTable) -> abi::CollectiveTable {
    abi::CollectiveTable {
        unique_id_size: next.unique_id_size.and(Some(collective_unique_id_size)),
        unique_id: next.unique_id.and(Some(collective_unique_id)),
        communicator_create: next.communicator_create.and(Some(collective_communicator_create)),
        communicator_destroy: next.communicator_destroy.and(Some(collective_communicator_destroy)),
        all_reduce: next.all_reduce.and(Some(collective_all_reduce)),
        broadcast: next.broadcast.and(Some(collective_broadcast)),
        reduce: next.reduce.and(Some(collective_reduce)),
        all_gather: next.all_gather.and(Some(collective_all_gather)),
        reduce_scatter: next.reduce_scatter.and(Some(collective_reduce_scatter)),
        group_start: next.group_start.and(Some(collective_group_start)),
        group_end: next.group_end.and(Some(collective_group_end)),
        send: next.send.and(Some(collective_send)),
        receive: next.receive.and(Some(collective_receive)),
        all_to_all: next.all_to_all.and(Some(collective_all_to_all)),
        size: size_of::<abi::CollectiveTable>() as u32,
        next: core::ptr::null(),
        ..*next
    }
}

unsafe extern "C" fn profile_profiler_initialize(context: *mut c_void) -> abi::Error {
    static SITE: CallSite = CallSite { name: "profile.profiler_initialize", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::ProfileTable>>() };
    let Some(next) = this.next.profiler_initialize else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context) };
    this.note(&SITE, began, &[], failure)
}

unsafe extern "C" fn profile_profiler_finalize(context: *mut c_void) -> abi::Error {
    static SITE: CallSite = CallSite { name: "profile.profiler_finalize", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::ProfileTable>>() };
    let Some(next) = this.next.profiler_finalize else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context) };
    this.note(&SITE, began, &[], failure)
}

unsafe extern "C" fn profile_profiler_prepare(context: *mut c_void) -> abi::Error {
    static SITE: CallSite = CallSite { name: "profile.profiler_prepare", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::ProfileTable>>() };
    let Some(next) = this.next.profiler_prepare else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context) };
    this.note(&SITE, began, &[], failure)
}

unsafe extern "C" fn profile_profiler_start(context: *mut c_void) -> abi::Error {
    static SITE: CallSite = CallSite { name: "profile.profiler_start", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::ProfileTable>>() };
    let Some(next) = this.next.profiler_start else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context) };
    this.note(&SITE, began, &[], failure)
}

unsafe extern "C" fn profile_profiler_stop(context: *mut c_void) -> abi::Error {
    static SITE: CallSite = CallSite { name: "profile.profiler_stop", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::ProfileTable>>() };
    let Some(next) = this.next.profiler_stop else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context) };
    this.note(&SITE, began, &[], failure)
}

unsafe extern "C" fn profile_profiler_collect(
    context: *mut c_void,
    sink: Option<abi::ActivitySink>,
    user: *mut c_void,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "profile.profiler_collect", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::ProfileTable>>() };
    let Some(next) = this.next.profiler_collect else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, sink, user) };
    this.note(&SITE, began, &[], failure)
}

unsafe extern "C" fn profile_profiler_clock(
    context: *mut c_void,
    device: u32,
    device_time: *mut u64,
    host_time: *mut u64,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "profile.profiler_clock", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::ProfileTable>>() };
    let Some(next) = this.next.profiler_clock else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, device_time, host_time) };
    this.note(&SITE, began, &[u64::from(device)], failure)
}

/// The table that stands before `next`; a slot that is empty below stays empty.
pub(crate) fn before_profile(next: &abi::ProfileTable) -> abi::ProfileTable {
    abi::ProfileTable {
        profiler_initialize: next.profiler_initialize.and(Some(profile_profiler_initialize)),
        profiler_finalize: next.profiler_finalize.and(Some(profile_profiler_finalize)),
        profiler_prepare: next.profiler_prepare.and(Some(profile_profiler_prepare)),
        profiler_start: next.profiler_start.and(Some(profile_profiler_start)),
        profiler_stop: next.profiler_stop.and(Some(profile_profiler_stop)),
        profiler_collect: next.profiler_collect.and(Some(profile_profiler_collect)),
        profiler_clock: next.profiler_clock.and(Some(profile_profiler_clock)),
        size: size_of::<abi::ProfileTable>() as u32,
        next: core::ptr::null(),
        ..*next
    }
}

unsafe extern "C" fn interop_dlpack_device(
    context: *mut c_void,
    device: u32,
    device_type: *mut i32,
    device_id: *mut i32,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "interop.dlpack_device", arguments: &["device"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::InteropTable>>() };
    let Some(next) = this.next.dlpack_device else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, device_type, device_id) };
    this.note(&SITE, began, &[u64::from(device)], failure)
}

unsafe extern "C" fn interop_memory_export(
    context: *mut c_void,
    device: u32,
    block: abi::Memory,
    kind: abi::NativeKind,
    native: *mut u64,
) -> abi::Error {
    static SITE: CallSite =
        CallSite { name: "interop.memory_export", arguments: &["device", "block", "kind"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::InteropTable>>() };
    let Some(next) = this.next.memory_export else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, block, kind, native) };
    this.note(&SITE, began, &[u64::from(device), block.0, u64::from(kind.0)], failure)
}

unsafe extern "C" fn interop_memory_import(
    context: *mut c_void,
    device: u32,
    kind: abi::NativeKind,
    native: u64,
    size: u64,
    block: *mut abi::Memory,
) -> abi::Error {
    static SITE: CallSite =
        CallSite { name: "interop.memory_import", arguments: &["device", "kind", "native", "size"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::InteropTable>>() };
    let Some(next) = this.next.memory_import else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, kind, native, size, block) };
    this.note(&SITE, began, &[u64::from(device), u64::from(kind.0), native, size], failure)
}

unsafe extern "C" fn interop_memory_forget(
    context: *mut c_void,
    device: u32,
    block: abi::Memory,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "interop.memory_forget", arguments: &["device", "block"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::InteropTable>>() };
    let Some(next) = this.next.memory_forget else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, block) };
    this.note(&SITE, began, &[u64::from(device), block.0], failure)
}

unsafe extern "C" fn interop_stream_export(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    native: *mut u64,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "interop.stream_export", arguments: &["device", "queue"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::InteropTable>>() };
    let Some(next) = this.next.stream_export else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, queue, native) };
    this.note(&SITE, began, &[u64::from(device), queue.0], failure)
}

unsafe extern "C" fn interop_stream_import(
    context: *mut c_void,
    device: u32,
    native: u64,
    queue: *mut abi::Stream,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "interop.stream_import", arguments: &["device", "native"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::InteropTable>>() };
    let Some(next) = this.next.stream_import else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, native, queue) };
    this.note(&SITE, began, &[u64::from(device), native], failure)
}

unsafe extern "C" fn interop_ipc_token_size(context: *mut c_void, size: *mut u64) -> abi::Error {
    static SITE: CallSite = CallSite { name: "interop.ipc_token_size", arguments: &[] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::InteropTable>>() };
    let Some(next) = this.next.ipc_token_size else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, size) };
    this.note(&SITE, began, &[], failure)
}

unsafe extern "C" fn interop_ipc_export(
    context: *mut c_void,
    device: u32,
    block: abi::Memory,
    token: *mut c_void,
    token_size: u64,
) -> abi::Error {
    static SITE: CallSite =
        CallSite { name: "interop.ipc_export", arguments: &["device", "block", "token_size"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::InteropTable>>() };
    let Some(next) = this.next.ipc_export else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, block, token, token_size) };
    this.note(&SITE, began, &[u64::from(device), block.0, token_size], failure)
}

unsafe extern "C" fn interop_ipc_import(
    context: *mut c_void,
    device: u32,
    token: *const c_void,
    token_size: u64,
    block: *mut abi::Memory,
    size: *mut u64,
) -> abi::Error {
    static SITE: CallSite = CallSite { name: "interop.ipc_import", arguments: &["device", "token_size"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::InteropTable>>() };
    let Some(next) = this.next.ipc_import else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, token, token_size, block, size) };
    this.note(&SITE, began, &[u64::from(device), token_size], failure)
}

unsafe extern "C" fn interop_ipc_close(context: *mut c_void, device: u32, block: abi::Memory) -> abi::Error {
    static SITE: CallSite = CallSite { name: "interop.ipc_close", arguments: &["device", "block"] };
    // SAFETY: the host hands back the context that `wrap` gave it.
    let this = unsafe { &*context.cast::<Wrapped<abi::InteropTable>>() };
    let Some(next) = this.next.ipc_close else { return this.missing(&SITE) };
    let began = this.recorder.now();
    // SAFETY: the arguments are passed on as they came, to the function they were meant for.
    let failure = unsafe { next(this.context, device, block) };
    this.note(&SITE, began, &[u64::from(device), block.0], failure)
}

/// The table that stands before `next`; a slot that is empty below stays empty.
pub(crate) fn before_interop(next: &abi::InteropTable) -> abi::InteropTable {
    abi::InteropTable {
        dlpack_device: next.dlpack_device.and(Some(interop_dlpack_device)),
        memory_export: next.memory_export.and(Some(interop_memory_export)),
        memory_import: next.memory_import.and(Some(interop_memory_import)),
        memory_forget: next.memory_forget.and(Some(interop_memory_forget)),
        stream_export: next.stream_export.and(Some(interop_stream_export)),
        stream_import: next.stream_import.and(Some(interop_stream_import)),
        ipc_token_size: next.ipc_token_size.and(Some(interop_ipc_token_size)),
        ipc_export: next.ipc_export.and(Some(interop_ipc_export)),
        ipc_import: next.ipc_import.and(Some(interop_ipc_import)),
        ipc_close: next.ipc_close.and(Some(interop_ipc_close)),
        size: size_of::<abi::InteropTable>() as u32,
        next: core::ptr::null(),
        ..*next
    }
}
