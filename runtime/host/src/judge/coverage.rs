//! Says which files of a plugin its manifest covers, for vendors who sign and users who verify.
//!
//! Unlike the judge, this needs nothing but the files themselves: neither the driver of the device nor a machine of the right
//! architecture.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::files::permissions::unreadable_refusal;
use crate::files::regular_file::open_regular;
use crate::judge::shipped_files::ShippedFiles;
use crate::{
    Digest, HostEnvironment, LibrarySearch, PluginManifest, Refusal, RefusalReason, RequiredLibrary,
    SharedObject,
};

/// What a manifest says of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileCoverage {
    /// The file has the hash in the manifest.
    Covered,
    /// The file has this hash, and another in the manifest.
    Changed(Digest),
    /// The manifest lists the file, which is not there.
    Missing,
    /// The file would be loaded, and the manifest has no hash of it.
    Unlisted,
}

/// A file of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoveredFile {
    /// Its path from the directory of the plugin.
    pub name: String,
    /// What the manifest says of it.
    pub coverage: FileCoverage,
}

/// Lists the plugin at `path`, the libraries beside it that it loads, and the other files in its manifest.
pub fn list_covered_files(
    path: &Path,
    manifest: &PluginManifest,
    environment: &HostEnvironment,
) -> Result<Vec<CoveredFile>, Refusal> {
    let compare = |expected: Option<Digest>, found: Option<Digest>| match (expected, found) {
        (None, _) => FileCoverage::Unlisted,
        (Some(_), None) => FileCoverage::Missing,
        (Some(expected), Some(found)) if expected == found => FileCoverage::Covered,
        (Some(_), Some(found)) => FileCoverage::Changed(found),
    };
    let (plugin, _) = open_regular(path).map_err(|error| unreadable_refusal(path, &error))?;
    let digest = ShippedFiles { plugin: path, real_path: path }.hash_file(path, &plugin)?;
    let found = hash_shipped_files(path, &manifest.requires, manifest.files.keys(), environment)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut files = vec![CoveredFile { name, coverage: compare(manifest.sha256, Some(digest)) }];
    let names: BTreeSet<&String> = found.keys().chain(manifest.files.keys()).collect();
    files.extend(names.into_iter().map(|name| CoveredFile {
        name: name.clone(),
        coverage: compare(manifest.files.get(name).copied(), found.get(name).copied()),
    }));
    Ok(files)
}

/// Hashes the libraries beside the plugin at `path` that it loads, and those of the `further` files that are there.
pub fn hash_shipped_files<'a>(
    path: &Path,
    requires: &[RequiredLibrary],
    further: impl Iterator<Item = &'a String>,
    environment: &HostEnvironment,
) -> Result<BTreeMap<String, Digest>, Refusal> {
    let real_path = path.canonicalize().map_err(|error| unreadable_refusal(path, &error))?;
    let (file, _) = open_regular(&real_path).map_err(|error| unreadable_refusal(path, &error))?;
    // The variables of this process must not decide what is shipped.
    let search =
        LibrarySearch::of_system(&HostEnvironment { library_path: Vec::new(), ..environment.clone() });
    let libraries = match SharedObject::read_file(path, &file) {
        Ok(elf) => search.find_libraries(path, &elf.links, requires)?.of_plugin,
        // The release machine of a vendor signs for all. What the plugin loads was listed on a machine of its own.
        Err(refusal) if refusal.reason == RefusalReason::WrongArchitecture => Vec::new(),
        Err(refusal) => return Err(refusal),
    };
    ShippedFiles { plugin: path, real_path: &real_path }.hash_files(&libraries, further)
}
