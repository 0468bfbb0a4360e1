//! The plugin's state: nothing until the host initialises it, then the devices.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use oarlock_portable::{Programs, Store};
use oarlock_sdk::{Error, Host, Result};

use crate::callbacks::Callbacks;
use crate::device::Device;
use crate::find::{Found, find};
use crate::program::Program;
use crate::session::Session;

/// The CUDA driver of the machine.
pub(crate) struct Cuda {
    pub(crate) host: Host,
    found: OnceLock<Found>,
    pub(crate) programs: Programs<Program>,
    pub(crate) callbacks: Callbacks,
    last_handle: AtomicU64,
}

impl Cuda {
    pub(crate) fn new(host: &Host) -> Self {
        Self {
            host: *host,
            found: OnceLock::new(),
            programs: Programs::new(Store::of_the_user()),
            callbacks: Callbacks::default(),
            last_handle: AtomicU64::new(0),
        }
    }

    /// Finds the devices. Doing so again changes nothing: the driver lists the same ones as long as a process lives.
    pub(crate) fn open(&self) -> Result<()> {
        if self.found.get().is_none() {
            let found = find()?;
            // Whoever was first has found the same.
            let _ = self.found.set(found);
        }
        Ok(())
    }

    pub(crate) fn found(&self) -> Result<&Found> {
        self.found.get().ok_or_else(|| {
            Error::precondition_not_met("expected `initialize` to come first, found it not called")
        })
    }

    /// A device of a call. Ids are indices of the list.
    pub(crate) fn device(&self, id: u32) -> Result<&Device> {
        let devices = &self.found()?.devices;
        devices.get(id as usize).ok_or_else(|| {
            let count = devices.len();
            Error::not_found(format!("expected one of {count} devices, counted from 0, found {id}"))
                .rule("D-2")
        })
    }

    /// What a device of a call has.
    pub(crate) fn session(&self, device: u32) -> Result<Arc<Session>> {
        self.device(device)?.session()
    }

    /// A number for a stream or event, that no other has had.
    pub(crate) fn new_handle(&self) -> u64 {
        self.last_handle.fetch_add(1, Ordering::Relaxed) + 1
    }
}
