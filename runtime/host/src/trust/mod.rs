//! Whom the user trusts: keys, signatures of manifests, and statements about keys.
//!
//! A signature covers the manifest of a plugin, and the manifest has the hashes of the plugin and of every library beside it. So
//! one signature covers every byte that a vendor ships, and everything that the vendor says about it.

pub(crate) mod key;
pub(crate) mod key_directory;
pub(crate) mod signature;
pub(crate) mod statement;
pub(crate) mod trusted_keys;
