//! The entry of the plugin, and the tables a script has told to be wrong.
//!
//! A simulator of bad plugins must break the contract that the SDK keeps, so it changes what the SDK has written before
//! the host reads it.

#![expect(
    unsafe_code,
    reason = "the entry of a shared object is a C function, and the tables it hands out are raw"
)]

use std::ptr;
use std::sync::{Mutex, PoisonError};

use oarlock_sdk::abi;

use super::{Sim, plugin};
use crate::script::Script;

/// Wrong tables. The host may read them until the plugin is unloaded, and this one never is.
static TABLES: Mutex<Vec<Box<[u64]>>> = Mutex::new(Vec::new());

/// Tells a host who this plugin is.
///
/// # Safety
///
/// Both structs are as the contract describes them, and the host outlives the plugin.
#[unsafe(no_mangle)]
unsafe extern "C" fn oarlock_plugin_query(host: *const abi::Host, answer: *mut abi::Plugin) -> abi::Error {
    oarlock_sdk::keep_panics_quiet();
    // SAFETY: the host vouches for both structs.
    let failure = unsafe { oarlock_sdk::answer(host, answer, plugin) };
    if !failure.is_some() && !answer.is_null() {
        // SAFETY: the SDK has just filled the answer, as far as the host has room for it.
        let given = unsafe { &mut *answer };
        if !given.context.is_null() {
            // SAFETY: the context is the one that the SDK made for this plugin.
            let (sim, _) = unsafe { oarlock_sdk::instance_of::<Sim>(given.context) };
            given.core = table(&sim.script, "core", given.core, abi::CoreTable::clear_slot);
            given.r#async = table(&sim.script, "async", given.r#async, abi::AsyncTable::clear_slot);
        }
    }
    failure
}

/// The table as the script wants it: without some slots, or with a size that is not its own.
fn table<T: Copy>(script: &Script, name: &str, table: *const T, clear: fn(&mut T, &str) -> bool) -> *const T {
    let size = script.table_size(name);
    // SAFETY: the SDK's tables live as long as the plugin, and are not null for the profiles it fills.
    let mut copy = unsafe { *table };
    let mut changed = size.is_some();
    for slot in script.names() {
        changed |= script.is_missing(slot) && clear(&mut copy, slot);
    }
    if !changed {
        return table;
    }
    let room = size.map_or(size_of::<T>(), |size| size_of::<T>().max(size as usize));
    let mut wrong = vec![0u64; room.div_ceil(size_of::<u64>())].into_boxed_slice();
    let start = wrong.as_mut_ptr();
    // SAFETY: the buffer is as long as the table at least, and as aligned.
    unsafe { ptr::write(start.cast::<T>(), copy) };
    if let Some(size) = size {
        // SAFETY: every table starts with its size as a `u32`.
        unsafe { start.cast::<u32>().write(u32::try_from(size).unwrap_or(u32::MAX)) };
    }
    let address = wrong.as_ptr().cast();
    TABLES.lock().unwrap_or_else(PoisonError::into_inner).push(wrong);
    address
}
