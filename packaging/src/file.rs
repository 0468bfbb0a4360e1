//! Files that are there whole or not at all.

use std::io::{self, Write as _};
use std::path::Path;

/// Writes a file in place of what was there, and makes the directories above it. A reader sees what was there before or all
/// of the new, also where the disk is full half-way.
///
/// # Errors
///
/// When the file cannot be written; the error names it.
pub fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = file.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || {
        std::fs::create_dir_all(directory)?;
        let mut unfinished = tempfile::Builder::new().prefix(".unfinished-").tempfile_in(directory)?;
        unfinished.write_all(bytes)?;
        unfinished.as_file().sync_all()?;
        unfinished.persist(file).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(|error: io::Error| io::Error::new(error.kind(), format!("`{}`: {error}", file.display())))
}
