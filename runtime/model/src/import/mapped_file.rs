//! Maps files into memory, so that weights are paged in when they are used and never copied.

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

/// Maps a file. The mapping lives until the last slice of it is dropped. The file must not change meanwhile; if it is
/// truncated, reading beyond its new end kills the process with SIGBUS.
pub(super) fn map_file(path: &Path) -> Result<Bytes> {
    let shown = || quote_name(&path.display().to_string());
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Error::not_found(format!("{}: expected a file, found none", shown()))
            .with_advice(
                "name a file that is there; paths that do not begin with `/` begin in the current directory",
            ),
        _ => Error::unavailable(format!("{}: expected to read it, found: {error}", shown())),
    };
    // Checked before opening, because opening a pipe blocks until someone writes to it.
    let metadata = path.metadata().map_err(failed)?;
    if !metadata.is_file() {
        let found = if metadata.is_dir() { "a directory" } else { "a pipe or a device" };
        return Err(Error::invalid_argument(format!("{}: expected a file, found {found}", shown())));
    }
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.len() == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: the mapping is read-only and private. A program cannot prevent others from changing the file underneath;
    // every reader of models asks its users not to, and `load_model` says so.
    let mapped = unsafe { Mmap::map(&file) }.map_err(failed)?;
    let mapped = Arc::new(mapped);
    let mut live = LIVE_MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner);
    live.retain(|(other, _)| other.strong_count() > 0);
    live.push((Arc::downgrade(&mapped), file_identity(&metadata)));
    Ok(Bytes::from_owner(MappingOwner(mapped)))
}

/// All live mappings. `Bytes` does not say where it comes from, so releasing pages looks here.
static LIVE_MAPPINGS: Mutex<Vec<(Weak<Mmap>, FileIdentity)>> = Mutex::new(Vec::new());

/// Device and inode: identifies a file whatever its path.
type FileIdentity = (u64, u64);

fn file_identity(metadata: &Metadata) -> FileIdentity {
    (metadata.dev(), metadata.ino())
}

/// True if a loaded model, or anything made from it, still reads this file; overwriting it would corrupt that model.
pub fn is_file_mapped(path: &Path) -> bool {
    let Ok(metadata) = path.metadata() else { return false };
    let live = LIVE_MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner);
    live.iter().any(|(mapped, file)| *file == file_identity(&metadata) && mapped.strong_count() > 0)
}

/// Keeps a mapping alive for its `Bytes`.
struct MappingOwner(Arc<Mmap>);

impl AsRef<[u8]> for MappingOwner {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Releases the pages of bytes in a mapped file. A later read faults them in again.
pub fn release_pages(bytes: &[u8]) {
    let live = LIVE_MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner);
    let begin = bytes.as_ptr() as usize;
    for mapped in live.iter().filter_map(|(mapped, _)| mapped.upgrade()) {
        let first = mapped.as_ptr() as usize;
        let Some(offset) = begin.checked_sub(first).filter(|offset| offset + bytes.len() <= mapped.len())
        else {
            continue;
        };
        // Only whole pages: the partial first and last page may belong to other weights.
        let (from, to) =
            (offset.next_multiple_of(LARGEST_PAGE), (offset + bytes.len()) / LARGEST_PAGE * LARGEST_PAGE);
        if from < to {
            // SAFETY: the mapping is private, read-only and backed by a file, so dropped pages come back with the same content.
            // If they cannot be dropped, nothing is lost.
            _ = unsafe { mapped.unchecked_advise_range(UncheckedAdvice::DontNeed, from, to - from) };
        }
    }
}

/// The largest base page size of supported systems (64 KiB on some ARM kernels); offsets aligned to it suit smaller pages too.
const LARGEST_PAGE: usize = 1 << 16;
