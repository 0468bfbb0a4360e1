//! The input of the suite: a plugin's own tables, without a host in between.

use std::ffi::c_void;

use oarlock_abi as abi;

/// A loaded plugin whose devices are initialized.
pub struct ConformanceSubject {
    /// The name that the plugin gave.
    pub name: String,
    /// The version that the plugin gave.
    pub version: String,
    /// The type of device that the plugin drives, as users type it.
    pub device_type: String,
    /// The first argument of all its slots.
    pub context: *mut c_void,
    /// Devices and their memory.
    pub core: abi::CoreTable,
    /// Streams and events, if the plugin offers them.
    pub asynchronous: Option<abi::AsyncTable>,
    /// Copies of the plugin's kernel records.
    pub kernels: Vec<abi::Kernel>,
    /// The ids of the devices to test, which are initialized.
    pub devices: Vec<u32>,
    /// Reads an error that the plugin returned, and releases it. The closure should own whatever keeps the plugin loaded, since
    /// the thread of a check that never returns keeps the closure forever.
    pub read_error: Box<dyn Fn(abi::Error) -> ErrorText + Send + Sync>,
}

/// The text of an error, copied out of the registry of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorText {
    /// The category of the error.
    pub code: abi::Code,
    /// The message of the plugin.
    pub message: String,
    /// A defect of the error itself, such as a number that the host never issued, or text that is not UTF-8.
    pub breach: Option<String>,
}
