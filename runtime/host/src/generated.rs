// Generated from `device-sdk/contract/oarlock.contract` by `cargo xtask generate`. Do not edit.

#![expect(unsafe_code, reason = "every method here calls through a pointer into a plugin")]
#![expect(clippy::too_many_arguments, reason = "the contract says what a call takes")]

use std::ffi::c_void;

use oarlock_abi as abi;

use crate::foreign_struct::{ForeignStruct, SlotTable};
use crate::services::errors::{PluginFailure, result_from_error};

// SAFETY: it is made of numbers, addresses and optional functions, for all of which zero is a value.
unsafe impl ForeignStruct for abi::ErrorInfo {
    const NAME: &'static str = "error_info";
    const SIZE_AT_FIRST: u32 = Self::SIZE_AT_FIRST;
    const EMPTY: Self = Self::EMPTY;
}

// SAFETY: it is made of numbers, addresses and optional functions, for all of which zero is a value.
unsafe impl ForeignStruct for abi::Extension {
    const NAME: &'static str = "extension";
    const SIZE_AT_FIRST: u32 = Self::SIZE_AT_FIRST;
    const EMPTY: Self = Self::EMPTY;
}

// SAFETY: it is made of numbers, addresses and optional functions, for all of which zero is a value.
unsafe impl ForeignStruct for abi::Host {
    const NAME: &'static str = "host";
    const SIZE_AT_FIRST: u32 = Self::SIZE_AT_FIRST;
    const EMPTY: Self = Self::EMPTY;
}

// SAFETY: it is made of numbers, addresses and optional functions, for all of which zero is a value.
unsafe impl ForeignStruct for abi::Plugin {
    const NAME: &'static str = "plugin";
    const SIZE_AT_FIRST: u32 = Self::SIZE_AT_FIRST;
    const EMPTY: Self = Self::EMPTY;
}

// SAFETY: it is made of numbers, addresses and optional functions, for all of which zero is a value.
unsafe impl ForeignStruct for abi::DraftProfile {
    const NAME: &'static str = "draft_profile";
    const SIZE_AT_FIRST: u32 = Self::SIZE_AT_FIRST;
    const EMPTY: Self = Self::EMPTY;
}

// SAFETY: it is made of numbers, addresses and optional functions, for all of which zero is a value.
unsafe impl ForeignStruct for abi::HostTable {
    const NAME: &'static str = "host";
    const SIZE_AT_FIRST: u32 = Self::SIZE_AT_FIRST;
    const EMPTY: Self = Self::EMPTY;
}

// SAFETY: it is made of numbers, addresses and optional functions, for all of which zero is a value.
unsafe impl ForeignStruct for abi::DeviceInfo {
    const NAME: &'static str = "device_info";
    const SIZE_AT_FIRST: u32 = Self::SIZE_AT_FIRST;
    const EMPTY: Self = Self::EMPTY;
}

// SAFETY: it is made of numbers, addresses and optional functions, for all of which zero is a value.
unsafe impl ForeignStruct for abi::CoreTable {
    const NAME: &'static str = "core";
    const SIZE_AT_FIRST: u32 = Self::SIZE_AT_FIRST;
    const EMPTY: Self = Self::EMPTY;
}

impl SlotTable for abi::CoreTable {
    fn missing_required_slot(&self) -> Option<&'static str> {
        if self.device_synchronize.is_none() {
            return Some("device_synchronize");
        }
        if self.device_count.is_none() {
            return Some("device_count");
        }
        if self.device_list.is_none() {
            return Some("device_list");
        }
        if self.compute_capability.is_none() {
            return Some("compute_capability");
        }
        if self.runtime_version.is_none() {
            return Some("runtime_version");
        }
        if self.driver_version.is_none() {
            return Some("driver_version");
        }
        if self.memory_allocate.is_none() {
            return Some("memory_allocate");
        }
        if self.memory_deallocate.is_none() {
            return Some("memory_deallocate");
        }
        if self.memory_copy_h2d.is_none() {
            return Some("memory_copy_h2d");
        }
        if self.memory_copy_d2h.is_none() {
            return Some("memory_copy_d2h");
        }
        if self.memory_copy_d2d.is_none() {
            return Some("memory_copy_d2d");
        }
        if self.memory_stats.is_none() {
            return Some("memory_stats");
        }
        if self.min_chunk_size.is_none() {
            return Some("min_chunk_size");
        }
        None
    }

    fn unpaired_slots(&self) -> Option<(&'static str, &'static str)> {
        if self.host_memory_allocate.is_some() != self.host_memory_deallocate.is_some() {
            return Some(("host_memory_allocate", "host_memory_deallocate"));
        }
        if self.unified_memory_allocate.is_some() != self.unified_memory_deallocate.is_some() {
            return Some(("unified_memory_allocate", "unified_memory_deallocate"));
        }
        None
    }
}

/// Calls the functions of a `core` of a plugin.
///
/// A required slot gives a result; an optional one gives `None` when the plugin left it empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoreCalls {
    /// What every function gets first.
    pub(crate) context: *mut c_void,
    /// The table as it is called.
    pub(crate) table: abi::CoreTable,
}

// SAFETY: every function of a plugin may be called on any thread (rule T-1).
unsafe impl Send for CoreCalls {}
// SAFETY: as above.
unsafe impl Sync for CoreCalls {}

impl CoreCalls {
    /// Makes a caller.
    ///
    /// # Safety
    ///
    /// Both are what one plugin handed out, and the plugin stays loaded while the caller is used.
    pub(crate) unsafe fn new(context: *mut c_void, table: abi::CoreTable) -> Self {
        Self { context, table }
    }

    /// Initializes the back end. No other call comes earlier.
    #[inline]
    pub(crate) fn initialize(&self) -> Option<Result<(), PluginFailure>> {
        let slot = self.table.initialize?;
        // SAFETY: the context is the plugin's own, and what the arguments refer to outlives the call.
        let failure = unsafe { slot(self.context) };
        Some(result_from_error(failure))
    }

    /// Shuts the back end down. No other call comes later.
    #[inline]
    pub(crate) fn finalize(&self) -> Option<Result<(), PluginFailure>> {
        let slot = self.table.finalize?;
        // SAFETY: the context is the plugin's own, and what the arguments refer to outlives the call.
        let failure = unsafe { slot(self.context) };
        Some(result_from_error(failure))
    }

    /// Initializes one device. Called once for every visible device when the host starts the plugin.
    #[inline]
    pub(crate) fn device_init(&self, device: u32) -> Option<Result<(), PluginFailure>> {
        let slot = self.table.device_init?;
        // SAFETY: the context is the plugin's own, and what the arguments refer to outlives the call.
        let failure = unsafe { slot(self.context, device) };
        Some(result_from_error(failure))
    }

    /// Frees the resources of one device. Called before `finalize`.
    #[inline]
    pub(crate) fn device_deinit(&self, device: u32) -> Option<Result<(), PluginFailure>> {
        let slot = self.table.device_deinit?;
        // SAFETY: the context is the plugin's own, and what the arguments refer to outlives the call.
        let failure = unsafe { slot(self.context, device) };
        Some(result_from_error(failure))
    }

    /// Waits until all work on the device is done.
    #[inline]
    pub(crate) fn device_synchronize(&self, device: u32) -> Result<(), PluginFailure> {
        let Some(slot) = self.table.device_synchronize else {
            return Err(PluginFailure::empty_slot("core", "device_synchronize"));
        };
        // SAFETY: the context is the plugin's own, and what the arguments refer to outlives the call.
        let failure = unsafe { slot(self.context, device) };
        result_from_error(failure)
    }

    /// The number of devices.
    #[inline]
    pub(crate) fn device_count(&self) -> Result<u32, PluginFailure> {
        let Some(slot) = self.table.device_count else {
            return Err(PluginFailure::empty_slot("core", "device_count"));
        };
        let mut count = 0;
        // SAFETY: the context is the plugin's own, and what the arguments refer to outlives the call.
        let failure = unsafe { slot(self.context, &raw mut count) };
        result_from_error(failure).map(|()| count)
    }

    /// The ids of the devices. They need not be 0, 1, 2 and so on. The host has room for as many as `device_count` said; with less
    /// room, write as many as fit, and set the count to the number of all.
    #[inline]
    pub(crate) fn device_list(&self, ids: &mut [u32]) -> Result<u64, PluginFailure> {
        let Some(slot) = self.table.device_list else {
            return Err(PluginFailure::empty_slot("core", "device_list"));
        };
        let mut ids_count = 0;
        // SAFETY: the context is the plugin's own, and what the arguments refer to outlives the call.
        let failure = unsafe { slot(self.context, ids.as_mut_ptr(), ids.len() as u64, &raw mut ids_count) };
        result_from_error(failure).map(|()| ids_count)
    }

    /// Describes a device.
    #[inline]
    pub(crate) fn device_info(&self, device: u32) -> Option<Result<abi::DeviceInfo, PluginFailure>> {
        let slot = self.table.device_info?;
        let mut info = abi::DeviceInfo::EMPTY;
        // SAFETY: the context is the plugin's own, and what the arguments refer to outlives the call.
        let failure = unsafe { slot(self.context, device, &raw mut info) };
        Some(result_from_error(failure).map(|()| info))
    }

    /// The compute capability of the chip.
    #[inline]
    pub(crate) fn compute_capability(&self, device: u32) -> Result<abi::Version, PluginFailure> {
        let Some(slot) = self.table.compute_capability else {
            return Err(PluginFailure::empty_slot("core", "compute_capability"));
        };
        let mut capability = abi::Version::EMPTY;
        // SAFETY: the context is the plugin's own, and what the arguments refer to outlives the call.
        let failure = unsafe { slot(self.context, device, &raw mut capability) };
        result_from_error(failure).map(|()| capability)
    }

    /// The version of the vendor's runtime library that is installed.
    #[inline]
    pub(crate) fn runtime_version(&self) -> Result<abi::Version, PluginFailure> {
        let Some(slot) = self.table.runtime_version else {
            return Err(PluginFailure::empty_slot("core", "runtime_version"));
        };
        let mut installed = abi::Version::EMPTY;
        // SAFETY: the context is the plugin's own, and what the arguments refer to outlives the call.
        let failure = unsafe { slot(self.context, &raw mut installed) };
        result_from_error(failure).map(|()| installed)
    }

    /// The version of the vendor's driver that is installed.
    #[inline]
    pub(crate) fn driver_version(&self) -> Result<abi::Version, PluginFailure> {
        let Some(slot) = self.table.driver_version else {
            return Err(PluginFailure::empty_slot("core", "driver_version"));
        };
        let mut installed = abi::Version::EMPTY;
        // SAFETY: the context is the plugin's own, and what the arguments refer to outlives the call.
        let failure = unsafe { slot(self.context, &raw mut installed) };
        result_from_error(failure).map(|()| installed)
    }

    /// Allocates `size` bytes of device memory. The handle is not 0, which means no block.
    #[inline]
    pub(crate) fn memory_allocate(&self, device: u32, size: u64) -> Result<abi::Memory, PluginFailure> {
        let Some(slot) = self.table.memory_allocate else {
            return Err(PluginFailure::empty_slot("core", "memory_allocate"));
        };
        let mut block = abi::Memory(0);
        // SAFETY: the context is the plugin's own, and what the arguments refer to outlives the call.
        let failure = unsafe { slot(self.context, device, size, &raw mut block) };
        result_from_error(failure).map(|()| block)
    }

    /// Frees device memory. `size` is the size that was requested.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn memory_deallocate(
        &self,
        device: u32,
        block: abi::Memory,
        size: u64,
    ) -> Result<(), PluginFailure> {
        let Some(slot) = self.table.memory_deallocate else {
            return Err(PluginFailure::empty_slot("core", "memory_deallocate"));
        };
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe { slot(self.context, device, block, size) };
        result_from_error(failure)
    }

    /// Allocates page-locked host memory that the device can copy from and to directly.
    #[inline]
    pub(crate) fn host_memory_allocate(
        &self,
        device: u32,
        size: u64,
    ) -> Option<Result<*mut c_void, PluginFailure>> {
        let slot = self.table.host_memory_allocate?;
        let mut address = std::ptr::null_mut();
        // SAFETY: the context is the plugin's own, and what the arguments refer to outlives the call.
        let failure = unsafe { slot(self.context, device, size, &raw mut address) };
        Some(result_from_error(failure).map(|()| address))
    }

    /// Frees page-locked host memory.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn host_memory_deallocate(
        &self,
        device: u32,
        address: *mut c_void,
        size: u64,
    ) -> Option<Result<(), PluginFailure>> {
        let slot = self.table.host_memory_deallocate?;
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe { slot(self.context, device, address, size) };
        Some(result_from_error(failure))
    }

    /// Copies from the host to the device.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn memory_copy_h2d(
        &self,
        device: u32,
        target: abi::Memory,
        target_offset: u64,
        source: &[u8],
    ) -> Result<(), PluginFailure> {
        let Some(slot) = self.table.memory_copy_h2d else {
            return Err(PluginFailure::empty_slot("core", "memory_copy_h2d"));
        };
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe {
            slot(self.context, device, target, target_offset, source.as_ptr().cast(), source.len() as u64)
        };
        result_from_error(failure)
    }

    /// Copies from the device to the host.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn memory_copy_d2h(
        &self,
        device: u32,
        target: &mut [u8],
        source: abi::Memory,
        source_offset: u64,
    ) -> Result<(), PluginFailure> {
        let Some(slot) = self.table.memory_copy_d2h else {
            return Err(PluginFailure::empty_slot("core", "memory_copy_d2h"));
        };
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe {
            slot(self.context, device, target.as_mut_ptr().cast(), target.len() as u64, source, source_offset)
        };
        result_from_error(failure)
    }

    /// Copies within a device. The ranges do not overlap.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn memory_copy_d2d(
        &self,
        device: u32,
        target: abi::Memory,
        target_offset: u64,
        source: abi::Memory,
        source_offset: u64,
        size: u64,
    ) -> Result<(), PluginFailure> {
        let Some(slot) = self.table.memory_copy_d2d else {
            return Err(PluginFailure::empty_slot("core", "memory_copy_d2d"));
        };
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure =
            unsafe { slot(self.context, device, target, target_offset, source, source_offset, size) };
        result_from_error(failure)
    }

    /// Copies between two devices of this plugin.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn memory_copy_p2p(
        &self,
        target_device: u32,
        target: abi::Memory,
        target_offset: u64,
        source_device: u32,
        source: abi::Memory,
        source_offset: u64,
        size: u64,
    ) -> Option<Result<(), PluginFailure>> {
        let slot = self.table.memory_copy_p2p?;
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe {
            slot(
                self.context,
                target_device,
                target,
                target_offset,
                source_device,
                source,
                source_offset,
                size,
            )
        };
        Some(result_from_error(failure))
    }

    /// Fills device memory with a byte value.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn memory_set(
        &self,
        device: u32,
        target: abi::Memory,
        target_offset: u64,
        byte: u8,
        size: u64,
    ) -> Option<Result<(), PluginFailure>> {
        let slot = self.table.memory_set?;
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe { slot(self.context, device, target, target_offset, byte, size) };
        Some(result_from_error(failure))
    }

    /// The device's memory and the part of it that is free, in bytes.
    #[inline]
    pub(crate) fn memory_stats(&self, device: u32) -> Result<(u64, u64), PluginFailure> {
        let Some(slot) = self.table.memory_stats else {
            return Err(PluginFailure::empty_slot("core", "memory_stats"));
        };
        let mut total = 0;
        let mut free = 0;
        // SAFETY: the context is the plugin's own, and what the arguments refer to outlives the call.
        let failure = unsafe { slot(self.context, device, &raw mut total, &raw mut free) };
        result_from_error(failure).map(|()| (total, free))
    }

    /// The smallest allocation, and its granularity: a request of n bytes occupies n plus the extra padding, rounded up to a
    /// multiple of this size.
    #[inline]
    pub(crate) fn min_chunk_size(&self, device: u32) -> Result<u64, PluginFailure> {
        let Some(slot) = self.table.min_chunk_size else {
            return Err(PluginFailure::empty_slot("core", "min_chunk_size"));
        };
        let mut size = 0;
        // SAFETY: the context is the plugin's own, and what the arguments refer to outlives the call.
        let failure = unsafe { slot(self.context, device, &raw mut size) };
        result_from_error(failure).map(|()| size)
    }

    /// Requests above this size bypass the host's pool and go straight to the device.
    #[inline]
    pub(crate) fn max_chunk_size(&self, device: u32) -> Option<Result<u64, PluginFailure>> {
        let slot = self.table.max_chunk_size?;
        let mut size = 0;
        // SAFETY: the context is the plugin's own, and what the arguments refer to outlives the call.
        let failure = unsafe { slot(self.context, device, &raw mut size) };
        Some(result_from_error(failure).map(|()| size))
    }

    /// The largest allocation.
    #[inline]
    pub(crate) fn max_alloc_size(&self, device: u32) -> Option<Result<u64, PluginFailure>> {
        let slot = self.table.max_alloc_size?;
        let mut size = 0;
        // SAFETY: the context is the plugin's own, and what the arguments refer to outlives the call.
        let failure = unsafe { slot(self.context, device, &raw mut size) };
        Some(result_from_error(failure).map(|()| size))
    }

    /// Padding in bytes that the host's pool adds to every request.
    #[inline]
    pub(crate) fn extra_padding_size(&self, device: u32) -> Option<Result<u64, PluginFailure>> {
        let slot = self.table.extra_padding_size?;
        let mut size = 0;
        // SAFETY: the context is the plugin's own, and what the arguments refer to outlives the call.
        let failure = unsafe { slot(self.context, device, &raw mut size) };
        Some(result_from_error(failure).map(|()| size))
    }

    /// The size of the first chunk that the host's pool allocates.
    #[inline]
    pub(crate) fn init_alloc_size(&self, device: u32) -> Option<Result<u64, PluginFailure>> {
        let slot = self.table.init_alloc_size?;
        let mut size = 0;
        // SAFETY: the context is the plugin's own, and what the arguments refer to outlives the call.
        let failure = unsafe { slot(self.context, device, &raw mut size) };
        Some(result_from_error(failure).map(|()| size))
    }

    /// The size of every further chunk that the host's pool allocates.
    #[inline]
    pub(crate) fn realloc_size(&self, device: u32) -> Option<Result<u64, PluginFailure>> {
        let slot = self.table.realloc_size?;
        let mut size = 0;
        // SAFETY: the context is the plugin's own, and what the arguments refer to outlives the call.
        let failure = unsafe { slot(self.context, device, &raw mut size) };
        Some(result_from_error(failure).map(|()| size))
    }
}

// SAFETY: it is made of numbers, addresses and optional functions, for all of which zero is a value.
unsafe impl ForeignStruct for abi::AsyncTable {
    const NAME: &'static str = "async";
    const SIZE_AT_FIRST: u32 = Self::SIZE_AT_FIRST;
    const EMPTY: Self = Self::EMPTY;
}

impl SlotTable for abi::AsyncTable {
    fn missing_required_slot(&self) -> Option<&'static str> {
        if self.stream_create.is_none() {
            return Some("stream_create");
        }
        if self.stream_destroy.is_none() {
            return Some("stream_destroy");
        }
        if self.stream_synchronize.is_none() {
            return Some("stream_synchronize");
        }
        if self.stream_wait_event.is_none() {
            return Some("stream_wait_event");
        }
        if self.event_create.is_none() {
            return Some("event_create");
        }
        if self.event_destroy.is_none() {
            return Some("event_destroy");
        }
        if self.event_record.is_none() {
            return Some("event_record");
        }
        if self.event_synchronize.is_none() {
            return Some("event_synchronize");
        }
        None
    }

    fn unpaired_slots(&self) -> Option<(&'static str, &'static str)> {
        if self.memory_allocate_async.is_some() != self.memory_deallocate_async.is_some() {
            return Some(("memory_allocate_async", "memory_deallocate_async"));
        }
        None
    }
}

/// Calls the functions of a `async` of a plugin.
///
/// A required slot gives a result; an optional one gives `None` when the plugin left it empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AsyncCalls {
    /// What every function gets first.
    pub(crate) context: *mut c_void,
    /// The table as it is called.
    pub(crate) table: abi::AsyncTable,
}

// SAFETY: every function of a plugin may be called on any thread (rule T-1).
unsafe impl Send for AsyncCalls {}
// SAFETY: as above.
unsafe impl Sync for AsyncCalls {}

impl AsyncCalls {
    /// Makes a caller.
    ///
    /// # Safety
    ///
    /// Both are what one plugin handed out, and the plugin stays loaded while the caller is used.
    pub(crate) unsafe fn new(context: *mut c_void, table: abi::AsyncTable) -> Self {
        Self { context, table }
    }

    /// Creates a stream. A smaller number is a higher priority, on devices that support priorities. The handle is not 0, which
    /// means the device's synchronous queue.
    #[inline]
    pub(crate) fn stream_create(&self, device: u32, priority: i32) -> Result<abi::Stream, PluginFailure> {
        let Some(slot) = self.table.stream_create else {
            return Err(PluginFailure::empty_slot("async", "stream_create"));
        };
        let mut queue = abi::Stream(0);
        // SAFETY: the context is the plugin's own, and what the arguments refer to outlives the call.
        let failure = unsafe { slot(self.context, device, priority, &raw mut queue) };
        result_from_error(failure).map(|()| queue)
    }

    /// Destroys a stream, once its work is done.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn stream_destroy(&self, device: u32, queue: abi::Stream) -> Result<(), PluginFailure> {
        let Some(slot) = self.table.stream_destroy else {
            return Err(PluginFailure::empty_slot("async", "stream_destroy"));
        };
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe { slot(self.context, device, queue) };
        result_from_error(failure)
    }

    /// Whether all work in the stream is done: 1 or 0.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn stream_query(
        &self,
        device: u32,
        queue: abi::Stream,
    ) -> Option<Result<u32, PluginFailure>> {
        let slot = self.table.stream_query?;
        let mut done = 0;
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe { slot(self.context, device, queue, &raw mut done) };
        Some(result_from_error(failure).map(|()| done))
    }

    /// Waits until all work in the stream is done, and reports its errors.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn stream_synchronize(
        &self,
        device: u32,
        queue: abi::Stream,
    ) -> Result<(), PluginFailure> {
        let Some(slot) = self.table.stream_synchronize else {
            return Err(PluginFailure::empty_slot("async", "stream_synchronize"));
        };
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe { slot(self.context, device, queue) };
        result_from_error(failure)
    }

    /// Adds a callback to the stream, called when all earlier work is done.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn stream_add_callback(
        &self,
        device: u32,
        queue: abi::Stream,
        reached: abi::StreamReached,
        user: *mut c_void,
    ) -> Option<Result<(), PluginFailure>> {
        let slot = self.table.stream_add_callback?;
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe { slot(self.context, device, queue, Some(reached), user) };
        Some(result_from_error(failure))
    }

    /// Makes later work in the stream wait until the event has happened. An event that was never recorded counts as happened.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn stream_wait_event(
        &self,
        device: u32,
        queue: abi::Stream,
        point: abi::Event,
    ) -> Result<(), PluginFailure> {
        let Some(slot) = self.table.stream_wait_event else {
            return Err(PluginFailure::empty_slot("async", "stream_wait_event"));
        };
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe { slot(self.context, device, queue, point) };
        result_from_error(failure)
    }

    /// Creates an event. The handle is not 0.
    #[inline]
    pub(crate) fn event_create(&self, device: u32) -> Result<abi::Event, PluginFailure> {
        let Some(slot) = self.table.event_create else {
            return Err(PluginFailure::empty_slot("async", "event_create"));
        };
        let mut point = abi::Event(0);
        // SAFETY: the context is the plugin's own, and what the arguments refer to outlives the call.
        let failure = unsafe { slot(self.context, device, &raw mut point) };
        result_from_error(failure).map(|()| point)
    }

    /// Destroys an event. Work that already waits for it is not affected.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn event_destroy(&self, device: u32, point: abi::Event) -> Result<(), PluginFailure> {
        let Some(slot) = self.table.event_destroy else {
            return Err(PluginFailure::empty_slot("async", "event_destroy"));
        };
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe { slot(self.context, device, point) };
        result_from_error(failure)
    }

    /// Records the event at the end of the stream.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn event_record(
        &self,
        device: u32,
        queue: abi::Stream,
        point: abi::Event,
    ) -> Result<(), PluginFailure> {
        let Some(slot) = self.table.event_record else {
            return Err(PluginFailure::empty_slot("async", "event_record"));
        };
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe { slot(self.context, device, queue, point) };
        result_from_error(failure)
    }

    /// Whether the event has happened: 1 or 0.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn event_query(
        &self,
        device: u32,
        point: abi::Event,
    ) -> Option<Result<u32, PluginFailure>> {
        let slot = self.table.event_query?;
        let mut done = 0;
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe { slot(self.context, device, point, &raw mut done) };
        Some(result_from_error(failure).map(|()| done))
    }

    /// Waits for the event, and reports errors of the work before it.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn event_synchronize(
        &self,
        device: u32,
        point: abi::Event,
    ) -> Result<(), PluginFailure> {
        let Some(slot) = self.table.event_synchronize else {
            return Err(PluginFailure::empty_slot("async", "event_synchronize"));
        };
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe { slot(self.context, device, point) };
        result_from_error(failure)
    }

    /// The time between two events that have happened, in nanoseconds.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn event_elapsed(
        &self,
        device: u32,
        start: abi::Event,
        end: abi::Event,
    ) -> Option<Result<u64, PluginFailure>> {
        let slot = self.table.event_elapsed?;
        let mut nanoseconds = 0;
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe { slot(self.context, device, start, end, &raw mut nanoseconds) };
        Some(result_from_error(failure).map(|()| nanoseconds))
    }

    /// Copies from the host to the device, in the stream.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn memory_copy_h2d_async(
        &self,
        device: u32,
        queue: abi::Stream,
        target: abi::Memory,
        target_offset: u64,
        source: *const c_void,
        size: u64,
    ) -> Option<Result<(), PluginFailure>> {
        let slot = self.table.memory_copy_h2d_async?;
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe { slot(self.context, device, queue, target, target_offset, source, size) };
        Some(result_from_error(failure))
    }

    /// Copies from the device to the host, in the stream.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn memory_copy_d2h_async(
        &self,
        device: u32,
        queue: abi::Stream,
        target: *mut c_void,
        source: abi::Memory,
        source_offset: u64,
        size: u64,
    ) -> Option<Result<(), PluginFailure>> {
        let slot = self.table.memory_copy_d2h_async?;
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe { slot(self.context, device, queue, target, source, source_offset, size) };
        Some(result_from_error(failure))
    }

    /// Copies within the device, in the stream.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn memory_copy_d2d_async(
        &self,
        device: u32,
        queue: abi::Stream,
        target: abi::Memory,
        target_offset: u64,
        source: abi::Memory,
        source_offset: u64,
        size: u64,
    ) -> Option<Result<(), PluginFailure>> {
        let slot = self.table.memory_copy_d2d_async?;
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure =
            unsafe { slot(self.context, device, queue, target, target_offset, source, source_offset, size) };
        Some(result_from_error(failure))
    }

    /// Copies between two devices of this plugin, in a stream of the source device.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn memory_copy_p2p_async(
        &self,
        target_device: u32,
        target: abi::Memory,
        target_offset: u64,
        source_device: u32,
        queue: abi::Stream,
        source: abi::Memory,
        source_offset: u64,
        size: u64,
    ) -> Option<Result<(), PluginFailure>> {
        let slot = self.table.memory_copy_p2p_async?;
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe {
            slot(
                self.context,
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
        Some(result_from_error(failure))
    }

    /// Fills device memory with a byte value, in the stream.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn memory_set_async(
        &self,
        device: u32,
        queue: abi::Stream,
        target: abi::Memory,
        target_offset: u64,
        byte: u8,
        size: u64,
    ) -> Option<Result<(), PluginFailure>> {
        let slot = self.table.memory_set_async?;
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe { slot(self.context, device, queue, target, target_offset, byte, size) };
        Some(result_from_error(failure))
    }
}

// SAFETY: it is made of numbers, addresses and optional functions, for all of which zero is a value.
unsafe impl ForeignStruct for abi::Tensor {
    const NAME: &'static str = "tensor";
    const SIZE_AT_FIRST: u32 = Self::SIZE_AT_FIRST;
    const EMPTY: Self = Self::EMPTY;
}

// SAFETY: it is made of numbers, addresses and optional functions, for all of which zero is a value.
unsafe impl ForeignStruct for abi::Attribute {
    const NAME: &'static str = "attribute";
    const SIZE_AT_FIRST: u32 = Self::SIZE_AT_FIRST;
    const EMPTY: Self = Self::EMPTY;
}

// SAFETY: it is made of numbers, addresses and optional functions, for all of which zero is a value.
unsafe impl ForeignStruct for abi::Call {
    const NAME: &'static str = "call";
    const SIZE_AT_FIRST: u32 = Self::SIZE_AT_FIRST;
    const EMPTY: Self = Self::EMPTY;
}

// SAFETY: it is made of numbers, addresses and optional functions, for all of which zero is a value.
unsafe impl ForeignStruct for abi::Operand {
    const NAME: &'static str = "operand";
    const SIZE_AT_FIRST: u32 = Self::SIZE_AT_FIRST;
    const EMPTY: Self = Self::EMPTY;
}

// SAFETY: it is made of numbers, addresses and optional functions, for all of which zero is a value.
unsafe impl ForeignStruct for abi::Kernel {
    const NAME: &'static str = "kernel";
    const SIZE_AT_FIRST: u32 = Self::SIZE_AT_FIRST;
    const EMPTY: Self = Self::EMPTY;
}

impl SlotTable for abi::Kernel {
    fn missing_required_slot(&self) -> Option<&'static str> {
        if self.run.is_none() {
            return Some("run");
        }
        None
    }

    fn unpaired_slots(&self) -> Option<(&'static str, &'static str)> {
        if self.prepare.is_some() != self.release.is_some() {
            return Some(("prepare", "release"));
        }
        None
    }
}

/// Calls the functions of a `kernel` of a plugin.
///
/// A required slot gives a result; an optional one gives `None` when the plugin left it empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelCalls {
    /// What every function gets first.
    pub(crate) context: *mut c_void,
    /// The table as it is called.
    pub(crate) table: abi::Kernel,
}

// SAFETY: every function of a plugin may be called on any thread (rule T-1).
unsafe impl Send for KernelCalls {}
// SAFETY: as above.
unsafe impl Sync for KernelCalls {}

impl KernelCalls {
    /// Makes a caller.
    ///
    /// # Safety
    ///
    /// Both are what one plugin handed out, and the plugin stays loaded while the caller is used.
    pub(crate) unsafe fn new(context: *mut c_void, table: abi::Kernel) -> Self {
        Self { context, table }
    }

    /// Checks whether the kernel accepts this call: returns success, or `unimplemented` with the reason as the message. It may
    /// look at shapes and attributes, but must not read elements, not even those of constants.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn supports(&self, call: &abi::Call) -> Option<Result<(), PluginFailure>> {
        let slot = self.table.supports?;
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe { slot(self.context, call) };
        Some(result_from_error(failure))
    }

    /// Sets the dtypes and shapes of the outputs with `output_allocate`. For ops that the host has no schema for.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn infer(&self, call: &abi::Call) -> Option<Result<(), PluginFailure>> {
        let slot = self.table.infer?;
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe { slot(self.context, call) };
        Some(result_from_error(failure))
    }

    /// The size of the scratch memory that the call needs, in bytes.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn workspace(&self, call: &abi::Call) -> Option<Result<u64, PluginFailure>> {
        let slot = self.table.workspace?;
        let mut size = 0;
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe { slot(self.context, call, &raw mut size) };
        Some(result_from_error(failure).map(|()| size))
    }

    /// Creates the state for a call site: packs constants, chooses an algorithm. Only operands with the flag `constant` have
    /// contents yet; they are where every operand of the kernel is, by default in device memory.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn prepare(&self, call: &abi::Call) -> Option<Result<*mut c_void, PluginFailure>> {
        let slot = self.table.prepare?;
        let mut state = std::ptr::null_mut();
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe { slot(self.context, call, &raw mut state) };
        Some(result_from_error(failure).map(|()| state))
    }

    /// Computes the outputs.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn run(&self, state: *mut c_void, call: &abi::Call) -> Result<(), PluginFailure> {
        let Some(slot) = self.table.run else { return Err(PluginFailure::empty_slot("kernel", "run")) };
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe { slot(self.context, state, call) };
        result_from_error(failure)
    }

    /// Frees a state that `prepare` created.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn release(&self, state: *mut c_void) -> Option<Result<(), PluginFailure>> {
        let slot = self.table.release?;
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe { slot(self.context, state) };
        Some(result_from_error(failure))
    }
}

// SAFETY: it is made of numbers, addresses and optional functions, for all of which zero is a value.
unsafe impl ForeignStruct for abi::KernelTable {
    const NAME: &'static str = "kernel";
    const SIZE_AT_FIRST: u32 = Self::SIZE_AT_FIRST;
    const EMPTY: Self = Self::EMPTY;
}

// SAFETY: it is made of numbers, addresses and optional functions, for all of which zero is a value.
unsafe impl ForeignStruct for abi::GraphValue {
    const NAME: &'static str = "graph_value";
    const SIZE_AT_FIRST: u32 = Self::SIZE_AT_FIRST;
    const EMPTY: Self = Self::EMPTY;
}

// SAFETY: it is made of numbers, addresses and optional functions, for all of which zero is a value.
unsafe impl ForeignStruct for abi::GraphNode {
    const NAME: &'static str = "graph_node";
    const SIZE_AT_FIRST: u32 = Self::SIZE_AT_FIRST;
    const EMPTY: Self = Self::EMPTY;
}

// SAFETY: it is made of numbers, addresses and optional functions, for all of which zero is a value.
unsafe impl ForeignStruct for abi::Graph {
    const NAME: &'static str = "graph";
    const SIZE_AT_FIRST: u32 = Self::SIZE_AT_FIRST;
    const EMPTY: Self = Self::EMPTY;
}

// SAFETY: it is made of numbers, addresses and optional functions, for all of which zero is a value.
unsafe impl ForeignStruct for abi::LayerTable {
    const NAME: &'static str = "layer";
    const SIZE_AT_FIRST: u32 = Self::SIZE_AT_FIRST;
    const EMPTY: Self = Self::EMPTY;
}

impl SlotTable for abi::LayerTable {
    fn missing_required_slot(&self) -> Option<&'static str> {
        if self.wrap.is_none() {
            return Some("wrap");
        }
        if self.unwrap.is_none() {
            return Some("unwrap");
        }
        None
    }

    fn unpaired_slots(&self) -> Option<(&'static str, &'static str)> {
        None
    }
}

/// Calls the functions of a `layer` of a plugin.
///
/// A required slot gives a result; an optional one gives `None` when the plugin left it empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayerCalls {
    /// What every function gets first.
    pub(crate) context: *mut c_void,
    /// The table as it is called.
    pub(crate) table: abi::LayerTable,
}

// SAFETY: every function of a plugin may be called on any thread (rule T-1).
unsafe impl Send for LayerCalls {}
// SAFETY: as above.
unsafe impl Sync for LayerCalls {}

impl LayerCalls {
    /// Makes a caller.
    ///
    /// # Safety
    ///
    /// Both are what one plugin handed out, and the plugin stays loaded while the caller is used.
    pub(crate) unsafe fn new(context: *mut c_void, table: abi::LayerTable) -> Self {
        Self { context, table }
    }

    /// Wraps the next table: returns a context and a table of the same kind. A layer that has no interest in this kind returns
    /// the next context and table unchanged. A slot that is empty in the next table stays empty.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn wrap(
        &self,
        kind: abi::TableKind,
        plugin: &str,
        next_context: *mut c_void,
        next_table: *mut c_void,
    ) -> Result<(*mut c_void, *mut c_void), PluginFailure> {
        let Some(slot) = self.table.wrap else { return Err(PluginFailure::empty_slot("layer", "wrap")) };
        let mut wrapped_context = std::ptr::null_mut();
        let mut wrapped_table = std::ptr::null_mut();
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe {
            slot(
                self.context,
                kind,
                abi::Str::borrowed(plugin),
                next_context,
                next_table,
                &raw mut wrapped_context,
                &raw mut wrapped_table,
            )
        };
        result_from_error(failure).map(|()| (wrapped_context, wrapped_table))
    }

    /// Frees a wrapper that the host no longer uses. Not called for a context and a table that `wrap` returned unchanged.
    ///
    /// # Safety
    ///
    /// Handles are alive and the plugin's own, addresses are what the contract says they are.
    #[inline]
    pub(crate) unsafe fn unwrap(
        &self,
        kind: abi::TableKind,
        wrapped_context: *mut c_void,
        wrapped_table: *mut c_void,
    ) -> Result<(), PluginFailure> {
        let Some(slot) = self.table.unwrap else { return Err(PluginFailure::empty_slot("layer", "unwrap")) };
        // SAFETY: the context is the plugin's own; the caller vouches for handles and addresses.
        let failure = unsafe { slot(self.context, kind, wrapped_context, wrapped_table) };
        result_from_error(failure)
    }
}
