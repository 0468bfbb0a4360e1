//! `oarlock plugin sign`: signs the manifest of a plugin once it is true of every file.

use std::path::{Path, PathBuf};

use oarlock_host::{
    CoveredFile, FileCoverage, HostEnvironment, KeyFingerprint, ManifestSignatures, PluginManifest,
    PrivateKey, list_covered_files,
};
use oarlock_report::file::replace_file;
use oarlock_report::text::format_count;
use serde_json::json;

use super::new_file::PUBLIC_MODE;
use crate::CommandVerdict;
use crate::arguments::{GlobalOptions, SignArguments};
use crate::output::CommandOutput;
use crate::output_file::unwritable_file;
use crate::problem::CommandError;
use crate::render::print_labeled;
use crate::session::unusable_file;

/// A plugin that was signed.
pub(crate) struct SignedPlugin {
    /// The file of the signatures.
    pub(crate) signature: PathBuf,
    /// The keys that signed.
    pub(crate) keys: Vec<KeyFingerprint>,
    /// The files that the signatures cover: the plugin, and what is shipped with it.
    pub(crate) files: Vec<String>,
}

pub(crate) fn run_sign(
    global: &GlobalOptions,
    wish: &SignArguments,
    output: &mut CommandOutput,
) -> CommandVerdict {
    let SignedPlugin { signature, keys, files } = sign_plugin(&wish.file, &wish.keys)?;
    let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
    if global.json {
        let value = json!({ "signature": signature.display().to_string(), "keys": keys, "files": files });
        crate::commands::print_json(output, &value)?;
        return Ok(true);
    }
    print_labeled(
        output,
        "signed     ",
        11,
        &format!("the manifest and {}", format_count(files.len(), "file", "files")),
    );
    for file in files {
        print_labeled(output, "           ", 11, &file);
    }
    for key in keys {
        print_labeled(output, "by         ", 11, &key);
    }
    print_labeled(output, "signature  ", 11, &signature.display().to_string());
    Ok(true)
}

/// Signs the manifest beside the plugin `library` with the private keys in these files, and writes the signatures beside it. The
/// manifest must have the right hash of the plugin and of every library that it loads from beside it.
pub(crate) fn sign_plugin(library: &Path, key_files: &[PathBuf]) -> Result<SignedPlugin, CommandError> {
    let library = std::path::absolute(library).map_err(|error| unusable_file(library, &error))?;
    let path = PluginManifest::path_beside(&library);
    let Some(bytes) = PluginManifest::read_bytes(&path)? else {
        let problem = format!("`{}`: expected a manifest to sign, found none", path.display());
        return Err(CommandError::new(problem).with_hint(write_hint(&library)));
    };
    let manifest = PluginManifest::parse_manifest(&path, &bytes)?;
    let files = list_covered_files(&library, &manifest, &HostEnvironment::from_process())?;
    let uncovered: Vec<String> = files.iter().filter_map(describe_uncovered).collect();
    if !uncovered.is_empty() {
        let problem = format!("`{}`: expected the hash of every file, found otherwise:", path.display());
        let details = uncovered.iter().map(|line| format!("  {line}")).collect();
        return Err(CommandError::new(problem).with_details(details).with_hint(write_hint(&library)));
    }
    let keys: Vec<PrivateKey> =
        key_files.iter().map(|file| PrivateKey::read_file(file)).collect::<Result<_, _>>()?;
    let signed = ManifestSignatures::sign_manifest(&bytes, &keys)
        .map_err(|problem| CommandError::new(problem).with_hint("name each key once"))?;
    let signature = ManifestSignatures::path_beside(&library);
    let write = |stream: &mut std::fs::File| {
        stream.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(PUBLIC_MODE))?;
        std::io::Write::write_all(stream, signed.to_text().as_bytes())
    };
    replace_file(&signature, write).map_err(|error| unwritable_file(&signature, &error))?;
    Ok(SignedPlugin {
        signature,
        keys: signed.signatures.iter().map(|signature| signature.key).collect(),
        files: files.into_iter().map(|file| file.name).collect(),
    })
}

fn write_hint(library: &Path) -> String {
    format!("run `oarlock plugin manifest --write {}`", library.display())
}

/// Why the manifest does not cover a file; `None` if it does.
pub(super) fn describe_uncovered(file: &CoveredFile) -> Option<String> {
    let name = &file.name;
    match file.coverage {
        FileCoverage::Covered => None,
        FileCoverage::Changed(found) => {
            Some(format!("`{name}` is another file than the manifest says, sha256 {found}"))
        }
        FileCoverage::Missing => Some(format!("`{name}` is in the manifest, and there is no such file")),
        FileCoverage::Unlisted => Some(format!("`{name}` is loaded, and its hash is not in the manifest")),
    }
}
