//! Oarlock's plugin contract as raw Rust bindings.
//!
//! The types are generated from the contract and have the memory layout of the C header `oarlock/contract.h`. They are unsafe
//! to use directly: plugins use `oarlock-sdk`, and the host has its own wrappers.
#![no_std]
#![expect(unsafe_code, reason = "raw pointers of a C contract are shared between threads by design")]

pub mod draft;
mod generated;
mod text;
mod versions;

pub use generated::*;
pub use versions::Versions;

/// The type of `oarlock_plugin_query`, the only function that a plugin exports.
pub type PluginQuery = unsafe extern "C" fn(*const Host, *mut Plugin) -> Error;

/// The name of the only symbol that a plugin exports.
pub const ENTRY: &str = "oarlock_plugin_query";

/// The set of all dtypes of the contract; the bit of a dtype is its number.
pub const ALL_DTYPES: u64 = (1 << (Dtype::U2.0 + 1)) - 2;

/// The sanitizer that this binary is built with. If plugin and host differ, the sanitizer reports nonsense.
pub const SANITIZER: Sanitizer = if cfg!(oarlock_sanitizer = "address") {
    Sanitizer::ADDRESS
} else if cfg!(oarlock_sanitizer = "thread") {
    Sanitizer::THREAD
} else if cfg!(oarlock_sanitizer = "memory") {
    Sanitizer::MEMORY
} else {
    Sanitizer::NONE
};
