//! Refuses files that other users could change: a user who can write to a plugin can run code as the user who loads it.
//!
//! The path is walked from the root as the kernel walks it, so every directory on either side of every symbolic link is
//! checked. Root and the user that the program runs as are trusted; so is the user's own primary group, which on most systems
//! has one member. A sticky directory such as `/tmp` may be an ancestor, since users cannot replace each other's entries
//! there. But any user can add entries, so plugins are never loaded directly from such a directory.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::{Refusal, RefusalReason};

/// The number of symbolic links after which the kernel gives up.
const MAX_LINKS: usize = 40;
const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;
const STICKY: u32 = 0o1000;

/// The user and group that a program runs as. Files that they can change are trusted: they could run code anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// The effective user.
    pub user: u32,
    /// The effective group.
    pub group: u32,
}

/// The role of a path in the check, which determines how strict the check is.
#[derive(Clone, Copy, PartialEq)]
enum PathRole {
    /// A directory that leads to the file.
    Ancestor,
    /// The directory that contains plugins.
    Home,
    /// The file itself.
    File,
}

impl ProcessIdentity {
    /// The effective user and group of this process.
    pub fn of_process() -> Self {
        Self { user: rustix::process::geteuid().as_raw(), group: rustix::process::getegid().as_raw() }
    }

    /// Checks a file, its directory and every directory above; returns the real path.
    pub fn check_file(&self, path: &Path) -> Result<PathBuf, Refusal> {
        self.check_path(path, PathRole::File)
    }

    /// Checks a directory for plugins, and every directory above; returns the real path.
    pub fn check_directory(&self, path: &Path) -> Result<PathBuf, Refusal> {
        self.check_path(path, PathRole::Home)
    }

    fn check_path(&self, path: &Path, last: PathRole) -> Result<PathBuf, Refusal> {
        let absolute = std::path::absolute(path).map_err(|error| unreadable_refusal(path, &error))?;
        let mut ahead: VecDeque<OsString> = path_components(&absolute).collect();
        let mut here = PathBuf::from("/");
        let mut links = 0;
        while let Some(name) = ahead.pop_front() {
            if name == ".." {
                here.pop();
                continue;
            }
            let home = last == PathRole::File && ahead.is_empty();
            self.check_component(path, &here, if home { PathRole::Home } else { PathRole::Ancestor })?;
            here.push(name);
            let metadata = here.symlink_metadata().map_err(|error| unreadable_refusal(path, &error))?;
            if !metadata.is_symlink() {
                continue;
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(symlink_loop_refusal(path));
            }
            self.check_owner(path, &here, &metadata)?;
            let target = here.read_link().map_err(|error| unreadable_refusal(path, &error))?;
            if target.is_absolute() {
                here = PathBuf::from("/");
            } else {
                here.pop();
            }
            for name in path_components(&target).collect::<Vec<_>>().into_iter().rev() {
                ahead.push_front(name);
            }
        }
        self.check_component(path, &here, last)?;
        Ok(here)
    }

    fn check_component(&self, path: &Path, here: &Path, part: PathRole) -> Result<(), Refusal> {
        let metadata = here.metadata().map_err(|error| unreadable_refusal(path, &error))?;
        if part == PathRole::File && !metadata.is_file() {
            let remedy = "name a file, or remove it from the plugin directory";
            return Err(Refusal::new(
                RefusalReason::NotASharedObject,
                path,
                "a regular file",
                file_kind(&metadata),
                remedy,
            ));
        }
        self.check_owner(path, here, &metadata)?;
        let mode = metadata.mode();
        if part == PathRole::Ancestor && mode & STICKY != 0 {
            return Ok(());
        }
        let who = if mode & OTHERS_WRITE != 0 {
            "everybody".to_owned()
        } else if mode & GROUP_WRITES != 0 && metadata.gid() != self.group {
            format!("the members of group {}", metadata.gid())
        } else {
            return Ok(());
        };
        let remedy = format!("run `chmod go-w {}`, or move the plugin elsewhere", here.display());
        Err(writable_refusal(path, format!("`{}`, which {who} can write to", here.display()), remedy))
    }

    fn check_owner(&self, path: &Path, here: &Path, metadata: &Metadata) -> Result<(), Refusal> {
        let owner = metadata.uid();
        if owner == 0 || owner == self.user {
            return Ok(());
        }
        let remedy = format!("run `chown -h root {}`, or move the plugin elsewhere", here.display());
        Err(writable_refusal(path, format!("`{}`, which belongs to user {owner}", here.display()), remedy))
    }
}

/// The components of a path; `..` is kept, because its meaning depends on the links before it.
fn path_components(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

fn file_kind(metadata: &Metadata) -> &'static str {
    if metadata.is_dir() { "a directory" } else { "a device, pipe or socket" }
}

fn writable_refusal(path: &Path, found: String, remedy: String) -> Refusal {
    let expected = "a path that only root and the user running this program can change";
    Refusal::new(RefusalReason::WritableByOthers, path, expected, found, remedy)
}

fn symlink_loop_refusal(path: &Path) -> Refusal {
    let expected = "a path that leads to a file";
    let found = "a loop of symbolic links";
    Refusal::new(RefusalReason::SymlinkLoop, path, expected, found, "remove the link or point it at the file")
}

/// A refusal for a path that cannot be opened.
pub(crate) fn unreadable_refusal(path: &Path, error: &io::Error) -> Refusal {
    if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
        return symlink_loop_refusal(path);
    }
    let (found, remedy) = match error.kind() {
        io::ErrorKind::NotFound => ("nothing there".to_owned(), "correct the path or install the plugin"),
        io::ErrorKind::PermissionDenied => ("no permission to read it".to_owned(), "run `chmod a+r` on it"),
        _ => (error.to_string(), "correct the path or install the plugin again"),
    };
    Refusal::new(RefusalReason::Unreadable, path, "a readable file or directory", found, remedy)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A directory with correct permissions, under a sticky `/tmp`.
    fn private_directory() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("plugins");
        fs::create_dir(&home).unwrap();
        set_mode(&home, 0o755);
        let file = home.join("libx.so");
        fs::write(&file, b"x").unwrap();
        set_mode(&file, 0o644);
        (root, file)
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn check_file(path: &Path) -> Result<PathBuf, RefusalReason> {
        ProcessIdentity::of_process().check_file(path).map_err(|refusal| refusal.reason)
    }

    #[test]
    fn a_tidy_file_under_a_sticky_directory_is_accepted() {
        let (_root, file) = private_directory();
        assert_eq!(check_file(&file), Ok(file.canonicalize().unwrap()));
    }

    #[test]
    fn a_world_writable_file_directory_or_ancestor_is_refused() {
        for place in ["plugins/libx.so", "plugins", "."] {
            let (root, file) = private_directory();
            set_mode(&root.path().join(place), 0o777);
            assert_eq!(check_file(&file), Err(RefusalReason::WritableByOthers), "{place}");
        }
    }

    #[test]
    fn plugins_in_a_sticky_directory_are_refused() {
        let (root, file) = private_directory();
        set_mode(file.parent().unwrap(), 0o1777);
        assert_eq!(check_file(&file), Err(RefusalReason::WritableByOthers));
        set_mode(file.parent().unwrap(), 0o755);
        set_mode(root.path(), 0o1777);
        assert!(check_file(&file).is_ok());
    }

    #[test]
    fn a_group_may_write_only_if_it_is_the_users_own() {
        let (_root, file) = private_directory();
        set_mode(&file, 0o664);
        let process = ProcessIdentity::of_process();
        assert!(process.check_file(&file).is_ok());
        let other = ProcessIdentity { group: process.group + 1, ..process };
        assert_eq!(other.check_file(&file).unwrap_err().reason, RefusalReason::WritableByOthers);
    }

    #[test]
    fn a_file_of_another_user_is_refused() {
        let (_root, file) = private_directory();
        let process = ProcessIdentity::of_process();
        if std::os::unix::fs::chown(&file, Some(4242), None).is_err() {
            eprintln!("skipped: only root can give a file away");
            return;
        }
        assert_eq!(check_file(&file), Err(RefusalReason::WritableByOthers));
        assert_eq!(
            ProcessIdentity { user: 4242, ..process }.check_file(&file),
            Ok(file.canonicalize().unwrap())
        );
    }

    #[test]
    fn both_sides_of_a_symbolic_link_are_checked() {
        let (root, file) = private_directory();
        let bin = root.path().join("links");
        fs::create_dir(&bin).unwrap();
        set_mode(&bin, 0o755);
        let link = bin.join("liby.so");
        symlink("../plugins/../plugins/libx.so", &link).unwrap();
        assert_eq!(check_file(&link), Ok(file.canonicalize().unwrap()));
        set_mode(&bin, 0o777);
        assert_eq!(check_file(&link), Err(RefusalReason::WritableByOthers));
        set_mode(&bin, 0o755);
        set_mode(file.parent().unwrap(), 0o777);
        assert_eq!(check_file(&link), Err(RefusalReason::WritableByOthers));
    }

    #[test]
    fn loops_missing_files_and_directories_each_have_their_reason() {
        let (root, file) = private_directory();
        let (a, b) = (root.path().join("a.so"), root.path().join("b.so"));
        symlink(&a, &b).unwrap();
        symlink(&b, &a).unwrap();
        assert_eq!(check_file(&a), Err(RefusalReason::SymlinkLoop));
        assert_eq!(check_file(&file.with_file_name("libnone.so")), Err(RefusalReason::Unreadable));
        assert_eq!(check_file(file.parent().unwrap()), Err(RefusalReason::NotASharedObject));
    }
}
