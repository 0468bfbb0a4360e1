//! Writes an index as files.

use std::collections::BTreeMap;
use std::path::Path;

use oarlock_formats::error::Error;
use oarlock_formats::output_directory::{DirectoryKind, DirectoryWriter};
use oarlock_matrix::generated_tables;

use super::listed_wheel::WheelSource;
use super::{WheelIndex, json, pages};

/// An index with this project also has the install script.
const CORE_DISTRIBUTION: &str = "oarlock";

/// Published beside the core, for machines without any installer.
const INSTALL_SCRIPT: &str = include_str!("../../../scripts/install.sh");

/// The kind of directory that an index is.
const INDEX_DIRECTORY: DirectoryKind =
    DirectoryKind { list: ".oarlock-index", one: "an index", none: "no index" };

impl WheelIndex {
    /// Writes the index in place of an older one. Readers see the old or the new index in full, and no old file remains.
    ///
    /// # Errors
    ///
    /// When the directory contains anything but an index, or cannot be written.
    pub fn write_index(&self, directory: &Path) -> Result<(), Error> {
        INDEX_DIRECTORY.write_directory(directory, |files| self.put_files(files))
    }

    /// Checks that an index may be written to a directory.
    ///
    /// # Errors
    ///
    /// When the directory contains anything but an index, or cannot be read.
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
