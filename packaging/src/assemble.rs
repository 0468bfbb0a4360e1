//! Wheels that are put together of what was built, without compiling anything: one for each plugin, and such in which the core
//! and some plugins are one file.

use crate::error::Error;
use crate::matrix::Wheel as Row;
use crate::wheel::Wheel;

/// A plugin as a shared object, with what it says of itself.
#[derive(Clone, Debug)]
pub struct Plugin {
    /// What the matrix calls it, such as `cuda`.
    pub name: String,
    /// The shared object.
    pub library: Vec<u8>,
    /// Its manifest, by which a host knows it without running it.
    pub manifest: Option<String>,
}

/// The group of entry points by which the core finds plugins.
const GROUP: &str = "oarlock.plugins";

/// A wheel that brings a plugin to a core that is installed beside it.
///
/// # Errors
///
/// When the row of the matrix has other parts than the plugin.
pub fn plugin(row: &Row, plugin: &Plugin, licence: &[u8]) -> Result<Wheel, Error> {
    check_parts(row, &[], std::slice::from_ref(plugin))?;
    let module = row.name.distribution.replace('-', "_");
    let mut wheel = Wheel::new(&named(row));
    put(&mut wheel, &module, plugin);
    let summary = format!("The plugin `{}` of Oarlock", plugin.name);
    let about = [
        "Metadata-Version: 2.4".to_owned(),
        format!("Name: {}", row.name.distribution),
        format!("Version: {}", row.name.version),
        format!("Summary: {summary}"),
        "License-Expression: Apache-2.0".to_owned(),
        "License-File: LICENSE".to_owned(),
        "Requires-Python: >=3.11".to_owned(),
    ];
    wheel.say("METADATA", (about.join("\n") + "\n").into_bytes());
    wheel.say("WHEEL", tags(row).into_bytes());
    wheel.say("entry_points.txt", entry_points(&[(&plugin.name, &module)]).into_bytes());
    wheel.say("licenses/LICENSE", licence.to_vec());
    Ok(wheel)
}

/// A wheel of the core that has plugins in it. It is the same distribution as the core, of another version, so that pip
/// replaces one by the other and never mixes them.
///
/// # Errors
///
/// When the row of the matrix has other parts, or the core is no whole wheel.
pub fn one_file(row: &Row, core: &Wheel, plugins: &[Plugin]) -> Result<Wheel, Error> {
    check_parts(row, &["core"], plugins)?;
    let mut wheel = core.renamed(&named(row));
    let metadata = std::str::from_utf8(wheel.information("METADATA")?)
        .map_err(|_| Error::new("expected UTF-8 in METADATA"))?;
    let (head, text) = metadata.split_once("\n\n").unwrap_or((metadata.trim_end(), ""));
    let lines = head.lines().map(|line| match line.split_once(": ") {
        Some(("Version", _)) => format!("Version: {}", row.name.version),
        _ => line.to_owned(),
    });
    let metadata = lines.collect::<Vec<_>>().join("\n") + "\n\n" + text;
    wheel.say("METADATA", metadata.into_bytes());
    let mut modules = Vec::new();
    for plugin in plugins {
        // Not the name that the package of the plugin alone has: if both are installed, neither overwrites the other.
        let module = format!("oarlock_with_{}", plugin.name);
        put(&mut wheel, &module, plugin);
        modules.push((plugin.name.as_str(), module));
    }
    if !modules.is_empty() {
        let modules: Vec<(&str, &str)> =
            modules.iter().map(|(name, module)| (*name, module.as_str())).collect();
        wheel.say("entry_points.txt", entry_points(&modules).into_bytes());
    }
    Ok(wheel)
}

/// The module of a plugin, which Python need not import for the core to find the plugin.
fn put(wheel: &mut Wheel, module: &str, plugin: &Plugin) {
    let file = format!("liboarlock_plugin_{}.so", plugin.name);
    let text = format!(
        "\"\"\"The plugin `{}` of Oarlock. Where it is installed, `oarlock` finds it.\"\"\"\n\n\
         from __future__ import annotations\n\n\
         import os\n\n\n\
         def library_path() -> str:\n    \
             \"\"\"Where the shared object lies, for programs that load it themselves.\"\"\"\n    \
             return os.path.join(os.path.dirname(__file__), \"{file}\")\n",
        plugin.name
    );
    wheel.add(&format!("{module}/__init__.py"), text.into_bytes());
    wheel.add_executable(&format!("{module}/{file}"), plugin.library.clone());
    if let Some(manifest) = &plugin.manifest {
        let file = file.replace(".so", ".oarlock.toml");
        wheel.add(&format!("{module}/{file}"), manifest.clone().into_bytes());
    }
}

fn check_parts(row: &Row, before: &[&str], plugins: &[Plugin]) -> Result<(), Error> {
    let found: Vec<&str> = before.iter().copied().chain(plugins.iter().map(|it| it.name.as_str())).collect();
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

fn named(row: &Row) -> String {
    format!("{}-{}", row.name.distribution.replace('-', "_"), row.name.version)
}

fn tags(row: &Row) -> String {
    format!(
        "Wheel-Version: 1.0\nGenerator: oarlock-pack ({})\nRoot-Is-Purelib: false\nTag: {}-{}\n",
        env!("CARGO_PKG_VERSION"),
        row.name.python,
        row.name.platform
    )
}

fn entry_points(modules: &[(&str, &str)]) -> String {
    let lines = modules.iter().map(|(name, module)| format!("{name} = {module}\n"));
    format!("[{GROUP}]\n{}", lines.collect::<String>())
}
