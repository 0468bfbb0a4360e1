//! Assembles wheels from compiled parts without compiling anything: one for each plugin, one for the core, and wheels in which
//! the core and some plugins are one file.

use oarlock_formats::error::Error;
use oarlock_formats::wheel::Wheel;
use oarlock_matrix::{MatrixAxis, MatrixRow, WheelMatrix};

use crate::build_artifact::{BuiltCore, BuiltPlugin, CompiledPart};
use crate::packages;

/// The entry point group through which the core finds plugins.
const ENTRY_POINT_GROUP: &str = "oarlock.plugins";

/// The directory of plugins that ship inside the core's wheel.
const BUNDLED_PLUGIN_DIRECTORY: &str = "oarlock/plugins";

const PLUGIN_PACKAGE_PREFIX: &str = "oarlock-plugin-";

/// The Python versions that wheels support. The core states the same in `pyproject.toml`.
pub(crate) const REQUIRES_PYTHON: &str = ">=3.11";

/// Records in the core which wheel it came from.
pub(crate) const FLAVOR_FILE: &str = "oarlock/wheel.json";

/// Assembles a wheel that adds a plugin to a separately installed core.
///
/// # Errors
///
/// When the row of the matrix has parts other than the plugin, or the manifest cannot be read.
pub fn assemble_plugin_wheel(row: &MatrixRow, plugin: &BuiltPlugin) -> Result<Wheel, Error> {
    check_parts(row, &[&plugin.built])?;
    let directory = python_package(row);
    let mut wheel = Wheel::new(&wheel_stem(row));
    wheel.add_file(&format!("{directory}/__init__.py"), plugin_module_source(plugin).into_bytes());
    add_plugin_files(&mut wheel, &directory, plugin, row)?;
    let name = plugin.name();
    let mut about = vec![
        "Metadata-Version: 2.4".to_owned(),
        format!("Name: {}", row.name.distribution),
        format!("Version: {}", row.name.version),
        format!("Summary: The plugin `{name}` of Oarlock"),
        "Author: The Oarlock developers".to_owned(),
        "License-Expression: Apache-2.0".to_owned(),
        format!("Requires-Python: {REQUIRES_PYTHON}"),
    ];
    about.extend(add_sboms_and_licenses(&mut wheel, &[&plugin.built])?);
    about.push("Description-Content-Type: text/markdown".to_owned());
    let text = format!(
        "The plugin `{name}` of Oarlock. Where it is installed beside `oarlock`, its devices and kernels are there; \
         `python -m oarlock doctor` shows them.\n"
    );
    wheel.add_metadata("METADATA", (about.join("\n") + "\n\n" + &text).into_bytes());
    wheel.add_metadata("WHEEL", wheel_metadata_text(row).into_bytes());
    wheel.add_metadata("entry_points.txt", entry_points_text(row, &plugin.built.package).into_bytes());
    Ok(wheel)
}

/// Assembles a wheel of the core, alone or with plugins in it. Either way it is the same distribution with a different version,
/// so pip replaces one with the other and never mixes them.
///
/// # Errors
///
/// When the row of the matrix has other parts, or the core's wheel is incomplete.
pub fn assemble_core_wheel(
    matrix: &WheelMatrix,
    row: &MatrixRow,
    core: &BuiltCore,
    plugins: &[BuiltPlugin],
) -> Result<Wheel, Error> {
    let built: Vec<&CompiledPart> =
        std::iter::once(&core.built).chain(plugins.iter().map(|plugin| &plugin.built)).collect();
    check_parts(row, &built)?;
    let mut wheel = core.wheel.with_name(&wheel_stem(row));
    let metadata = std::str::from_utf8(wheel.metadata_file("METADATA")?)
        .map_err(|_| Error::new("expected UTF-8 in METADATA"))?;
    let (head, text) = metadata.split_once("\n\n").unwrap_or((metadata.trim_end(), ""));
    let text = text.to_owned();
    let lines = head.lines().map(|line| match line.split_once(": ") {
        Some(("Version", _)) => format!("Version: {}", row.name.version),
        _ => line.to_owned(),
    });
    let mut lines: Vec<String> = lines.collect();
    lines.extend(add_sboms_and_licenses(&mut wheel, &built)?);
    lines.extend(dependency_headers(matrix, row));
    let note = row.note.as_ref().map_or_else(String::new, |note| format!("**This wheel: {note}.**\n\n"));
    wheel.add_metadata("METADATA", (lines.join("\n") + "\n\n" + &note + &text).into_bytes());
    wheel.add_metadata("WHEEL", wheel_metadata_text(row).into_bytes());
    wheel.add_file(FLAVOR_FILE, flavor_json(row).into_bytes());
    for plugin in plugins {
        add_plugin_files(&mut wheel, BUNDLED_PLUGIN_DIRECTORY, plugin, row)?;
    }
    Ok(wheel)
}

/// Describes the wheel for `python -m oarlock doctor`.
pub(crate) fn flavor_json(row: &MatrixRow) -> String {
    let about = serde_json::json!({
        "label": row.label,
        "version": row.name.version.to_string(),
        "parts": row.parts,
        "has_avx": row.combination.get(&MatrixAxis::Isa).is_none_or(|isa| isa != "noavx"),
    });
    format!("{about:#}\n")
}

/// The METADATA lines for dependencies and extras. A wheel does not require what it already contains.
pub(crate) fn dependency_headers(matrix: &WheelMatrix, row: &MatrixRow) -> Vec<String> {
    let extras = if row.is_core_alone() { collect_extras(matrix, row) } else { Vec::new() };
    let mut lines = Vec::new();
    for extra in &extras {
        lines.push(format!("Provides-Extra: {}", extra.name));
        let asked = |needed: &String| format!("Requires-Dist: {needed} ; extra == '{}'", extra.name);
        lines.extend(extra.requirements.iter().map(asked));
    }
    lines
}

/// An extra of the core, such as `oarlock[cuda12]`.
struct WheelExtra {
    /// The word between the brackets.
    name: String,
    requirements: Vec<String>,
}

/// The extras of a core: one for each plugin that is built for its platform, with its vendor's libraries, and one with the suffix
/// `-local` for machines that already have those libraries.
fn collect_extras(matrix: &WheelMatrix, core: &MatrixRow) -> Vec<WheelExtra> {
    let mut extras = Vec::new();
    let is_beside = |row: &&MatrixRow| {
        row.channel == core.channel
            && row.name.platform == core.name.platform
            && row.planned.is_none()
            && !row.is_standalone()
    };
    for row in matrix.wheels.iter().filter(is_beside) {
        let (name, libraries) = (row.extra_name(), matrix.library_requirements(row));
        let alone = vec![row.requirement()];
        if !libraries.is_empty() {
            extras.push(WheelExtra { name: format!("{name}-local"), requirements: alone.clone() });
        }
        extras.push(WheelExtra { name: name.to_owned(), requirements: [alone, libraries].concat() });
    }
    extras
}

impl BuiltPlugin {
    /// The name that users know, such as `cuda`.
    fn name(&self) -> &str {
        plugin_name(&self.built.package)
    }

    fn library_file_name(&self) -> String {
        plugin_file_name(&self.built.package)
    }

    /// The manifest for a package: it names the package to update and the libraries that the plugin opens.
    pub(crate) fn manifest_for_package(&self, package: &str) -> Result<Option<String>, Error> {
        let Some(text) = &self.manifest else { return Ok(None) };
        let mut manifest: toml::Table =
            toml::from_str(text).map_err(|error| Error::from_toml("the manifest", text, &error))?;
        manifest.insert("package".to_owned(), package.into());
        let opens = self.built.opens.iter().map(|soname| {
            let entries = [("soname", soname.clone().into()), ("optional", true.into())];
            toml::Value::Table(entries.map(|(key, value)| (key.to_owned(), value)).into_iter().collect())
        });
        manifest.insert("requires".to_owned(), opens.collect::<Vec<_>>().into());
        toml::to_string(&manifest).map(Some).map_err(|error| Error::new(format!("the manifest: {error}")))
    }
}

/// The name that users know for a plugin's package, such as `cuda`.
pub(crate) fn plugin_name(package: &str) -> &str {
    package.strip_prefix(PLUGIN_PACKAGE_PREFIX).unwrap_or(package)
}

/// The Python package in the wheel of a row.
pub(crate) fn python_package(row: &MatrixRow) -> String {
    row.name.distribution.replace('-', "_")
}

/// The directory for plugins in the wheel of a row.
pub(crate) fn plugin_directory(row: &MatrixRow) -> String {
    if row.is_standalone() { BUNDLED_PLUGIN_DIRECTORY.to_owned() } else { python_package(row) }
}

/// The entry points through which the core finds the plugin of a row.
pub(crate) fn entry_points_text(row: &MatrixRow, package: &str) -> String {
    format!("[{ENTRY_POINT_GROUP}]\n{} = {}\n", plugin_name(package), python_package(row))
}

/// The file name of a plugin's shared object.
pub(crate) fn plugin_file_name(package: &str) -> String {
    format!("lib{}.so", package.replace('-', "_"))
}

/// Adds a plugin and its manifest to a directory of a wheel.
fn add_plugin_files(
    wheel: &mut Wheel,
    directory: &str,
    plugin: &BuiltPlugin,
    row: &MatrixRow,
) -> Result<(), Error> {
    let file = plugin.library_file_name();
    if let Some(manifest) = plugin.manifest_for_package(&row.name.distribution)? {
        let file = file.replace(".so", ".oarlock.toml");
        wheel.add_file(&format!("{directory}/{file}"), manifest.into_bytes());
    }
    wheel.add_executable(&format!("{directory}/{file}"), plugin.library.clone());
    Ok(())
}

/// Source of the plugin's Python package. The core finds the plugin without importing it.
fn plugin_module_source(plugin: &BuiltPlugin) -> String {
    format!(
        "\"\"\"The plugin `{}` of Oarlock. Where it is installed, `oarlock` finds it.\"\"\"\n\n\
         from __future__ import annotations\n\n\
         import os\n\n\n\
         def library_path() -> str:\n    \
             \"\"\"Where the shared object lies, for programs that load it themselves.\"\"\"\n    \
             return os.path.join(os.path.dirname(__file__), \"{}\")\n",
        plugin.name(),
        plugin.library_file_name()
    )
}

/// Adds SBOMs and licenses to a wheel, and returns the METADATA lines that refer to them.
fn add_sboms_and_licenses(wheel: &mut Wheel, built: &[&CompiledPart]) -> Result<Vec<String>, Error> {
    for part in built {
        wheel.add_metadata(&format!("licenses/{LICENSE_FILE}"), part.license.clone().into_bytes());
        wheel.add_metadata(
            &format!("licenses/{}", third_party_license_path(&part.package)),
            part.licenses.clone().into_bytes(),
        );
        wheel.add_metadata(&sbom_path(&part.package), part.sbom.clone().into_bytes());
    }
    license_headers(built.iter().map(|part| (part.package.as_str(), part.opens.as_slice())))
}

/// The METADATA lines for licenses, opened libraries and links to further information.
pub(crate) fn license_headers<'p>(
    parts: impl Iterator<Item = (&'p str, &'p [String])> + Clone,
) -> Result<Vec<String>, Error> {
    let mut lines = vec![format!("License-File: {LICENSE_FILE}")];
    lines.extend(
        parts.clone().map(|(package, _)| format!("License-File: {}", third_party_license_path(package))),
    );
    lines.extend(parts.flat_map(|(_, opens)| opens).map(|soname| format!("Requires-External: {soname}")));
    lines.push(format!("Project-URL: Homepage, {}", packages::homepage()?));
    Ok(lines)
}

/// Our own license in a wheel, below `licenses`.
pub(crate) const LICENSE_FILE: &str = "LICENSE";

/// The file with a package's third-party licenses.
pub(crate) fn third_party_license_path(package: &str) -> String {
    format!("THIRD-PARTY-{package}.txt")
}

/// The path of a package's SBOM within the `dist-info` directory.
pub(crate) fn sbom_path(package: &str) -> String {
    format!("sboms/{package}.cyclonedx.json")
}

fn check_parts(row: &MatrixRow, built: &[&CompiledPart]) -> Result<(), Error> {
    let found: Vec<&str> = built.iter().map(|it| it.part.as_str()).collect();
    if row.parts == found {
        return Ok(());
    }
    Err(Error::new(format!(
        "expected for `{}` of the matrix the parts {}, found {}",
        row.label,
        row.parts.join(", "),
        found.join(", ")
    )))
}

fn wheel_stem(row: &MatrixRow) -> String {
    format!("{}-{}", python_package(row), row.name.version)
}

fn wheel_metadata_text(row: &MatrixRow) -> String {
    format!(
        "Wheel-Version: 1.0\nGenerator: oarlock-pack ({})\nRoot-Is-Purelib: false\nTag: {}-{}\n",
        env!("CARGO_PKG_VERSION"),
        row.name.python,
        row.name.platform
    )
}
