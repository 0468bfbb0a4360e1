//! Files as memory, so that weights are read when they are used and never copied.

#![expect(unsafe_code, reason = "what a mapping holds is as sure as the file behind it")]

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use memmap2::{Mmap, UncheckedAdvice};
use oarlock_core::{Error, Result};

use super::error_location::quote_name;

/// The bytes of a file. They are there until the last part of them is dropped; the file must not change meanwhile, and who
/// makes it shorter ends the program at the next look behind its new end.
pub(super) fn map_file(path: &Path) -> Result<Bytes> {
    let shown = || quote_name(&path.display().to_string());
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Error::not_found(format!("{}: expected a file, found none", shown()))
            .with_advice(
                "name a file that is there; paths that do not begin with `/` begin in the current directory",
            ),
        _ => Error::unavailable(format!("{}: expected to read it, found: {error}", shown())),
    };
    // Before it is opened, since to open a pipe is to wait for somebody who writes to it.
    let metadata = path.metadata().map_err(failed)?;
    if !metadata.is_file() {
        let found = if metadata.is_dir() { "a directory" } else { "a pipe or a device" };
        return Err(Error::invalid_argument(format!("{}: expected a file, found {found}", shown())));
    }
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.len() == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: the mapping is read-only and private. That nobody changes the file below it is not in the hands of a
    // program; it is what every reader of models asks of its users, and `load` says so.
    let mapped = unsafe { Mmap::map(&file) }.map_err(failed)?;
    let mapped = Arc::new(mapped);
    let mut live = LIVE_MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner);
    live.retain(|(other, _)| other.strong_count() > 0);
    live.push((Arc::downgrade(&mapped), file_identity(&metadata)));
    Ok(Bytes::from_owner(MappingOwner(mapped)))
}

/// Every mapping that is there. Bytes do not say where they come from, so who wants to give memory back looks here.
static LIVE_MAPPINGS: Mutex<Vec<(Weak<Mmap>, FileIdentity)>> = Mutex::new(Vec::new());

/// Which file it is, whatever it is called: its device and its number there.
type FileIdentity = (u64, u64);

fn file_identity(metadata: &Metadata) -> FileIdentity {
    (metadata.dev(), metadata.ino())
}

/// Whether a model that is loaded, or what was made of it, is read from this file.
pub fn is_file_mapped(path: &Path) -> bool {
    let Ok(metadata) = path.metadata() else { return false };
    let live = LIVE_MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner);
    live.iter().any(|(mapped, file)| *file == file_identity(&metadata) && mapped.strong_count() > 0)
}

/// What keeps a mapping for its bytes.
struct MappingOwner(Arc<Mmap>);

impl AsRef<[u8]> for MappingOwner {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Gives back the memory of bytes that lie in a mapped file. Whoever reads them later reads them from the file again.
pub(crate) fn release_pages(bytes: &[u8]) {
    let live = LIVE_MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner);
    let begin = bytes.as_ptr() as usize;
    for mapped in live.iter().filter_map(|(mapped, _)| mapped.upgrade()) {
        let first = mapped.as_ptr() as usize;
        let Some(offset) = begin.checked_sub(first).filter(|offset| offset + bytes.len() <= mapped.len())
        else {
            continue;
        };
        // Only whole pages: the rest of the first and the last one belongs to others.
        let (from, to) =
            (offset.next_multiple_of(LARGEST_PAGE), (offset + bytes.len()) / LARGEST_PAGE * LARGEST_PAGE);
        if from < to {
            // SAFETY: the mapping is private, read-only and of a file, so pages that are dropped come back the same. That
            // they could not be dropped harms nobody.
            _ = unsafe { mapped.unchecked_advise_range(UncheckedAdvice::DontNeed, from, to - from) };
        }
    }
}

/// The largest size that pages of ordinary memory have.
const LARGEST_PAGE: usize = 1 << 16;
