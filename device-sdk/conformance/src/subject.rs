//! What the suite is given: a plugin's own tables, without a host between.

use std::ffi::c_void;

use oarlock_abi as abi;

/// A loaded plugin whose devices are ready.
pub struct ConformanceSubject {
    /// The plugin's name.
    pub name: String,
    /// The plugin's version.
    pub version: String,
    /// The name of the kind of device it drives.
    pub device_type: String,
    /// What its slots take first.
    pub context: *mut c_void,
    /// Its devices and their memory.
    pub core: abi::CoreTable,
    /// Its streams and events, if it offers them.
    pub asynchronous: Option<abi::AsyncTable>,
    /// Its kernels.
    pub kernels: Vec<abi::Kernel>,
    /// The ids of the devices that were readied.
    pub devices: Vec<u32>,
    /// Reads an error that the plugin returned, and releases it. Whoever makes a subject lets this own what keeps the plugin
    /// loaded: a check that never returns keeps it for ever.
    pub read_error: Box<dyn Fn(abi::Error) -> ErrorText + Send + Sync>,
}

/// What an error said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorText {
    /// What kind of thing went wrong.
    pub code: abi::Code,
    /// What the plugin said.
    pub message: String,
    /// What is wrong with the error itself, such as a number that the host never made, or text that is not UTF-8.
    pub breach: Option<String>,
}
