//! A minimal host for tests of plugins that must not depend on the runtime: it loads a plugin that is linked in, stores
//! errors and options, runs loops on a few threads, and lets kernels allocate outputs.

#![expect(unsafe_code, reason = "a host calls through pointers, and is called through them")]

mod services;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use oarlock_abi as abi;

pub use crate::services::{OutputAllocator, WORKERS};

use crate::services::SERVICES;

/// An error that a plugin reported, copied out of the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedError {
    /// The category of the error.
    pub code: abi::Code,
    /// The text of the error, or `None` if it is not UTF-8.
    pub message: Option<String>,
}

impl ReportedError {
    /// The text of the error, with a placeholder where it is not UTF-8.
    pub fn into_text(self) -> String {
        self.message.unwrap_or_else(|| "expected UTF-8 text, found other bytes".to_owned())
    }
}

/// The state behind the context that services get.
struct SmallHost {
    options: BTreeMap<String, String>,
    /// The number of the last error, and the errors that have not been released yet.
    failures: Mutex<(u64, BTreeMap<u64, ReportedError>)>,
}

/// A plugin that is linked in, loaded as a host loads it. Dropping it unloads the plugin.
pub struct HostedPlugin {
    host: Box<SmallHost>,
    asking: Box<abi::Host>,
    plugin: abi::Plugin,
}

// SAFETY: the plugin's structs do not change, and its functions may be called on any thread (rule T-1).
unsafe impl Send for HostedPlugin {}
// SAFETY: as above.
unsafe impl Sync for HostedPlugin {}

impl HostedPlugin {
    /// Loads a plugin with these options. The error is the plugin's reason to refuse.
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

    /// The plugin's answer to the query.
    pub fn abi_plugin(&self) -> &abi::Plugin {
        &self.plugin
    }

    /// The device table of the plugin.
    ///
    /// # Panics
    ///
    /// If the plugin provides no device.
    pub fn core_table(&self) -> abi::CoreTable {
        // SAFETY: the tables of a plugin live until it is unloaded.
        unsafe { self.plugin.core.as_ref() }.copied().expect("a plugin that provides a device")
    }

    /// Copies of the kernel records; empty if the plugin provides no kernels.
    pub fn kernel_records(&self) -> Vec<abi::Kernel> {
        // SAFETY: the table and the records live until the plugin is unloaded.
        unsafe {
            let Some(table) = self.plugin.kernels.as_ref() else { return Vec::new() };
            (0..table.kernels_count as usize).map(|index| **table.kernels.add(index)).collect()
        }
    }

    /// Initializes the plugin and all of its devices, and returns the ids of the devices.
    pub fn start_devices(&self) -> Result<Vec<u32>, ReportedError> {
        let (core, context) = (self.core_table(), self.plugin.context);
        let (mut ids, mut count) = ([0; 64], 0);
        let list = core.device_list.expect("a list of devices");
        // SAFETY: the context is the plugin's own, there is room for as many ids as the call states, and the devices are from the
        // plugin's list.
        unsafe {
            core.initialize.map_or(Ok(()), |initialize| self.result_from_error(initialize(context)))?;
            self.result_from_error(list(context, ids.as_mut_ptr(), ids.len() as u64, &raw mut count))?;
            for device in &ids[..count as usize] {
                core.device_init.map_or(Ok(()), |ready| self.result_from_error(ready(context, *device)))?;
            }
        }
        Ok(ids[..count as usize].to_vec())
    }

    /// Converts the return value of a slot. Taking an error out of the registry releases it.
    pub fn result_from_error(&self, error: abi::Error) -> Result<(), ReportedError> {
        if !error.is_some() {
            return Ok(());
        }
        let message = format!("expected the number of an error, found {}", error.0);
        let unknown = ReportedError { code: abi::Code::FATAL, message: Some(message) };
        Err(self.take_error(error).unwrap_or(unknown))
    }

    /// Takes an error out of the registry; `None` if no error has this number.
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
