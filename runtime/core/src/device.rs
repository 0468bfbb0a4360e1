//! Devices: which one a name means, and the state of each device in the core.

use std::fmt;
use std::sync::{Arc, OnceLock};

use oarlock_host::{DeviceAbsence, DeviceDescription, DeviceFlags, DeviceName, did_you_mean};

use crate::memory::{MemoryPool, PoolOptions};
use crate::stream::Stream;
use crate::{Error, Result};

/// The device types that `gpu` stands for; the first type with a device wins.
const GPU_TYPES: [&str; 2] = ["cuda", "rocm"];

/// The first device that matches the name. For a type without devices, `absence` explains why, if that is known.
pub(crate) fn select_device<'a>(
    name: &DeviceName,
    devices: &'a [Device],
    absence: impl FnOnce(&str) -> Option<DeviceAbsence>,
) -> Result<&'a Device> {
    let of_type = |device_type: &str| devices.iter().any(|device| device.device_type() == device_type);
    let is_gpu =
        name.names_type("gpu") && !devices.iter().any(|device| name.names_type(device.device_type()));
    let gpu = GPU_TYPES.into_iter().find(|gpu| is_gpu && of_type(gpu));
    let wanted =
        gpu.map_or_else(|| name.clone(), |gpu| DeviceName { device_type: gpu.to_owned(), id: name.id });
    let found = devices.iter().find(|device| wanted.names_device(device.device_type(), device.id()));
    found.ok_or_else(|| missing_device(name, &wanted.device_type, devices, is_gpu, absence))
}

#[cold]
fn missing_device(
    name: &DeviceName,
    device_type: &str,
    devices: &[Device],
    is_gpu: bool,
    absence: impl FnOnce(&str) -> Option<DeviceAbsence>,
) -> Error {
    let all: Vec<String> = devices.iter().map(|device| format!("`{device}`")).collect();
    let all = all.join(", ");
    let listed = "`oarlock devices` lists the devices, and `oarlock doctor` explains why one is missing";
    if is_gpu && !GPU_TYPES.contains(&device_type) {
        let gpus = GPU_TYPES.join("` or `");
        let message = format!(
            "expected a device of the type `{gpus}`, which is what `gpu` means, found `{name}`; devices here: {all}"
        );
        return Error::not_found(message)
            .with_advice(absence(GPU_TYPES[0]).map_or(listed.to_owned(), |why| why.hint));
    }
    let same = devices.iter().find(|device| device.device_type().eq_ignore_ascii_case(device_type));
    if let Some(device_type) = same.map(Device::device_type) {
        let message =
            format!("expected the number of a `{device_type}` device, found `{name}`; devices here: {all}");
        return Error::not_found(message).with_advice(listed);
    }
    // Short names differ in one letter because the devices do: `cpu` and `npu`.
    let candidates = devices.iter().map(Device::device_type).filter(|known| known.len() > 4);
    let nearest = did_you_mean(device_type, candidates);
    let message = format!("expected an available device ({all}), found `{name}`");
    match absence(device_type) {
        Some(DeviceAbsence { reason, hint }) => {
            Error::not_found(format!("{message}, {reason}")).with_advice(hint)
        }
        None => Error::not_found(format!("{message}{nearest}")).with_advice(
            "`oarlock devices` lists the devices, and `oarlock doctor` reports on the plugins that provide them",
        ),
    }
}

/// A device, with its memory pool and its default stream.
#[derive(Clone)]
pub struct Device(Arc<DeviceBody>);

struct DeviceBody {
    device: oarlock_host::PluginDevice,
    name: String,
    flags: DeviceFlags,
    description: DeviceDescription,
    options: PoolOptions,
    pool: OnceLock<Arc<MemoryPool>>,
    stream: OnceLock<Stream>,
    /// True if no kernel returns before its work is done. Then the device's own queue is the fastest stream.
    runs_at_once: bool,
}

impl Device {
    pub(crate) fn new(
        device: oarlock_host::PluginDevice,
        options: PoolOptions,
        runs_at_once: bool,
    ) -> Result<Self> {
        let description = device.describe_at_start()?;
        Ok(Self(Arc::new(DeviceBody {
            name: device.to_string(),
            flags: description.flags,
            description,
            device,
            options,
            pool: OnceLock::new(),
            stream: OnceLock::new(),
            runs_at_once,
        })))
    }

    /// The name of the type, such as `cuda`.
    pub fn device_type(&self) -> &str {
        self.0.device.device_type()
    }

    /// The number of the device among those of its type.
    pub fn id(&self) -> u32 {
        self.0.device.id()
    }

    /// Type and number, such as `cuda:1`.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The plugin's description of the hardware.
    pub fn description(&self) -> &DeviceDescription {
        &self.0.description
    }

    /// The host's handle to the device.
    pub fn host_device(&self) -> &oarlock_host::PluginDevice {
        &self.0.device
    }

    /// True if the host can use the device's memory through ordinary pointers.
    pub fn shares_host_memory(&self) -> bool {
        let both = DeviceFlags::HOST_ADDRESSABLE | DeviceFlags::SHARES_HOST_MEMORY;
        self.0.flags.contains(both)
    }

    /// The memory pool, created on first use.
    #[inline]
    pub fn memory_pool(&self) -> Result<&Arc<MemoryPool>> {
        if let Some(pool) = self.0.pool.get() {
            return Ok(pool);
        }
        let pool = MemoryPool::new(self.0.device.clone(), self.0.options)?;
        Ok(self.0.pool.get_or_init(|| pool))
    }

    /// The stream on which ops run by default, created on first use.
    #[inline]
    pub fn default_stream(&self) -> Result<&Stream> {
        if let Some(stream) = self.0.stream.get() {
            return Ok(stream);
        }
        let stream = if self.0.runs_at_once {
            self.memory_pool()?.streams().immediate_stream().clone()
        } else {
            self.create_stream(0)?
        };
        Ok(self.0.stream.get_or_init(|| stream))
    }

    /// Creates a stream. Streams with a smaller priority number are served first, if the device supports that.
    pub fn create_stream(&self, priority: i32) -> Result<Stream> {
        self.memory_pool()?.streams().create_stream(priority)
    }

    /// Waits for all work on the device.
    pub fn synchronize(&self) -> Result<()> {
        self.memory_pool()?.streams().synchronize().map_err(|error| error.with_device(self))
    }

    /// True if both handles refer to one device.
    #[inline]
    pub fn is_same_device(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.name)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.0.name)
    }
}
