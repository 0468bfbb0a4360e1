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
mod session;
mod table;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use oarlock_sdk::{Error, Host, Result, Version};

pub use self::callbacks::Reached;
pub use self::session::Session;

use self::callbacks::Callbacks;
use crate::gpu::{Facts, Gpu};
use crate::store::Store;

/// What a driver found.
pub struct Found<G: Gpu> {
    /// The devices, at least one.
    pub devices: Vec<Device<G>>,
    /// The version of the vendor's runtime library.
    pub runtime: Version,
    /// The version of the driver.
    pub driver: Version,
}

/// One device: what it is, and what it has while it is in use.
pub struct Device<G: Gpu> {
    facts: Facts,
    idle: G::Idle,
    session: RwLock<Option<Arc<Session<G>>>>,
}

impl<G: Gpu> Device<G> {
    /// A device that is not in use.
    pub fn new(facts: Facts, idle: G::Idle) -> Self {
        Self { facts, idle, session: RwLock::default() }
    }

    /// What the device has while it is in use. The first call readies it, which takes memory of the device.
    fn session(&self) -> Result<Arc<Session<G>>> {
        if let Some(session) = &*self.session.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(Arc::clone(session));
        }
        let mut session = self.session.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = &*session {
            return Ok(Arc::clone(session));
        }
        Ok(Arc::clone(session.insert(Arc::new(Session::open(&self.idle)?))))
    }

    /// Ends the use of the device, after what is under way.
    fn close(&self) -> Result<()> {
        let session = self.session.write().unwrap_or_else(PoisonError::into_inner).take();
        session.map_or(Ok(()), |session| session.drain())
    }
}

/// All devices of a plugin: nothing until the host initialises it.
pub struct Gpus<G: Gpu> {
    host: Host,
    found: OnceLock<Found<G>>,
    store: Store,
    callbacks: Callbacks,
    last_handle: AtomicU64,
}

impl<G: Gpu> Gpus<G> {
    /// The devices that the driver will find, and a place on disk for their programs.
    pub fn new(host: &Host, store: Store) -> Self {
        Self {
            host: *host,
            found: OnceLock::new(),
            store,
            callbacks: Callbacks::default(),
            last_handle: AtomicU64::new(0),
        }
    }

    /// Finds the devices. Doing so again changes nothing: drivers list the same ones as long as a process lives.
    fn open(&self) -> Result<()> {
        if self.found.get().is_none() {
            let found = G::find(&self.host)?;
            // Whoever was first has found the same.
            let _ = self.found.set(found);
        }
        Ok(())
    }

    fn found(&self) -> Result<&Found<G>> {
        self.found.get().ok_or_else(|| {
            Error::precondition_not_met("expected `initialize` to come first, found it not called")
        })
    }

    /// A device of a call. Ids are indices of the list.
    fn device(&self, id: u32) -> Result<&Device<G>> {
        let devices = &self.found()?.devices;
        devices.get(id as usize).ok_or_else(|| {
            let count = devices.len();
            Error::not_found(format!("expected one of {count} devices, counted from 0, found {id}"))
                .rule("D-2")
        })
    }

    /// What is known of a device.
    pub(crate) fn facts(&self, device: u32) -> Result<&Facts> {
        Ok(&self.device(device)?.facts)
    }

    /// What a device of a call has while it is in use.
    pub fn session(&self, device: u32) -> Result<Arc<Session<G>>> {
        self.device(device)?.session()
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// A number for a block, stream or event, that no other has had.
    fn new_handle(&self) -> u64 {
        self.last_handle.fetch_add(1, Ordering::Relaxed) + 1
    }
}
