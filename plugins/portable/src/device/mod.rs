//! The devices of a plugin: every slot of the profiles `core` and `async`, on top of a driver.
//!
//! What the host makes is kept in tables by its handle. So a handle that is wrong, or is given back twice, is an error here
//! and never reaches a driver, and what the host forgets is given back with the device.

mod asynchronous;
mod blocks;
mod callbacks;
mod copies;
mod core;
mod faults;
mod handle_table;
mod session;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use oarlock_sdk::{HostServices, PluginError, Result, Version};

pub use self::callbacks::StreamCallback;
pub use self::session::DeviceSession;

use self::callbacks::CallbackThread;
use crate::gpu::{DeviceProperties, Gpu};
use crate::program_store::ProgramStore;

/// What a driver found.
pub struct DiscoveredGpus<G: Gpu> {
    /// The devices, at least one.
    pub devices: Vec<GpuDevice<G>>,
    /// The version of the vendor's runtime library.
    pub runtime: Version,
    /// The version of the driver.
    pub driver: Version,
}

/// One device: what it is, and what it has while it is in use.
pub struct GpuDevice<G: Gpu> {
    facts: DeviceProperties,
    idle: G::DetectedDevice,
    session: RwLock<Option<Arc<DeviceSession<G>>>>,
}

impl<G: Gpu> GpuDevice<G> {
    /// A device that is not in use.
    pub fn new(facts: DeviceProperties, idle: G::DetectedDevice) -> Self {
        Self { facts, idle, session: RwLock::default() }
    }

    /// What the device has while it is in use. The first call readies it, which takes memory of the device.
    fn open_session(&self) -> Result<Arc<DeviceSession<G>>> {
        if let Some(session) = &*self.session.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(Arc::clone(session));
        }
        let mut session = self.session.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = &*session {
            return Ok(Arc::clone(session));
        }
        Ok(Arc::clone(session.insert(Arc::new(DeviceSession::open_session(&self.idle)?))))
    }

    /// Ends the use of the device, after what is under way.
    fn close_session(&self) -> Result<()> {
        let session = self.session.write().unwrap_or_else(PoisonError::into_inner).take();
        session.map_or(Ok(()), |session| session.drain_queues())
    }
}

/// All devices of a plugin: nothing until the host initialises it.
pub struct GpuDevices<G: Gpu> {
    host: HostServices,
    found: OnceLock<DiscoveredGpus<G>>,
    store: ProgramStore,
    callbacks: CallbackThread,
    last_handle: AtomicU64,
}

impl<G: Gpu> GpuDevices<G> {
    /// The devices that the driver will find, and a place on disk for their programs.
    pub fn new(host: &HostServices, store: ProgramStore) -> Self {
        Self {
            host: *host,
            found: OnceLock::new(),
            store,
            callbacks: CallbackThread::default(),
            last_handle: AtomicU64::new(0),
        }
    }

    /// Finds the devices. Doing so again changes nothing: drivers list the same ones as long as a process lives.
    fn discover_devices(&self) -> Result<()> {
        if self.found.get().is_none() {
            let found = G::find_devices(&self.host)?;
            // Whoever was first has found the same.
            let _ = self.found.set(found);
        }
        Ok(())
    }

    fn discovered_devices(&self) -> Result<&DiscoveredGpus<G>> {
        self.found.get().ok_or_else(|| {
            PluginError::precondition_not_met("expected `initialize` to come first, found it not called")
        })
    }

    /// A device of a call. Ids are indices of the list.
    fn find_device(&self, id: u32) -> Result<&GpuDevice<G>> {
        let devices = &self.discovered_devices()?.devices;
        devices.get(id as usize).ok_or_else(|| {
            let count = devices.len();
            PluginError::not_found(format!("expected one of {count} devices, counted from 0, found {id}"))
                .with_rule("D-2")
        })
    }

    /// What is known of a device.
    pub(crate) fn device_properties(&self, device: u32) -> Result<&DeviceProperties> {
        Ok(&self.find_device(device)?.facts)
    }

    /// What a device of a call has while it is in use.
    pub fn device_session(&self, device: u32) -> Result<Arc<DeviceSession<G>>> {
        self.find_device(device)?.open_session()
    }

    pub(crate) fn program_store(&self) -> &ProgramStore {
        &self.store
    }

    /// A number for a block, stream or event, that no other has had.
    fn new_handle(&self) -> u64 {
        self.last_handle.fetch_add(1, Ordering::Relaxed) + 1
    }
}
