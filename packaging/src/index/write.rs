//! An index as files.

use std::collections::BTreeMap;
use std::path::Path;

use super::listed::Source;
use super::{Index, json, pages};
use crate::carried;
use crate::error::Error;
use crate::place::{Files, Place};

/// The distribution that the script is about.
const CORE: &str = "oarlock";

/// Lies beside the core, for machines that have nothing yet.
const INSTALL: &str = include_str!("../../../scripts/install.sh");

/// Where an index lies.
const PLACE: Place = Place { list: ".oarlock-index", one: "an index", none: "no index" };

impl Index {
    /// Writes the index in place of the one that was there. Readers see the old one or the new one, and nothing of what was
    /// there stays.
    ///
    /// # Errors
    ///
    /// When the directory holds anything but an index, or cannot be written.
    pub fn write(&self, directory: &Path) -> Result<(), Error> {
        PLACE.write(directory, |files| self.put(files))
    }

    /// That an index may be written there.
    ///
    /// # Errors
    ///
    /// When the directory holds anything but an index, or cannot be read.
    pub fn check_place(directory: &Path) -> Result<(), Error> {
        PLACE.check(directory)
    }

    fn put(&self, files: &mut Files<'_>) -> Result<(), Error> {
        let none = BTreeMap::new();
        let mut write = |path: &str, text: &str| files.write(path, text.as_bytes());
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
            let below = "../".repeat(path.split('/').count()) + "files/";
            write(&format!("{path}/index.html"), &pages::wheels(path, wheels, &none, &below))?;
        }
        for wheel in self.all() {
            let path = format!("files/{}", wheel.file_name);
            files.write(&format!("{path}.metadata"), &wheel.metadata)?;
            match &wheel.source {
                Source::Made(bytes) => files.write(&path, bytes)?,
                Source::File(file) => files.take(&path, file)?,
            }
        }
        for (name, text) in self.variants.values().flatten() {
            files.write(&format!("files/{name}"), text)?;
        }
        Ok(())
    }
}
