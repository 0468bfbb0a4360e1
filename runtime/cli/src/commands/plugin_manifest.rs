//! `oarlock plugin manifest`: writes a plugin's description of itself to the file beside it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use oarlock_host::{
    Digest, HostOptions, PROBE_TIMEOUT, PluginInfo, PluginManifest, SharedObject, check_symbols, probe_file,
};

use crate::CommandVerdict;
use crate::arguments::GlobalOptions;
use crate::messages::PluginMessages;
use crate::output::{self, CommandOutput};
use crate::problem::CommandError;
use crate::session::{host_options, probe_command, unusable_file};

pub(crate) fn generate_manifest(
    global: &GlobalOptions,
    file: &Path,
    write: bool,
    output: &mut CommandOutput,
) -> CommandVerdict {
    let options = host_options(global, &PluginMessages::new(global))?;
    let file = std::path::absolute(file).map_err(|error| unusable_file(file, &error))?;
    let path = PluginManifest::path_beside(&file);
    let manifest = probe_manifest(&file, &path, &options, global)?;
    let text = manifest.to_toml().map_err(CommandError::new)?;
    if write {
        write_manifest(&path, &manifest)?;
        output::print_message(global.color, "note", &format!("wrote `{}`", path.display()), None);
    } else if global.json {
        super::print_json(output, &manifest)?;
    } else {
        output.write_text(&text);
    }
    Ok(true)
}

/// Replaces the manifest at `path`.
pub(crate) fn write_manifest(path: &Path, manifest: &PluginManifest) -> Result<(), CommandError> {
    let text = manifest.to_toml().map_err(CommandError::new)?;
    replace_file(path, &text).map_err(|error| {
        CommandError::new(format!("`{}`: expected to write the manifest, found: {error}", path.display()))
            .with_hint("make the directory writable for you, or print the manifest without `--write`")
    })
}

/// Probes the plugin. An existing manifest is ignored, since it may be the one to correct.
fn probe_manifest(
    file: &Path,
    path: &Path,
    options: &HostOptions,
    global: &GlobalOptions,
) -> Result<PluginManifest, CommandError> {
    let real = options.environment.identity.check_file(file)?;
    let bytes = fs::read(&real).map_err(|error| unusable_file(file, &error))?;
    check_symbols(file, &SharedObject::parse_bytes(file, &bytes)?)?;
    let timeout =
        options.config.plugins.probe_timeout_ms.map_or(PROBE_TIMEOUT, std::time::Duration::from_millis);
    let probed = probe_file(&probe_command(), &real, &options.config.options, timeout);
    for note in &probed.notes {
        output::print_message(global.color, "warning", &format!("`{}`: {note}", file.display()), None);
    }
    let before = PluginManifest::read_manifest(path).ok().flatten();
    Ok(build_manifest(probed.verdict?, Digest::hash_bytes(&bytes), before))
}

/// Builds a manifest. Fields that a probe cannot find out are kept from the old one.
fn build_manifest(info: PluginInfo, sha256: Digest, before: Option<PluginManifest>) -> PluginManifest {
    let (unsupported, expected_failure) = before
        .as_ref()
        .map(|old| (old.unsupported.clone(), old.expected_failure.clone()))
        .unwrap_or_default();
    let (variant, isa, requires, conformance) = match before {
        // A conformance result is valid only for the exact file it was measured on.
        Some(old) => {
            (old.variant, old.isa, old.requires, old.conformance.filter(|_| old.sha256 == Some(sha256)))
        }
        None => (None, None, Vec::new(), None),
    };
    PluginManifest {
        name: info.name,
        version: info.version,
        kind: info.kind,
        device_type: info.device_type,
        variant,
        contract: info.contract,
        profiles: info.profiles,
        architecture: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        isa,
        sha256: Some(sha256),
        visible_devices_env: info.visible_devices_variable,
        package: Some(info.package).filter(|package| !package.is_empty()),
        unloadable: info.unloadable,
        conformance,
        requires,
        unsupported,
        expected_failure,
    }
}

/// Replaces a file atomically, so that nobody reads half of it.
fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension("toml.new");
    // The host refuses files that others can write to, so the mode is set regardless of the umask.
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(&new)?;
    file.write_all(text.as_bytes())?;
    fs::rename(&new, path)
}
