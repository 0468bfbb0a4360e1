//! The list of all libraries that the loader of programs looks into, made by the image's own `ldconfig` where it has one. `ldconfig
//! -p` shows it, by which scripts see what is installed; without it programs find libraries all the same.

use std::path::Path;
use std::process::Command;

use super::bytecode::write_to;
use crate::error::Error;
use crate::file::NewDirectory;
use crate::tree::{Entry, Tree};

/// What makes the list, and the list.
const MAKER: &str = "usr/sbin/ldconfig";
const LIST: &str = "etc/ld.so.cache";

/// The list of the libraries in a root. It is the same wherever it is made.
pub(super) fn list(root: &Tree, scratch: &Path) -> Result<Tree, Error> {
    let mut tree = Tree::default();
    if root.get(MAKER).is_none() {
        return Ok(tree);
    }
    let mut needed = root.clone();
    let is_needed = |path: &str| path.contains(".so") || path == MAKER || root.file(path).is_none();
    needed.retain(is_needed);
    let place = NewDirectory::beside(&scratch.join("libraries"))?;
    write_to(&needed, place.path())?;
    // It is linked with nothing, so that it runs as it is.
    let mut maker = Command::new(place.path().join(MAKER));
    maker.arg("-X").arg("-r").arg(place.path()).env_clear();
    let output = maker.output().map_err(|error| Error::from(error).of_file(MAKER))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Error::new(format!("`{MAKER}` failed: {}", said.trim())));
    }
    tree.put(LIST, Entry::file(std::fs::read(place.path().join(LIST))?))?;
    Ok(tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_what_the_program_of_the_image_makes_of_its_libraries() {
        let place = tempfile::tempdir().expect("a directory");
        let mut root = Tree::default();
        for path in ["etc/hosts", "usr/lib/liba.so.1", "usr/lib/a.txt"] {
            root.put(path, Entry::file(*b"")).expect("a path");
        }
        assert_eq!(list(&root, place.path()), Ok(Tree::default()));
        let mut made_by = |lines: &str| {
            let text = format!("#!/bin/sh\n{lines}\n");
            root.put(MAKER, Entry::program(text.into_bytes())).expect("a path");
            list(&root, place.path())
        };
        let made = made_by("echo \"$1 $2\" \"$3\"/usr/lib/* | sed \"s|$3||g\" > \"$3/etc/ld.so.cache\"");
        assert_eq!(made.expect("a list").file(LIST), Some(&b"-X -r /usr/lib/liba.so.1\n"[..]));
        let error = made_by("echo no room >&2; exit 1").expect_err("a failure").to_string();
        assert_eq!(error, "`usr/sbin/ldconfig` failed: no room");
    }
}
