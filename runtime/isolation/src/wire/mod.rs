//! The bytes of a message: both sides write and read them with the same primitives.
//!
//! A reader trusts nothing. Every length is checked before it is used, because the other side may be a plugin that has overwritten
//! its own memory.

pub(crate) mod bump_storage;
pub(crate) mod byte_reader;
pub(crate) mod byte_writer;
pub(crate) mod descriptions;
pub(crate) mod failure;
pub(crate) mod generated;
pub(crate) mod header;
pub(crate) mod stored_reader;

use std::fmt;

/// Bytes that are not the message that they should be, or a message that cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireBreach {
    /// What was expected.
    pub expected: String,
    /// What was found.
    pub found: String,
}

impl WireBreach {
    pub(crate) fn new(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { expected: expected.into(), found: found.into() }
    }
}

impl fmt::Display for WireBreach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, found {}", self.expected, self.found)
    }
}
