//! Tables that a script makes wrong.
//!
//! To simulate a bad plugin, this module must break the contract that the SDK upholds, so it modifies the SDK's tables before the
//! host reads them.

#![expect(unsafe_code, reason = "the tables that a plugin hands out are raw")]

use std::ptr;
use std::sync::{Mutex, PoisonError};

use oarlock_sdk::abi;

use crate::script::FaultScript;

/// Wrong tables. The host may read them until the plugin is unloaded; they are kept even longer, for the life of the process.
static FAULTY_TABLES: Mutex<Vec<Box<[u64]>>> = Mutex::new(Vec::new());

/// Replaces the tables of an answer by those that the script asks for.
pub(super) fn falsify_tables(script: &FaultScript, answer: &mut abi::Plugin) {
    answer.core = falsify_table(script, "core", answer.core, abi::CoreTable::clear_slot);
    answer.r#async = falsify_table(script, "async", answer.r#async, abi::AsyncTable::clear_slot);
}

/// A copy of the table without some slots, or with a wrong size.
fn falsify_table<T: Copy>(
    script: &FaultScript,
    name: &str,
    table: *const T,
    clear: fn(&mut T, &str) -> bool,
) -> *const T {
    let size = script.table_size(name);
    // SAFETY: the SDK's tables live as long as the plugin, and are not null for the profiles that it fills.
    let mut copy = unsafe { *table };
    let mut changed = size.is_some();
    for slot in script.referenced_names() {
        changed |= script.is_missing(slot) && clear(&mut copy, slot);
    }
    if !changed {
        return table;
    }
    let room = size.map_or(size_of::<T>(), |size| size_of::<T>().max(size as usize));
    let mut wrong = vec![0u64; room.div_ceil(size_of::<u64>())].into_boxed_slice();
    let start = wrong.as_mut_ptr();
    // SAFETY: the buffer is at least as long as the table and sufficiently aligned.
    unsafe { ptr::write(start.cast::<T>(), copy) };
    if let Some(size) = size {
        // SAFETY: every table starts with its size as a `u32`.
        unsafe { start.cast::<u32>().write(u32::try_from(size).unwrap_or(u32::MAX)) };
    }
    let address = wrong.as_ptr().cast();
    FAULTY_TABLES.lock().unwrap_or_else(PoisonError::into_inner).push(wrong);
    address
}
