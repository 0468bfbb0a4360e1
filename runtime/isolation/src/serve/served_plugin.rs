//! The plugin that a child serves.

#![expect(unsafe_code, reason = "tables and records are shared between threads")]

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use oarlock_abi as abi;

use super::arguments::decode_call;
use crate::wire::WireBreach;
use crate::wire::bump_storage::BumpStorage;
use crate::wire::stored_reader::StoredReader;

/// Limit on the items of a list that a slot returns.
pub(super) const MAX_LIST: u64 = 8192;

/// A plugin that was loaded and checked in this process.
#[derive(Debug)]
pub struct ServedPlugin {
    /// Its texts and versions. The tables in it are not used.
    pub plugin: abi::Plugin,
    /// The first argument of the functions of its tables.
    pub context: *mut c_void,
    /// Devices and their memory.
    pub core: Option<abi::CoreTable>,
    /// Streams and events.
    pub asynchronous: Option<abi::AsyncTable>,
    /// Its kernels.
    pub kernels: Vec<abi::Kernel>,
    /// Constants that states of kernels may read, by state.
    pub kept: KeptConstants,
}

/// The constants in host memory of prepared kernels: copies, which live as long as the states.
#[derive(Debug, Default)]
pub struct KeptConstants(Mutex<BTreeMap<u64, KeptState>>);

/// What one state may read. A kernel may return the same state for several calls.
#[derive(Debug, Default)]
struct KeptState {
    prepared: u64,
    constants: Vec<BumpStorage>,
}

// SAFETY: the pointers are the plugin's own, whose functions may be called on any thread (rule T-1).
unsafe impl Send for ServedPlugin {}
// SAFETY: as above; nothing changes through a shared reference but the kept constants, which are locked.
unsafe impl Sync for ServedPlugin {}

impl ServedPlugin {
    pub(super) fn kernel(&self, index: u32) -> Result<&abi::Kernel, WireBreach> {
        let found = self.kernels.get(index as usize);
        found.ok_or_else(|| {
            WireBreach::new(format!("one of {} kernels", self.kernels.len()), index.to_string())
        })
    }

    pub(super) fn core_table(&self) -> Result<(*mut c_void, &abi::CoreTable), WireBreach> {
        self.core
            .as_ref()
            .map(|table| (self.context, table))
            .ok_or_else(|| WireBreach::new("the table `core`", "none"))
    }

    pub(super) fn async_table(&self) -> Result<(*mut c_void, &abi::AsyncTable), WireBreach> {
        let table = self.asynchronous.as_ref();
        table.map(|table| (self.context, table)).ok_or_else(|| WireBreach::new("the table `async`", "none"))
    }

    /// Reads the call of a kernel and makes it known to the lane, for questions of the kernel.
    pub(super) fn read_call(&self, request: &mut StoredReader<'_>) -> Result<*mut abi::Call, WireBreach> {
        let call = decode_call(request)?;
        let place = request.storage().store(call);
        request.note_call(place);
        Ok(place)
    }
}

impl KeptConstants {
    /// Notes that a call returned this state, and keeps its constants if it has any.
    pub(super) fn note_prepared(&self, state: u64, constants: Option<BumpStorage>) {
        let mut states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = states.entry(state).or_default();
        kept.prepared += 1;
        kept.constants.extend(constants);
    }

    /// Forgets the constants of a state once it is released as often as it was returned.
    pub(super) fn note_released(&self, state: u64) {
        let mut states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = states.get_mut(&state) {
            kept.prepared -= 1;
            if kept.prepared == 0 {
                states.remove(&state);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_stay_until_the_last_call_that_returned_their_state_is_released() {
        let kept = KeptConstants::default();
        let count =
            || kept.0.lock().expect("no panic").values().map(|state| state.constants.len()).sum::<usize>();
        kept.note_prepared(8, Some(BumpStorage::default()));
        kept.note_prepared(8, None);
        kept.note_prepared(9, Some(BumpStorage::default()));
        kept.note_released(8);
        assert_eq!(count(), 2);
        kept.note_released(8);
        kept.note_released(8);
        assert_eq!(count(), 1, "only the other state is left");
    }
}
