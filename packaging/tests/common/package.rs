//! Tiny Debian packages.

use std::path::{Path, PathBuf};

use oarlock_formats::deb::DebPackage;
use oarlock_formats::tree::TreeEntry;

/// Writes a package into a directory, replacing one of the same name, and returns its path. Unless its fields say otherwise, it
/// has version 1 and one architecture.
pub(crate) fn put_package(directory: &Path, name: &str, fields: &[(&str, &str)]) -> PathBuf {
    let about = [
        ("Package", name),
        ("Version", "1"),
        ("Architecture", "amd64"),
        ("Maintainer", "Nobody <nobody@example.org>"),
        ("Description", "does nothing\nAt length."),
    ];
    let mut package = DebPackage::default();
    about.iter().chain(fields).for_each(|(field, value)| package.control.set(field, value));
    package
        .contents
        .insert_entry(&format!("usr/share/{name}"), TreeEntry::file(name.as_bytes()))
        .expect("a path");
    std::fs::create_dir_all(directory).expect("a directory");
    let file = directory.join(format!("{name}.deb"));
    // A new file, because the old one may be hard-linked into a repository.
    _ = std::fs::remove_file(&file);
    std::fs::write(&file, package.to_bytes(1_700_000_000).expect("a package")).expect("a file");
    file
}
