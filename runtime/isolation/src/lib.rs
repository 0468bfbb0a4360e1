//! Runs a plugin in a child process.
//!
//! The host gets tables of proxies, which look like those of the plugin. A proxy writes its arguments into memory that both
//! processes share, and waits for the reply; a call that only adds work to a stream is not waited for. If the child ends, for
//! whatever reason, every call fails with the flag `device_lost`, and the host goes on.
//!
//! - `wire` has the bytes of messages, `shared` the memory that both processes map.
//! - `proxy` is the host's side, and starts with [`IsolatedPlugin::start`].
//! - `serve` is the child's side, and starts with [`ChildEnd::enter`].
//!
//! What crosses is generated from the contract by `cargo xtask generate`. The host believes nothing that the child says: what it
//! reads is copied out of the shared memory first and checked then, and no number from the child is ever an address.

mod limits;
mod proxy;
mod serve;
mod shared;
#[cfg(test)]
mod tests;
mod wire;

pub use limits::IsolationLimits;
pub use proxy::isolated_plugin::{IsolatedPlugin, StartFailure};
pub use proxy::start_request::StartRequest;
pub use serve::{ChildEnd, KeptConstants, KernelCaller, LaneHost, LogSender, ServedPlugin};
pub use wire::WireBreach;
pub use wire::failure::{HostFunctions, WireFailure};
