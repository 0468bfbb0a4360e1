//! Compiled programs of a device, in memory.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use oarlock_sdk::Result;

use crate::source::ProgramVariant;

/// Compiled programs of one open device.
pub(crate) struct ProgramCache<P>(RwLock<HashMap<ProgramVariant, Arc<P>>>);

// Not derived: `#[derive(Default)]` would demand `P: Default`.
impl<P> Default for ProgramCache<P> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<P> ProgramCache<P> {
    /// Returns the cached program, or builds and caches it.
    pub(crate) fn get_or_build(
        &self,
        variant: &ProgramVariant,
        make: impl FnOnce() -> Result<P>,
    ) -> Result<Arc<P>> {
        // Almost every call finds its program, so the common path takes a lock that readers share.
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = known.get(variant) {
            return Ok(Arc::clone(program));
        }
        drop(known);
        // Two threads may compile the same variant at once; that is cheaper than holding a lock while a compiler runs.
        let program = Arc::new(make()?);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // The first program stays, so that all calls share one.
        Ok(Arc::clone(known.entry(variant.clone()).or_insert(program)))
    }
}
