//! Judges single files, as the host does.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

mod directory;
mod files;
mod shipped;
