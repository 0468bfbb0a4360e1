//! Files that others may have written: who could change them, how they are read, and their hashes.

pub(crate) mod digest;
pub(crate) mod permissions;
pub(crate) mod regular_file;
