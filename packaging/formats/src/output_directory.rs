//! Output directories that are replaced as a whole, and that only replace a directory of the same kind.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::file::{self, StagedDirectory};

/// A kind of output directory.
pub struct DirectoryKind {
    /// The file that lists all others. Only listed files may be replaced.
    pub list: &'static str,
    /// The kind with its article, such as `an index`.
    pub one: &'static str,
    /// The kind negated, such as `no index`.
    pub none: &'static str,
}

/// Fills a new output directory.
pub struct DirectoryWriter<'d> {
    directory: &'d Path,
    list: String,
}

impl DirectoryKind {
    /// Writes a directory in place of an older one. Readers see the old or the new one in full, and no old file remains.
    pub fn write_directory(
        &self,
        directory: &Path,
        put: impl FnOnce(&mut DirectoryWriter<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        // Replaces the target of a link, not the link itself.
        let directory = &std::fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
        self.check_directory(directory)?;
        let of_directory = |error: Error| error.in_file(directory.display());
        let at = |error: io::Error| of_directory(error.into());
        let new = StagedDirectory::create_beside(directory).map_err(at)?;
        let mut files = DirectoryWriter { directory: new.path(), list: String::new() };
        put(&mut files).map_err(of_directory)?;
        let list = files.list;
        file::write_file(&new.path().join(self.list), list.as_bytes()).map_err(at)?;
        new.replace_target(directory).map_err(at)
    }

    /// Checks that the directory does not exist, is empty, or is of this kind.
    pub fn check_directory(&self, directory: &Path) -> Result<(), Error> {
        let Self { one, none, .. } = self;
        let problem = match self.find_foreign_file(directory) {
            Ok(None) => return Ok(()),
            Ok(Some(other)) => Error::new(format!(
                "expected no directory, an empty one or {one}, found `{other}` in it, which {none} put there"
            )),
            Err(error) => error.into(),
        };
        Err(problem.in_file(directory.display()))
    }

    /// A file that this kind of directory does not list, if there is one.
    fn find_foreign_file(&self, directory: &Path) -> io::Result<Option<String>> {
        if !directory.try_exists()? {
            return Ok(None);
        }
        let list = match std::fs::read_to_string(directory.join(self.list)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            list => list?,
        };
        let known: BTreeSet<&str> = list.lines().chain([self.list]).collect();
        let mut left = vec![directory.to_owned()];
        while let Some(next) = left.pop() {
            for entry in std::fs::read_dir(next)? {
                let entry = entry?;
                let path = entry.path();
                if entry.file_type()?.is_dir() {
                    left.push(path);
                    continue;
                }
                let name = path.strip_prefix(directory).unwrap_or(&path);
                if !name.to_str().is_some_and(|name| known.contains(name)) {
                    return Ok(Some(name.display().to_string()));
                }
            }
        }
        Ok(None)
    }
}

impl DirectoryWriter<'_> {
    /// Writes a file and registers it.
    pub fn write_file(&mut self, path: &str, bytes: &[u8]) -> Result<(), Error> {
        Ok(file::write_file(&self.register_path(path), bytes)?)
    }

    /// Copies a file and makes it readable for everybody; later changes to the original have no effect.
    pub fn copy_file(&mut self, path: &str, from: &Path) -> Result<(), Error> {
        let target = self.register_path(path);
        let take = || {
            target.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            std::io::copy(&mut File::open(from)?, &mut File::create(&target)?).map(drop)
        };
        take().map_err(|error| Error::from(error).in_part(from.display()))
    }

    /// The directory where files are staged.
    pub fn path(&self) -> &Path {
        self.directory
    }

    /// Lists a path that another program will write, so that the next directory may replace it.
    pub fn reserve_path(&mut self, path: &str) {
        self.list += &format!("{path}\n");
    }

    fn register_path(&mut self, path: &str) -> PathBuf {
        self.reserve_path(path);
        self.directory.join(path)
    }
}
