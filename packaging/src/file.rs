//! Files that are there whole or not at all.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::{Builder, TempDir};

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
        let mut new = unfinished().permissions(Permissions::from_mode(0o666)).tempfile_in(directory)?;
        new.write_all(bytes)?;
        new.as_file().sync_all()?;
        new.persist(file).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(|error: io::Error| io::Error::new(error.kind(), format!("`{}`: {error}", file.display())))
}

/// A directory beside the one whose place it will take.
pub(crate) fn directory_in(directory: &Path) -> io::Result<TempDir> {
    unfinished().permissions(Permissions::from_mode(0o777)).tempdir_in(directory)
}

/// Names of what is not finished. What others may read of it is theirs to say, as of any file.
fn unfinished() -> Builder<'static, 'static> {
    let mut names = Builder::new();
    names.prefix(".unfinished-");
    names
}
