//! The simulated device, which finds bugs in programs and plugins.
//!
//! Its memory faults when the host touches it, its streams do no more work than they must, its time is virtual, and it fails
//! exactly when a script says so. This crate's [`SimEngine`] knows nothing of the plugin contract; the slots are a thin layer
//! over it.

pub mod clock;
mod contract;
pub mod device;
pub mod element;
pub mod engine;
pub mod error;
mod machine;
mod mapping;
pub mod memory;
mod pinned;
mod scheduler;
mod scheduling_token;
pub mod script;
pub mod stream;

use oarlock_sdk::abi;

/// Entry point for programs that link the plugin statically.
pub const QUERY: abi::PluginQuery = contract::query_plugin;

pub use engine::SimEngine;
pub use error::SimError;
pub use mapping::HostSpan;
pub use script::FaultScript;
pub use stream::{EventId, StreamId};
