//! The plugin's entry point: the SDK's answer, with the kernels of the CPU and with the faults that the script asks for.

#![expect(unsafe_code, reason = "the entry of a plugin is a C function, and what it hands out is raw")]

use oarlock_sdk::{abi, guard_call, instance_from_context};

use super::cpu_kernels::SimKernels;
use super::{SimPlugin, faulty_tables, plugin};

/// Tells a host what this plugin is.
///
/// # Safety
///
/// Both structs are as the contract describes them, and the host outlives the plugin.
#[unsafe(no_mangle)]
unsafe extern "C" fn oarlock_plugin_query(host: *const abi::Host, answer: *mut abi::Plugin) -> abi::Error {
    oarlock_sdk::silence_caught_panics();
    // SAFETY: the host guarantees both structs.
    unsafe { query_plugin(host, answer) }
}

/// Like [`oarlock_plugin_query`], for programs that link the plugin statically.
///
/// # Safety
///
/// The same as for [`oarlock_plugin_query`].
pub(crate) unsafe extern "C" fn query_plugin(host: *const abi::Host, answer: *mut abi::Plugin) -> abi::Error {
    // SAFETY: the host guarantees both structs.
    let failure = unsafe { oarlock_sdk::answer_query(host, answer, plugin) };
    // SAFETY: the SDK has just filled the answer, as far as the host has room for it.
    let Some(given) = (unsafe { answer.as_mut() }).filter(|_| !failure.is_some()) else { return failure };
    if given.context.is_null() {
        return failure;
    }
    // SAFETY: the SDK created the context for this plugin.
    let (sim, services) = unsafe { instance_from_context::<SimPlugin>(given.context) };
    let failure = guard_call(&services, || {
        // SAFETY: the host is querying this plugin, and the context is that of the answer.
        let kernels = unsafe { SimKernels::new(host, given.context, sim.script.ops.as_deref()) }?;
        given.kernels = sim.kernels.get_or_init(|| kernels).kernel_table();
        faulty_tables::falsify_tables(&sim.script, given);
        Ok(())
    });
    if failure.is_some() {
        withdraw_answer(given);
    }
    failure
}

/// Withdraws an answer that the host has not seen.
fn withdraw_answer(given: &mut abi::Plugin) {
    if let Some(unload) = given.unload.take() {
        // SAFETY: the context is that of the answer, and no part of the answer is in use.
        _ = unsafe { unload(given.context) };
    }
    given.context = std::ptr::null_mut();
    (given.core, given.r#async) = (std::ptr::null(), std::ptr::null());
}
