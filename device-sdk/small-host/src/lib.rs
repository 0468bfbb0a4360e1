//! A host of as little as a plugin needs, for tests of plugins that must not know the runtime: it loads a plugin that is
//! linked in, knows errors and options, runs loops on a few threads, and lets kernels allocate outputs.

#![expect(unsafe_code, reason = "a host calls through pointers, and is called through them")]

mod services;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use oarlock_abi as abi;

pub use crate::services::{OutputAllocator, WORKERS};

use crate::services::SERVICES;

/// What an error of a plugin said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedError {
    /// What kind of thing went wrong.
    pub code: abi::Code,
    /// What the plugin said, or nothing where that is no text.
    pub message: Option<String>,
}

impl ReportedError {
    /// What the plugin said.
    pub fn into_text(self) -> String {
        self.message.unwrap_or_else(|| "expected UTF-8 text, found other bytes".to_owned())
    }
}

/// The host's side of one plugin.
struct SmallHost {
    options: BTreeMap<String, String>,
    /// The errors that nobody has asked about yet, by their numbers.
    failures: Mutex<(u64, BTreeMap<u64, ReportedError>)>,
}

/// A plugin as a host has loaded it. Unloaded when dropped.
pub struct HostedPlugin {
    host: Box<SmallHost>,
    asking: Box<abi::Host>,
    plugin: abi::Plugin,
}

// SAFETY: what the plugin handed out does not change, and every function of it may be called on any thread (rule T-1).
unsafe impl Send for HostedPlugin {}
// SAFETY: as above.
unsafe impl Sync for HostedPlugin {}

impl HostedPlugin {
    /// Loads a plugin, which gets these options, or says why it refuses.
    pub fn new(query: abi::PluginQuery, options: &[(&str, &str)]) -> Result<Self, ReportedError> {
        let options = options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let host = Box::new(SmallHost { options, failures: Mutex::default() });
        let asking = Box::new(abi::Host {
            contract_major: abi::CONTRACT_MAJOR,
            contract_minor: abi::CONTRACT_MINOR,
            sanitizer: abi::SANITIZER,
            context: (&raw const *host).cast_mut().cast(),
            services: &raw const SERVICES,
            ..abi::Host::EMPTY
        });
        let mut loaded = Self { host, asking, plugin: abi::Plugin::EMPTY };
        // SAFETY: both structs are whole, and the services and their context outlive the plugin.
        let failure = unsafe { query(&raw const *loaded.asking, &raw mut loaded.plugin) };
        loaded.result_from_error(failure).map(|()| loaded)
    }

    /// What the plugin answered.
    pub fn abi_plugin(&self) -> &abi::Plugin {
        &self.plugin
    }

    /// The table of the plugin's device.
    ///
    /// # Panics
    ///
    /// If the plugin brings none.
    pub fn core_table(&self) -> abi::CoreTable {
        // SAFETY: the tables of a plugin live until it is unloaded.
        unsafe { self.plugin.core.as_ref() }.copied().expect("a plugin that brings a device")
    }

    /// The rows of the plugin.
    pub fn kernel_records(&self) -> Vec<abi::Kernel> {
        // SAFETY: the table and the rows live until the plugin is unloaded.
        unsafe {
            let Some(table) = self.plugin.kernels.as_ref() else { return Vec::new() };
            (0..table.kernels_count as usize).map(|index| **table.kernels.add(index)).collect()
        }
    }

    /// Starts the plugin and readies its devices, whose ids are returned.
    pub fn start_devices(&self) -> Result<Vec<u32>, ReportedError> {
        let (core, context) = (self.core_table(), self.plugin.context);
        let (mut ids, mut count) = ([0; 64], 0);
        let list = core.device_list.expect("a list of devices");
        // SAFETY: the context is the plugin's own, there is room for as many ids as are said, and devices are of the list.
        unsafe {
            core.initialize.map_or(Ok(()), |initialize| self.result_from_error(initialize(context)))?;
            self.result_from_error(list(context, ids.as_mut_ptr(), ids.len() as u64, &raw mut count))?;
            for device in &ids[..count as usize] {
                core.device_init.map_or(Ok(()), |ready| self.result_from_error(ready(context, *device)))?;
            }
        }
        Ok(ids[..count as usize].to_vec())
    }

    /// Success, or what an error said, which is released by this.
    pub fn result_from_error(&self, error: abi::Error) -> Result<(), ReportedError> {
        if !error.is_some() {
            return Ok(());
        }
        let message = format!("expected the number of an error, found {}", error.0);
        let unknown = ReportedError { code: abi::Code::FATAL, message: Some(message) };
        Err(self.take_error(error).unwrap_or(unknown))
    }

    /// What an error said, which is released by this; nothing for a number that stands for none.
    pub fn take_error(&self, error: abi::Error) -> Option<ReportedError> {
        self.host.failures.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&error.0)
    }
}

impl Drop for HostedPlugin {
    fn drop(&mut self) {
        if let Some(unload) = self.plugin.unload {
            // SAFETY: nothing of the plugin is used after this.
            let _ = unsafe { unload(self.plugin.context) };
        }
    }
}
