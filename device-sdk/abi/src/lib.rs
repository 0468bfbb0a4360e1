//! The plugin contract of Oarlock as raw Rust bindings.
//!
//! Everything here is generated from the contract and has the memory layout of the C header `oarlock/contract.h`. Nothing
//! here is safe to use by itself: plugins are written with `oarlock-sdk`, and the host has wrappers of its own.
#![no_std]
#![expect(unsafe_code, reason = "raw pointers of a C contract are shared between threads by design")]

pub mod draft;
mod generated;
mod text;
mod versions;

pub use generated::*;
pub use versions::Versions;

/// The type of `oarlock_plugin_query`, the one function a plugin exports.
pub type PluginQuery = unsafe extern "C" fn(*const Host, *mut Plugin) -> Error;

/// The name of the one symbol a plugin exports.
pub const ENTRY: &str = "oarlock_plugin_query";

/// One bit for each dtype of the contract, at the place of its number.
pub const ALL_DTYPES: u64 = (1 << (Dtype::U2.0 + 1)) - 2;

/// The sanitizer this binary is built with. A plugin and its host must agree, or the sanitizer reports nonsense.
pub const SANITIZER: Sanitizer = if cfg!(oarlock_sanitizer = "address") {
    Sanitizer::ADDRESS
} else if cfg!(oarlock_sanitizer = "thread") {
    Sanitizer::THREAD
} else if cfg!(oarlock_sanitizer = "memory") {
    Sanitizer::MEMORY
} else {
    Sanitizer::NONE
};
