//! Makes custom devices of PaddlePaddle devices of Oarlock, with the files as they are.
//!
//! A custom device is a shared object that exports `InitPlugin` and fills a table of functions. A host that knows this adapter
//! recognizes such files, judges them like all plugins and passes the entry to [`query`], which answers for the file in the terms
//! of our contract. Each file becomes a plugin of its own, called after its device type.
//!
//! The modules, from the bottom: `table_layout` has the tables of all releases as data, `foreign_entry` finds out which one a
//! file was built for, `foreign_functions` has their types, `current_device` makes the device of a call current, and the
//! `…_slots` translate the calls of the two profiles. Kernels in such files are not used: they are C++ of one build of
//! PaddlePaddle.

#![expect(unsafe_code, reason = "the entry of a custom device is an address from the host")]

mod async_slots;
mod callbacks;
mod core_slots;
mod current_device;
mod device_adapter;
mod foreign_entry;
mod foreign_functions;
mod handle_table;
mod printed_output;
mod status_report;
mod table_layout;

use core::ffi::c_void;
use std::cell::Cell;

use oarlock_sdk::{HostServices, Plugin, PluginError, Result, SupportLevel, abi, answer_query};

use crate::device_adapter::DeviceAdapter;
use crate::foreign_entry::{ForeignRuntime, open_runtime};

/// The symbol by which a custom device is recognized.
pub const ENTRY: &str = "InitPlugin";

thread_local! {
    /// The entry that the host asks about on this thread. The SDK passes nothing on to the function that makes a plugin.
    static ASKED_ENTRY: Cell<*const c_void> = const { Cell::new(core::ptr::null()) };
}

/// Answers the query of a host for the custom device whose function `InitPlugin` is at `entry`.
///
/// # Safety
///
/// The entry belongs to a file that stays loaded. Both structs are as the contract describes them, and the host outlives the
/// plugin.
pub unsafe extern "C" fn query(
    entry: *const c_void,
    host: *const abi::Host,
    plugin: *mut abi::Plugin,
) -> abi::Error {
    ASKED_ENTRY.set(entry);
    // SAFETY: the host vouches for both structs.
    let answer = unsafe { answer_query(host, plugin, make_plugin) };
    ASKED_ENTRY.set(core::ptr::null());
    answer
}

fn make_plugin(host: &HostServices) -> Result<Plugin<DeviceAdapter>> {
    let entry = ASKED_ENTRY.get();
    if entry.is_null() {
        return Err(PluginError::invalid_argument("expected the entry of a custom device, found null"));
    }
    // SAFETY: `query` was called with this entry.
    let runtime = unsafe { open_runtime(entry) }?;
    let ForeignRuntime { device_type, subtype, version, layout, .. } = &runtime;
    let (device_type, subtype, version) = (device_type.clone(), subtype.clone(), version.clone());
    let note = format!(
        "a custom device built for PaddlePaddle {}, through an adapter, without its kernels",
        layout.releases
    );
    let name = format!("paddle-{device_type}");
    if name.len() > 64 {
        return Err(PluginError::precondition_not_met(format!(
            "expected a device type of at most 57 letters, found `{device_type}`"
        )));
    }
    let adapter = DeviceAdapter::new(runtime, *host);
    Ok(Plugin::for_device(name, version, device_type, adapter)
        .with_async()
        .with_device_subtype(subtype)
        .with_support(SupportLevel::UNSPECIFIED, note))
}
