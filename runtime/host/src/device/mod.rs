//! A device of a loaded plugin, and what is taken of it.
//!
//! Everything here is safe: a handle keeps its plugin loaded, is given back once, on the device it was taken of, and
//! ranges are checked before they cross the boundary. Where a plugin leaves an optional slot empty, the documented
//! default happens here, so that nobody above has to ask.

#![expect(unsafe_code, reason = "handles are passed to slots that trust them")]

pub(crate) mod kernel;
pub(crate) mod live_handles;
pub(crate) mod memory;
pub(crate) mod pinned;
pub(crate) mod stream;

use std::fmt;
use std::sync::Arc;

use oarlock_abi as abi;
pub use oarlock_abi::DeviceFlags;

use crate::generated::CoreCalls;
use crate::load::validate::checked_text;
use crate::services::errors::{Code, PluginFailure};
use crate::{DeviceBlock, LoadedPlugin, PinnedHostMemory, PluginEvent, PluginStream};

/// The longest text a plugin says about a device.
const MAX_TEXT_BYTES: u64 = 1024;

/// One device.
#[derive(Clone, Debug)]
pub struct PluginDevice {
    plugin: Arc<LoadedPlugin>,
    core: CoreCalls,
    id: u32,
}

/// A device as people know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceDescription {
    /// The product name.
    pub name: String,
    /// Who made it.
    pub vendor: String,
    /// The place on the bus, or empty.
    pub bus_id: String,
    /// What it can do.
    pub flags: DeviceFlags,
    /// Cores or multiprocessors, when known.
    pub compute_units: Option<u32>,
    /// Required alignment of memory that kernels touch, in bytes.
    pub memory_alignment: u32,
}

/// How much memory a device has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct MemoryStats {
    /// All of it, in bytes.
    pub total: u64,
    /// What is free now.
    pub free: u64,
}

/// How the host's pool should take memory of a device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySizes {
    /// The smallest block and the alignment.
    pub min_chunk: u64,
    /// Requests above this go straight to the device.
    pub max_chunk: u64,
    /// The largest allocation.
    pub max_alloc: u64,
    /// What every request needs on top.
    pub extra_padding: u64,
    /// The first block to take.
    pub init_alloc: u64,
    /// The further blocks to take.
    pub realloc: u64,
}

impl PluginDevice {
    /// The device of a plugin with this id, if it has one that is shown.
    pub fn from_plugin(plugin: &Arc<LoadedPlugin>, id: u32) -> Option<Self> {
        let core = plugin.table_calls().core.filter(|_| plugin.device_ids().contains(&id))?;
        Some(Self { plugin: plugin.clone(), core, id })
    }

    /// The plugin that drives it.
    pub fn plugin(&self) -> &Arc<LoadedPlugin> {
        &self.plugin
    }

    /// The number of the device within its plugin.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The name that users type for devices of this kind.
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

    /// What it is. Without the slot, it has the device type as its name and nothing else is known.
    pub fn describe_device(&self) -> Result<DeviceDescription, PluginFailure> {
        let info = self.core.device_info(self.id).transpose()?.unwrap_or(abi::DeviceInfo {
            name: abi::Str::borrowed(self.device_type()),
            ..abi::DeviceInfo::EMPTY
        });
        let own = |value: abi::Str, what| {
            // SAFETY: the text is the device type or one the plugin keeps until it is unloaded (rule S-6).
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

    /// The compute capability of the chip.
    pub fn compute_capability(&self) -> Result<abi::Version, PluginFailure> {
        self.core.compute_capability(self.id)
    }

    /// How much memory it has.
    pub fn memory_stats(&self) -> Result<MemoryStats, PluginFailure> {
        let (total, free) = self.core.memory_stats(self.id)?;
        Ok(MemoryStats { total, free })
    }

    /// How its memory should be taken. What the plugin does not say follows from what it says.
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

    /// Takes memory.
    pub fn allocate(&self, size: u64) -> Result<DeviceBlock, PluginFailure> {
        DeviceBlock::allocate(self, size)
    }

    /// Takes page-locked memory of the host; ordinary memory where the device offers none.
    pub fn allocate_pinned(&self, size: usize) -> Result<PinnedHostMemory, PluginFailure> {
        PinnedHostMemory::allocate(self, size)
    }

    /// Makes a stream. On a device without streams it stands for the device's own queue, in which everything is done
    /// at once.
    pub fn create_stream(&self, priority: i32) -> Result<PluginStream, PluginFailure> {
        PluginStream::create_on(self, priority)
    }

    /// Makes an event. On a device without streams it has always happened.
    pub fn create_event(&self) -> Result<PluginEvent, PluginFailure> {
        PluginEvent::create_on(self)
    }

    /// A failure of the caller of this device.
    pub(crate) fn caller_failure(
        &self,
        expected: impl fmt::Display,
        found: impl fmt::Display,
        rule: &str,
    ) -> PluginFailure {
        let message = format!("expected {expected}, found {found}");
        PluginFailure::new(&self.to_string(), Code::INVALID_ARGUMENT, message).with_rule(rule)
    }

    /// Whether two handles mean one device.
    pub(crate) fn is_same_device(&self, other: &Self) -> bool {
        self.id == other.id && Arc::ptr_eq(&self.plugin, &other.plugin)
    }
}

impl fmt::Display for PluginDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.device_type(), self.id)
    }
}
