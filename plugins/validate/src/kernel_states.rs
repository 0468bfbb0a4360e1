//! The states that a kernel's `prepare` made and that are alive.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::breach::CallBreach;
use crate::handle_record::HandleOrigin;

#[derive(Debug)]
struct PreparedState {
    made: HandleOrigin,
    /// A kernel may return the same state, such as null, for several call sites.
    owners: u32,
}

/// The states of one kernel.
#[derive(Debug, Default)]
pub(crate) struct KernelStates {
    alive: Mutex<FxHashMap<u64, PreparedState>>,
}

impl KernelStates {
    fn lock_alive(&self) -> MutexGuard<'_, FxHashMap<u64, PreparedState>> {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add_state(&self, state: u64, made: HandleOrigin) {
        let mut alive = self.lock_alive();
        alive.entry(state).or_insert(PreparedState { made, owners: 0 }).owners += 1;
    }

    /// Fails for a state that the kernel's `prepare` did not make, or that was released.
    pub(crate) fn check_state(&self, state: u64) -> Result<(), CallBreach> {
        if self.lock_alive().contains_key(&state) {
            return Ok(());
        }
        let message = format!(
            "expected a state that this kernel's `prepare` made and that is not released, found {state:#x}"
        );
        Err(CallBreach::by_caller("kernel.prepare", message))
    }

    /// Takes a state out, before `release` frees it.
    pub(crate) fn release_state(&self, state: u64) -> Result<(), CallBreach> {
        let mut alive = self.lock_alive();
        let Some(prepared) = alive.get_mut(&state) else {
            let message = format!("expected a state that is not released, found {state:#x}");
            return Err(CallBreach::by_caller("kernel.release", message));
        };
        prepared.owners -= 1;
        if prepared.owners == 0 {
            alive.remove(&state);
        }
        Ok(())
    }

    /// Where each state was made that is alive.
    pub(crate) fn list_alive(&self) -> Vec<String> {
        let alive = self.lock_alive();
        alive.iter().map(|(state, prepared)| format!("state {state:#x}, made by {}", prepared.made)).collect()
    }
}
