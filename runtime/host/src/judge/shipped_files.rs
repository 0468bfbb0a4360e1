//! Judges the files that come with a plugin as strictly as the plugin: whoever can replace a library that it loads can run code as
//! the user.
//!
//! A file is known by its path from the directory of the plugin, such as `libfoo.so.1` or `../acme.libs/libfoo.so.1`. It is hashed
//! as it is opened. Only root and the user can replace it before the linker opens it again, and both could run code anyway.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::{Component, Path, PathBuf};

use crate::files::permissions::unreadable_refusal;
use crate::files::regular_file::open_regular;
use crate::judge::MAX_PLUGIN_BYTES;
use crate::judge::memory_demands::check_memory_demands;
use crate::judge::search_path::LibraryOrigin;
use crate::judge::sonames::LibraryFile;
use crate::{AllowList, Digest, PluginManifest, ProcessIdentity, Refusal, RefusalReason};

/// Limit on the manifests that are searched for the name of a file: each file of a directory is looked for in all of them.
const MAX_OWNERS: usize = 256;

/// The files that come with a plugin, and what they are judged by.
pub(crate) struct ShippedFiles<'a> {
    /// The plugin, as it was found.
    pub(crate) plugin: &'a Path,
    /// The plugin without symbolic links.
    pub(crate) real_path: &'a Path,
}

/// What the files have to agree with.
pub(crate) struct ShippedClaims<'a> {
    /// The hashes in the manifest.
    pub(crate) listed: &'a BTreeMap<String, Digest>,
    /// The administrator's allow-list.
    pub(crate) allow: &'a AllowList,
    /// True if a trusted key signed the manifest.
    pub(crate) is_signed: bool,
}

impl ShippedFiles<'_> {
    /// Checks the libraries whose places the plugin decides, and all files that its manifest lists.
    pub(crate) fn check_files(
        &self,
        libraries: &[LibraryFile],
        identity: ProcessIdentity,
        claims: &ShippedClaims<'_>,
    ) -> Result<(), Refusal> {
        let mut seen = BTreeSet::new();
        for LibraryFile { path, origin, library } in libraries {
            self.check_permissions(path, identity)?;
            check_memory_demands(self.plugin, path, library.memory)?;
            if *origin == LibraryOrigin::Beside {
                let name = self.shipped_name(path);
                self.check_library(path, &name, &library.file, claims)?;
                seen.insert(name);
            }
        }
        for (name, expected) in claims.listed.iter().filter(|(name, _)| !seen.contains(*name)) {
            let path = self.directory().join(name);
            if !path.exists() {
                return Err(Refusal::new(
                    RefusalReason::ManifestLies,
                    self.plugin,
                    format!("the file `{name}`, which its manifest lists"),
                    "no such file",
                    "install the plugin again, with all of its files",
                ));
            }
            self.check_permissions(&path, identity)?;
            let (file, _) = open_regular(&path).map_err(|error| unreadable_refusal(&path, &error))?;
            self.check_digest(&path, self.hash_file(&path, &file)?, *expected)?;
        }
        Ok(())
    }

    /// The hashes of the libraries beside the plugin and of further files.
    pub(crate) fn hash_files<'a>(
        &self,
        libraries: &[LibraryFile],
        further: impl Iterator<Item = &'a String>,
    ) -> Result<BTreeMap<String, Digest>, Refusal> {
        let mut hashes = BTreeMap::new();
        for LibraryFile { path, library, .. } in
            libraries.iter().filter(|file| file.origin == LibraryOrigin::Beside)
        {
            hashes.insert(self.shipped_name(path), self.hash_file(path, &library.file)?);
        }
        for name in further {
            let path = self.directory().join(name);
            // What is gone has no hash.
            if let (false, Ok((file, _))) = (hashes.contains_key(name), open_regular(&path)) {
                hashes.insert(name.clone(), self.hash_file(&path, &file)?);
            }
        }
        Ok(hashes)
    }

    fn check_library(
        &self,
        path: &Path,
        name: &str,
        file: &File,
        claims: &ShippedClaims<'_>,
    ) -> Result<(), Refusal> {
        let listed = claims.listed.get(name);
        if listed.is_none() && claims.is_signed {
            return Err(Refusal::new(
                RefusalReason::FileNotSigned,
                self.plugin,
                format!("a signature that covers its library `{}`", path.display()),
                format!("a signed manifest without `{name}` under `[files]`"),
                "ask its vendor to list the file with `oarlock plugin manifest --write` and to sign again",
            ));
        }
        if listed.is_none() && claims.allow.is_empty() {
            return Ok(());
        }
        let digest = self.hash_file(path, file)?;
        claims.allow.check_digest(path, digest).map_err(|refusal| self.refuse_plugin(refusal, path))?;
        listed.map_or(Ok(()), |expected| self.check_digest(path, digest, *expected))
    }

    fn check_permissions(&self, path: &Path, identity: ProcessIdentity) -> Result<(), Refusal> {
        identity.check_file(path).map(drop).map_err(|refusal| self.refuse_plugin(refusal, path))
    }

    /// Turns the refusal of a file into one of the plugin that comes with it.
    fn refuse_plugin(&self, refusal: Refusal, path: &Path) -> Refusal {
        let name = format!("`{}`", path.display());
        let expected = if refusal.found.contains(&name) {
            refusal.expected
        } else {
            format!("{} (its file {name})", refusal.expected)
        };
        Refusal { file: self.plugin.to_path_buf(), expected, ..refusal }
    }

    fn check_digest(&self, path: &Path, found: Digest, expected: Digest) -> Result<(), Refusal> {
        if found == expected {
            return Ok(());
        }
        Err(Refusal::new(
            RefusalReason::HashMismatch,
            self.plugin,
            format!("its file `{}` with the hash in its manifest, `{expected}`", path.display()),
            format!("`{found}`"),
            "install the plugin again, with all of its files from one package",
        ))
    }

    /// The hash of a file. A longer one is refused: the hash of its beginning would say nothing of the rest.
    pub(crate) fn hash_file(&self, path: &Path, mut file: &File) -> Result<Digest, Refusal> {
        let unreadable = |error| unreadable_refusal(path, &error);
        let length = file.metadata().map_err(unreadable)?.len();
        if length > MAX_PLUGIN_BYTES {
            return Err(Refusal::new(
                RefusalReason::HashMismatch,
                self.plugin,
                format!("its file `{}` with at most {MAX_PLUGIN_BYTES} bytes", path.display()),
                format!("{length} bytes"),
                "split the file",
            ));
        }
        file.rewind().map_err(unreadable)?;
        Digest::hash_reader(file.take(MAX_PLUGIN_BYTES)).map_err(unreadable)
    }

    fn directory(&self) -> &Path {
        self.real_path.parent().unwrap_or(Path::new("/"))
    }

    /// The path of a file from the directory of the plugin.
    fn shipped_name(&self, path: &Path) -> String {
        let directory =
            path.parent().map(|parent| parent.canonicalize().unwrap_or_else(|_| parent.to_path_buf()));
        let target = directory.unwrap_or_default().join(path.file_name().unwrap_or_default());
        relative_path(self.directory(), &target).display().to_string()
    }
}

/// The manifest in the same directory that lists this file.
pub(crate) fn find_owner(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let entries = path.parent()?.read_dir().ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let is_manifest = |path: &PathBuf| path.to_str().is_some_and(|path| path.ends_with(".oarlock.toml"));
    let lists = |path: &PathBuf| {
        PluginManifest::read_manifest(path)
            .ok()
            .flatten()
            .is_some_and(|manifest| manifest.files.contains_key(name))
    };
    entries.filter(is_manifest).take(MAX_OWNERS).find(lists)
}

/// The path from a directory to a file, both absolute and without links.
fn relative_path(directory: &Path, file: &Path) -> PathBuf {
    let shared =
        directory.components().zip(file.components()).take_while(|(one, other)| one == other).count();
    let up = directory.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(file.components().skip(shared)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_by_the_way_to_it() {
        for (directory, file, way) in [
            ("/p/acme", "/p/acme/libx.so", "libx.so"),
            ("/p/acme", "/p/acme/lib/libx.so", "lib/libx.so"),
            ("/p/acme", "/p/acme.libs/libx.so", "../acme.libs/libx.so"),
            ("/", "/libx.so", "libx.so"),
            ("/p/acme/plugins", "/opt/libx.so", "../../../opt/libx.so"),
        ] {
            assert_eq!(relative_path(Path::new(directory), Path::new(file)), Path::new(way));
        }
    }
}
