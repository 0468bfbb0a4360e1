//! A device of a loaded plugin, and its memory, streams and events.
//!
//! Everything here is safe: a handle keeps its plugin loaded and is freed once, on its own device, and ranges are checked
//! before they cross the boundary. If a plugin leaves an optional slot empty, this module applies the documented
//! default, so callers need not care.

#![expect(unsafe_code, reason = "handles are passed to slots that trust them")]

pub(crate) mod kernel;
pub(crate) mod memory;
pub(crate) mod pinned;
pub(crate) mod stream;

use std::fmt;
use std::sync::Arc;

use oarlock_abi as abi;
pub use oarlock_abi::DeviceFlags;

use crate::generated::CoreCalls;
use crate::load::checked_text::checked_text;
use crate::services::errors::{Code, PluginFailure};
use crate::{DeviceBlock, LoadedPlugin, PinnedHostMemory, PluginEvent, PluginPhase, PluginStream};

/// Limit on each text in a device description.
const MAX_TEXT_BYTES: u64 = 1024;

/// A handle to one device. Cheap to clone; it keeps the plugin loaded.
#[derive(Clone, Debug)]
pub struct PluginDevice {
    plugin: Arc<LoadedPlugin>,
    core: CoreCalls,
    id: u32,
}

/// The description of a device for users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceDescription {
    /// The product name.
    pub name: String,
    /// The name of the vendor.
    pub vendor: String,
    /// The bus address such as `0000:3b:00.0`, or empty.
    pub bus_id: String,
    /// Capabilities, such as memory that the host can address.
    pub flags: DeviceFlags,
    /// The number of cores or multiprocessors, if known.
    pub compute_units: Option<u32>,
    /// The alignment that kernels require of operands, in bytes.
    pub memory_alignment: u32,
}

/// The size of a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct MemoryStats {
    /// All memory, in bytes.
    pub total: u64,
    /// The memory that is free now, in bytes.
    pub free: u64,
}

/// Parameters for a pool that allocates memory of the device. All sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySizes {
    /// The smallest allocation; sizes are multiples of it.
    pub min_chunk: u64,
    /// Larger requests bypass the pool.
    pub max_chunk: u64,
    /// The largest size that one allocation may have.
    pub max_alloc: u64,
    /// Bytes to add to every request.
    pub extra_padding: u64,
    /// The size of the first chunk that a pool allocates.
    pub init_alloc: u64,
    /// The size of all further chunks.
    pub realloc: u64,
}

impl PluginDevice {
    /// The device with this id, if the plugin has one and it is visible.
    pub fn from_plugin(plugin: &Arc<LoadedPlugin>, id: u32) -> Option<Self> {
        let core = plugin.table_calls().core.filter(|_| plugin.device_ids().contains(&id))?;
        Some(Self { plugin: plugin.clone(), core, id })
    }

    /// The plugin that drives the device.
    pub fn plugin(&self) -> &Arc<LoadedPlugin> {
        &self.plugin
    }

    /// The number of the device within its plugin. The numbers need not be consecutive.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The name that users type for devices of this kind, such as `cuda`.
    pub fn device_type(&self) -> &str {
        self.plugin.info().device_type.as_deref().unwrap_or_default()
    }

    pub(crate) fn core_calls(&self) -> &CoreCalls {
        &self.core
    }

    /// Waits until all work on the device is done.
    pub fn synchronize(&self) -> Result<(), PluginFailure> {
        self.core.device_synchronize(self.id)
    }

    /// Queries the description. If the plugin leaves the slot empty, it contains only the device type, as the name.
    pub fn describe_device(&self) -> Result<DeviceDescription, PluginFailure> {
        let info = self.core.device_info(self.id).transpose()?.unwrap_or(abi::DeviceInfo {
            name: abi::Str::borrowed(self.device_type()),
            ..abi::DeviceInfo::EMPTY
        });
        let own = |value: abi::Str, what| {
            // SAFETY: the text is the device type, or one that the plugin keeps until it is unloaded (rule S-6).
            unsafe { checked_text(value, what, MAX_TEXT_BYTES) }.map_err(|breach| {
                let message = format!("expected {}, found {}", breach.expected, breach.found);
                PluginFailure::new(&self.plugin.info().name, Code::FATAL, message).with_rule(breach.rule)
            })
        };
        let name = own(info.name, "name of a device")?;
        Ok(DeviceDescription {
            name: if name.is_empty() { self.device_type().to_owned() } else { name },
            vendor: own(info.vendor, "vendor of a device")?,
            bus_id: own(info.bus_id, "bus id of a device")?,
            flags: info.bits,
            compute_units: (info.compute_units != 0).then_some(info.compute_units),
            memory_alignment: info.memory_alignment.max(1),
        })
    }

    /// As [`Self::describe_device`], told to the observer of the host: for the start of a program.
    pub fn describe_at_start(&self) -> Result<DeviceDescription, PluginFailure> {
        let _describing = self.plugin.begin_phase(PluginPhase::Describe);
        self.describe_device()
    }

    /// The compute capability of the chip, such as 9.0.
    pub fn compute_capability(&self) -> Result<abi::Version, PluginFailure> {
        self.core.compute_capability(self.id)
    }

    /// Total and free memory. Other processes change the latter at any time.
    pub fn memory_stats(&self) -> Result<MemoryStats, PluginFailure> {
        let (total, free) = self.core.memory_stats(self.id)?;
        Ok(MemoryStats { total, free })
    }

    /// The parameters for a pool. Those that the plugin leaves out are derived from the others.
    pub fn memory_sizes(&self) -> Result<MemorySizes, PluginFailure> {
        let (core, id) = (&self.core, self.id);
        let max_alloc = match core.max_alloc_size(id).transpose()? {
            Some(size) => size,
            None => self.memory_stats()?.free,
        };
        Ok(MemorySizes {
            min_chunk: core.min_chunk_size(id)?.max(1),
            max_chunk: core.max_chunk_size(id).transpose()?.unwrap_or(max_alloc),
            max_alloc,
            extra_padding: core.extra_padding_size(id).transpose()?.unwrap_or(0),
            init_alloc: core.init_alloc_size(id).transpose()?.unwrap_or(max_alloc),
            realloc: core.realloc_size(id).transpose()?.unwrap_or(max_alloc),
        })
    }

    /// Allocates device memory.
    pub fn allocate(&self, size: u64) -> Result<DeviceBlock, PluginFailure> {
        DeviceBlock::allocate(self, size)
    }

    /// Allocates pinned host memory, or ordinary memory if the device offers none.
    pub fn allocate_pinned(&self, size: usize) -> Result<PinnedHostMemory, PluginFailure> {
        PinnedHostMemory::allocate(self, size)
    }

    /// Creates a stream. On a device without streams, it is the device's own queue, in which calls finish before they return.
    pub fn create_stream(&self, priority: i32) -> Result<PluginStream, PluginFailure> {
        PluginStream::create_on(self, priority)
    }

    /// Creates an event. On a device without events, it has always happened.
    pub fn create_event(&self) -> Result<PluginEvent, PluginFailure> {
        PluginEvent::create_on(self)
    }

    /// A failure caused by the user of the device, not by the plugin.
    pub(crate) fn caller_failure(
        &self,
        expected: impl fmt::Display,
        found: impl fmt::Display,
        rule: &str,
    ) -> PluginFailure {
        let message = format!("expected {expected}, found {found}");
        PluginFailure::new(&self.to_string(), Code::INVALID_ARGUMENT, message).with_rule(rule)
    }

    /// True if both handles refer to the same device.
    pub(crate) fn is_same_device(&self, other: &Self) -> bool {
        self.id == other.id && Arc::ptr_eq(&self.plugin, &other.plugin)
    }
}

impl fmt::Display for PluginDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.device_type(), self.id)
    }
}
