//! The programs of a driver: compiled when they are first needed, then kept in memory and on disk.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use oarlock_sdk::Result;

use crate::gpu::{Compiled, Gpu};
use crate::source::Variant;
use crate::store::{Key, Store};

/// The compiled programs of one driver, by device.
#[derive(Debug)]
pub struct Programs<P> {
    loaded: RwLock<HashMap<u32, HashMap<Variant, Arc<P>>>>,
    store: Store,
}

impl<P> Programs<P> {
    /// No programs yet, and a place on disk where binaries of earlier runs may lie.
    pub fn new(store: Store) -> Self {
        Self { loaded: RwLock::default(), store }
    }

    /// Drops the programs of a device that is not used any more.
    pub fn forget(&self, device: u32) {
        self.loaded.write().unwrap_or_else(PoisonError::into_inner).remove(&device);
    }

    /// The program of a variant, compiled if need be.
    pub(crate) fn get<G: Gpu<Program = P>>(&self, gpu: &G, device: u32, variant: &Variant) -> Result<Arc<P>> {
        let known = self.loaded.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = known.get(&device).and_then(|programs| programs.get(variant)) {
            return Ok(Arc::clone(program));
        }
        drop(known);
        // Two threads may compile one variant at the same time; that costs less than making others wait for a compiler.
        let program = Arc::new(self.make(gpu, device, variant)?);
        let mut loaded = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
        let programs = loaded.entry(device).or_default();
        Ok(Arc::clone(programs.entry(variant.clone()).or_insert(program)))
    }

    fn make<G: Gpu<Program = P>>(&self, gpu: &G, device: u32, variant: &Variant) -> Result<P> {
        let source = variant.source(gpu.language(), gpu.limits(device)?);
        let key = Key::new(&source, &gpu.identity(device)?);
        if let Some(program) = self.store.read(&key).and_then(|binary| gpu.load(device, &binary).ok()) {
            return Ok(program);
        }
        let Compiled { program, binary } = gpu.compile(device, &source)?;
        if let Some(binary) = binary {
            self.store.write(&key, &binary);
        }
        Ok(program)
    }
}
