//! An index as files.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use super::listed::Source;
use super::{Index, json, pages};
use crate::carried;
use crate::error::Error;
use crate::file::{self, NewDirectory};

/// Lists the files of an index, which may be replaced by a newer one together with it, and no others.
const LIST: &str = ".oarlock-index";

/// The distribution that the script is about.
const CORE: &str = "oarlock";

/// Lies beside the core, for machines that have nothing yet.
const INSTALL: &str = include_str!("../../../scripts/install.sh");

impl Index {
    /// Writes the index in place of the one that was there. Readers see the old one or the new one, and nothing of what was
    /// there stays.
    ///
    /// # Errors
    ///
    /// When the directory holds anything but an index, or cannot be written.
    pub fn write(&self, directory: &Path) -> Result<(), Error> {
        // What a link leads to is what is replaced, and not the link.
        let directory = &std::fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
        Self::check_place(directory)?;
        let at = |error: io::Error| Error::from(error).of_file(directory.display());
        let new = NewDirectory::beside(directory).map_err(at)?;
        self.write_to(new.path()).map_err(|error| error.of_file(directory.display()))?;
        new.replace(directory).map_err(at)
    }

    /// That an index may be written there.
    ///
    /// # Errors
    ///
    /// When the directory holds anything but an index, or cannot be read.
    pub fn check_place(directory: &Path) -> Result<(), Error> {
        let problem = match foreign(directory) {
            Ok(None) => return Ok(()),
            Ok(Some(other)) => Error::new(format!(
                "expected no directory, an empty one or an index, found `{other}` in it, which no index put there"
            )),
            Err(error) => error.into(),
        };
        Err(problem.of_file(directory.display()))
    }

    fn write_to(&self, directory: &Path) -> Result<(), Error> {
        let none = BTreeMap::new();
        let mut list = String::new();
        let mut place = |path: &str| {
            list += &format!("{path}\n");
            directory.join(path)
        };
        let mut write = |path: &str, text: &str| file::write(&place(path), text.as_bytes());
        write("simple/index.html", &pages::projects(self))?;
        write("json/index.json", &json::projects(self).to_string())?;
        if self.projects.contains_key(CORE) {
            let script = match &self.host {
                Some(host) => carried::hosted(INSTALL, host)?,
                None => INSTALL.to_owned(),
            };
            write("install.sh", &script)?;
        }
        for (name, wheels) in &self.projects {
            let variants = self.variants.get(name).unwrap_or(&none);
            let page = pages::wheels(name, wheels, variants, "../../files/");
            write(&format!("simple/{name}/index.html"), &page)?;
            let project = json::project(name, wheels, variants, "../../files/");
            write(&format!("json/{name}/index.json"), &project.to_string())?;
        }
        for (path, wheels) in &self.directories {
            let files = "../".repeat(path.split('/').count()) + "files/";
            write(&format!("{path}/index.html"), &pages::wheels(path, wheels, &none, &files))?;
        }
        for wheel in self.all() {
            let path = format!("files/{}", wheel.file_name);
            file::write(&place(&format!("{path}.metadata")), &wheel.metadata)?;
            let target = place(&path);
            match &wheel.source {
                Source::Made(bytes) => file::write(&target, bytes)?,
                // A second name for the same bytes where that can be had.
                Source::File(file) if std::fs::hard_link(file, &target).is_ok() => {}
                Source::File(file) => _ = std::fs::copy(file, &target)?,
            }
        }
        for (name, text) in self.variants.values().flatten() {
            file::write(&place(&format!("files/{name}")), text)?;
        }
        Ok(file::write(&directory.join(LIST), list.as_bytes())?)
    }
}

/// A file in a directory that no index put there; nothing where there is no directory.
fn foreign(directory: &Path) -> io::Result<Option<String>> {
    if !directory.try_exists()? {
        return Ok(None);
    }
    let list = match std::fs::read_to_string(directory.join(LIST)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        list => list?,
    };
    let known: BTreeSet<&str> = list.lines().chain([LIST]).collect();
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
