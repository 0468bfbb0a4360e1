//! Untrusted files: their permissions, bounded reads, and hashes.

pub(crate) mod digest;
pub(crate) mod permissions;
pub(crate) mod regular_file;
