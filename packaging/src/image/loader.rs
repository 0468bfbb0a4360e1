//! The list of all libraries that the loader of programs looks into, made by the image's own `ldconfig` where it has one. `ldconfig
//! -p` shows it, by which scripts see what is installed; without it programs find libraries all the same.

use std::path::Path;
use std::process::Command;

use super::bytecode::extract_tree;
use crate::error::Error;
use crate::file::StagedDirectory;
use crate::tree::{FileTree, TreeEntry};

/// What makes the list, and the list.
const LDCONFIG_PATH: &str = "usr/sbin/ldconfig";
const LOADER_CACHE_PATH: &str = "etc/ld.so.cache";

/// The list of the libraries in a root. It is the same wherever it is made.
pub(super) fn build_loader_cache(root: &FileTree, scratch: &Path) -> Result<FileTree, Error> {
    let mut tree = FileTree::default();
    if root.get(LDCONFIG_PATH).is_none() {
        return Ok(tree);
    }
    let mut needed = root.clone();
    let is_needed =
        |path: &str| path.contains(".so") || path == LDCONFIG_PATH || root.file_bytes(path).is_none();
    needed.retain(is_needed);
    let place = StagedDirectory::create_beside(&scratch.join("libraries"))?;
    extract_tree(&needed, place.path())?;
    // It is linked with nothing, so that it runs as it is.
    let mut maker = Command::new(place.path().join(LDCONFIG_PATH));
    maker.arg("-X").arg("-r").arg(place.path()).env_clear();
    let output = maker.output().map_err(|error| Error::from(error).in_file(LDCONFIG_PATH))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Error::new(format!("`{LDCONFIG_PATH}` failed: {}", said.trim())));
    }
    tree.insert_entry(
        LOADER_CACHE_PATH,
        TreeEntry::file(std::fs::read(place.path().join(LOADER_CACHE_PATH))?),
    )?;
    Ok(tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_what_the_program_of_the_image_makes_of_its_libraries() {
        let place = tempfile::tempdir().expect("a directory");
        let mut root = FileTree::default();
        for path in ["etc/hosts", "usr/lib/liba.so.1", "usr/lib/a.txt"] {
            root.insert_entry(path, TreeEntry::file(*b"")).expect("a path");
        }
        assert_eq!(build_loader_cache(&root, place.path()), Ok(FileTree::default()));
        let mut made_by = |lines: &str| {
            let text = format!("#!/bin/sh\n{lines}\n");
            root.insert_entry(LDCONFIG_PATH, TreeEntry::program(text.into_bytes())).expect("a path");
            build_loader_cache(&root, place.path())
        };
        let made = made_by("echo \"$1 $2\" \"$3\"/usr/lib/* | sed \"s|$3||g\" > \"$3/etc/ld.so.cache\"");
        assert_eq!(
            made.expect("a list").file_bytes(LOADER_CACHE_PATH),
            Some(&b"-X -r /usr/lib/liba.so.1\n"[..])
        );
        let error = made_by("echo no room >&2; exit 1").expect_err("a failure").to_string();
        assert_eq!(error, "`usr/sbin/ldconfig` failed: no room");
    }
}
