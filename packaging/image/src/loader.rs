//! The cache of the dynamic loader, built by the image's own `ldconfig` if it has one. Scripts read it through `ldconfig -p`;
//! programs find their libraries without it.

use std::path::Path;

use oarlock_formats::error::Error;
use oarlock_formats::file::StagedDirectory;
use oarlock_formats::tree::{FileTree, TreeEntry};

use super::bytecode::extract_tree;
use super::image_program::image_program;

/// The program that writes the cache, and the cache.
const LDCONFIG_PATH: &str = "usr/sbin/ldconfig";
const LOADER_CACHE_PATH: &str = "etc/ld.so.cache";

/// Builds the cache for a root. It is reproducible.
pub(super) fn build_loader_cache(
    root: &FileTree,
    scratch: &Path,
    runner: Option<&Path>,
) -> Result<FileTree, Error> {
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
    // `ldconfig` is statically linked, so it runs outside of its image.
    let mut maker = image_program(&place.path().join(LDCONFIG_PATH), runner);
    maker.arg("-X").arg("-r").arg(place.path());
    let output = maker.output().map_err(|error| Error::from(error).in_file(LDCONFIG_PATH))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(Error::new(format!("`{LDCONFIG_PATH}` failed: {}", stderr.trim())));
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
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_list_is_what_the_program_of_the_image_makes_of_its_libraries() {
        let place = tempfile::tempdir().expect("a directory");
        let mut root = FileTree::default();
        for path in ["etc/hosts", "usr/lib/liba.so.1", "usr/lib/a.txt"] {
            root.insert_entry(path, TreeEntry::file(*b"")).expect("a path");
        }
        assert_eq!(build_loader_cache(&root, place.path(), None), Ok(FileTree::default()));
        let mut made_by = |lines: &str| {
            let text = format!("#!/bin/sh\n{lines}\n");
            root.insert_entry(LDCONFIG_PATH, TreeEntry::program(text.into_bytes())).expect("a path");
            build_loader_cache(&root, place.path(), None)
        };
        let made = made_by("echo \"$1 $2\" \"$3\"/usr/lib/* | sed \"s|$3||g\" > \"$3/etc/ld.so.cache\"");
        assert_eq!(
            made.expect("a list").file_bytes(LOADER_CACHE_PATH),
            Some(&b"-X -r /usr/lib/liba.so.1\n"[..])
        );
        let error = made_by("echo no room >&2; exit 1").expect_err("a failure").to_string();
        assert_eq!(error, "`usr/sbin/ldconfig` failed: no room");
    }

    #[test]
    fn a_program_for_another_architecture_is_run_by_the_runner() {
        let place = tempfile::tempdir().expect("a directory");
        let runner = place.path().join("run");
        let text = "#!/bin/sh\necho \"${1##*/} $2 $3\" > \"$4/etc/ld.so.cache\"\n";
        std::fs::write(&runner, text).expect("a file");
        std::fs::set_permissions(&runner, Permissions::from_mode(0o755)).expect("a mode");
        let mut root = FileTree::default();
        root.insert_entry(LDCONFIG_PATH, TreeEntry::program(*b"of another machine")).expect("a path");
        root.insert_entry("etc", TreeEntry::directory()).expect("a path");
        let made = build_loader_cache(&root, place.path(), Some(&runner)).expect("a list");
        assert_eq!(made.file_bytes(LOADER_CACHE_PATH), Some(&b"ldconfig -X -r\n"[..]));
    }
}
