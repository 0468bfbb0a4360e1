//! Plugins that were written for another program, and what makes them plugins of Oarlock.
//!
//! Such a file has an entry of its own instead of ours. An adapter, which a program links in, answers the host's query for it; from
//! then on it is a plugin like any other. It is searched for, judged and probed like any other too, except that the contract's
//! rules on exported symbols do not bind a file that was not written for it.

use std::ffi::c_void;

use oarlock_abi as abi;

use crate::{ENTRY_SYMBOL, SharedObject};

/// Answers the query of a host for a plugin whose own entry is at the first argument.
///
/// # Safety
///
/// The entry belongs to a file that stays loaded. The structs are as for the contract's own query.
pub type AdapterQuery = unsafe extern "C" fn(
    entry: *const c_void,
    host: *const abi::Host,
    plugin: *mut abi::Plugin,
) -> abi::Error;

/// An adapter for the plugins of another program.
#[derive(Clone, Copy, Debug)]
pub struct PluginAdapter {
    /// The symbol by which such a file is recognized.
    pub entry: &'static str,
    /// Answers for such a file.
    pub query: AdapterQuery,
}

impl PluginAdapter {
    /// True if a file is a plugin that this adapter can answer for. One that has our entry too needs no adapter.
    pub fn recognizes_file(&self, elf: &SharedObject) -> bool {
        elf.exports_symbol(self.entry) && !elf.exports_symbol(ENTRY_SYMBOL)
    }
}
