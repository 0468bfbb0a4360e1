//! Atomic writes of files and directories: the result is complete or absent.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::error::Error;
use rustix::fs::{Access, CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use tempfile::{Builder, TempDir};

/// Prefix of unfinished files. Their writer holds a lock on them.
const UNFINISHED_PREFIX: &str = ".unfinished-";

/// Replaces a file and creates its parent directories. Readers see the old or the new contents in full, even if the disk fills
/// up.
///
/// # Errors
///
/// When the file cannot be written; the error has the file name.
pub fn write_file(file: &Path, bytes: &[u8]) -> io::Result<()> {
    write_with_mode(file, bytes, 0o666)
}

/// Like [`write_file`], with execute permission.
///
/// # Errors
///
/// When the file cannot be written; the error has the file name.
pub fn write_program(file: &Path, bytes: &[u8]) -> io::Result<()> {
    write_with_mode(file, bytes, 0o777)
}

fn write_with_mode(file: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let directory = parent_directory(file);
    let write = || {
        fs::create_dir_all(directory)?;
        let (mut new, _lock) = create_locked(|| {
            // The umask decides who else may read it, as for any file.
            let new = Builder::new()
                .prefix(UNFINISHED_PREFIX)
                .permissions(Permissions::from_mode(mode))
                .tempfile_in(directory)?;
            let path = new.path().to_owned();
            Ok((new, path))
        })?;
        new.write_all(bytes)?;
        new.as_file().sync_all()?;
        new.persist(file).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(|error| add_file_context(file, error))
}

fn add_file_context(file: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("`{}`: {error}", file.display()))
}

/// Creates a file that only its owner can read; it never overwrites one.
///
/// # Errors
///
/// When the file exists or cannot be written; the error has the file name.
pub fn write_secret(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let write = || {
        // Temporary files are private to their owner by default.
        let mut new = Builder::new().prefix(UNFINISHED_PREFIX).tempfile_in(parent_directory(file))?;
        new.write_all(bytes)?;
        new.as_file().sync_all()?;
        new.persist_noclobber(file).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(|error| add_file_context(file, error))
}

/// Checks for free disk space and write permission at a directory or its future place, before slow work starts.
///
/// # Errors
///
/// When the disk has too little space or is not writable for this user.
pub fn check_disk_space(directory: &Path, bytes: u64) -> Result<(), Error> {
    let there = directory.ancestors().find(|it| it.exists()).unwrap_or(Path::new("."));
    let there = if there.as_os_str().is_empty() { Path::new(".") } else { there };
    let at = |error: Errno| add_file_context(directory, error.into());
    rustix::fs::access(there, Access::WRITE_OK).map_err(at)?;
    let disk = rustix::fs::statvfs(there).map_err(at)?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free >= bytes {
        return Ok(());
    }
    let megabytes = |bytes: u64| bytes / 1_000_000;
    let (wanted, found) = (megabytes(bytes), megabytes(free));
    Err(Error::new(format!("expected {wanted} MB of free disk, found {found}")).in_file(directory.display()))
}

/// A directory that replaces another when it is complete, and is removed otherwise.
pub struct StagedDirectory {
    directory: TempDir,
    _lock: File,
}

impl StagedDirectory {
    /// Creates an empty directory beside its target, and removes abandoned ones that interrupted runs left there.
    pub fn create_beside(target: &Path) -> io::Result<Self> {
        let beside = parent_directory(target);
        fs::create_dir_all(beside)?;
        remove_unfinished(beside)?;
        let (directory, lock) = create_locked(|| {
            let directory = Builder::new()
                .prefix(UNFINISHED_PREFIX)
                .permissions(Permissions::from_mode(0o777))
                .tempdir_in(beside)?;
            let path = directory.path().to_owned();
            Ok((directory, path))
        })?;
        Ok(Self { directory, _lock: lock })
    }

    /// The staging path, for files until the directory is complete.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Moves the directory to its target, replacing what is there; atomic if the system can exchange two directories.
    pub fn replace_target(self, target: &Path) -> io::Result<()> {
        let swap = || renameat_with(CWD, self.path(), CWD, target, RenameFlags::EXCHANGE);
        match swap() {
            // The old contents now have the temporary name and are removed with it.
            Ok(()) => Ok(()),
            Err(Errno::NOENT) => match fs::rename(self.path(), target) {
                // Another process created the target in the meantime.
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(swap()?),
                renamed => renamed,
            },
            Err(_) => {
                let old = Builder::new().prefix(UNFINISHED_PREFIX).tempdir_in(parent_directory(target))?;
                fs::rename(target, old.path().join("old"))?;
                fs::rename(self.path(), target)
            }
        }
    }
}

/// Removes abandoned unfinished files of a directory. Files that are still being written stay.
///
/// # Errors
///
/// When the directory cannot be read or an entry cannot be removed.
pub fn remove_unfinished(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        // An entry that is gone or locked belongs to a running process.
        if !is_unfinished(&path) || !File::open(&path).is_ok_and(|file| file.try_lock().is_ok()) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(&path)?;
        } else {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

fn is_unfinished(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(UNFINISHED_PREFIX.as_bytes()))
}

fn parent_directory(path: &Path) -> &Path {
    path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates a file and locks it; `make` returns it with its path.
fn create_locked<T>(make: impl Fn() -> io::Result<(T, PathBuf)>) -> io::Result<(T, File)> {
    loop {
        let (made, path) = make()?;
        // Between creation and lock, another process may have removed it as abandoned.
        match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok(file) => {
                // On file systems without locks nobody gets a lock, so nobody removes it.
                _ = file.lock();
                if path.exists() {
                    return Ok((made, file));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("a directory");
        entries.map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_disk_that_is_too_small_is_known_before_anything_is_written() {
        let place = tempfile::tempdir().expect("a directory");
        let later = place.path().join("not/there/yet");
        check_disk_space(&later, 0).expect("room for nothing");
        let error = check_disk_space(&later, u64::MAX).expect_err("a full disk").to_string();
        assert!(error.contains("not/there/yet`: expected 18446744073709 MB of free disk, found "), "{error}");
    }

    #[test]
    fn what_was_left_behind_is_removed_and_what_is_worked_on_is_not() {
        let place = tempfile::tempdir().expect("a directory");
        let target = place.path().join("target");
        fs::create_dir_all(place.path().join(".unfinished-a/deep")).expect("a directory");
        fs::write(place.path().join(".unfinished-b"), "half").expect("a file");
        fs::write(place.path().join("finished"), "whole").expect("a file");
        let new = StagedDirectory::create_beside(&target).expect("a directory");
        remove_unfinished(place.path()).expect("a directory that can be read");
        assert_eq!(file_names(place.path()).len(), 2, "{:?}", file_names(place.path()));
        new.replace_target(&target).expect("a place");
        StagedDirectory::create_beside(&target)
            .expect("a directory")
            .replace_target(&target)
            .expect("a place");
        let mut left = file_names(place.path());
        left.sort();
        assert_eq!(left, ["finished", "target"]);
    }

    #[test]
    fn a_secret_is_for_its_owner_alone_and_takes_no_place() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("secret");
        write_secret(&file, b"one").expect("a file");
        let mode = fs::metadata(&file).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let error = write_secret(&file, b"two").expect_err("a file that is there");
        assert!(
            error.kind() == io::ErrorKind::AlreadyExists && error.to_string().contains("secret`: "),
            "{error}"
        );
        assert_eq!((fs::read(&file).expect("a file"), file_names(place.path()).len()), (b"one".to_vec(), 1));
    }

    #[test]
    fn a_directory_takes_the_place_of_one_that_holds_files() {
        let place = tempfile::tempdir().expect("a directory");
        let target = place.path().join("target");
        for text in ["one", "two"] {
            let new = StagedDirectory::create_beside(&target).expect("a directory");
            fs::write(new.path().join(text), text).expect("a file");
            new.replace_target(&target).expect("a place");
            assert_eq!(file_names(&target), [text]);
            assert_eq!(file_names(place.path()), ["target"]);
        }
    }
}
