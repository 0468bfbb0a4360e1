//! `oarlock plugin manifest`: writes a plugin's description of itself to the file beside it.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use oarlock_host::{
    Digest, HostOptions, PluginInfo, PluginManifest, SharedObject, check_symbols, hash_shipped_files,
    probe_file,
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
    let ProbedPlugin { manifest, .. } = probe_plugin(&file, &path, &options, global)?;
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

/// A plugin that was probed.
pub(super) struct ProbedPlugin {
    /// What it says of itself.
    pub(super) info: PluginInfo,
    /// The manifest that follows from it.
    pub(super) manifest: PluginManifest,
}

/// Probes the plugin. Of an existing manifest, which may be the one to correct, only what a probe cannot find out is used.
pub(super) fn probe_plugin(
    file: &Path,
    path: &Path,
    options: &HostOptions,
    global: &GlobalOptions,
) -> Result<ProbedPlugin, CommandError> {
    let real = options.environment.identity.check_file(file)?;
    let bytes = fs::read(&real).map_err(|error| unusable_file(file, &error))?;
    let elf = SharedObject::parse_bytes(file, &bytes)?;
    if !options.adapters.iter().any(|adapter| adapter.recognizes_file(&elf)) {
        check_symbols(file, &elf)?;
    }
    let before = PluginManifest::read_manifest(path).ok().flatten();
    let timeout = options.probe_timeout(before.as_ref());
    let probed = probe_file(&probe_command(), &real, &options.config.options, timeout);
    for note in &probed.notes {
        output::print_message(global.color, "warning", &format!("`{}`: {note}", file.display()), None);
    }
    let requires = before.as_ref().map_or(&[][..], |old| &old.requires);
    let further = before.iter().flat_map(|old| old.files.keys());
    let files = hash_shipped_files(file, requires, further, &options.environment)?;
    let info = probed.verdict?;
    let manifest = build_manifest(info.clone(), Digest::hash_bytes(&bytes), files, before);
    Ok(ProbedPlugin { info, manifest })
}

/// Builds a manifest. Fields that a probe cannot find out are kept from the old one.
fn build_manifest(
    info: PluginInfo,
    sha256: Digest,
    files: BTreeMap<String, Digest>,
    before: Option<PluginManifest>,
) -> PluginManifest {
    let probed = PluginManifest {
        name: info.name,
        version: info.version,
        kind: info.kind,
        device_type: info.device_type,
        variant: None,
        contract: info.contract,
        profiles: info.profiles,
        architecture: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        isa: None,
        sha256: Some(sha256),
        visible_devices_env: info.visible_devices_variable,
        package: Some(info.package).filter(|package| !package.is_empty()),
        start_timeout_ms: None,
        unloadable: info.unloadable,
        isolated: false,
        conformance: None,
        files,
        requires: Vec::new(),
        unsupported: Vec::new(),
        expected_failure: Vec::new(),
    };
    let Some(old) = before else { return probed };
    PluginManifest {
        variant: old.variant,
        isa: old.isa,
        start_timeout_ms: old.start_timeout_ms,
        isolated: old.isolated,
        // The result of the suite is valid only for the very file that was checked.
        conformance: old.conformance.filter(|_| old.sha256 == Some(sha256)),
        requires: old.requires,
        unsupported: old.unsupported,
        expected_failure: old.expected_failure,
        ..probed
    }
}

/// Replaces a file atomically, so that nobody reads half of it.
pub(super) fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension("toml.new");
    // The host refuses files that others can write to, so the mode is set regardless of the umask.
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(&new)?;
    file.write_all(text.as_bytes())?;
    fs::rename(&new, path)
}
