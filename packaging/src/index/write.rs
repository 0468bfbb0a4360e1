//! An index as files.

use std::path::Path;

use super::{Index, json, pages};
use crate::error::Error;
use crate::file;

/// What says that a directory is an index, and may be replaced by a newer one.
const MARK: &str = ".oarlock-index";

impl Index {
    /// Writes the index in place of the one that was there. Readers see the old one or the new one, and nothing of what was
    /// there stays.
    ///
    /// # Errors
    ///
    /// When the directory holds anything but an index, or cannot be written.
    pub fn write(&self, directory: &Path) -> Result<(), Error> {
        let at = |error: std::io::Error| Error::from(error).of_file(directory.display());
        let is_there = directory.try_exists().map_err(at)?;
        let is_empty = || Ok(std::fs::read_dir(directory)?.next().is_none());
        if is_there && !directory.join(MARK).exists() && !is_empty().map_err(at)? {
            return Err(Error::new(
                "expected no directory, an empty one or an index, found other files in it",
            )
            .of_file(directory.display()));
        }
        let beside = directory.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
        std::fs::create_dir_all(beside).map_err(at)?;
        let new = file::directory_in(beside).map_err(at)?;
        self.write_to(new.path()).map_err(|error| error.of_file(directory.display()))?;
        if is_there {
            let old = file::directory_in(beside).map_err(at)?;
            std::fs::rename(directory, old.path().join("index")).map_err(at)?;
        }
        std::fs::rename(new.keep(), directory).map_err(at)
    }

    fn write_to(&self, directory: &Path) -> Result<(), Error> {
        let write = |path: &str, bytes: &[u8]| file::write(&directory.join(path), bytes);
        write(MARK, b"")?;
        write("simple/index.html", pages::projects(self).as_bytes())?;
        write("json/index.json", json::projects(self).to_string().as_bytes())?;
        for (name, wheels) in &self.projects {
            write(
                &format!("simple/{name}/index.html"),
                pages::wheels(name, wheels, "../../files/").as_bytes(),
            )?;
            let project = json::project(name, wheels, "../../files/");
            write(&format!("json/{name}/index.json"), project.to_string().as_bytes())?;
        }
        for (path, wheels) in &self.directories {
            let files = "../".repeat(path.split('/').count()) + "files/";
            write(&format!("{path}/index.html"), pages::wheels(path, wheels, &files).as_bytes())?;
        }
        for wheel in self.all() {
            let target = directory.join("files").join(wheel.name.to_string());
            write(&format!("files/{}.metadata", wheel.name), &wheel.metadata)?;
            // A second name for the same bytes where that can be had.
            if std::fs::hard_link(&wheel.file, &target).is_err() {
                std::fs::copy(&wheel.file, &target)?;
            }
        }
        Ok(())
    }
}
