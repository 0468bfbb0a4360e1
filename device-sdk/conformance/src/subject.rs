//! The input of the suite: a plugin's own tables, without a host in between.

use std::ffi::c_void;

use oarlock_abi as abi;

use crate::float_mode::FloatMode;

/// A loaded plugin, and the initialized devices that it is checked on.
pub struct ConformanceSubject {
    /// What the plugin brings, and whose devices these are.
    pub role: SubjectRole,
    /// The name that the plugin gave.
    pub name: String,
    /// The version that the plugin gave.
    pub version: String,
    /// The type of the devices, as users type it.
    pub device_type: String,
    /// The first argument of the slots of `core`.
    pub context: *mut c_void,
    /// Devices and their memory.
    pub core: abi::CoreTable,
    /// Streams and events with the first argument of their slots, if there are any.
    pub asynchronous: Option<(*mut c_void, abi::AsyncTable)>,
    /// Copies of the kernel records.
    pub kernels: Vec<abi::Kernel>,
    /// The layer's own table and the first argument of its slots, if the plugin is one.
    pub layer: Option<(*mut c_void, abi::LayerTable)>,
    /// The entry point of the plugin, if the caller knows it.
    pub entry: Option<PluginEntry>,
    /// The mode of floats before and after the plugin was loaded and queried, if that changed it.
    pub mode_change: Option<(FloatMode, FloatMode)>,
    /// The ids of the devices to test, which are initialized.
    pub devices: Vec<u32>,
    /// Reads an error that the plugin returned, and releases it. The closure should own whatever keeps the plugin loaded, since
    /// the thread of a check that never returns keeps the closure forever.
    pub read_error: Box<dyn Fn(abi::Error) -> ErrorText + Send + Sync>,
}

/// How the plugin was queried.
#[derive(Clone, Copy, Debug)]
pub struct PluginEntry {
    /// The function that the plugin exports.
    pub query: abi::PluginQuery,
    /// What the host told the plugin about itself. It lives as long as the plugin.
    pub host: *const abi::Host,
}

/// What the plugin under test brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubjectRole {
    /// The devices, and perhaps kernels for them.
    Device,
    /// Kernels alone, which run on the devices of another plugin or in host memory.
    Kernels {
        /// The name of the plugin that drives the devices, or `host memory`.
        device: String,
    },
    /// A layer, through which the devices and kernels of another plugin are seen.
    Layer {
        /// The name of that plugin.
        around: String,
    },
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
