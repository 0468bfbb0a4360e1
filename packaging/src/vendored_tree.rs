//! Paths of the vendored downloads beside the sources.

use std::path::{Path, PathBuf};

/// The directory in the sources.
pub(crate) const VENDOR_DIRECTORY: &str = "vendor";
pub(crate) const CRATES_DIRECTORY: &str = "crates";

/// Cargo's settings. They are written last, so their presence marks a complete directory.
pub(crate) const CARGO_SETTINGS_FILE: &str = "cargo.toml";

/// The directory of Debian packages, if the sources are vendored.
#[must_use]
pub fn debian_directory(root: &Path) -> Option<PathBuf> {
    finished_directory(root, "debian")
}

/// The directory of wheels for pip, if the sources are vendored.
pub(crate) fn python_directory(root: &Path) -> Option<PathBuf> {
    finished_directory(root, "python")
}

/// The directory of crates, if the sources are vendored, relative to the file that includes cargo's settings.
pub(crate) fn crates_directory(root: &Path) -> Option<PathBuf> {
    finished_directory(&root.join(".cargo/.."), CRATES_DIRECTORY)
}

fn finished_directory(root: &Path, name: &str) -> Option<PathBuf> {
    let place = root.join(VENDOR_DIRECTORY).join(name);
    (root.join(VENDOR_DIRECTORY).join(CARGO_SETTINGS_FILE).is_file() && place.is_dir()).then_some(place)
}
