//! The plugin's state: nothing until the host initialises it, then the devices.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use oarlock_portable::{Programs, Store};
use oarlock_sdk::{Error, Host, Result, Stream};

use crate::callbacks::Callbacks;
use crate::device::Device;
use crate::find;
use crate::program::Program;
use crate::queue::Queue;

/// The OpenCL drivers of the machine.
pub(crate) struct OpenCl {
    pub(crate) host: Host,
    devices: OnceLock<Vec<Device>>,
    pub(crate) programs: Programs<Program>,
    pub(crate) callbacks: Callbacks,
    last_handle: AtomicU64,
}

impl OpenCl {
    pub(crate) fn new(host: &Host) -> Self {
        Self {
            host: *host,
            devices: OnceLock::new(),
            programs: Programs::new(Store::of_the_user()),
            callbacks: Callbacks::default(),
            last_handle: AtomicU64::new(0),
        }
    }

    /// Finds the devices. Doing so again changes nothing: drivers list the same ones as long as a process lives.
    pub(crate) fn open(&self) -> Result<()> {
        if self.devices.get().is_none() {
            let devices = find::devices(&self.host)?;
            // Whoever was first has found the same.
            let _ = self.devices.set(devices);
        }
        Ok(())
    }

    pub(crate) fn devices(&self) -> Result<&[Device]> {
        self.devices.get().map(Vec::as_slice).ok_or_else(|| {
            Error::precondition_not_met("expected `initialize` to come first, found it not called")
        })
    }

    /// A device of a call. Ids are indices of the list.
    pub(crate) fn device(&self, id: u32) -> Result<&Device> {
        let devices = self.devices()?;
        devices.get(id as usize).ok_or_else(|| {
            let count = devices.len();
            Error::not_found(format!("expected one of {count} devices, counted from 0, found {id}"))
                .rule("D-2")
        })
    }

    /// A device and one of its streams.
    pub(crate) fn queue(&self, device: u32, stream: Stream) -> Result<(&Device, std::sync::Arc<Queue>)> {
        let device = self.device(device)?;
        Ok((device, device.queue(stream)?))
    }

    /// A number for a block, stream or event, that no other has had.
    pub(crate) fn new_handle(&self) -> u64 {
        self.last_handle.fetch_add(1, Ordering::Relaxed) + 1
    }
}
