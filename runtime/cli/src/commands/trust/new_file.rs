//! Files that must not exist yet: a key that is overwritten is lost for ever.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::problem::CommandError;

/// The mode of a file that only its owner may read.
pub(super) const SECRET_MODE: u32 = 0o600;
/// The mode of a file for everybody. The host refuses keys that others can write to, whatever the umask is.
pub(super) const PUBLIC_MODE: u32 = 0o644;

/// `name` with `extension` appended, not replaced: a name may have dots of its own.
pub(super) fn path_with_extension(name: &Path, extension: &str) -> PathBuf {
    let mut path = name.as_os_str().to_owned();
    path.push(".");
    path.push(extension);
    path.into()
}

/// Fails if one of the files exists, before any of them is written.
pub(super) fn check_absent<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), CommandError> {
    match files.into_iter().find(|file| file.symlink_metadata().is_ok()) {
        None => Ok(()),
        Some(file) => Err(existing_file(file)),
    }
}

/// Writes a file that does not exist.
pub(super) fn write_new_file(file: &Path, text: &str, mode: u32) -> Result<(), CommandError> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(file);
    let written = opened.and_then(|mut file| {
        // The umask may have taken bits that others need.
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => existing_file(file),
        _ => CommandError::new(format!("`{}`: expected to write to it, found: {error}", file.display()))
            .with_hint("name a file in a directory that you can write to"),
    })
}

fn existing_file(file: &Path) -> CommandError {
    CommandError::new(format!("`{}`: expected no such file, found one", file.display()))
        .with_hint("name another file; a key is never overwritten")
}
