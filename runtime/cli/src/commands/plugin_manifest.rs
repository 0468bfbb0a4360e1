//! `oarlock plugin manifest`: what a plugin says of itself, as the file that lies beside it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use oarlock_host::{Digest, Elf, HostOptions, Manifest, PROBE_TIMEOUT, PluginInfo, check_symbols, probe};

use crate::Verdict;
use crate::arguments::Global;
use crate::messages::Messages;
use crate::output::{self, Output};
use crate::problem::Problem;
use crate::session::{options, probe_command, unusable};

pub(crate) fn run(global: &Global, file: &Path, write: bool, output: &mut Output) -> Verdict {
    let options = options(global, &Messages::new(global))?;
    let file = std::path::absolute(file).map_err(|error| unusable(file, &error))?;
    let path = Manifest::path_beside(&file);
    let manifest = manifest_of(&file, &path, &options, global)?;
    let text = manifest.to_toml().map_err(Problem::new)?;
    if write {
        replace(&path, &text).map_err(|error| {
            Problem::new(format!("`{}`: expected to write the manifest, found: {error}", path.display()))
                .hint("make the directory writable for you, or print the manifest without `--write`")
        })?;
        output::say(global.color, "note", &format!("wrote `{}`", path.display()), None);
    } else if global.json {
        super::print_json(output, &manifest)?;
    } else {
        output.write(&text);
    }
    Ok(true)
}

/// Asks the plugin. A manifest that is there already is not asked: it may be the one to correct.
fn manifest_of(
    file: &Path,
    path: &Path,
    options: &HostOptions,
    global: &Global,
) -> Result<Manifest, Problem> {
    let real = options.environment.identity.check_file(file)?;
    let bytes = fs::read(&real).map_err(|error| unusable(file, &error))?;
    check_symbols(file, &Elf::read(file, &bytes)?)?;
    let timeout =
        options.config.plugins.probe_timeout_ms.map_or(PROBE_TIMEOUT, std::time::Duration::from_millis);
    let probed = probe(&probe_command(), &real, &options.config.options, timeout);
    for note in &probed.notes {
        output::say(global.color, "warning", &format!("`{}`: {note}", file.display()), None);
    }
    let before = Manifest::read(path).ok().flatten();
    Ok(manifest(probed.verdict?, Digest::of(&bytes), before))
}

/// The manifest of a plugin. What no probe can find out is kept from the one there was before.
fn manifest(info: PluginInfo, sha256: Digest, before: Option<Manifest>) -> Manifest {
    let (variant, isa, requires, conformance) = match before {
        // A run of the conformance suite is about the very file it was run on.
        Some(old) => {
            (old.variant, old.isa, old.requires, old.conformance.filter(|_| old.sha256 == Some(sha256)))
        }
        None => (None, None, Vec::new(), None),
    };
    Manifest {
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
    }
}

/// Puts a file in the place of another at once, so that no half-written one is ever read.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension("toml.new");
    // The host refuses files that others can write to, whatever the user's mask says.
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(&new)?;
    file.write_all(text.as_bytes())?;
    fs::rename(&new, path)
}
