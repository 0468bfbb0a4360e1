//! A custom device as a device of the contract: its functions, its initialized devices, and its streams and events.

#![expect(unsafe_code, reason = "functions of the custom device are called")]

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use oarlock_sdk::{HostServices, LogLevel, MemoryRange, PluginError, Result, Stream};

use crate::current_device::{CurrentDevice, CurrentDeviceGuard};
use crate::foreign_entry::ForeignRuntime;
use crate::foreign_functions::{DeviceAddress, EventAddress, ForeignFunctions, StreamAddress};
use crate::handle_table::HandleTable;
use crate::printed_output::with_prints_on_stderr;
use crate::status_report::{StatusNumber, WARNING, check_status};

/// The number of a device as a custom device knows it. Its address is passed to all functions and stays the same, because a
/// custom device may keep it.
struct DeviceNumber(UnsafeCell<c_int>);

// SAFETY: the number is written by `init_device` alone, before another thread gets to see the device.
unsafe impl Send for DeviceNumber {}
// SAFETY: as above.
unsafe impl Sync for DeviceNumber {}

/// A device that was initialized.
struct ForeignDevice {
    number: Box<DeviceNumber>,
    /// The number after `init_device`, which may replace it.
    physical: c_int,
}

/// An address of the custom device's own, which it alone reads.
pub(crate) struct ForeignAddress(*mut c_void);

// SAFETY: the address is only passed back to the custom device, whose functions may be called on any thread.
unsafe impl Send for ForeignAddress {}
// SAFETY: as above.
unsafe impl Sync for ForeignAddress {}

/// A stream of a custom device.
pub(crate) struct ForeignStream {
    device: u32,
    address: ForeignAddress,
}

/// An event of a custom device.
pub(crate) struct ForeignEvent {
    device: u32,
    address: ForeignAddress,
    /// False until it is recorded for the first time: until then it counts as happened, whatever the custom device says.
    pub(crate) is_recorded: AtomicBool,
}

impl ForeignStream {
    pub(crate) fn new(device: u32, address: StreamAddress) -> Self {
        Self { device, address: ForeignAddress(address) }
    }

    pub(crate) fn address(&self) -> StreamAddress {
        self.address.0
    }
}

impl ForeignEvent {
    pub(crate) fn new(device: u32, address: EventAddress) -> Self {
        Self { device, address: ForeignAddress(address), is_recorded: AtomicBool::new(false) }
    }

    pub(crate) fn address(&self) -> EventAddress {
        self.address.0
    }
}

/// The number of a device that is current as long as this lives, for a call.
pub(crate) struct CalledDevice<'a> {
    pub(crate) address: DeviceAddress,
    pub(crate) turn: CurrentDeviceGuard<'a>,
}

/// A custom device, shared with threads that wait for its streams.
pub(crate) struct AdaptedRuntime {
    pub(crate) functions: ForeignFunctions,
    pub(crate) device_type: String,
    host: HostServices,
    current: CurrentDevice,
    devices: RwLock<BTreeMap<u32, ForeignDevice>>,
    streams: HandleTable<ForeignStream>,
    events: HandleTable<ForeignEvent>,
    /// The functions that returned a warning; each is logged once.
    warned: Mutex<BTreeSet<&'static str>>,
}

/// A custom device as the SDK wants it.
pub(crate) struct DeviceAdapter(pub(crate) Arc<AdaptedRuntime>);

impl DeviceAdapter {
    pub(crate) fn new(runtime: ForeignRuntime, host: HostServices) -> Self {
        let ForeignRuntime { device_type, functions, .. } = runtime;
        Self(Arc::new(AdaptedRuntime {
            functions,
            device_type,
            host,
            current: CurrentDevice::new(),
            devices: RwLock::default(),
            streams: HandleTable::new("a stream"),
            events: HandleTable::new("an event"),
            warned: Mutex::default(),
        }))
    }
}

impl AdaptedRuntime {
    pub(crate) fn host(&self) -> &HostServices {
        &self.host
    }

    /// Turns the status of a function into an error, and logs a warning once.
    #[track_caller]
    pub(crate) fn check(
        &self,
        status: StatusNumber,
        function: &'static str,
        device: Option<u32>,
    ) -> Result<()> {
        if status == WARNING && self.warned.lock().unwrap_or_else(PoisonError::into_inner).insert(function) {
            let message = format!("`{function}` of `{}` works, but not quite as asked", self.device_type);
            self.host.log(LogLevel::WARNING, &message);
        }
        check_status(status, function, device, function.ends_with("_allocate"))
    }

    /// Makes a device current for a call.
    pub(crate) fn enter_device(&self, id: u32) -> Result<CalledDevice<'_>> {
        let (address, physical) = {
            let devices = self.devices.read().unwrap_or_else(PoisonError::into_inner);
            let device = devices.get(&id).ok_or_else(|| self.unknown_device(id))?;
            (device.number.0.get(), device.physical)
        };
        let turn = self.current.make_current(&self.functions, physical)?;
        Ok(CalledDevice { address, turn })
    }

    fn unknown_device(&self, id: u32) -> PluginError {
        PluginError::not_found(format!(
            "expected a device of `{}` that was initialized, found device {id}",
            self.device_type
        ))
    }

    /// Initializes a device, which the custom device may give another number.
    pub(crate) fn add_device(&self, id: u32, known: &[u32]) -> Result<()> {
        if !known.contains(&id) {
            return Err(self.unknown_device(id));
        }
        let first = c_int::try_from(id).map_err(|_| self.unknown_device(id))?;
        let number = Box::new(DeviceNumber(UnsafeCell::new(first)));
        if let Some(init) = self.functions.init_device {
            let address = number.0.get();
            // SAFETY: the number lives as long as the device; nobody else knows it yet.
            let status = with_prints_on_stderr(|| unsafe { init(address) });
            self.current.forget_current();
            self.check(status, "init_device", Some(id))?;
        }
        // SAFETY: the custom device has written the number, and nobody else knows it yet.
        let physical = unsafe { number.0.get().read() };
        let mut devices = self.devices.write().unwrap_or_else(PoisonError::into_inner);
        devices.insert(id, ForeignDevice { number, physical });
        let mut numbers = devices.values().map(|device| device.physical);
        if let (Some(one), Some(other)) = (numbers.next(), numbers.next()) {
            self.current.find_scope(&self.functions, [one, other]);
        }
        Ok(())
    }

    /// Frees the resources of a device.
    pub(crate) fn remove_device(&self, id: u32) -> Result<()> {
        let ended = match self.functions.deinit_device {
            Some(deinit) => {
                let device = self.enter_device(id)?;
                // SAFETY: the device is initialized, and the host uses it no longer.
                self.check(unsafe { deinit(device.address) }, "deinit_device", Some(id))
            }
            None => Ok(()),
        };
        self.current.forget_current();
        let removed = self.devices.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
        // A custom device may keep the address of the number.
        std::mem::forget(removed.map(|device| device.number));
        ended
    }

    pub(crate) fn add_stream(&self, stream: ForeignStream) -> Stream {
        Stream(self.streams.insert(stream))
    }

    /// A stream of a device; `None` is the device's synchronous queue.
    pub(crate) fn stream(&self, device: u32, queue: Stream) -> Result<Option<Arc<ForeignStream>>> {
        if queue == Stream(0) {
            return Ok(None);
        }
        let stream = self.streams.get(queue.0)?;
        self.check_owner("a stream", stream.device, device)?;
        Ok(Some(stream))
    }

    pub(crate) fn take_stream(&self, device: u32, queue: Stream) -> Result<Arc<ForeignStream>> {
        self.check_owner("a stream", self.streams.get(queue.0)?.device, device)?;
        self.streams.remove(queue.0)
    }

    pub(crate) fn add_event(&self, event: ForeignEvent) -> u64 {
        self.events.insert(event)
    }

    pub(crate) fn event(&self, device: u32, point: u64) -> Result<Arc<ForeignEvent>> {
        let event = self.events.get(point)?;
        self.check_owner("an event", event.device, device)?;
        Ok(event)
    }

    pub(crate) fn take_event(&self, device: u32, point: u64) -> Result<Arc<ForeignEvent>> {
        self.event(device, point)?;
        self.events.remove(point)
    }

    fn check_owner(&self, what: &str, owner: u32, device: u32) -> Result<()> {
        if owner == device {
            return Ok(());
        }
        let message = format!("expected {what} of device {device}, found one of device {owner}");
        Err(PluginError::invalid_argument(message).with_rule("A-3"))
    }
}

/// The address of a range. A block is an address in the custom device's memory, with which addition works: the framework that
/// the interface is from divides blocks in the same way.
pub(crate) fn range_address(range: MemoryRange) -> *mut c_void {
    core::ptr::without_provenance_mut::<u8>((range.memory.0 as usize).wrapping_add(range.offset as usize))
        .cast()
}

/// A size as the interface counts it.
pub(crate) fn byte_count(size: u64) -> Result<usize> {
    usize::try_from(size).map_err(|_| {
        PluginError::out_of_range(format!("expected a size that fits into memory, found {size}"))
    })
}
