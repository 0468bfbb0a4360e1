//! The slots of the profile `core`. Where a custom device lacks a function, the adapter does what the contract says a host would.

#![expect(unsafe_code, reason = "functions of the custom device are called")]

use core::ffi::{c_int, c_void};
use std::alloc::{Layout, alloc_zeroed, dealloc};

use oarlock_sdk::{
    Core, DeviceInfo, HostPointer, Memory, MemoryRange, PluginError, Result, Str, Version, slots,
};

use crate::device_adapter::{AdaptedRuntime, DeviceAdapter, byte_count, range_address};
use crate::foreign_functions::VersionFunction;
use crate::printed_output::with_prints_on_stderr;

/// The piece size of fills and copies that go through the host.
const PIECE_BYTES: u64 = 4 << 20;
/// The alignment of host memory where a custom device has none of its own.
const HOST_ALIGNMENT: usize = 64;
/// Room after a list of devices, to notice a custom device that writes more than it counted.
const GUARD_DEVICES: usize = 64;
/// The most devices that are asked for.
const MAX_DEVICES: usize = 4096;

impl AdaptedRuntime {
    /// The ids of all devices.
    pub(crate) fn list_devices(&self) -> Result<Vec<u32>> {
        let mut count = 0_usize;
        // SAFETY: the function writes the count.
        let status = unsafe { (self.functions.get_device_count)(&raw mut count) };
        self.check(status, "get_device_count", None)?;
        if count > MAX_DEVICES {
            return Err(PluginError::out_of_range(format!(
                "expected `get_device_count` to find at most {MAX_DEVICES} devices, found {count}"
            )));
        }
        let mut ids = vec![usize::MAX; count + GUARD_DEVICES];
        // SAFETY: the function writes as many ids as it counted, and there is room for more.
        let status = unsafe { (self.functions.get_device_list)(ids.as_mut_ptr()) };
        self.check(status, "get_device_list", None)?;
        let written = ids.iter().position(|id| *id == usize::MAX).unwrap_or(ids.len());
        if written != count {
            return Err(PluginError::external(format!(
                "expected `get_device_list` to write {count} ids, as `get_device_count` said, found {written}"
            )));
        }
        let usable = |id: &usize| c_int::try_from(*id).ok().and_then(|id| u32::try_from(id).ok());
        ids[..count].iter().map(usable).collect::<Option<Vec<u32>>>().ok_or_else(|| {
            PluginError::external(format!("expected ids from 0 to {}, found {:?}", c_int::MAX, &ids[..count]))
        })
    }

    /// A size that the custom device recommends; `None` if it has no function for it.
    fn size_hint(
        &self,
        device: u32,
        function: &'static str,
        query: Option<unsafe extern "C" fn(*mut c_int, *mut usize) -> u32>,
    ) -> Result<Option<u64>> {
        let Some(query) = query else { return Ok(None) };
        let called = self.enter_device(device)?;
        let mut size = 0_usize;
        // SAFETY: the device is initialized, and the function writes the size.
        self.check(unsafe { query(called.address, &raw mut size) }, function, Some(device))?;
        Ok(Some(size as u64))
    }

    /// A number that stands for a version or a capability; `None` if the custom device has no function for it.
    fn version_number(
        &self,
        device: u32,
        name: &'static str,
        function: Option<VersionFunction>,
    ) -> Result<Option<usize>> {
        let Some(function) = function else { return Ok(None) };
        let called = self.enter_device(device)?;
        let mut number = 0_usize;
        // SAFETY: the device is initialized, and the function writes the number.
        let status = unsafe {
            match function {
                VersionFunction::OfDevice(query) => query(called.address, &raw mut number),
                VersionFunction::OfAll(query) => query(&raw mut number),
            }
        };
        self.check(status, name, Some(device))?;
        Ok(Some(number))
    }

    /// A version of the first device, in thousands and tens as the framework prints it.
    fn library_version(&self, name: &'static str, function: Option<VersionFunction>) -> Result<Version> {
        let Some(first) = self.list_devices()?.into_iter().find(|id| self.enter_device(*id).is_ok()) else {
            return Ok(Version::EMPTY);
        };
        let number = self.version_number(first, name, function)?.unwrap_or(0);
        let part = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Ok(Version { major: part(number / 1000), minor: part(number % 1000 / 10), ..Version::EMPTY })
    }

    pub(crate) fn copy_to_device(
        &self,
        device: u32,
        target: MemoryRange,
        source: *const c_void,
    ) -> Result<()> {
        let size = byte_count(target.size)?;
        let called = self.enter_device(device)?;
        // SAFETY: the caller keeps the source, and the host vouches for the range (rule M-2).
        let status =
            unsafe { (self.functions.memory_copy_h2d)(called.address, range_address(target), source, size) };
        self.check(status, "memory_copy_h2d", Some(device))
    }

    pub(crate) fn copy_to_host(&self, device: u32, target: *mut c_void, source: MemoryRange) -> Result<()> {
        let size = byte_count(source.size)?;
        let called = self.enter_device(device)?;
        // SAFETY: the caller keeps the target, and the host vouches for the range (rule M-2).
        let status =
            unsafe { (self.functions.memory_copy_d2h)(called.address, target, range_address(source), size) };
        self.check(status, "memory_copy_d2h", Some(device))
    }

    pub(crate) fn copy_within(&self, device: u32, target: MemoryRange, source: MemoryRange) -> Result<()> {
        let size = byte_count(source.size)?;
        let called = self.enter_device(device)?;
        // SAFETY: the host vouches for both ranges (rule M-2).
        let status = unsafe {
            (self.functions.memory_copy_d2d)(
                called.address,
                range_address(target),
                range_address(source),
                size,
            )
        };
        self.check(status, "memory_copy_d2d", Some(device))
    }

    pub(crate) fn copy_between(
        &self,
        target_device: u32,
        target: MemoryRange,
        source_device: u32,
        source: MemoryRange,
    ) -> Result<()> {
        if target_device == source_device {
            return self.copy_within(source_device, target, source);
        }
        let Some(copy) = self.functions.memory_copy_p2p else {
            return self.copy_by_way_of_host(target_device, target, source_device, source);
        };
        let size = byte_count(source.size)?;
        let target_address = self.enter_device(target_device)?.address;
        let called = self.enter_device(source_device)?;
        // SAFETY: both devices are initialized, and the host vouches for both ranges (rule M-2).
        let status = unsafe {
            copy(target_address, called.address, range_address(target), range_address(source), size)
        };
        self.check(status, "memory_copy_p2p", Some(source_device))
    }

    fn copy_by_way_of_host(
        &self,
        target_device: u32,
        target: MemoryRange,
        source_device: u32,
        source: MemoryRange,
    ) -> Result<()> {
        let mut piece = vec![0_u8; byte_count(source.size.min(PIECE_BYTES))?];
        for (offset, size) in pieces(source.size) {
            let part = |range: MemoryRange| MemoryRange { offset: range.offset + offset, size, ..range };
            self.copy_to_host(source_device, piece.as_mut_ptr().cast(), part(source))?;
            self.copy_to_device(target_device, part(target), piece.as_ptr().cast())?;
        }
        Ok(())
    }

    pub(crate) fn fill_range(&self, device: u32, target: MemoryRange, byte: u8) -> Result<()> {
        if let Some(fill) = self.functions.device_memory_set {
            let size = byte_count(target.size)?;
            let called = self.enter_device(device)?;
            // SAFETY: the host vouches for the range (rule M-2).
            let status = unsafe { fill(called.address, range_address(target), byte, size) };
            return self.check(status, "device_memory_set", Some(device));
        }
        let filled = vec![byte; byte_count(target.size.min(PIECE_BYTES))?];
        for (offset, size) in pieces(target.size) {
            let part = MemoryRange { offset: target.offset + offset, size, ..target };
            self.copy_to_device(device, part, filled.as_ptr().cast())?;
        }
        Ok(())
    }

    pub(crate) fn synchronize_all(&self, device: u32) -> Result<()> {
        let mut called = self.enter_device(device)?;
        called.turn.allow_others();
        // SAFETY: the device is initialized.
        let status = unsafe { (self.functions.synchronize_device)(called.address) };
        self.check(status, "synchronize_device", Some(device))
    }
}

/// The pieces of a range that goes through the host: offset and size of each.
fn pieces(size: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..size.div_ceil(PIECE_BYTES)).map(move |number| {
        let offset = number * PIECE_BYTES;
        (offset, PIECE_BYTES.min(size - offset))
    })
}

fn host_layout(size: u64) -> Result<Layout> {
    Layout::from_size_align(byte_count(size.max(1))?, HOST_ALIGNMENT).map_err(|error| {
        PluginError::out_of_range(format!("expected a size of host memory, found {size}: {error}"))
    })
}

fn no_memory(size: u64) -> PluginError {
    PluginError::resource_exhausted(format!("expected {size} bytes of memory, found too little left"))
}

#[slots]
impl Core for DeviceAdapter {
    fn initialize(&self) -> Result<()> {
        let Some(initialize) = self.0.functions.initialize else { return Ok(()) };
        // SAFETY: it is called once, before everything else.
        self.0.check(with_prints_on_stderr(|| unsafe { initialize() }), "initialize", None)
    }

    fn finalize(&self) -> Result<()> {
        let Some(finalize) = self.0.functions.finalize else { return Ok(()) };
        // SAFETY: it is called once, after everything else.
        self.0.check(with_prints_on_stderr(|| unsafe { finalize() }), "finalize", None)
    }

    fn device_init(&self, device: u32) -> Result<()> {
        let known = self.0.list_devices()?;
        self.0.add_device(device, &known)
    }

    fn device_deinit(&self, device: u32) -> Result<()> {
        self.0.remove_device(device)
    }

    fn device_synchronize(&self, device: u32) -> Result<()> {
        self.0.synchronize_all(device)
    }

    fn device_count(&self) -> Result<u32> {
        // `list_devices` limits the number.
        self.0.list_devices().map(|ids| ids.len() as u32)
    }

    fn device_list(&self) -> Result<Vec<u32>> {
        self.0.list_devices()
    }

    fn device_info(&self, device: u32) -> Result<DeviceInfo> {
        self.0.enter_device(device)?;
        Ok(DeviceInfo { name: Str::borrowed(&self.0.device_type), ..DeviceInfo::EMPTY })
    }

    fn compute_capability(&self, device: u32) -> Result<Version> {
        self.0.enter_device(device)?;
        let number = self.0.version_number(
            device,
            "get_compute_capability",
            self.0.functions.get_compute_capability,
        )?;
        let part = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let number = number.unwrap_or(0);
        Ok(Version { major: part(number / 10), minor: part(number % 10), ..Version::EMPTY })
    }

    fn runtime_version(&self) -> Result<Version> {
        self.0.library_version("get_runtime_version", self.0.functions.get_runtime_version)
    }

    fn driver_version(&self) -> Result<Version> {
        self.0.library_version("get_driver_version", self.0.functions.get_driver_version)
    }

    fn memory_allocate(&self, device: u32, size: u64) -> Result<Memory> {
        let bytes = byte_count(size)?;
        let called = self.0.enter_device(device)?;
        let mut address = core::ptr::null_mut();
        // SAFETY: the device is initialized, and the function writes the address.
        let status =
            unsafe { (self.0.functions.device_memory_allocate)(called.address, &raw mut address, bytes) };
        self.0.check(status, "device_memory_allocate", Some(device))?;
        if address.is_null() { Err(no_memory(size)) } else { Ok(Memory(address.addr() as u64)) }
    }

    fn memory_deallocate(&self, device: u32, block: Memory, size: u64) -> Result<()> {
        let range = MemoryRange { memory: block, offset: 0, size };
        let bytes = byte_count(size)?;
        let called = self.0.enter_device(device)?;
        // SAFETY: the host frees a block once (rule M-1).
        let status = unsafe {
            (self.0.functions.device_memory_deallocate)(called.address, range_address(range), bytes)
        };
        self.0.check(status, "device_memory_deallocate", Some(device))
    }

    fn host_memory_allocate(&self, device: u32, size: u64) -> Result<HostPointer> {
        let called = self.0.enter_device(device)?;
        let functions = &self.0.functions;
        let address = match (functions.host_memory_allocate, functions.host_memory_deallocate) {
            (Some(allocate), Some(_)) => {
                let mut address = core::ptr::null_mut();
                // SAFETY: the device is initialized, and the function writes the address.
                let status = unsafe { allocate(called.address, &raw mut address, byte_count(size)?) };
                self.0.check(status, "host_memory_allocate", Some(device))?;
                address
            }
            // SAFETY: the size is not 0.
            _ => unsafe { alloc_zeroed(host_layout(size)?).cast() },
        };
        if address.is_null() { Err(no_memory(size)) } else { HostPointer::new(address, "address") }
    }

    fn host_memory_deallocate(&self, device: u32, address: HostPointer, size: u64) -> Result<()> {
        let called = self.0.enter_device(device)?;
        let functions = &self.0.functions;
        if let (Some(_), Some(deallocate)) =
            (functions.host_memory_allocate, functions.host_memory_deallocate)
        {
            // SAFETY: the host frees a block once (rule M-1).
            let status = unsafe { deallocate(called.address, address.as_ptr(), byte_count(size)?) };
            return self.0.check(status, "host_memory_deallocate", Some(device));
        }
        // SAFETY: `host_memory_allocate` made it with the same layout, and the host frees it once.
        unsafe { dealloc(address.as_ptr().cast(), host_layout(size)?) };
        Ok(())
    }

    fn memory_copy_h2d(&self, device: u32, target: MemoryRange, source: &[u8]) -> Result<()> {
        self.0.copy_to_device(device, target, source.as_ptr().cast())
    }

    fn memory_copy_d2h(&self, device: u32, target: &mut [u8], source: MemoryRange) -> Result<()> {
        self.0.copy_to_host(device, target.as_mut_ptr().cast(), source)
    }

    fn memory_copy_d2d(&self, device: u32, target: MemoryRange, source: MemoryRange) -> Result<()> {
        self.0.copy_within(device, target, source)
    }

    fn memory_copy_p2p(
        &self,
        target_device: u32,
        target: MemoryRange,
        source_device: u32,
        source: MemoryRange,
    ) -> Result<()> {
        self.0.copy_between(target_device, target, source_device, source)
    }

    fn memory_set(&self, device: u32, target: MemoryRange, byte: u8) -> Result<()> {
        self.0.fill_range(device, target, byte)
    }

    fn memory_stats(&self, device: u32) -> Result<(u64, u64)> {
        let called = self.0.enter_device(device)?;
        let (mut total, mut free) = (0_usize, 0_usize);
        // SAFETY: the device is initialized, and the function writes both sizes.
        let status =
            unsafe { (self.0.functions.device_memory_stats)(called.address, &raw mut total, &raw mut free) };
        self.0.check(status, "device_memory_stats", Some(device))?;
        Ok((total as u64, free as u64))
    }

    fn min_chunk_size(&self, device: u32) -> Result<u64> {
        let size = self.0.size_hint(
            device,
            "device_min_chunk_size",
            Some(self.0.functions.device_min_chunk_size),
        )?;
        Ok(size.unwrap_or(1).max(1))
    }

    fn max_chunk_size(&self, device: u32) -> Result<u64> {
        let hint =
            self.0.size_hint(device, "device_max_chunk_size", self.0.functions.device_max_chunk_size)?;
        hint.map_or_else(|| self.max_alloc_size(device), Ok)
    }

    fn max_alloc_size(&self, device: u32) -> Result<u64> {
        let hint =
            self.0.size_hint(device, "device_max_alloc_size", self.0.functions.device_max_alloc_size)?;
        hint.map_or_else(|| self.memory_stats(device).map(|(_, free)| free), Ok)
    }

    fn extra_padding_size(&self, device: u32) -> Result<u64> {
        self.0.enter_device(device)?;
        let query = self.0.functions.device_extra_padding_size;
        Ok(self.0.size_hint(device, "device_extra_padding_size", query)?.unwrap_or(0))
    }

    fn init_alloc_size(&self, device: u32) -> Result<u64> {
        let hint =
            self.0.size_hint(device, "device_init_alloc_size", self.0.functions.device_init_alloc_size)?;
        hint.map_or_else(|| self.max_alloc_size(device), Ok)
    }

    fn realloc_size(&self, device: u32) -> Result<u64> {
        let hint = self.0.size_hint(device, "device_realloc_size", self.0.functions.device_realloc_size)?;
        hint.map_or_else(|| self.max_alloc_size(device), Ok)
    }
}
