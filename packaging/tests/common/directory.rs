//! Directory listings.

use std::path::Path;

/// The sorted names of files in a directory.
pub(crate) fn file_names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let mut names: Vec<String> =
        entries.map(|it| it.expect("a file").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
