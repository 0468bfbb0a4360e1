//! What a host says to start an isolated plugin.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::limits::IsolationLimits;
use crate::wire::failure::HostFunctions;

/// What is needed to start an isolated plugin.
#[derive(Clone, Debug)]
pub struct StartRequest {
    /// The program to start, usually this one. It calls [`ChildEnd::enter`](crate::ChildEnd::enter).
    pub program: PathBuf,
    /// Its arguments before the plugin's path.
    pub arguments: Vec<OsString>,
    /// The plugin.
    pub path: PathBuf,
    /// The name of the plugin, for messages.
    pub name: String,
    /// What the host of the child has to know.
    pub setup: Vec<u8>,
    /// Limits of the child.
    pub limits: IsolationLimits,
    /// The host, to which errors and messages go. It outlives the plugin.
    pub host: HostFunctions,
    /// The time that the plugin may take to describe itself.
    pub patience: Duration,
}
