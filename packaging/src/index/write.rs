//! An index as files.

use std::collections::BTreeMap;
use std::path::Path;

use super::listed_wheel::WheelSource;
use super::{WheelIndex, json, pages};
use crate::error::Error;
use crate::generated_tables;
use crate::output_directory::{DirectoryKind, DirectoryWriter};

/// The distribution that the script is about.
const CORE_DISTRIBUTION: &str = "oarlock";

/// Lies beside the core, for machines that have nothing yet.
const INSTALL_SCRIPT: &str = include_str!("../../../scripts/install.sh");

/// Where an index lies.
const INDEX_DIRECTORY: DirectoryKind =
    DirectoryKind { list: ".oarlock-index", one: "an index", none: "no index" };

impl WheelIndex {
    /// Writes the index in place of the one that was there. Readers see the old one or the new one, and nothing of what was
    /// there stays.
    ///
    /// # Errors
    ///
    /// When the directory holds anything but an index, or cannot be written.
    pub fn write_index(&self, directory: &Path) -> Result<(), Error> {
        INDEX_DIRECTORY.write_directory(directory, |files| self.put_files(files))
    }

    /// That an index may be written there.
    ///
    /// # Errors
    ///
    /// When the directory holds anything but an index, or cannot be read.
    pub fn check_target(directory: &Path) -> Result<(), Error> {
        INDEX_DIRECTORY.check_directory(directory)
    }

    fn put_files(&self, files: &mut DirectoryWriter<'_>) -> Result<(), Error> {
        let none = BTreeMap::new();
        let mut write = |path: &str, text: &str| files.write_file(path, text.as_bytes());
        write("simple/index.html", &pages::projects_page(self))?;
        write("json/index.json", &json::projects_json(self).to_string())?;
        if self.projects.contains_key(CORE_DISTRIBUTION) {
            let script = match &self.host {
                Some(host) => generated_tables::set_script_host(INSTALL_SCRIPT, host)?,
                None => INSTALL_SCRIPT.to_owned(),
            };
            write("install.sh", &script)?;
        }
        for (name, wheels) in &self.projects {
            let variants = self.variants.get(name).unwrap_or(&none);
            let page = pages::wheels_page(name, wheels, variants, "../../files/");
            write(&format!("simple/{name}/index.html"), &page)?;
            let project = json::project_json(name, wheels, variants, "../../files/");
            write(&format!("json/{name}/index.json"), &project.to_string())?;
        }
        for (path, wheels) in &self.directories {
            let below = "../".repeat(path.split('/').count()) + "files/";
            write(&format!("{path}/index.html"), &pages::wheels_page(path, wheels, &none, &below))?;
        }
        for wheel in self.all_wheels() {
            let path = format!("files/{}", wheel.file_name);
            files.write_file(&format!("{path}.metadata"), &wheel.metadata)?;
            match &wheel.source {
                WheelSource::Made(bytes) => files.write_file(&path, bytes)?,
                WheelSource::File(file) => files.copy_file(&path, file)?,
            }
        }
        for (name, text) in self.variants.values().flatten() {
            files.write_file(&format!("files/{name}"), text)?;
        }
        Ok(())
    }
}
