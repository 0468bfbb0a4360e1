//! Files as memory, so that weights are read when they are used and never copied.

#![expect(unsafe_code, reason = "what a mapping holds is as sure as the file behind it")]

use std::fs::File;
use std::io;
use std::path::Path;

use bytes::Bytes;
use memmap2::Mmap;
use oarlock_core::{Error, Result};

use super::place::quoted;

/// The bytes of a file. They are there until the last part of them is dropped; the file must not change meanwhile, and who
/// makes it shorter ends the program at the next look behind its new end.
pub(super) fn map(path: &Path) -> Result<Bytes> {
    let shown = || quoted(&path.display().to_string());
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Error::not_found(format!("expected the file {}, found none", shown())),
        _ => Error::unavailable(format!("expected to read {}, found: {error}", shown())),
    };
    // Before it is opened, since to open a pipe is to wait for somebody who writes to it.
    if !path.metadata().map_err(failed)?.is_file() {
        return Err(Error::invalid_argument(format!("expected a file, found that {} is none", shown())));
    }
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.len() == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: the mapping is read-only and private. That nobody changes the file below it is not in the hands of a
    // program; it is what every reader of models asks of its users, and `load` says so.
    let mapped = unsafe { Mmap::map(&file) }.map_err(failed)?;
    Ok(Bytes::from_owner(mapped))
}
