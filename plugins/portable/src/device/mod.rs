//! The devices of a plugin: every slot of the profiles `core` and `async`, on top of a driver.
//!
//! Everything the host creates is kept in a table by its handle. A wrong handle, or one freed twice, is an error here and never
//! reaches a driver; what the host forgets to free is freed with the device.

mod asynchronous;
mod blocks;
mod copies;
mod core;
mod fault_reports;
mod fault_words;
mod handle_table;
mod session;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use oarlock_sdk::{HostServices, PluginError, Result, Version};

pub use self::session::DeviceSession;

use crate::callbacks::CallbackThread;
use crate::gpu::{DetectedGpu, DeviceProperties, DiscoveredGpus, Gpu};
use crate::program_store::ProgramStore;

/// The devices of a driver, as the host addresses them.
struct OpenedGpus<G: Gpu> {
    devices: Vec<GpuDevice<G>>,
    runtime: Version,
    driver: Version,
}

/// One device: its properties, and its session while it is in use.
struct GpuDevice<G: Gpu> {
    found: DetectedGpu<G>,
    session: RwLock<Option<Arc<DeviceSession<G>>>>,
}

impl<G: Gpu> GpuDevice<G> {
    /// The session of the device. The first call opens the device, which allocates device memory.
    fn open_session(&self) -> Result<Arc<DeviceSession<G>>> {
        if let Some(session) = &*self.session.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(Arc::clone(session));
        }
        let mut session = self.session.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = &*session {
            return Ok(Arc::clone(session));
        }
        Ok(Arc::clone(session.insert(Arc::new(DeviceSession::open_session(&self.found.detected)?))))
    }

    /// Drains the queues, then drops the session.
    fn close_session(&self) -> Result<()> {
        let session = self.session.write().unwrap_or_else(PoisonError::into_inner).take();
        session.map_or(Ok(()), |session| session.drain_queues())
    }
}

/// All devices of a plugin. The list is empty until the host initializes the plugin.
pub struct GpuDevices<G: Gpu> {
    host: HostServices,
    found: OnceLock<OpenedGpus<G>>,
    store: ProgramStore,
    callbacks: CallbackThread,
    last_handle: AtomicU64,
}

impl<G: Gpu> GpuDevices<G> {
    /// Creates the empty list. `store` keeps compiled programs on disk.
    pub fn new(host: &HostServices, store: ProgramStore) -> Self {
        Self {
            host: *host,
            found: OnceLock::new(),
            store,
            callbacks: CallbackThread::default(),
            last_handle: AtomicU64::new(0),
        }
    }

    /// Finds the devices. Calling it again changes nothing: a driver lists the same devices for the life of the process.
    fn discover_devices(&self) -> Result<()> {
        if self.found.get().is_none() {
            let DiscoveredGpus { devices, runtime, driver } = G::find_devices(&self.host)?;
            let devices = devices.into_iter().map(|found| GpuDevice { found, session: RwLock::default() });
            // A thread that was faster has found the same devices.
            let _ = self.found.set(OpenedGpus { devices: devices.collect(), runtime, driver });
        }
        Ok(())
    }

    fn discovered_devices(&self) -> Result<&OpenedGpus<G>> {
        self.found.get().ok_or_else(|| {
            PluginError::precondition_not_met("expected `initialize` to come first, found it not called")
        })
    }

    /// Looks up a device by id; ids are indices into the list.
    fn find_device(&self, id: u32) -> Result<&GpuDevice<G>> {
        let devices = &self.discovered_devices()?.devices;
        devices.get(id as usize).ok_or_else(|| {
            let count = devices.len();
            PluginError::not_found(format!("expected one of {count} devices, counted from 0, found {id}"))
                .with_rule("D-2")
        })
    }

    pub(crate) fn device_properties(&self, device: u32) -> Result<&DeviceProperties> {
        Ok(&self.find_device(device)?.found.properties)
    }

    /// The session of a device, opened on first use.
    pub fn device_session(&self, device: u32) -> Result<Arc<DeviceSession<G>>> {
        self.find_device(device)?.open_session()
    }

    pub(crate) fn program_store(&self) -> &ProgramStore {
        &self.store
    }

    /// A fresh handle for a block, stream or event; handles are never reused.
    fn new_handle(&self) -> u64 {
        self.last_handle.fetch_add(1, Ordering::Relaxed) + 1
    }
}
