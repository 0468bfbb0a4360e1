//! Compares what a manifest says with what is so: first with the file, and once the plugin is loaded with what it says itself.

use std::path::Path;

use crate::judge::symbols::list_symbols;
use crate::{
    Digest, PluginInfo, PluginKind, PluginManifest, Refusal, RefusalReason, SharedObject, pinning_symbols,
};

/// Compares the manifest's claims about the file with the file.
pub(crate) fn check_file_claims(
    path: &Path,
    manifest: &PluginManifest,
    digest: Digest,
    elf: &SharedObject,
) -> Result<(), Refusal> {
    if let Some(expected) = manifest.sha256.filter(|expected| *expected != digest) {
        return Err(Refusal::new(
            RefusalReason::HashMismatch,
            path,
            format!("the hash in its manifest, `{expected}`"),
            format!("`{digest}`"),
            "install the plugin and its manifest again, from one package",
        ));
    }
    let pinning = pinning_symbols(elf);
    if manifest.unloadable && !pinning.is_empty() {
        return Err(Refusal::new(
            RefusalReason::ManifestLies,
            path,
            "a plugin that can be unloaded, as its manifest states",
            format!("symbols for which the dynamic linker keeps it forever: {}", list_symbols(&pinning)),
            "compile it with `-fno-gnu-unique`, or set `unloadable = false` in the manifest",
        ));
    }
    Ok(())
}

/// Compares the manifest with the plugin's own description.
pub(crate) fn check_manifest_promises(
    path: &Path,
    manifest: &PluginManifest,
    info: &PluginInfo,
) -> Result<(), Refusal> {
    let said = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
    let sorted = |profiles: &[String]| {
        let mut profiles = profiles.to_vec();
        profiles.sort();
        profiles.join(", ")
    };
    let unloadable = |can: bool| if can { "yes" } else { "no" }.to_owned();
    let kind = |kind: PluginKind| format!("{kind:?}").to_lowercase();
    let pairs = [
        ("name", manifest.name.clone(), info.name.clone()),
        ("version", manifest.version.clone(), info.version.clone()),
        ("kind", kind(manifest.kind), kind(info.kind)),
        ("device type", said(&manifest.device_type), said(&info.device_type)),
        ("contract", manifest.contract.to_string(), info.contract.to_string()),
        ("profiles", sorted(&manifest.profiles), sorted(&info.profiles)),
        (
            "variable of the visible devices",
            said(&manifest.visible_devices_env),
            said(&info.visible_devices_variable),
        ),
        // It is safe to keep a plugin loaded that supports unloading, so only the opposite mismatch is an error.
        ("`unloadable`", unloadable(manifest.unloadable && !info.unloadable), unloadable(false)),
    ];
    match pairs.into_iter().find(|(_, promised, kept)| promised != kept) {
        None => Ok(()),
        Some((what, promised, kept)) => Err(Refusal::new(
            RefusalReason::ManifestLies,
            path,
            format!("the {what} in its manifest, `{promised}`"),
            format!("`{kept}`, as reported by the plugin"),
            "write the manifest again with `oarlock plugin manifest --write`",
        )),
    }
}
