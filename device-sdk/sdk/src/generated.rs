// Generated from `device-sdk/contract/oarlock.contract` by `cargo xtask generate`. Do not edit.

#![expect(unsafe_code, reason = "every function here is called through a pointer from C")]
#![expect(clippy::too_many_arguments, reason = "the contract says what a call takes")]

use core::ffi::c_void;

use oarlock_abi as abi;

use crate::boundary::{self, Instance, Out};
use crate::call::Call;
use crate::error::{Error, Result};
use crate::pointer::{ActivitySink, ByteSink, HostPointer, StreamReached};

/// A device: what it is, its memory, and copies that are done when they return. A device is an argument of every call;
/// there is no current device.
///
/// Write `#[oarlock_sdk::slots]` above the `impl`: the optional functions that stand in it are the ones the
/// plugin offers; for the others the host does what the contract says.
pub trait Core: Send + Sync + 'static {
    /// The functions the plugin offers. `#[oarlock_sdk::slots]` writes this.
    const SLOTS: &'static [&'static str];

    /// Sets the back end up: the first call of all.
    ///
    /// When it is not offered: not called.
    fn initialize(&self) -> Result<()> {
        Err(Error::absent("initialize"))
    }

    /// Tears the back end down: the last call of all.
    ///
    /// When it is not offered: not called.
    fn finalize(&self) -> Result<()> {
        Err(Error::absent("finalize"))
    }

    /// Readies one device. Called for every device in the list when the plugin is registered.
    ///
    /// When it is not offered: not called.
    fn device_init(&self, device: u32) -> Result<()> {
        let _ = device;
        Err(Error::absent("device_init"))
    }

    /// Frees everything one device holds. Called before `finalize`.
    ///
    /// When it is not offered: not called.
    fn device_deinit(&self, device: u32) -> Result<()> {
        let _ = device;
        Err(Error::absent("device_deinit"))
    }

    /// Waits until all work on the device is done.
    fn device_synchronize(&self, device: u32) -> Result<()>;

    /// How many devices there are.
    fn device_count(&self) -> Result<u32>;

    /// The ids of the devices. They need not be 0, 1, 2 and so on.
    fn device_list(&self) -> Result<Vec<u32>>;

    /// What a device is called and can do.
    ///
    /// When it is not offered: the device type as name, everything else unknown.
    fn device_info(&self, device: u32) -> Result<abi::DeviceInfo> {
        let _ = device;
        Err(Error::absent("device_info"))
    }

    /// The compute capability of the chip.
    fn compute_capability(&self, device: u32) -> Result<abi::Version>;

    /// The version of the vendor's runtime library.
    fn runtime_version(&self) -> Result<abi::Version>;

    /// The version of the vendor's driver.
    fn driver_version(&self) -> Result<abi::Version>;

    /// Takes `size` bytes of device memory.
    fn memory_allocate(&self, device: u32, size: u64) -> Result<abi::Memory>;

    /// Gives device memory back. `size` is what was asked for.
    fn memory_deallocate(&self, device: u32, block: abi::Memory, size: u64) -> Result<()>;

    /// Takes page-locked host memory that the device copies from and to directly.
    ///
    /// When it is not offered: ordinary host memory is used.
    fn host_memory_allocate(&self, device: u32, size: u64) -> Result<HostPointer> {
        let _ = (device, size);
        Err(Error::absent("host_memory_allocate"))
    }

    /// Gives page-locked host memory back.
    ///
    /// When it is not offered: ordinary host memory is used.
    fn host_memory_deallocate(&self, device: u32, address: HostPointer, size: u64) -> Result<()> {
        let _ = (device, address, size);
        Err(Error::absent("host_memory_deallocate"))
    }

    /// Takes memory that host and device reach at one address.
    ///
    /// When it is not offered: unified memory is not offered.
    fn unified_memory_allocate(&self, device: u32, size: u64) -> Result<HostPointer> {
        let _ = (device, size);
        Err(Error::absent("unified_memory_allocate"))
    }

    /// Gives unified memory back.
    ///
    /// When it is not offered: unified memory is not offered.
    fn unified_memory_deallocate(&self, device: u32, address: HostPointer, size: u64) -> Result<()> {
        let _ = (device, address, size);
        Err(Error::absent("unified_memory_deallocate"))
    }

    /// Copies from the host to the device.
    fn memory_copy_h2d(
        &self,
        device: u32,
        target: abi::Memory,
        target_offset: u64,
        source: &[u8],
    ) -> Result<()>;

    /// Copies from the device to the host.
    fn memory_copy_d2h(
        &self,
        device: u32,
        target: &mut [u8],
        source: abi::Memory,
        source_offset: u64,
    ) -> Result<()>;

    /// Copies within a device. The ranges do not overlap.
    fn memory_copy_d2d(
        &self,
        device: u32,
        target: abi::Memory,
        target_offset: u64,
        source: abi::Memory,
        source_offset: u64,
        size: u64,
    ) -> Result<()>;

    /// Copies between two devices of this plugin.
    ///
    /// When it is not offered: copied by way of the host.
    fn memory_copy_p2p(
        &self,
        target_device: u32,
        target: abi::Memory,
        target_offset: u64,
        source_device: u32,
        source: abi::Memory,
        source_offset: u64,
        size: u64,
    ) -> Result<()> {
        let _ = (target_device, target, target_offset, source_device, source, source_offset, size);
        Err(Error::absent("memory_copy_p2p"))
    }

    /// Fills device memory with one byte.
    ///
    /// When it is not offered: filled by a copy from the host.
    fn memory_set(
        &self,
        device: u32,
        target: abi::Memory,
        target_offset: u64,
        byte: u8,
        size: u64,
    ) -> Result<()> {
        let _ = (device, target, target_offset, byte, size);
        Err(Error::absent("memory_set"))
    }

    /// How much memory the device has and how much of it is free, in bytes.
    fn memory_stats(&self, device: u32) -> Result<(u64, u64)>;

    /// The smallest block and the alignment: a request of n bytes takes n plus the extra padding, rounded up to this.
    fn min_chunk_size(&self, device: u32) -> Result<u64>;

    /// Requests above this go straight to the device instead of the host's pool.
    ///
    /// When it is not offered: the largest allocation.
    fn max_chunk_size(&self, device: u32) -> Result<u64> {
        let _ = device;
        Err(Error::absent("max_chunk_size"))
    }

    /// The largest allocation.
    ///
    /// When it is not offered: the memory free now.
    fn max_alloc_size(&self, device: u32) -> Result<u64> {
        let _ = device;
        Err(Error::absent("max_alloc_size"))
    }

    /// Bytes that every request needs on top.
    ///
    /// When it is not offered: 0.
    fn extra_padding_size(&self, device: u32) -> Result<u64> {
        let _ = device;
        Err(Error::absent("extra_padding_size"))
    }

    /// The first block the host's pool takes.
    ///
    /// When it is not offered: the largest allocation.
    fn init_alloc_size(&self, device: u32) -> Result<u64> {
        let _ = device;
        Err(Error::absent("init_alloc_size"))
    }

    /// The further blocks the host's pool takes.
    ///
    /// When it is not offered: the largest allocation.
    fn realloc_size(&self, device: u32) -> Result<u64> {
        let _ = device;
        Err(Error::absent("realloc_size"))
    }

    /// Finds an experimental function by its versioned name.
    ///
    /// When it is not offered: there are no experimental functions.
    fn experimental(&self, name: &str) -> Result<HostPointer> {
        let _ = name;
        Err(Error::absent("experimental"))
    }
}

unsafe extern "C" fn core_initialize<D: Core>(context: *mut c_void) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe { boundary::enter(context, |plugin: &Instance<D>| plugin.device.initialize()) }
}

unsafe extern "C" fn core_finalize<D: Core>(context: *mut c_void) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe { boundary::enter(context, |plugin: &Instance<D>| plugin.device.finalize()) }
}

unsafe extern "C" fn core_device_init<D: Core>(context: *mut c_void, device: u32) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe { boundary::enter(context, |plugin: &Instance<D>| plugin.device.device_init(device)) }
}

unsafe extern "C" fn core_device_deinit<D: Core>(context: *mut c_void, device: u32) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe { boundary::enter(context, |plugin: &Instance<D>| plugin.device.device_deinit(device)) }
}

unsafe extern "C" fn core_device_synchronize<D: Core>(context: *mut c_void, device: u32) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe { boundary::enter(context, |plugin: &Instance<D>| plugin.device.device_synchronize(device)) }
}

unsafe extern "C" fn core_device_count<D: Core>(context: *mut c_void, count: *mut u32) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            let count = Out::new(count, "count")?;
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
        boundary::enter(context, |plugin: &Instance<D>| {
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
        boundary::enter(context, |plugin: &Instance<D>| {
            let info = Out::new(info, "info")?;
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
        boundary::enter(context, |plugin: &Instance<D>| {
            let capability = Out::new(capability, "capability")?;
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
        boundary::enter(context, |plugin: &Instance<D>| {
            let installed = Out::new(installed, "installed")?;
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
        boundary::enter(context, |plugin: &Instance<D>| {
            let installed = Out::new(installed, "installed")?;
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
        boundary::enter(context, |plugin: &Instance<D>| {
            let block = Out::new(block, "block")?;
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
        boundary::enter(context, |plugin: &Instance<D>| plugin.device.memory_deallocate(device, block, size))
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
        boundary::enter(context, |plugin: &Instance<D>| {
            let address = Out::new(address, "address")?;
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
        boundary::enter(context, |plugin: &Instance<D>| {
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
        boundary::enter(context, |plugin: &Instance<D>| {
            let address = Out::new(address, "address")?;
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
        boundary::enter(context, |plugin: &Instance<D>| {
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
        boundary::enter(context, |plugin: &Instance<D>| {
            let source = boundary::bytes(source, source_size, "source")?;
            plugin.device.memory_copy_h2d(device, target, target_offset, source)
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
        boundary::enter(context, |plugin: &Instance<D>| {
            let target = boundary::bytes_mut(target, target_size, "target")?;
            plugin.device.memory_copy_d2h(device, target, source, source_offset)
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
        boundary::enter(context, |plugin: &Instance<D>| {
            plugin.device.memory_copy_d2d(device, target, target_offset, source, source_offset, size)
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
        boundary::enter(context, |plugin: &Instance<D>| {
            plugin.device.memory_copy_p2p(
                target_device,
                target,
                target_offset,
                source_device,
                source,
                source_offset,
                size,
            )
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
        boundary::enter(context, |plugin: &Instance<D>| {
            plugin.device.memory_set(device, target, target_offset, byte, size)
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
        boundary::enter(context, |plugin: &Instance<D>| {
            let total = Out::new(total, "total")?;
            let free = Out::new(free, "free")?;
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
        boundary::enter(context, |plugin: &Instance<D>| {
            let size = Out::new(size, "size")?;
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
        boundary::enter(context, |plugin: &Instance<D>| {
            let size = Out::new(size, "size")?;
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
        boundary::enter(context, |plugin: &Instance<D>| {
            let size = Out::new(size, "size")?;
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
        boundary::enter(context, |plugin: &Instance<D>| {
            let size = Out::new(size, "size")?;
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
        boundary::enter(context, |plugin: &Instance<D>| {
            let size = Out::new(size, "size")?;
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
        boundary::enter(context, |plugin: &Instance<D>| {
            let size = Out::new(size, "size")?;
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
        boundary::enter(context, |plugin: &Instance<D>| {
            let name = boundary::text(name, "name")?;
            let function = Out::new(function, "function")?;
            function.write_pointer(plugin.device.experimental(name)?)
        })
    }
}

/// The table of a device, with a null in each slot it does not offer.
pub(crate) fn core_table<D: Core>() -> abi::CoreTable {
    abi::CoreTable {
        initialize: boundary::offered(D::SLOTS, "initialize", core_initialize::<D>),
        finalize: boundary::offered(D::SLOTS, "finalize", core_finalize::<D>),
        device_init: boundary::offered(D::SLOTS, "device_init", core_device_init::<D>),
        device_deinit: boundary::offered(D::SLOTS, "device_deinit", core_device_deinit::<D>),
        device_synchronize: Some(core_device_synchronize::<D>),
        device_count: Some(core_device_count::<D>),
        device_list: Some(core_device_list::<D>),
        device_info: boundary::offered(D::SLOTS, "device_info", core_device_info::<D>),
        compute_capability: Some(core_compute_capability::<D>),
        runtime_version: Some(core_runtime_version::<D>),
        driver_version: Some(core_driver_version::<D>),
        memory_allocate: Some(core_memory_allocate::<D>),
        memory_deallocate: Some(core_memory_deallocate::<D>),
        host_memory_allocate: boundary::offered(
            D::SLOTS,
            "host_memory_allocate",
            core_host_memory_allocate::<D>,
        ),
        host_memory_deallocate: boundary::offered(
            D::SLOTS,
            "host_memory_deallocate",
            core_host_memory_deallocate::<D>,
        ),
        unified_memory_allocate: boundary::offered(
            D::SLOTS,
            "unified_memory_allocate",
            core_unified_memory_allocate::<D>,
        ),
        unified_memory_deallocate: boundary::offered(
            D::SLOTS,
            "unified_memory_deallocate",
            core_unified_memory_deallocate::<D>,
        ),
        memory_copy_h2d: Some(core_memory_copy_h2d::<D>),
        memory_copy_d2h: Some(core_memory_copy_d2h::<D>),
        memory_copy_d2d: Some(core_memory_copy_d2d::<D>),
        memory_copy_p2p: boundary::offered(D::SLOTS, "memory_copy_p2p", core_memory_copy_p2p::<D>),
        memory_set: boundary::offered(D::SLOTS, "memory_set", core_memory_set::<D>),
        memory_stats: Some(core_memory_stats::<D>),
        min_chunk_size: Some(core_min_chunk_size::<D>),
        max_chunk_size: boundary::offered(D::SLOTS, "max_chunk_size", core_max_chunk_size::<D>),
        max_alloc_size: boundary::offered(D::SLOTS, "max_alloc_size", core_max_alloc_size::<D>),
        extra_padding_size: boundary::offered(D::SLOTS, "extra_padding_size", core_extra_padding_size::<D>),
        init_alloc_size: boundary::offered(D::SLOTS, "init_alloc_size", core_init_alloc_size::<D>),
        realloc_size: boundary::offered(D::SLOTS, "realloc_size", core_realloc_size::<D>),
        experimental: boundary::offered(D::SLOTS, "experimental", core_experimental::<D>),
        ..abi::CoreTable::EMPTY
    }
}

/// Streams and events. A device without asynchronous work may leave the whole table out: the host then does everything at once.
/// Memory of the host that an asynchronous call names stays valid until the stream is past it.
///
/// Write `#[oarlock_sdk::slots]` above the `impl`: the optional functions that stand in it are the ones the
/// plugin offers; for the others the host does what the contract says.
pub trait Async: Send + Sync + 'static {
    /// The functions the plugin offers. `#[oarlock_sdk::slots]` writes this.
    const SLOTS: &'static [&'static str];

    /// Makes a stream. A smaller priority number is served earlier, where the device can.
    fn stream_create(&self, device: u32, priority: i32) -> Result<abi::Stream>;

    /// Frees a stream, after its work is done.
    fn stream_destroy(&self, device: u32, queue: abi::Stream) -> Result<()>;

    /// Whether all work in the stream is done: 1 or 0.
    ///
    /// When it is not offered: the stream is synchronised, then done.
    fn stream_query(&self, device: u32, queue: abi::Stream) -> Result<u32> {
        let _ = (device, queue);
        Err(Error::absent("stream_query"))
    }

    /// Waits until all work in the stream is done. Reports what went wrong in it.
    fn stream_synchronize(&self, device: u32, queue: abi::Stream) -> Result<()>;

    /// Has a function called when the stream gets there.
    ///
    /// When it is not offered: the stream is synchronised, then the function called.
    fn stream_add_callback(&self, device: u32, queue: abi::Stream, reached: StreamReached) -> Result<()> {
        let _ = (device, queue, reached);
        Err(Error::absent("stream_add_callback"))
    }

    /// Holds the stream's further work back until the event has happened. An event that was never recorded has happened.
    fn stream_wait_event(&self, device: u32, queue: abi::Stream, point: abi::Event) -> Result<()>;

    /// Makes an event.
    fn event_create(&self, device: u32) -> Result<abi::Event>;

    /// Frees an event. Work that waits for it goes on waiting rightly.
    fn event_destroy(&self, device: u32, point: abi::Event) -> Result<()>;

    /// Puts the event at the end of the stream.
    fn event_record(&self, device: u32, queue: abi::Stream, point: abi::Event) -> Result<()>;

    /// Whether the event has happened: 1 or 0.
    ///
    /// When it is not offered: the event is synchronised, then done.
    fn event_query(&self, device: u32, point: abi::Event) -> Result<u32> {
        let _ = (device, point);
        Err(Error::absent("event_query"))
    }

    /// Waits for the event. Reports what went wrong before it.
    fn event_synchronize(&self, device: u32, point: abi::Event) -> Result<()>;

    /// The time between two events that have happened, in nanoseconds.
    ///
    /// When it is not offered: times are not known.
    fn event_elapsed(&self, device: u32, start: abi::Event, end: abi::Event) -> Result<u64> {
        let _ = (device, start, end);
        Err(Error::absent("event_elapsed"))
    }

    /// Copies from the host to the device, in the stream.
    ///
    /// When it is not offered: the stream is synchronised, then memory_copy_h2d.
    fn memory_copy_h2d_async(
        &self,
        device: u32,
        queue: abi::Stream,
        target: abi::Memory,
        target_offset: u64,
        source: HostPointer,
        size: u64,
    ) -> Result<()> {
        let _ = (device, queue, target, target_offset, source, size);
        Err(Error::absent("memory_copy_h2d_async"))
    }

    /// Copies from the device to the host, in the stream.
    ///
    /// When it is not offered: the stream is synchronised, then memory_copy_d2h.
    fn memory_copy_d2h_async(
        &self,
        device: u32,
        queue: abi::Stream,
        target: HostPointer,
        source: abi::Memory,
        source_offset: u64,
        size: u64,
    ) -> Result<()> {
        let _ = (device, queue, target, source, source_offset, size);
        Err(Error::absent("memory_copy_d2h_async"))
    }

    /// Copies within the device, in the stream.
    ///
    /// When it is not offered: the stream is synchronised, then memory_copy_d2d.
    fn memory_copy_d2d_async(
        &self,
        device: u32,
        queue: abi::Stream,
        target: abi::Memory,
        target_offset: u64,
        source: abi::Memory,
        source_offset: u64,
        size: u64,
    ) -> Result<()> {
        let _ = (device, queue, target, target_offset, source, source_offset, size);
        Err(Error::absent("memory_copy_d2d_async"))
    }

    /// Copies between two devices of this plugin, in a stream of the source device.
    ///
    /// When it is not offered: the stream is synchronised, then memory_copy_p2p.
    fn memory_copy_p2p_async(
        &self,
        target_device: u32,
        target: abi::Memory,
        target_offset: u64,
        source_device: u32,
        queue: abi::Stream,
        source: abi::Memory,
        source_offset: u64,
        size: u64,
    ) -> Result<()> {
        let _ = (target_device, target, target_offset, source_device, queue, source, source_offset, size);
        Err(Error::absent("memory_copy_p2p_async"))
    }

    /// Fills device memory with one byte, in the stream.
    ///
    /// When it is not offered: the stream is synchronised, then memory_set.
    fn memory_set_async(
        &self,
        device: u32,
        queue: abi::Stream,
        target: abi::Memory,
        target_offset: u64,
        byte: u8,
        size: u64,
    ) -> Result<()> {
        let _ = (device, queue, target, target_offset, byte, size);
        Err(Error::absent("memory_set_async"))
    }

    /// Takes device memory that is usable from this point of the stream on.
    ///
    /// When it is not offered: memory_allocate.
    fn memory_allocate_async(&self, device: u32, queue: abi::Stream, size: u64) -> Result<abi::Memory> {
        let _ = (device, queue, size);
        Err(Error::absent("memory_allocate_async"))
    }

    /// Gives device memory back once the stream is past this point.
    ///
    /// When it is not offered: the stream is synchronised, then memory_deallocate.
    fn memory_deallocate_async(
        &self,
        device: u32,
        queue: abi::Stream,
        block: abi::Memory,
        size: u64,
    ) -> Result<()> {
        let _ = (device, queue, block, size);
        Err(Error::absent("memory_deallocate_async"))
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
        boundary::enter(context, |plugin: &Instance<D>| {
            let queue = Out::new(queue, "queue")?;
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
    unsafe { boundary::enter(context, |plugin: &Instance<D>| plugin.device.stream_destroy(device, queue)) }
}

unsafe extern "C" fn async_stream_query<D: Async>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    done: *mut u32,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            let done = Out::new(done, "done")?;
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
        boundary::enter(context, |plugin: &Instance<D>| plugin.device.stream_synchronize(device, queue))
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
        boundary::enter(context, |plugin: &Instance<D>| {
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
        boundary::enter(context, |plugin: &Instance<D>| plugin.device.stream_wait_event(device, queue, point))
    }
}

unsafe extern "C" fn async_event_create<D: Async>(
    context: *mut c_void,
    device: u32,
    point: *mut abi::Event,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            let point = Out::new(point, "point")?;
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
    unsafe { boundary::enter(context, |plugin: &Instance<D>| plugin.device.event_destroy(device, point)) }
}

unsafe extern "C" fn async_event_record<D: Async>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    point: abi::Event,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| plugin.device.event_record(device, queue, point))
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
        boundary::enter(context, |plugin: &Instance<D>| {
            let done = Out::new(done, "done")?;
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
    unsafe { boundary::enter(context, |plugin: &Instance<D>| plugin.device.event_synchronize(device, point)) }
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
        boundary::enter(context, |plugin: &Instance<D>| {
            let nanoseconds = Out::new(nanoseconds, "nanoseconds")?;
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
        boundary::enter(context, |plugin: &Instance<D>| {
            let source = HostPointer::new(source.cast_mut(), "source")?;
            plugin.device.memory_copy_h2d_async(device, queue, target, target_offset, source, size)
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
        boundary::enter(context, |plugin: &Instance<D>| {
            let target = HostPointer::new(target, "target")?;
            plugin.device.memory_copy_d2h_async(device, queue, target, source, source_offset, size)
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
        boundary::enter(context, |plugin: &Instance<D>| {
            plugin.device.memory_copy_d2d_async(
                device,
                queue,
                target,
                target_offset,
                source,
                source_offset,
                size,
            )
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
        boundary::enter(context, |plugin: &Instance<D>| {
            plugin.device.memory_copy_p2p_async(
                target_device,
                target,
                target_offset,
                source_device,
                queue,
                source,
                source_offset,
                size,
            )
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
        boundary::enter(context, |plugin: &Instance<D>| {
            plugin.device.memory_set_async(device, queue, target, target_offset, byte, size)
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
        boundary::enter(context, |plugin: &Instance<D>| {
            let block = Out::new(block, "block")?;
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
        boundary::enter(context, |plugin: &Instance<D>| {
            plugin.device.memory_deallocate_async(device, queue, block, size)
        })
    }
}

/// The table of a device, with a null in each slot it does not offer.
pub(crate) fn async_table<D: Async>() -> abi::AsyncTable {
    abi::AsyncTable {
        stream_create: Some(async_stream_create::<D>),
        stream_destroy: Some(async_stream_destroy::<D>),
        stream_query: boundary::offered(D::SLOTS, "stream_query", async_stream_query::<D>),
        stream_synchronize: Some(async_stream_synchronize::<D>),
        stream_add_callback: boundary::offered(
            D::SLOTS,
            "stream_add_callback",
            async_stream_add_callback::<D>,
        ),
        stream_wait_event: Some(async_stream_wait_event::<D>),
        event_create: Some(async_event_create::<D>),
        event_destroy: Some(async_event_destroy::<D>),
        event_record: Some(async_event_record::<D>),
        event_query: boundary::offered(D::SLOTS, "event_query", async_event_query::<D>),
        event_synchronize: Some(async_event_synchronize::<D>),
        event_elapsed: boundary::offered(D::SLOTS, "event_elapsed", async_event_elapsed::<D>),
        memory_copy_h2d_async: boundary::offered(
            D::SLOTS,
            "memory_copy_h2d_async",
            async_memory_copy_h2d_async::<D>,
        ),
        memory_copy_d2h_async: boundary::offered(
            D::SLOTS,
            "memory_copy_d2h_async",
            async_memory_copy_d2h_async::<D>,
        ),
        memory_copy_d2d_async: boundary::offered(
            D::SLOTS,
            "memory_copy_d2d_async",
            async_memory_copy_d2d_async::<D>,
        ),
        memory_copy_p2p_async: boundary::offered(
            D::SLOTS,
            "memory_copy_p2p_async",
            async_memory_copy_p2p_async::<D>,
        ),
        memory_set_async: boundary::offered(D::SLOTS, "memory_set_async", async_memory_set_async::<D>),
        memory_allocate_async: boundary::offered(
            D::SLOTS,
            "memory_allocate_async",
            async_memory_allocate_async::<D>,
        ),
        memory_deallocate_async: boundary::offered(
            D::SLOTS,
            "memory_deallocate_async",
            async_memory_deallocate_async::<D>,
        ),
        ..abi::AsyncTable::EMPTY
    }
}

/// Compiles and runs graphs as one piece.
///
/// Write `#[oarlock_sdk::slots]` above the `impl`: the optional functions that stand in it are the ones the
/// plugin offers; for the others the host does what the contract says.
pub trait Graph: Send + Sync + 'static {
    /// The functions the plugin offers. `#[oarlock_sdk::slots]` writes this.
    const SLOTS: &'static [&'static str];

    /// Which nodes the device would take: 1 or 0 for each.
    fn graph_supports(&self, device: u32, graph: &abi::Graph) -> Result<Vec<u8>>;

    /// Compiles a graph. Takes as long as it takes.
    fn graph_compile(
        &self,
        device: u32,
        graph: &abi::Graph,
        options: &[&abi::Attribute],
    ) -> Result<abi::Executable>;

    /// Runs a compiled graph in the stream of the call; inputs, outputs and scratch memory are those of the call.
    fn graph_run(&self, program: abi::Executable, call: &Call<'_>) -> Result<()>;

    /// How much scratch memory a run needs, in bytes.
    ///
    /// When it is not offered: 0.
    fn graph_workspace(&self, program: abi::Executable) -> Result<u64> {
        let _ = program;
        Err(Error::absent("graph_workspace"))
    }

    /// Frees a compiled graph.
    fn graph_destroy(&self, program: abi::Executable) -> Result<()>;

    /// Writes a compiled graph, to be loaded by a later process.
    ///
    /// When it is not offered: compiled graphs are not kept.
    fn graph_save(&self, program: abi::Executable, sink: ByteSink) -> Result<()> {
        let _ = (program, sink);
        Err(Error::absent("graph_save"))
    }

    /// Whether saved bytes can be loaded on this device: 1 or 0.
    ///
    /// When it is not offered: no.
    fn graph_compatible(&self, device: u32, saved: &[u8]) -> Result<u32> {
        let _ = (device, saved);
        Err(Error::absent("graph_compatible"))
    }

    /// Loads what `graph_save` wrote.
    ///
    /// When it is not offered: compiled graphs are not kept.
    fn graph_load(&self, device: u32, saved: &[u8]) -> Result<abi::Executable> {
        let _ = (device, saved);
        Err(Error::absent("graph_load"))
    }
}

unsafe extern "C" fn graph_graph_supports<D: Graph>(
    context: *mut c_void,
    device: u32,
    graph: *const abi::Graph,
    taken: *mut u8,
    taken_capacity: u64,
    taken_count: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            let graph = boundary::reference(graph, "graph")?;
            let taken = boundary::OutList::new(taken, taken_capacity, taken_count, "taken")?;
            taken.write(plugin.device.graph_supports(device, graph)?)
        })
    }
}

unsafe extern "C" fn graph_graph_compile<D: Graph>(
    context: *mut c_void,
    device: u32,
    graph: *const abi::Graph,
    options: *const *const abi::Attribute,
    options_count: u64,
    program: *mut abi::Executable,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            let graph = boundary::reference(graph, "graph")?;
            let options = boundary::references(options, options_count, "options")?;
            let program = Out::new(program, "program")?;
            program.write(plugin.device.graph_compile(device, graph, options)?)
        })
    }
}

unsafe extern "C" fn graph_graph_run<D: Graph>(
    context: *mut c_void,
    program: abi::Executable,
    call: *const abi::Call,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            let call = Call::new(call, plugin.host)?;
            plugin.device.graph_run(program, &call)
        })
    }
}

unsafe extern "C" fn graph_graph_workspace<D: Graph>(
    context: *mut c_void,
    program: abi::Executable,
    size: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            let size = Out::new(size, "size")?;
            size.write(plugin.device.graph_workspace(program)?)
        })
    }
}

unsafe extern "C" fn graph_graph_destroy<D: Graph>(
    context: *mut c_void,
    program: abi::Executable,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe { boundary::enter(context, |plugin: &Instance<D>| plugin.device.graph_destroy(program)) }
}

unsafe extern "C" fn graph_graph_save<D: Graph>(
    context: *mut c_void,
    program: abi::Executable,
    sink: Option<abi::ByteSink>,
    user: *mut c_void,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            let sink = ByteSink::new(sink, user)?;
            plugin.device.graph_save(program, sink)
        })
    }
}

unsafe extern "C" fn graph_graph_compatible<D: Graph>(
    context: *mut c_void,
    device: u32,
    saved: *const c_void,
    saved_size: u64,
    usable: *mut u32,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            let saved = boundary::bytes(saved, saved_size, "saved")?;
            let usable = Out::new(usable, "usable")?;
            usable.write(plugin.device.graph_compatible(device, saved)?)
        })
    }
}

unsafe extern "C" fn graph_graph_load<D: Graph>(
    context: *mut c_void,
    device: u32,
    saved: *const c_void,
    saved_size: u64,
    program: *mut abi::Executable,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            let saved = boundary::bytes(saved, saved_size, "saved")?;
            let program = Out::new(program, "program")?;
            program.write(plugin.device.graph_load(device, saved)?)
        })
    }
}

/// The table of a device, with a null in each slot it does not offer.
pub(crate) fn graph_table<D: Graph>() -> abi::GraphTable {
    abi::GraphTable {
        graph_supports: Some(graph_graph_supports::<D>),
        graph_compile: Some(graph_graph_compile::<D>),
        graph_run: Some(graph_graph_run::<D>),
        graph_workspace: boundary::offered(D::SLOTS, "graph_workspace", graph_graph_workspace::<D>),
        graph_destroy: Some(graph_graph_destroy::<D>),
        graph_save: boundary::offered(D::SLOTS, "graph_save", graph_graph_save::<D>),
        graph_compatible: boundary::offered(D::SLOTS, "graph_compatible", graph_graph_compatible::<D>),
        graph_load: boundary::offered(D::SLOTS, "graph_load", graph_graph_load::<D>),
        ..abi::GraphTable::EMPTY
    }
}

/// Exchange of data within a group of devices. The host carries the unique id from the first rank to the others.
///
/// Write `#[oarlock_sdk::slots]` above the `impl`: the optional functions that stand in it are the ones the
/// plugin offers; for the others the host does what the contract says.
pub trait Collective: Send + Sync + 'static {
    /// The functions the plugin offers. `#[oarlock_sdk::slots]` writes this.
    const SLOTS: &'static [&'static str];

    /// How many bytes a unique id has.
    fn unique_id_size(&self) -> Result<u64>;

    /// Makes the unique id of a new group.
    fn unique_id(&self, id: &mut [u8]) -> Result<()>;

    /// Joins a group. Returns when all ranks have.
    fn communicator_create(&self, device: u32, id: &[u8], rank: u32, ranks: u32)
    -> Result<abi::Communicator>;

    /// Leaves a group.
    fn communicator_destroy(&self, member: abi::Communicator) -> Result<()>;

    /// Every rank gets the reduction of all.
    fn all_reduce(
        &self,
        member: abi::Communicator,
        queue: abi::Stream,
        send: abi::Memory,
        send_offset: u64,
        receive: abi::Memory,
        receive_offset: u64,
        count: u64,
        dtype: abi::Dtype,
        how: abi::Reduction,
    ) -> Result<()>;

    /// Every rank gets what the root has.
    fn broadcast(
        &self,
        member: abi::Communicator,
        queue: abi::Stream,
        block: abi::Memory,
        offset: u64,
        count: u64,
        dtype: abi::Dtype,
        root: u32,
    ) -> Result<()>;

    /// The root gets the reduction of all.
    fn reduce(
        &self,
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
    ) -> Result<()>;

    /// Every rank gets the parts of all, one after the other.
    fn all_gather(
        &self,
        member: abi::Communicator,
        queue: abi::Stream,
        send: abi::Memory,
        send_offset: u64,
        receive: abi::Memory,
        receive_offset: u64,
        count: u64,
        dtype: abi::Dtype,
    ) -> Result<()>;

    /// Every rank gets its part of the reduction.
    fn reduce_scatter(
        &self,
        member: abi::Communicator,
        queue: abi::Stream,
        send: abi::Memory,
        send_offset: u64,
        receive: abi::Memory,
        receive_offset: u64,
        count: u64,
        dtype: abi::Dtype,
        how: abi::Reduction,
    ) -> Result<()>;

    /// Starts a group of calls that are issued together.
    fn group_start(&self) -> Result<()>;

    /// Ends the group and issues it.
    fn group_end(&self) -> Result<()>;

    /// Sends to one rank.
    fn send(
        &self,
        member: abi::Communicator,
        queue: abi::Stream,
        block: abi::Memory,
        offset: u64,
        count: u64,
        dtype: abi::Dtype,
        to: u32,
    ) -> Result<()>;

    /// Receives from one rank.
    fn receive(
        &self,
        member: abi::Communicator,
        queue: abi::Stream,
        block: abi::Memory,
        offset: u64,
        count: u64,
        dtype: abi::Dtype,
        from: u32,
    ) -> Result<()>;

    /// Every rank sends one part to each other rank.
    fn all_to_all(
        &self,
        member: abi::Communicator,
        queue: abi::Stream,
        send: abi::Memory,
        send_offset: u64,
        receive: abi::Memory,
        receive_offset: u64,
        count: u64,
        dtype: abi::Dtype,
    ) -> Result<()>;
}

unsafe extern "C" fn collective_unique_id_size<D: Collective>(
    context: *mut c_void,
    size: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            let size = Out::new(size, "size")?;
            size.write(plugin.device.unique_id_size()?)
        })
    }
}

unsafe extern "C" fn collective_unique_id<D: Collective>(
    context: *mut c_void,
    id: *mut c_void,
    id_size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            let id = boundary::bytes_mut(id, id_size, "id")?;
            plugin.device.unique_id(id)
        })
    }
}

unsafe extern "C" fn collective_communicator_create<D: Collective>(
    context: *mut c_void,
    device: u32,
    id: *const c_void,
    id_size: u64,
    rank: u32,
    ranks: u32,
    member: *mut abi::Communicator,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            let id = boundary::bytes(id, id_size, "id")?;
            let member = Out::new(member, "member")?;
            member.write(plugin.device.communicator_create(device, id, rank, ranks)?)
        })
    }
}

unsafe extern "C" fn collective_communicator_destroy<D: Collective>(
    context: *mut c_void,
    member: abi::Communicator,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe { boundary::enter(context, |plugin: &Instance<D>| plugin.device.communicator_destroy(member)) }
}

unsafe extern "C" fn collective_all_reduce<D: Collective>(
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
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            plugin.device.all_reduce(
                member,
                queue,
                send,
                send_offset,
                receive,
                receive_offset,
                count,
                dtype,
                how,
            )
        })
    }
}

unsafe extern "C" fn collective_broadcast<D: Collective>(
    context: *mut c_void,
    member: abi::Communicator,
    queue: abi::Stream,
    block: abi::Memory,
    offset: u64,
    count: u64,
    dtype: abi::Dtype,
    root: u32,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            plugin.device.broadcast(member, queue, block, offset, count, dtype, root)
        })
    }
}

unsafe extern "C" fn collective_reduce<D: Collective>(
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
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            plugin.device.reduce(
                member,
                queue,
                send,
                send_offset,
                receive,
                receive_offset,
                count,
                dtype,
                how,
                root,
            )
        })
    }
}

unsafe extern "C" fn collective_all_gather<D: Collective>(
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
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            plugin.device.all_gather(member, queue, send, send_offset, receive, receive_offset, count, dtype)
        })
    }
}

unsafe extern "C" fn collective_reduce_scatter<D: Collective>(
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
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            plugin.device.reduce_scatter(
                member,
                queue,
                send,
                send_offset,
                receive,
                receive_offset,
                count,
                dtype,
                how,
            )
        })
    }
}

unsafe extern "C" fn collective_group_start<D: Collective>(context: *mut c_void) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe { boundary::enter(context, |plugin: &Instance<D>| plugin.device.group_start()) }
}

unsafe extern "C" fn collective_group_end<D: Collective>(context: *mut c_void) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe { boundary::enter(context, |plugin: &Instance<D>| plugin.device.group_end()) }
}

unsafe extern "C" fn collective_send<D: Collective>(
    context: *mut c_void,
    member: abi::Communicator,
    queue: abi::Stream,
    block: abi::Memory,
    offset: u64,
    count: u64,
    dtype: abi::Dtype,
    to: u32,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            plugin.device.send(member, queue, block, offset, count, dtype, to)
        })
    }
}

unsafe extern "C" fn collective_receive<D: Collective>(
    context: *mut c_void,
    member: abi::Communicator,
    queue: abi::Stream,
    block: abi::Memory,
    offset: u64,
    count: u64,
    dtype: abi::Dtype,
    from: u32,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            plugin.device.receive(member, queue, block, offset, count, dtype, from)
        })
    }
}

unsafe extern "C" fn collective_all_to_all<D: Collective>(
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
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            plugin.device.all_to_all(member, queue, send, send_offset, receive, receive_offset, count, dtype)
        })
    }
}

/// The table of a device, with a null in each slot it does not offer.
pub(crate) fn collective_table<D: Collective>() -> abi::CollectiveTable {
    abi::CollectiveTable {
        unique_id_size: Some(collective_unique_id_size::<D>),
        unique_id: Some(collective_unique_id::<D>),
        communicator_create: Some(collective_communicator_create::<D>),
        communicator_destroy: Some(collective_communicator_destroy::<D>),
        all_reduce: Some(collective_all_reduce::<D>),
        broadcast: Some(collective_broadcast::<D>),
        reduce: Some(collective_reduce::<D>),
        all_gather: Some(collective_all_gather::<D>),
        reduce_scatter: Some(collective_reduce_scatter::<D>),
        group_start: Some(collective_group_start::<D>),
        group_end: Some(collective_group_end::<D>),
        send: Some(collective_send::<D>),
        receive: Some(collective_receive::<D>),
        all_to_all: Some(collective_all_to_all::<D>),
        ..abi::CollectiveTable::EMPTY
    }
}

/// Records of what devices did.
///
/// Write `#[oarlock_sdk::slots]` above the `impl`: the optional functions that stand in it are the ones the
/// plugin offers; for the others the host does what the contract says.
pub trait Profile: Send + Sync + 'static {
    /// The functions the plugin offers. `#[oarlock_sdk::slots]` writes this.
    const SLOTS: &'static [&'static str];

    /// Readies the profiler.
    fn profiler_initialize(&self) -> Result<()>;

    /// Ends the profiler.
    fn profiler_finalize(&self) -> Result<()>;

    /// Readies one recording, so that starting it is quick.
    fn profiler_prepare(&self) -> Result<()>;

    /// Starts recording.
    fn profiler_start(&self) -> Result<()>;

    /// Stops recording.
    fn profiler_stop(&self) -> Result<()>;

    /// Hands over what was recorded since the last start.
    fn profiler_collect(&self, sink: ActivitySink) -> Result<()>;

    /// One moment on the device's clock and on the host's monotonic clock, in nanoseconds.
    ///
    /// When it is not offered: both clocks are taken to be one.
    fn profiler_clock(&self, device: u32) -> Result<(u64, u64)> {
        let _ = device;
        Err(Error::absent("profiler_clock"))
    }
}

unsafe extern "C" fn profile_profiler_initialize<D: Profile>(context: *mut c_void) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe { boundary::enter(context, |plugin: &Instance<D>| plugin.device.profiler_initialize()) }
}

unsafe extern "C" fn profile_profiler_finalize<D: Profile>(context: *mut c_void) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe { boundary::enter(context, |plugin: &Instance<D>| plugin.device.profiler_finalize()) }
}

unsafe extern "C" fn profile_profiler_prepare<D: Profile>(context: *mut c_void) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe { boundary::enter(context, |plugin: &Instance<D>| plugin.device.profiler_prepare()) }
}

unsafe extern "C" fn profile_profiler_start<D: Profile>(context: *mut c_void) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe { boundary::enter(context, |plugin: &Instance<D>| plugin.device.profiler_start()) }
}

unsafe extern "C" fn profile_profiler_stop<D: Profile>(context: *mut c_void) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe { boundary::enter(context, |plugin: &Instance<D>| plugin.device.profiler_stop()) }
}

unsafe extern "C" fn profile_profiler_collect<D: Profile>(
    context: *mut c_void,
    sink: Option<abi::ActivitySink>,
    user: *mut c_void,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            let sink = ActivitySink::new(sink, user)?;
            plugin.device.profiler_collect(sink)
        })
    }
}

unsafe extern "C" fn profile_profiler_clock<D: Profile>(
    context: *mut c_void,
    device: u32,
    device_time: *mut u64,
    host_time: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            let device_time = Out::new(device_time, "device_time")?;
            let host_time = Out::new(host_time, "host_time")?;
            let (result0, result1) = plugin.device.profiler_clock(device)?;
            device_time.write(result0)?;
            host_time.write(result1)?;
            Ok(())
        })
    }
}

/// The table of a device, with a null in each slot it does not offer.
pub(crate) fn profile_table<D: Profile>() -> abi::ProfileTable {
    abi::ProfileTable {
        profiler_initialize: Some(profile_profiler_initialize::<D>),
        profiler_finalize: Some(profile_profiler_finalize::<D>),
        profiler_prepare: Some(profile_profiler_prepare::<D>),
        profiler_start: Some(profile_profiler_start::<D>),
        profiler_stop: Some(profile_profiler_stop::<D>),
        profiler_collect: Some(profile_profiler_collect::<D>),
        profiler_clock: boundary::offered(D::SLOTS, "profiler_clock", profile_profiler_clock::<D>),
        ..abi::ProfileTable::EMPTY
    }
}

/// Exchange of memory and streams with other libraries and processes, without copies.
///
/// Write `#[oarlock_sdk::slots]` above the `impl`: the optional functions that stand in it are the ones the
/// plugin offers; for the others the host does what the contract says.
pub trait Interop: Send + Sync + 'static {
    /// The functions the plugin offers. `#[oarlock_sdk::slots]` writes this.
    const SLOTS: &'static [&'static str];

    /// The DLPack device type and id under which others know the device.
    fn dlpack_device(&self, device: u32) -> Result<(i32, i32)>;

    /// The native handle of a block. It stays the plugin's.
    fn memory_export(&self, device: u32, block: abi::Memory, kind: abi::NativeKind) -> Result<u64>;

    /// Makes a block of memory that another library owns and keeps valid until `memory_forget`.
    fn memory_import(
        &self,
        device: u32,
        kind: abi::NativeKind,
        native: u64,
        size: u64,
    ) -> Result<abi::Memory>;

    /// Ends the use of an imported block. The memory itself stays its owner's.
    fn memory_forget(&self, device: u32, block: abi::Memory) -> Result<()>;

    /// The native handle of a stream, such as a `CUstream`.
    ///
    /// When it is not offered: streams are not shared; the stream is synchronised instead.
    fn stream_export(&self, device: u32, queue: abi::Stream) -> Result<u64> {
        let _ = (device, queue);
        Err(Error::absent("stream_export"))
    }

    /// Makes a stream of a native handle. Destroying it leaves the native one alive.
    ///
    /// When it is not offered: streams are not shared.
    fn stream_import(&self, device: u32, native: u64) -> Result<abi::Stream> {
        let _ = (device, native);
        Err(Error::absent("stream_import"))
    }

    /// How many bytes a token for another process has.
    ///
    /// When it is not offered: memory is not shared with other processes.
    fn ipc_token_size(&self) -> Result<u64> {
        Err(Error::absent("ipc_token_size"))
    }

    /// Makes a token with which another process reaches a block.
    ///
    /// When it is not offered: memory is not shared with other processes.
    fn ipc_export(&self, device: u32, block: abi::Memory, token: &mut [u8]) -> Result<()> {
        let _ = (device, block, token);
        Err(Error::absent("ipc_export"))
    }

    /// Reaches a block of another process.
    ///
    /// When it is not offered: memory is not shared with other processes.
    fn ipc_import(&self, device: u32, token: &[u8]) -> Result<(abi::Memory, u64)> {
        let _ = (device, token);
        Err(Error::absent("ipc_import"))
    }

    /// Ends the use of a block of another process.
    ///
    /// When it is not offered: memory is not shared with other processes.
    fn ipc_close(&self, device: u32, block: abi::Memory) -> Result<()> {
        let _ = (device, block);
        Err(Error::absent("ipc_close"))
    }
}

unsafe extern "C" fn interop_dlpack_device<D: Interop>(
    context: *mut c_void,
    device: u32,
    device_type: *mut i32,
    device_id: *mut i32,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            let device_type = Out::new(device_type, "device_type")?;
            let device_id = Out::new(device_id, "device_id")?;
            let (result0, result1) = plugin.device.dlpack_device(device)?;
            device_type.write(result0)?;
            device_id.write(result1)?;
            Ok(())
        })
    }
}

unsafe extern "C" fn interop_memory_export<D: Interop>(
    context: *mut c_void,
    device: u32,
    block: abi::Memory,
    kind: abi::NativeKind,
    native: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            let native = Out::new(native, "native")?;
            native.write(plugin.device.memory_export(device, block, kind)?)
        })
    }
}

unsafe extern "C" fn interop_memory_import<D: Interop>(
    context: *mut c_void,
    device: u32,
    kind: abi::NativeKind,
    native: u64,
    size: u64,
    block: *mut abi::Memory,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            let block = Out::new(block, "block")?;
            block.write(plugin.device.memory_import(device, kind, native, size)?)
        })
    }
}

unsafe extern "C" fn interop_memory_forget<D: Interop>(
    context: *mut c_void,
    device: u32,
    block: abi::Memory,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe { boundary::enter(context, |plugin: &Instance<D>| plugin.device.memory_forget(device, block)) }
}

unsafe extern "C" fn interop_stream_export<D: Interop>(
    context: *mut c_void,
    device: u32,
    queue: abi::Stream,
    native: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            let native = Out::new(native, "native")?;
            native.write(plugin.device.stream_export(device, queue)?)
        })
    }
}

unsafe extern "C" fn interop_stream_import<D: Interop>(
    context: *mut c_void,
    device: u32,
    native: u64,
    queue: *mut abi::Stream,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            let queue = Out::new(queue, "queue")?;
            queue.write(plugin.device.stream_import(device, native)?)
        })
    }
}

unsafe extern "C" fn interop_ipc_token_size<D: Interop>(context: *mut c_void, size: *mut u64) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            let size = Out::new(size, "size")?;
            size.write(plugin.device.ipc_token_size()?)
        })
    }
}

unsafe extern "C" fn interop_ipc_export<D: Interop>(
    context: *mut c_void,
    device: u32,
    block: abi::Memory,
    token: *mut c_void,
    token_size: u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            let token = boundary::bytes_mut(token, token_size, "token")?;
            plugin.device.ipc_export(device, block, token)
        })
    }
}

unsafe extern "C" fn interop_ipc_import<D: Interop>(
    context: *mut c_void,
    device: u32,
    token: *const c_void,
    token_size: u64,
    block: *mut abi::Memory,
    size: *mut u64,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe {
        boundary::enter(context, |plugin: &Instance<D>| {
            let token = boundary::bytes(token, token_size, "token")?;
            let block = Out::new(block, "block")?;
            let size = Out::new(size, "size")?;
            let (result0, result1) = plugin.device.ipc_import(device, token)?;
            block.write(result0)?;
            size.write(result1)?;
            Ok(())
        })
    }
}

unsafe extern "C" fn interop_ipc_close<D: Interop>(
    context: *mut c_void,
    device: u32,
    block: abi::Memory,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.
    unsafe { boundary::enter(context, |plugin: &Instance<D>| plugin.device.ipc_close(device, block)) }
}

/// The table of a device, with a null in each slot it does not offer.
pub(crate) fn interop_table<D: Interop>() -> abi::InteropTable {
    abi::InteropTable {
        dlpack_device: Some(interop_dlpack_device::<D>),
        memory_export: Some(interop_memory_export::<D>),
        memory_import: Some(interop_memory_import::<D>),
        memory_forget: Some(interop_memory_forget::<D>),
        stream_export: boundary::offered(D::SLOTS, "stream_export", interop_stream_export::<D>),
        stream_import: boundary::offered(D::SLOTS, "stream_import", interop_stream_import::<D>),
        ipc_token_size: boundary::offered(D::SLOTS, "ipc_token_size", interop_ipc_token_size::<D>),
        ipc_export: boundary::offered(D::SLOTS, "ipc_export", interop_ipc_export::<D>),
        ipc_import: boundary::offered(D::SLOTS, "ipc_import", interop_ipc_import::<D>),
        ipc_close: boundary::offered(D::SLOTS, "ipc_close", interop_ipc_close::<D>),
        ..abi::InteropTable::EMPTY
    }
}
