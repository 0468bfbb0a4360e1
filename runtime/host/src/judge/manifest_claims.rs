//! Compares what a manifest says of its file with the file.

use std::path::Path;

use crate::judge::symbols::list_symbols;
use crate::{Digest, PluginManifest, Refusal, RefusalReason, SharedObject, pinning_symbols};

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
