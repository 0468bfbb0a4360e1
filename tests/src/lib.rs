//! Tests that cross crates. They are in `tests/`; what stands here has the examples of the book compiled.

/// The page about devices in Rust.
#[cfg(doctest)]
#[doc = include_str!("../../docs/src/contributor/device-in-rust.md")]
pub struct DeviceInRust;
