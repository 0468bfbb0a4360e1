//! Files that are replaced atomically.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

/// Symbolic links followed before giving up; the kernel has the same limit.
const MAX_LINKS: usize = 40;

/// Replaces a file atomically. A special file such as `/dev/null` is written to instead.
pub fn replace_file(file: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    // Replace the target of a link, not the link.
    let file = resolve_links(file)?;
    if fs::metadata(&file).is_ok_and(|metadata| !metadata.is_file()) {
        let mut stream = File::options().write(true).open(&file)?;
        return write(&mut stream);
    }
    // The umask is applied to these.
    let permissions =
        fs::metadata(&file).map_or(Permissions::from_mode(0o666), |metadata| metadata.permissions());
    let directory = parent_directory(&file);
    let mut named = tempfile::Builder::new();
    named.prefix(".oarlock-");
    let new = if let Some(mut new) = open_unnamed_file(directory, &permissions) {
        write(&mut new)?;
        // `linkat` only creates new names, so an existing file is replaced in a second step, by rename.
        named.make_in(directory, |path| link_unnamed_file(&new, path))?.into_temp_path()
    } else {
        let mut new = named.permissions(permissions).tempfile_in(directory)?;
        write(new.as_file_mut())?;
        new.into_temp_path()
    };
    new.persist(&file)?;
    Ok(())
}

/// Opens an unnamed temporary file, which vanishes if the command is killed. Not every file system supports this.
fn open_unnamed_file(directory: &Path, permissions: &Permissions) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::open(directory, flags, Mode::from_raw_mode(permissions.mode())).ok()?;
    let file = File::from(file);
    descriptor_path(&file).exists().then_some(file)
}

fn link_unnamed_file(file: &File, path: &Path) -> io::Result<()> {
    Ok(rustix::fs::linkat(CWD, descriptor_path(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// The `/proc` path of an open file.
fn descriptor_path(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Resolves symbolic links of a file that may not exist yet. A dangling link stands for its target.
pub fn resolve_links(file: &Path) -> io::Result<PathBuf> {
    let mut file = file.to_owned();
    let mut links = 0;
    while !file.exists()
        && let Ok(next) = fs::read_link(&file)
    {
        links += 1;
        if links > MAX_LINKS {
            return Err(Errno::LOOP.into());
        }
        file = parent_directory(&file).join(next);
    }
    Ok(fs::canonicalize(&file).unwrap_or_else(|_| {
        match (fs::canonicalize(parent_directory(&file)), file.file_name()) {
            (Ok(directory), Some(name)) => directory.join(name),
            _ => file,
        }
    }))
}

/// Returns `.` for a bare file name.
pub fn parent_directory(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_keeps_the_old_file_and_no_leftovers() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("page.html");
        fs::write(&file, "old").unwrap();
        let cut = replace_file(&file, |stream| {
            io::Write::write_all(stream, b"ne")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert!(cut.is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_half_written_has_no_name() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("page.html");
        let count = || fs::read_dir(directory.path()).unwrap().count();
        if open_unnamed_file(directory.path(), &Permissions::from_mode(0o666)).is_none() {
            return;
        }
        for files in 0..2 {
            let whole = replace_file(&file, |stream| {
                io::Write::write_all(stream, b"half")?;
                assert_eq!(count(), files);
                Ok(())
            });
            whole.unwrap();
            assert_eq!((fs::read_to_string(&file).unwrap().as_str(), count()), ("half", 1));
            fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        }
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
