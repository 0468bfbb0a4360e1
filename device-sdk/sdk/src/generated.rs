// Generated from `device-sdk/contract/oarlock.contract` by `cargo xtask generate`. Do not edit.

#![expect(unsafe_code, reason = "every function here is called through a pointer from C")]

use core::ffi::c_void;

use oarlock_abi as abi;

use crate::boundary::{self, OutValue, PluginInstance};
use crate::error::{PluginError, Result};
use crate::memory_range::MemoryRange;
use crate::pointer::{HostPointer, StreamReached};

/// Devices, their memory, and synchronous copies. The device is an argument of every call; there is no current device.
///
/// Write `#[oarlock_sdk::slots]` above the `impl`: the optional functions that stand in it are the ones the
/// plugin offers; for the others the host does what the contract says.
pub trait Core: Send + Sync + 'static {
    /// The functions the plugin offers. `#[oarlock_sdk::slots]` writes this.
    const SLOTS: &'static [&'static str];

    /// Initializes the back end. No other call comes earlier.
    ///
    /// When it is not offered: not called.
    fn initialize(&self) -> Result<()> {
        Err(PluginError::slot_not_offered("initialize"))
    }

    /// Shuts the back end down. No other call comes later.
    ///
    /// When it is not offered: not called.
    fn finalize(&self) -> Result<()> {
        Err(PluginError::slot_not_offered("finalize"))
    }

    /// Initializes one device. Called once for every visible device when the host starts the plugin.
    ///
    /// When it is not offered: not called.
    fn device_init(&self, device: u32) -> Result<()> {
        let _ = device;
        Err(PluginError::slot_not_offered("device_init"))
    }

    /// Frees the resources of one device. Called before `finalize`.
    ///
    /// When it is not offered: not called.
    fn device_deinit(&self, device: u32) -> Result<()> {
        let _ = device;
        Err(PluginError::slot_not_offered("device_deinit"))
    }

    /// Waits until all work on the device is done.
    fn device_synchronize(&self, device: u32) -> Result<()>;

    /// The number of devices.
    fn device_count(&self) -> Result<u32>;

    /// The ids of the devices. They need not be 0, 1, 2 and so on. The host has room for as many as `device_count` said; with less
    /// room, write as many as fit, and set the count to the number of all.
    fn device_list(&self) -> Result<Vec<u32>>;

    /// Describes a device.
    ///
    /// When it is not offered: the device type as name, everything else unknown.
    fn device_info(&self, device: u32) -> Result<abi::DeviceInfo> {
        let _ = device;
        Err(PluginError::slot_not_offered("device_info"))
    }

    /// The compute capability of the chip.
    fn compute_capability(&self, device: u32) -> Result<abi::Version>;

    /// The version of the vendor's runtime library that is installed.
    fn runtime_version(&self) -> Result<abi::Version>;

    /// The version of the vendor's driver that is installed.
    fn driver_version(&self) -> Result<abi::Version>;

    /// Allocates `size` bytes of device memory. The handle is not 0, which means no block.
    fn memory_allocate(&self, device: u32, size: u64) -> Result<abi::Memory>;

    /// Frees device memory. `size` is the size that was requested.
    fn memory_deallocate(&self, device: u32, block: abi::Memory, size: u64) -> Result<()>;

    /// Allocates page-locked host memory that the device can copy from and to directly.
    ///
    /// When it is not offered: ordinary host memory is used.
    fn host_memory_allocate(&self, device: u32, size: u64) -> Result<HostPointer> {
        let _ = (device, size);
        Err(PluginError::slot_not_offered("host_memory_allocate"))
    }

    /// Frees page-locked host memory.
    ///
    /// When it is not offered: ordinary host memory is used.
    fn host_memory_deallocate(&self, device: u32, address: HostPointer, size: u64) -> Result<()> {
        let _ = (device, address, size);
        Err(PluginError::slot_not_offered("host_memory_deallocate"))
    }

    /// Allocates memory that has the same address on host and device.
    ///
    /// When it is not offered: unified memory is not offered.
    fn unified_memory_allocate(&self, device: u32, size: u64) -> Result<HostPointer> {
        let _ = (device, size);
        Err(PluginError::slot_not_offered("unified_memory_allocate"))
    }

    /// Frees unified memory.
    ///
    /// When it is not offered: unified memory is not offered.
    fn unified_memory_deallocate(&self, device: u32, address: HostPointer, size: u64) -> Result<()> {
        let _ = (device, address, size);
        Err(PluginError::slot_not_offered("unified_memory_deallocate"))
    }

    /// Copies from the host to the device.
    fn memory_copy_h2d(&self, device: u32, target: MemoryRange, source: &[u8]) -> Result<()>;

    /// Copies from the device to the host.
    fn memory_copy_d2h(&self, device: u32, target: &mut [u8], source: MemoryRange) -> Result<()>;

    /// Copies within a device. The ranges do not overlap.
    fn memory_copy_d2d(&self, device: u32, target: MemoryRange, source: MemoryRange) -> Result<()>;

    /// Copies between two devices of this plugin.
    ///
    /// When it is not offered: copied by way of the host.
    fn memory_copy_p2p(
        &self,
        target_device: u32,
        target: MemoryRange,
        source_device: u32,
        source: MemoryRange,
    ) -> Result<()> {
        let _ = (target_device, target, source_device, source);
        Err(PluginError::slot_not_offered("memory_copy_p2p"))
    }

    /// Fills device memory with a byte value.
    ///
    /// When it is not offered: filled by a copy from the host.
    fn memory_set(&self, device: u32, target: MemoryRange, byte: u8) -> Result<()> {
        let _ = (device, target, byte);
        Err(PluginError::slot_not_offered("memory_set"))
    }

    /// The device's memory and the part of it that is free, in bytes.
    fn memory_stats(&self, device: u32) -> Result<(u64, u64)>;

    /// The smallest allocation, and its granularity: a request of n bytes occupies n plus the extra padding, rounded up to a
    /// multiple of this size.
    fn min_chunk_size(&self, device: u32) -> Result<u64>;

    /// Requests above this size bypass the host's pool and go straight to the device.
    ///
    /// When it is not offered: the largest allocation.
    fn max_chunk_size(&self, device: u32) -> Result<u64> {
        let _ = device;
        Err(PluginError::slot_not_offered("max_chunk_size"))
    }

    /// The largest allocation.
    ///
    /// When it is not offered: the memory free now.
    fn max_alloc_size(&self, device: u32) -> Result<u64> {
        let _ = device;
        Err(PluginError::slot_not_offered("max_alloc_size"))
    }

    /// Padding in bytes that the host's pool adds to every request.
    ///
    /// When it is not offered: 0.
    fn extra_padding_size(&self, device: u32) -> Result<u64> {
        let _ = device;
        Err(PluginError::slot_not_offered("extra_padding_size"))
    }

    /// The size of the first chunk that the host's pool allocates.
    ///
    /// When it is not offered: the largest allocation.
    fn init_alloc_size(&self, device: u32) -> Result<u64> {
        let _ = device;
        Err(PluginError::slot_not_offered("init_alloc_size"))
    }

    /// The size of every further chunk that the host's pool allocates.
    ///
    /// When it is not offered: the largest allocation.
    fn realloc_size(&self, device: u32) -> Result<u64> {
        let _ = device;
        Err(PluginError::slot_not_offered("realloc_size"))
    }

    /// Finds an experimental function by its versioned name.
    ///
    /// When it is not offered: there are no experimental functions.
    fn experimental(&self, name: &str) -> Result<HostPointer> {
        let _ = name;
        Err(PluginError::slot_not_offered("experimental"))
    }
}

unsafe extern "C" fn core_initialize<D: Core>(context: *mut c_void) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe { boundary::enter_plugin(context, |plugin: &PluginInstance<D>| plugin.device.initialize()) }
}

unsafe extern "C" fn core_finalize<D: Core>(context: *mut c_void) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe { boundary::enter_plugin(context, |plugin: &PluginInstance<D>| plugin.device.finalize()) }
}

unsafe extern "C" fn core_device_init<D: Core>(context: *mut c_void, device: u32) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe { boundary::enter_plugin(context, |plugin: &PluginInstance<D>| plugin.device.device_init(device)) }
}

unsafe extern "C" fn core_device_deinit<D: Core>(context: *mut c_void, device: u32) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| plugin.device.device_deinit(device))
    }
}

unsafe extern "C" fn core_device_synchronize<D: Core>(context: *mut c_void, device: u32) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| plugin.device.device_synchronize(device))
    }
}

unsafe extern "C" fn core_device_count<D: Core>(context: *mut c_void, count: *mut u32) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let count = OutValue::new(count, "count")?;
            count.write(plugin.device.device_count()?)
        })
    }
}

unsafe extern "C" fn core_device_list<D: Core>(
    context: *mut c_void,
    ids: *mut u32,
    ids_capacity: u64,
    ids_count: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let ids = boundary::OutList::new(ids, ids_capacity, ids_count, "ids")?;
            ids.write(plugin.device.device_list()?)
        })
    }
}

unsafe extern "C" fn core_device_info<D: Core>(
    context: *mut c_void,
    device: u32,
    info: *mut abi::DeviceInfo,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let info = OutValue::new(info, "info")?;
            info.write_struct(plugin.device.device_info(device)?)
        })
    }
}

unsafe extern "C" fn core_compute_capability<D: Core>(
    context: *mut c_void,
    device: u32,
    capability: *mut abi::Version,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let capability = OutValue::new(capability, "capability")?;
            capability.write(plugin.device.compute_capability(device)?)
        })
    }
}

unsafe extern "C" fn core_runtime_version<D: Core>(
    context: *mut c_void,
    installed: *mut abi::Version,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let installed = OutValue::new(installed, "installed")?;
            installed.write(plugin.device.runtime_version()?)
        })
    }
}

unsafe extern "C" fn core_driver_version<D: Core>(
    context: *mut c_void,
    installed: *mut abi::Version,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let installed = OutValue::new(installed, "installed")?;
            installed.write(plugin.device.driver_version()?)
        })
    }
}

unsafe extern "C" fn core_memory_allocate<D: Core>(
    context: *mut c_void,
    device: u32,
    size: u64,
    block: *mut abi::Memory,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let block = OutValue::new(block, "block")?;
            block.write(plugin.device.memory_allocate(device, size)?)
        })
    }
}

unsafe extern "C" fn core_memory_deallocate<D: Core>(
    context: *mut c_void,
    device: u32,
    block: abi::Memory,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            plugin.device.memory_deallocate(device, block, size)
        })
    }
}

unsafe extern "C" fn core_host_memory_allocate<D: Core>(
    context: *mut c_void,
    device: u32,
    size: u64,
    address: *mut *mut c_void,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let address = OutValue::new(address, "address")?;
            address.write_pointer(plugin.device.host_memory_allocate(device, size)?)
        })
    }
}

unsafe extern "C" fn core_host_memory_deallocate<D: Core>(
    context: *mut c_void,
    device: u32,
    address: *mut c_void,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let address = HostPointer::new(address, "address")?;
            plugin.device.host_memory_deallocate(device, address, size)
        })
    }
}

unsafe extern "C" fn core_unified_memory_allocate<D: Core>(
    context: *mut c_void,
    device: u32,
    size: u64,
    address: *mut *mut c_void,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let address = OutValue::new(address, "address")?;
            address.write_pointer(plugin.device.unified_memory_allocate(device, size)?)
        })
    }
}

unsafe extern "C" fn core_unified_memory_deallocate<D: Core>(
    context: *mut c_void,
    device: u32,
    address: *mut c_void,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let address = HostPointer::new(address, "address")?;
            plugin.device.unified_memory_deallocate(device, address, size)
        })
    }
}

unsafe extern "C" fn core_memory_copy_h2d<D: Core>(
    context: *mut c_void,
    device: u32,
    target: abi::Memory,
    target_offset: u64,
    source: *const c_void,
    source_size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let source = boundary::checked_bytes(source, source_size, "source")?;
            let target = MemoryRange { memory: target, offset: target_offset, size: source.len() as u64 };
            plugin.device.memory_copy_h2d(device, target, source)
        })
    }
}

unsafe extern "C" fn core_memory_copy_d2h<D: Core>(
    context: *mut c_void,
    device: u32,
    target: *mut c_void,
    target_size: u64,
    source: abi::Memory,
    source_offset: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let target = boundary::checked_bytes_mut(target, target_size, "target")?;
            let source = MemoryRange { memory: source, offset: source_offset, size: target.len() as u64 };
            plugin.device.memory_copy_d2h(device, target, source)
        })
    }
}

unsafe extern "C" fn core_memory_copy_d2d<D: Core>(
    context: *mut c_void,
    device: u32,
    target: abi::Memory,
    target_offset: u64,
    source: abi::Memory,
    source_offset: u64,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let target = MemoryRange { memory: target, offset: target_offset, size };
            let source = MemoryRange { memory: source, offset: source_offset, size };
            plugin.device.memory_copy_d2d(device, target, source)
        })
    }
}

unsafe extern "C" fn core_memory_copy_p2p<D: Core>(
    context: *mut c_void,
    target_device: u32,
    target: abi::Memory,
    target_offset: u64,
    source_device: u32,
    source: abi::Memory,
    source_offset: u64,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let target = MemoryRange { memory: target, offset: target_offset, size };
            let source = MemoryRange { memory: source, offset: source_offset, size };
            plugin.device.memory_copy_p2p(target_device, target, source_device, source)
        })
    }
}

unsafe extern "C" fn core_memory_set<D: Core>(
    context: *mut c_void,
    device: u32,
    target: abi::Memory,
    target_offset: u64,
    byte: u8,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let target = MemoryRange { memory: target, offset: target_offset, size };
            plugin.device.memory_set(device, target, byte)
        })
    }
}

unsafe extern "C" fn core_memory_stats<D: Core>(
    context: *mut c_void,
    device: u32,
    total: *mut u64,
    free: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let total = OutValue::new(total, "total")?;
            let free = OutValue::new(free, "free")?;
            let (result0, result1) = plugin.device.memory_stats(device)?;
            total.write(result0)?;
            free.write(result1)?;
            Ok(())
        })
    }
}

unsafe extern "C" fn core_min_chunk_size<D: Core>(
    context: *mut c_void,
    device: u32,
    size: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let size = OutValue::new(size, "size")?;
            size.write(plugin.device.min_chunk_size(device)?)
        })
    }
}

unsafe extern "C" fn core_max_chunk_size<D: Core>(
    context: *mut c_void,
    device: u32,
    size: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let size = OutValue::new(size, "size")?;
            size.write(plugin.device.max_chunk_size(device)?)
        })
    }
}

unsafe extern "C" fn core_max_alloc_size<D: Core>(
    context: *mut c_void,
    device: u32,
    size: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let size = OutValue::new(size, "size")?;
            size.write(plugin.device.max_alloc_size(device)?)
        })
    }
}

unsafe extern "C" fn core_extra_padding_size<D: Core>(
    context: *mut c_void,
    device: u32,
    size: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let size = OutValue::new(size, "size")?;
            size.write(plugin.device.extra_padding_size(device)?)
        })
    }
}

unsafe extern "C" fn core_init_alloc_size<D: Core>(
    context: *mut c_void,
    device: u32,
    size: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let size = OutValue::new(size, "size")?;
            size.write(plugin.device.init_alloc_size(device)?)
        })
    }
}

unsafe extern "C" fn core_realloc_size<D: Core>(
    context: *mut c_void,
    device: u32,
    size: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let size = OutValue::new(size, "size")?;
            size.write(plugin.device.realloc_size(device)?)
        })
    }
}

unsafe extern "C" fn core_experimental<D: Core>(
    context: *mut c_void,
    name: abi::Str,
    function: *mut *mut c_void,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let name = boundary::checked_text(name, "name")?;
            let function = OutValue::new(function, "function")?;
            function.write_pointer(plugin.device.experimental(name)?)
        })
    }
}

/// The table of a device, with a null in each slot it does not offer.
pub(crate) fn core_table<D: Core>() -> abi::CoreTable {
    abi::CoreTable {
        initialize: boundary::slot_if_offered(D::SLOTS, "initialize", core_initialize::<D>),
        finalize: boundary::slot_if_offered(D::SLOTS, "finalize", core_finalize::<D>),
        device_init: boundary::slot_if_offered(D::SLOTS, "device_init", core_device_init::<D>),
        device_deinit: boundary::slot_if_offered(D::SLOTS, "device_deinit", core_device_deinit::<D>),
        device_synchronize: Some(core_device_synchronize::<D>),
        device_count: Some(core_device_count::<D>),
        device_list: Some(core_device_list::<D>),
        device_info: boundary::slot_if_offered(D::SLOTS, "device_info", core_device_info::<D>),
        compute_capability: Some(core_compute_capability::<D>),
        runtime_version: Some(core_runtime_version::<D>),
        driver_version: Some(core_driver_version::<D>),
        memory_allocate: Some(core_memory_allocate::<D>),
        memory_deallocate: Some(core_memory_deallocate::<D>),
        host_memory_allocate: boundary::slot_if_offered(
            D::SLOTS,
            "host_memory_allocate",
            core_host_memory_allocate::<D>,
        ),
        host_memory_deallocate: boundary::slot_if_offered(
            D::SLOTS,
            "host_memory_deallocate",
            core_host_memory_deallocate::<D>,
        ),
        unified_memory_allocate: boundary::slot_if_offered(
            D::SLOTS,
            "unified_memory_allocate",
            core_unified_memory_allocate::<D>,
        ),
        unified_memory_deallocate: boundary::slot_if_offered(
            D::SLOTS,
            "unified_memory_deallocate",
            core_unified_memory_deallocate::<D>,
        ),
        memory_copy_h2d: Some(core_memory_copy_h2d::<D>),
        memory_copy_d2h: Some(core_memory_copy_d2h::<D>),
        memory_copy_d2d: Some(core_memory_copy_d2d::<D>),
        memory_copy_p2p: boundary::slot_if_offered(D::SLOTS, "memory_copy_p2p", core_memory_copy_p2p::<D>),
        memory_set: boundary::slot_if_offered(D::SLOTS, "memory_set", core_memory_set::<D>),
        memory_stats: Some(core_memory_stats::<D>),
        min_chunk_size: Some(core_min_chunk_size::<D>),
        max_chunk_size: boundary::slot_if_offered(D::SLOTS, "max_chunk_size", core_max_chunk_size::<D>),
        max_alloc_size: boundary::slot_if_offered(D::SLOTS, "max_alloc_size", core_max_alloc_size::<D>),
        extra_padding_size: boundary::slot_if_offered(
            D::SLOTS,
            "extra_padding_size",
            core_extra_padding_size::<D>,
        ),
        init_alloc_size: boundary::slot_if_offered(D::SLOTS, "init_alloc_size", core_init_alloc_size::<D>),
        realloc_size: boundary::slot_if_offered(D::SLOTS, "realloc_size", core_realloc_size::<D>),
        experimental: boundary::slot_if_offered(D::SLOTS, "experimental", core_experimental::<D>),
        ..abi::CoreTable::EMPTY
    }
}

/// Streams and events. A device without asynchronous work may omit the whole table: the host then does all work synchronously.
/// Host memory that is passed to an asynchronous call stays valid until the stream is past the call.
///
/// Write `#[oarlock_sdk::slots]` above the `impl`: the optional functions that stand in it are the ones the
/// plugin offers; for the others the host does what the contract says.
pub trait Async: Send + Sync + 'static {
    /// The functions the plugin offers. `#[oarlock_sdk::slots]` writes this.
    const SLOTS: &'static [&'static str];

    /// Creates a stream. A smaller number is a higher priority, on devices that support priorities. The handle is not 0, which
    /// means the device's synchronous queue.
    fn stream_create(&self, device: u32, priority: i32) -> Result<abi::Stream>;

    /// Destroys a stream, once its work is done.
    fn stream_destroy(&self, device: u32, queue: abi::Stream) -> Result<()>;

    /// Whether all work in the stream is done: 1 or 0.
    ///
    /// When it is not offered: the stream is synchronized, then done.
    fn stream_query(&self, device: u32, queue: abi::Stream) -> Result<u32> {
        let _ = (device, queue);
        Err(PluginError::slot_not_offered("stream_query"))
    }

    /// Waits until all work in the stream is done, and reports its errors.
    fn stream_synchronize(&self, device: u32, queue: abi::Stream) -> Result<()>;

    /// Adds a callback to the stream, called when all earlier work is done.
    ///
    /// When it is not offered: the stream is synchronized, then the function called.
    fn stream_add_callback(&self, device: u32, queue: abi::Stream, reached: StreamReached) -> Result<()> {
        let _ = (device, queue, reached);
        Err(PluginError::slot_not_offered("stream_add_callback"))
    }

    /// Makes later work in the stream wait until the event has happened. An event that was never recorded counts as happened.
    fn stream_wait_event(&self, device: u32, queue: abi::Stream, point: abi::Event) -> Result<()>;

    /// Creates an event. The handle is not 0.
    fn event_create(&self, device: u32) -> Result<abi::Event>;

    /// Destroys an event. Work that already waits for it is not affected.
    fn event_destroy(&self, device: u32, point: abi::Event) -> Result<()>;

    /// Records the event at the end of the stream.
    fn event_record(&self, device: u32, queue: abi::Stream, point: abi::Event) -> Result<()>;

    /// Whether the event has happened: 1 or 0.
    ///
    /// When it is not offered: the event is synchronized, then done.
    fn event_query(&self, device: u32, point: abi::Event) -> Result<u32> {
        let _ = (device, point);
        Err(PluginError::slot_not_offered("event_query"))
    }

    /// Waits for the event, and reports errors of the work before it.
    fn event_synchronize(&self, device: u32, point: abi::Event) -> Result<()>;

    /// The time between two events that have happened, in nanoseconds.
    ///
    /// When it is not offered: times are not known.
    fn event_elapsed(&self, device: u32, start: abi::Event, end: abi::Event) -> Result<u64> {
        let _ = (device, start, end);
        Err(PluginError::slot_not_offered("event_elapsed"))
    }

    /// Copies from the host to the device, in the stream.
    ///
    /// When it is not offered: the stream is synchronized, then memory_copy_h2d.
    fn memory_copy_h2d_async(
        &self,
        device: u32,
        queue: abi::Stream,
        target: MemoryRange,
        source: HostPointer,
    ) -> Result<()> {
        let _ = (device, queue, target, source);
        Err(PluginError::slot_not_offered("memory_copy_h2d_async"))
    }

    /// Copies from the device to the host, in the stream.
    ///
    /// When it is not offered: the stream is synchronized, then memory_copy_d2h.
    fn memory_copy_d2h_async(
        &self,
        device: u32,
        queue: abi::Stream,
        target: HostPointer,
        source: MemoryRange,
    ) -> Result<()> {
        let _ = (device, queue, target, source);
        Err(PluginError::slot_not_offered("memory_copy_d2h_async"))
    }

    /// Copies within the device, in the stream.
    ///
    /// When it is not offered: the stream is synchronized, then memory_copy_d2d.
    fn memory_copy_d2d_async(
        &self,
        device: u32,
        queue: abi::Stream,
        target: MemoryRange,
        source: MemoryRange,
    ) -> Result<()> {
        let _ = (device, queue, target, source);
        Err(PluginError::slot_not_offered("memory_copy_d2d_async"))
    }

    /// Copies between two devices of this plugin, in a stream of the source device.
    ///
    /// When it is not offered: the stream is synchronized, then memory_copy_p2p.
    fn memory_copy_p2p_async(
        &self,
        target_device: u32,
        target: MemoryRange,
        source_device: u32,
        queue: abi::Stream,
        source: MemoryRange,
    ) -> Result<()> {
        let _ = (target_device, target, source_device, queue, source);
        Err(PluginError::slot_not_offered("memory_copy_p2p_async"))
    }

    /// Fills device memory with a byte value, in the stream.
    ///
    /// When it is not offered: the stream is synchronized, then memory_set.
    fn memory_set_async(&self, device: u32, queue: abi::Stream, target: MemoryRange, byte: u8) -> Result<()> {
        let _ = (device, queue, target, byte);
        Err(PluginError::slot_not_offered("memory_set_async"))
    }

    /// Allocates device memory that is usable from this point of the stream on.
    ///
    /// When it is not offered: memory_allocate.
    fn memory_allocate_async(&self, device: u32, queue: abi::Stream, size: u64) -> Result<abi::Memory> {
        let _ = (device, queue, size);
        Err(PluginError::slot_not_offered("memory_allocate_async"))
    }

    /// Frees device memory once the stream is past this point.
    ///
    /// When it is not offered: the stream is synchronized, then memory_deallocate.
    fn memory_deallocate_async(
        &self,
        device: u32,
        queue: abi::Stream,
        block: abi::Memory,
        size: u64,
    ) -> Result<()> {
        let _ = (device, queue, block, size);
        Err(PluginError::slot_not_offered("memory_deallocate_async"))
    }
}

unsafe extern "C" fn async_stream_create<D: Async>(
    context: *mut c_void,
    device: u32,
    priority: i32,
    queue: *mut abi::Stream,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let queue = OutValue::new(queue, "queue")?;
            queue.write(plugin.device.stream_create(device, priority)?)
        })
    }
}

unsafe extern "C" fn async_stream_destroy<D: Async>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            plugin.device.stream_destroy(device, queue)
        })
    }
}

unsafe extern "C" fn async_stream_query<D: Async>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    done: *mut u32,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let done = OutValue::new(done, "done")?;
            done.write(plugin.device.stream_query(device, queue)?)
        })
    }
}

unsafe extern "C" fn async_stream_synchronize<D: Async>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            plugin.device.stream_synchronize(device, queue)
        })
    }
}

unsafe extern "C" fn async_stream_add_callback<D: Async>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    reached: Option<abi::StreamReached>,
    user: *mut c_void,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let reached = StreamReached::new(reached, user)?;
            plugin.device.stream_add_callback(device, queue, reached)
        })
    }
}

unsafe extern "C" fn async_stream_wait_event<D: Async>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    point: abi::Event,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            plugin.device.stream_wait_event(device, queue, point)
        })
    }
}

unsafe extern "C" fn async_event_create<D: Async>(
    context: *mut c_void,
    device: u32,
    point: *mut abi::Event,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let point = OutValue::new(point, "point")?;
            point.write(plugin.device.event_create(device)?)
        })
    }
}

unsafe extern "C" fn async_event_destroy<D: Async>(
    context: *mut c_void,
    device: u32,
    point: abi::Event,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            plugin.device.event_destroy(device, point)
        })
    }
}

unsafe extern "C" fn async_event_record<D: Async>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    point: abi::Event,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            plugin.device.event_record(device, queue, point)
        })
    }
}

unsafe extern "C" fn async_event_query<D: Async>(
    context: *mut c_void,
    device: u32,
    point: abi::Event,
    done: *mut u32,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let done = OutValue::new(done, "done")?;
            done.write(plugin.device.event_query(device, point)?)
        })
    }
}

unsafe extern "C" fn async_event_synchronize<D: Async>(
    context: *mut c_void,
    device: u32,
    point: abi::Event,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            plugin.device.event_synchronize(device, point)
        })
    }
}

unsafe extern "C" fn async_event_elapsed<D: Async>(
    context: *mut c_void,
    device: u32,
    start: abi::Event,
    end: abi::Event,
    nanoseconds: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let nanoseconds = OutValue::new(nanoseconds, "nanoseconds")?;
            nanoseconds.write(plugin.device.event_elapsed(device, start, end)?)
        })
    }
}

unsafe extern "C" fn async_memory_copy_h2d_async<D: Async>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    target: abi::Memory,
    target_offset: u64,
    source: *const c_void,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let source = HostPointer::new(source.cast_mut(), "source")?;
            let target = MemoryRange { memory: target, offset: target_offset, size };
            plugin.device.memory_copy_h2d_async(device, queue, target, source)
        })
    }
}

unsafe extern "C" fn async_memory_copy_d2h_async<D: Async>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    target: *mut c_void,
    source: abi::Memory,
    source_offset: u64,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let target = HostPointer::new(target, "target")?;
            let source = MemoryRange { memory: source, offset: source_offset, size };
            plugin.device.memory_copy_d2h_async(device, queue, target, source)
        })
    }
}

unsafe extern "C" fn async_memory_copy_d2d_async<D: Async>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    target: abi::Memory,
    target_offset: u64,
    source: abi::Memory,
    source_offset: u64,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let target = MemoryRange { memory: target, offset: target_offset, size };
            let source = MemoryRange { memory: source, offset: source_offset, size };
            plugin.device.memory_copy_d2d_async(device, queue, target, source)
        })
    }
}

unsafe extern "C" fn async_memory_copy_p2p_async<D: Async>(
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
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let target = MemoryRange { memory: target, offset: target_offset, size };
            let source = MemoryRange { memory: source, offset: source_offset, size };
            plugin.device.memory_copy_p2p_async(target_device, target, source_device, queue, source)
        })
    }
}

unsafe extern "C" fn async_memory_set_async<D: Async>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    target: abi::Memory,
    target_offset: u64,
    byte: u8,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let target = MemoryRange { memory: target, offset: target_offset, size };
            plugin.device.memory_set_async(device, queue, target, byte)
        })
    }
}

unsafe extern "C" fn async_memory_allocate_async<D: Async>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    size: u64,
    block: *mut abi::Memory,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            let block = OutValue::new(block, "block")?;
            block.write(plugin.device.memory_allocate_async(device, queue, size)?)
        })
    }
}

unsafe extern "C" fn async_memory_deallocate_async<D: Async>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    block: abi::Memory,
    size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {
            plugin.device.memory_deallocate_async(device, queue, block, size)
        })
    }
}

/// The table of a device, with a null in each slot it does not offer.
pub(crate) fn async_table<D: Async>() -> abi::AsyncTable {
    abi::AsyncTable {
        stream_create: Some(async_stream_create::<D>),
        stream_destroy: Some(async_stream_destroy::<D>),
        stream_query: boundary::slot_if_offered(D::SLOTS, "stream_query", async_stream_query::<D>),
        stream_synchronize: Some(async_stream_synchronize::<D>),
        stream_add_callback: boundary::slot_if_offered(
            D::SLOTS,
            "stream_add_callback",
            async_stream_add_callback::<D>,
        ),
        stream_wait_event: Some(async_stream_wait_event::<D>),
        event_create: Some(async_event_create::<D>),
        event_destroy: Some(async_event_destroy::<D>),
        event_record: Some(async_event_record::<D>),
        event_query: boundary::slot_if_offered(D::SLOTS, "event_query", async_event_query::<D>),
        event_synchronize: Some(async_event_synchronize::<D>),
        event_elapsed: boundary::slot_if_offered(D::SLOTS, "event_elapsed", async_event_elapsed::<D>),
        memory_copy_h2d_async: boundary::slot_if_offered(
            D::SLOTS,
            "memory_copy_h2d_async",
            async_memory_copy_h2d_async::<D>,
        ),
        memory_copy_d2h_async: boundary::slot_if_offered(
            D::SLOTS,
            "memory_copy_d2h_async",
            async_memory_copy_d2h_async::<D>,
        ),
        memory_copy_d2d_async: boundary::slot_if_offered(
            D::SLOTS,
            "memory_copy_d2d_async",
            async_memory_copy_d2d_async::<D>,
        ),
        memory_copy_p2p_async: boundary::slot_if_offered(
            D::SLOTS,
            "memory_copy_p2p_async",
            async_memory_copy_p2p_async::<D>,
        ),
        memory_set_async: boundary::slot_if_offered(
            D::SLOTS,
            "memory_set_async",
            async_memory_set_async::<D>,
        ),
        memory_allocate_async: boundary::slot_if_offered(
            D::SLOTS,
            "memory_allocate_async",
            async_memory_allocate_async::<D>,
        ),
        memory_deallocate_async: boundary::slot_if_offered(
            D::SLOTS,
            "memory_deallocate_async",
            async_memory_deallocate_async::<D>,
        ),
        ..abi::AsyncTable::EMPTY
    }
}
