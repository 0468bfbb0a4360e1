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
pub struct KeptConstants(Mutex<BTreeMap<u64, BumpStorage>>);

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
    pub(super) fn keep_constants(&self, state: u64, constants: BumpStorage) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(state, constants);
    }

    pub(super) fn release_constants(&self, state: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&state);
    }
}
