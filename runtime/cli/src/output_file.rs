//! Output files: checked before the work starts, replaced atomically when it is done.

use std::collections::BTreeSet;
use std::fs::{self};
use std::io;
use std::path::Path;

use oarlock_report::file::{parent_directory, replace_file, resolve_links};

use crate::problem::CommandError;

/// Paths that mean standard output, where the command's own report goes.
const STANDARD_OUTPUT: [&str; 3] = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// The error for an output file that would mix with the command's own report on standard output.
pub(crate) fn standard_output_error(file: &Path) -> CommandError {
    let message = format!("`{}`: expected a file, found the standard output", file.display());
    CommandError::new(message).with_hint("name a file")
}

/// Checks that the files are distinct, not write-protected, and in directories that accept new files. Outputs replace old
/// files by rename, which needs write permission on the directory only, so the protection of the file itself has to be
/// checked here.
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

/// Checks a directory that may not exist yet. Creates nothing.
pub(crate) fn check_output_directory(directory: &Path) -> Result<(), CommandError> {
    let nearest = directory.ancestors().find(|path| path.as_os_str().is_empty() || path.exists());
    let nearest = nearest.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    check_writable(nearest).map_err(|error| directory_error(directory, &error))
}

/// Succeeds if the directory already exists.
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

/// Tests for write permission by creating a temporary file and deleting it.
fn check_writable(directory: &Path) -> io::Result<()> {
    tempfile::tempfile_in(directory).map(drop)
}

pub(crate) fn unwritable_file(file: &Path, error: &io::Error) -> CommandError {
    CommandError::new(format!("`{}`: expected to write to it, found: {error}", file.display()))
        .with_hint("name a file in a directory that you can write to")
}

/// Writes atomically: a reader sees the old file or the complete new one.
pub(crate) fn write_text_file(file: &Path, text: &str) -> Result<(), CommandError> {
    let written = replace_file(file, |stream| io::Write::write_all(stream, text.as_bytes()));
    written.map_err(|error| unwritable_file(file, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            check_output_files(both.iter().map(std::path::PathBuf::as_path))
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
