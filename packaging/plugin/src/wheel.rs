//! The wheel of a plugin. The core finds it by its entry point, without importing it.

use oarlock_formats::error::Error;
use oarlock_formats::file_packer::CompressionEffort;
use oarlock_formats::wheel::Wheel;

use crate::audit::PackageNeeds;
use crate::package::{PackagedFile, PluginPackage};

/// The entry point group through which the core finds plugins.
const ENTRY_POINT_GROUP: &str = "oarlock.plugins";

/// The Python versions that the core supports.
const REQUIRES_PYTHON: &str = ">=3.11";

impl PluginPackage {
    /// The wheel as a file. Its bytes only depend on what is in the package.
    ///
    /// # Errors
    ///
    /// When the manifest says what a wheel cannot.
    pub fn build_wheel(&self, needs: &PackageNeeds) -> Result<PackagedFile, Error> {
        let identity = self.identity()?;
        let directory = self.recipe.package.replace('-', "_");
        let stem = format!("{directory}-{}", identity.version.python());
        let (major, minor) = needs.glibc;
        let tag = format!("py3-none-manylinux_{major}_{minor}_{}", identity.architecture.name);
        let mut wheel = Wheel::new(&stem);
        wheel.add_file(&format!("{directory}/__init__.py"), self.module_source(&identity.name).into_bytes());
        for file in self.installed_files() {
            let path = format!("{directory}/{}", file.name);
            match self.shared_objects().any(|object| object.name == file.name) {
                true => wheel.add_executable(&path, file.bytes.clone()),
                false => wheel.add_file(&path, file.bytes.clone()),
            }
        }
        for license in &self.licenses {
            wheel.add_metadata(&format!("licenses/{}", license.name), license.bytes.clone());
        }
        let sbom = format!("sboms/{}.cyclonedx.json", self.recipe.package);
        wheel.add_metadata(&sbom, self.render_sbom(needs)?.into_bytes());
        wheel.add_metadata("METADATA", self.metadata_text(&identity.version.python()).into_bytes());
        let about = format!(
            "Wheel-Version: 1.0\nGenerator: oarlock ({})\nRoot-Is-Purelib: false\nTag: {tag}\n",
            env!("CARGO_PKG_VERSION")
        );
        wheel.add_metadata("WHEEL", about.into_bytes());
        let entry = format!("[{ENTRY_POINT_GROUP}]\n{} = {directory}\n", identity.name);
        wheel.add_metadata("entry_points.txt", entry.into_bytes());
        let bytes = wheel.to_bytes(&CompressionEffort::Usual.into())?;
        Ok(PackagedFile { name: format!("{stem}-{tag}.whl"), bytes })
    }

    fn metadata_text(&self, version: &str) -> String {
        let recipe = &self.recipe;
        let mut lines = vec![
            "Metadata-Version: 2.4".to_owned(),
            format!("Name: {}", recipe.package),
            format!("Version: {version}"),
            format!("Summary: {}", recipe.summary),
            format!("Maintainer-email: {}", recipe.maintainer),
            format!("License-Expression: {}", recipe.license),
        ];
        lines.extend(self.licenses.iter().map(|license| format!("License-File: {}", license.name)));
        lines.push(format!("Requires-Python: {REQUIRES_PYTHON}"));
        for provider in &recipe.libraries {
            lines.push(match &provider.python {
                Some(requirement) => format!("Requires-Dist: {requirement}"),
                None => format!("Requires-External: {}", provider.soname),
            });
        }
        lines.extend(recipe.homepage.as_ref().map(|homepage| format!("Project-URL: Homepage, {homepage}")));
        lines.push("Description-Content-Type: text/markdown".to_owned());
        lines.join("\n") + "\n\n" + recipe.description.trim() + "\n"
    }

    /// The source of the Python package, which nothing needs to import.
    fn module_source(&self, plugin: &str) -> String {
        format!(
            "\"\"\"The plugin `{plugin}` of Oarlock. Where it is installed, `oarlock` finds it.\"\"\"\n\n\
             from __future__ import annotations\n\n\
             import os\n\n\n\
             def library_path() -> str:\n    \
                 \"\"\"Where the shared object lies, for programs that load it themselves.\"\"\"\n    \
                 return os.path.join(os.path.dirname(__file__), \"{}\")\n",
            self.library.name
        )
    }
}
