//! Files that a command writes: looked at before the work begins, and there at once when it is done.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::problem::CommandError;

/// What the standard output is called among files. What a command has to say goes there.
const STANDARD_OUTPUT: [&str; 3] = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
/// How many links lead from one to the next at most, as for the system.
const MAX_LINKS: usize = 40;

/// The problem of an output that is to go where the command says what it has to say.
pub(crate) fn standard_output_error(file: &Path) -> CommandError {
    let message = format!("`{}`: expected a file, found the standard output", file.display());
    CommandError::new(message).with_hint("name a file")
}

/// Whether outputs can have these files: each its own, none that is protected from writing, and all in directories that
/// take them. A new file takes the place of an old one, which asks for rights in the directory only, so nothing else
/// heeds the protection.
pub(crate) fn check_output_files<'a>(files: impl IntoIterator<Item = &'a Path>) -> Result<(), CommandError> {
    let mut seen = BTreeSet::new();
    for file in files {
        if STANDARD_OUTPUT.iter().any(|name| file == Path::new(name)) {
            return Err(standard_output_error(file));
        }
        let metadata = fs::metadata(file).ok();
        if metadata.as_ref().is_some_and(|metadata| metadata.is_dir()) {
            let message = format!("`{}`: expected a file to write to, found a directory", file.display());
            return Err(CommandError::new(message).with_hint("name a file in it"));
        }
        if metadata.as_ref().is_some_and(|metadata| !metadata.is_file()) {
            continue;
        }
        if metadata.is_some_and(|metadata| metadata.permissions().readonly()) {
            let message = format!(
                "`{}`: expected a file that may be written, found one that is read-only",
                file.display()
            );
            return Err(
                CommandError::new(message).with_hint("name another file, or allow writing with `chmod u+w`")
            );
        }
        let resolved = resolve_links(file).map_err(|error| unwritable_file(file, &error))?;
        check_writable(parent_directory(&resolved)).map_err(|error| unwritable_file(file, &error))?;
        if !seen.insert(resolved) {
            let message = format!("`{}`: expected a file for each output, found it twice", file.display());
            return Err(CommandError::new(message).with_hint("name another file, or `-` to print the output"));
        }
    }
    Ok(())
}

/// Whether files can go to a directory, which may have to be made first. Nothing is made here.
pub(crate) fn check_output_directory(directory: &Path) -> Result<(), CommandError> {
    let nearest = directory.ancestors().find(|path| path.as_os_str().is_empty() || path.exists());
    let nearest = nearest.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    check_writable(nearest).map_err(|error| directory_error(directory, &error))
}

/// Makes a directory, where it is not there.
pub(crate) fn create_directory(directory: &Path) -> Result<(), CommandError> {
    fs::create_dir_all(directory).map_err(|error| directory_error(directory, &error))
}

fn directory_error(directory: &Path, error: &io::Error) -> CommandError {
    CommandError::new(format!(
        "`{}`: expected a directory for the outputs, found: {error}",
        directory.display()
    ))
    .with_hint("name a directory that you can write to, or a file that ends in `.npz` or `.npy`")
}

/// Whether a file can be made in a directory: one is, and is gone at once.
fn check_writable(directory: &Path) -> io::Result<()> {
    tempfile::tempfile_in(directory).map(drop)
}

pub(crate) fn unwritable_file(file: &Path, error: &io::Error) -> CommandError {
    CommandError::new(format!("`{}`: expected to write to it, found: {error}", file.display()))
        .with_hint("name a file in a directory that you can write to")
}

/// The path without links, for a file that may not be there yet. A link that leads to no file means the one that it names.
fn resolve_links(file: &Path) -> io::Result<PathBuf> {
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

/// The directory that a file lies in.
fn parent_directory(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes a text, such as a page for a browser. Nobody ever sees half of it.
pub(crate) fn write_text_file(file: &Path, text: &str) -> Result<(), CommandError> {
    let written = replace_file(file, |stream| io::Write::write_all(stream, text.as_bytes()));
    written.map_err(|error| unwritable_file(file, &error))
}

/// Puts a file in the place of another at once. What is no ordinary file, such as `/dev/null`, is written to.
pub(crate) fn replace_file(file: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    // Behind a link is the file that is meant.
    let file = resolve_links(file)?;
    if fs::metadata(&file).is_ok_and(|metadata| !metadata.is_file()) {
        let mut stream = File::options().write(true).open(&file)?;
        return write(&mut stream);
    }
    // What the user's mask forbids is taken away from these.
    let permissions =
        fs::metadata(&file).map_or(Permissions::from_mode(0o666), |metadata| metadata.permissions());
    let directory = parent_directory(&file);
    let mut named = tempfile::Builder::new();
    named.prefix(".oarlock-");
    let new = if let Some(mut new) = open_unnamed_file(directory, &permissions) {
        write(&mut new)?;
        // A name can be given to a file only where there is none, so it takes the place of another one by a second step.
        named.make_in(directory, |path| link_unnamed_file(&new, path))?.into_temp_path()
    } else {
        let mut new = named.permissions(permissions).tempfile_in(directory)?;
        write(new.as_file_mut())?;
        new.into_temp_path()
    };
    new.persist(&file)?;
    Ok(())
}

/// A file without a name, of which nothing is left when the command is ended before it is done. Not every file system has
/// such files.
fn open_unnamed_file(directory: &Path, permissions: &Permissions) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::open(directory, flags, Mode::from_raw_mode(permissions.mode())).ok()?;
    let file = File::from(file);
    descriptor_path(&file).exists().then_some(file)
}

/// Gives a name to a file that has none.
fn link_unnamed_file(file: &File, path: &Path) -> io::Result<()> {
    Ok(rustix::fs::linkat(CWD, descriptor_path(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// What the system calls an open file.
fn descriptor_path(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_fails_leaves_the_old_file_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("page.html");
        write_text_file(&file, "old").unwrap();
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

    #[test]
    fn a_link_stays_and_the_file_that_it_names_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir(path("far")).unwrap();
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, path(name)).unwrap();
        link("far/second", "first");
        link("page.html", "far/second");
        for text in ["new", "newer"] {
            check_output_files([path("first").as_path()]).unwrap();
            write_text_file(&path("first"), text).unwrap();
            assert_eq!(fs::read_to_string(path("far/page.html")).unwrap(), text);
            assert!(path("first").is_symlink() && path("far/second").is_symlink());
        }
        let both = [path("first"), path("far/page.html")];
        assert!(
            check_output_files(both.iter().map(PathBuf::as_path))
                .unwrap_err()
                .message
                .contains("found it twice")
        );
        link("nowhere/page.html", "lost");
        link("round", "round");
        for name in ["lost", "round"] {
            assert!(check_output_files([path(name).as_path()]).is_err(), "{name}");
            assert!(write_text_file(&path(name), "").is_err() && path(name).is_symlink(), "{name}");
        }
    }

    #[test]
    fn a_check_makes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        check_output_directory(&path.join("a/b")).unwrap();
        check_output_files([path.join("x.npy").as_path()]).unwrap();
        assert_eq!(fs::read_dir(path).unwrap().count(), 0);
        assert!(check_output_files([path]).unwrap_err().message.contains("found a directory"));
        assert!(check_output_files([path.join("none/x.npy").as_path()]).is_err());
        fs::write(path.join("file"), "").unwrap();
        assert!(check_output_directory(&path.join("file/b")).is_err());
    }
}
