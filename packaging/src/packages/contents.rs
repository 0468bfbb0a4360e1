//! The contents of a package, from compiled parts and sources.

use std::fs;
use std::path::Path;
use std::process::Command;

use oarlock_formats::error::Error;
use oarlock_formats::file_packer::compress_gzip;
use oarlock_formats::tree::{FileTree, TreeEntry};

use super::catalog::PublishedKeys;
use super::{PackageBuilder, PackageContent, PackagePart, PackageSpec, library_directory};
use crate::build_artifact::BuildArtifact;

impl PackageBuilder<'_> {
    /// The compiled parts of a package.
    pub(super) fn compiled_artifacts(&self, about: &PackageSpec) -> Result<Vec<&BuildArtifact>, Error> {
        about
            .contents
            .iter()
            .filter_map(PackageContent::compiled_part)
            .map(|part| self.find_artifact(part))
            .collect()
    }

    fn find_artifact(&self, compiled: &PackagePart) -> Result<&BuildArtifact, Error> {
        let missing = || Error::new(format!("expected what is compiled of `{}`, found none", compiled.part));
        self.made.get(compiled).ok_or_else(missing)
    }

    pub(super) fn assemble_contents(&self, about: &PackageSpec) -> Result<FileTree, Error> {
        let mut tree = FileTree::default();
        for content in &about.contents {
            let at = self.fill_placeholders(content.installed_path());
            match content {
                PackageContent::Part { compiled, .. } => {
                    self.put_artifact(&mut tree, about, compiled, &at)?;
                }
                PackageContent::File { file, .. } => put_files(&mut tree, &self.root.join(file), &at)?,
                PackageContent::Template { template, .. } => {
                    let text = fs::read_to_string(self.root.join(template));
                    let text = text.map_err(|error| Error::from(error).in_file(template))?;
                    tree.insert_entry(&at, TreeEntry::file(self.fill_source_template(&text).into_bytes()))?;
                }
                PackageContent::Keys { keys: PublishedKeys::Public, .. } => {
                    tree.insert_entry(&at, TreeEntry::file(self.keys))?;
                }
                PackageContent::Link { link, .. } => {
                    tree.insert_entry(&at, TreeEntry::link(&self.fill_placeholders(link)))?;
                }
                PackageContent::Says { says, .. } => {
                    let output = self.query_command(says)?;
                    tree.insert_entry(&at, TreeEntry::file(output))?;
                }
                PackageContent::Writes { writes, .. } => {
                    let place = tempfile::tempdir()?;
                    let directory = place.path().to_string_lossy().into_owned();
                    self.query_command(&[&writes[..], &[directory]].concat())?;
                    put_gzipped_files(&mut tree, place.path(), &at)?;
                }
            }
        }
        Ok(tree)
    }

    fn put_artifact(
        &self,
        tree: &mut FileTree,
        about: &PackageSpec,
        part: &PackagePart,
        at: &str,
    ) -> Result<(), Error> {
        match self.find_artifact(part)? {
            BuildArtifact::Other(other) if at.starts_with("usr/bin/") => {
                tree.insert_entry(at, TreeEntry::program(other.bytes.clone()))
            }
            BuildArtifact::Other(other) => tree.insert_entry(at, TreeEntry::file(other.bytes.clone())),
            BuildArtifact::Plugin(plugin) => {
                let manifest = plugin.manifest_for_package(&about.name)?;
                let manifest = manifest.ok_or_else(|| {
                    Error::new(format!("expected a manifest of `{}`, found none", part.part))
                })?;
                tree.insert_entry(
                    &at.replace(".so", ".oarlock.toml"),
                    TreeEntry::file(manifest.into_bytes()),
                )?;
                tree.insert_entry(at, TreeEntry::file(plugin.library.clone()))
            }
            BuildArtifact::Core(core) => {
                for (path, bytes) in core.wheel.files() {
                    tree.insert_entry(&format!("{at}/{path}"), TreeEntry::file(bytes))?;
                }
                // The installer, which the metadata of every installed Python package names.
                let about = core.wheel.metadata_path("INSTALLER");
                tree.insert_entry(&format!("{at}/{about}"), TreeEntry::file(*b"debian\n"))
            }
        }
    }

    /// Runs the command and returns its output.
    fn query_command(&self, arguments: &[String]) -> Result<Vec<u8>, Error> {
        let Some((program, words)) = self.command.split_first() else {
            return Err(Error::new("expected the command `oarlock`, found none"));
        };
        let output = Command::new(program).args(words).args(arguments).output();
        let output = output.map_err(|error| Error::from(error).in_file(program.display()))?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(Error::new(format!("`oarlock {}` failed: {}", arguments.join(" "), complaint.trim())))
    }

    /// Fills the placeholders of a source file with installation paths.
    fn fill_source_template(&self, text: &str) -> String {
        let libraries = library_directory(self.architecture);
        text.replace("@PREFIX@", "/usr")
            .replace("@LIBDIR@", &libraries.replacen("usr", "${prefix}", 1))
            .replace("@INCLUDEDIR_FROM_LIBDIR@", "../../include")
            .replace("@VERSION@", self.version)
    }
}

/// Adds a file, or a directory with its contents.
fn put_files(tree: &mut FileTree, from: &Path, at: &str) -> Result<(), Error> {
    let of_file = |error: std::io::Error| Error::from(error).in_file(from.display());
    if !from.is_dir() {
        return tree.insert_entry(at, TreeEntry::file(fs::read(from).map_err(of_file)?));
    }
    for entry in fs::read_dir(from).map_err(of_file)? {
        let name = entry?.file_name();
        put_files(tree, &from.join(&name), &format!("{at}/{}", name.to_string_lossy()))?;
    }
    Ok(())
}

/// Adds the files of a directory, compressed as Debian compresses manual pages.
fn put_gzipped_files(tree: &mut FileTree, directory: &Path, at: &str) -> Result<(), Error> {
    for entry in fs::read_dir(directory)? {
        let file = entry?.path();
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        tree.insert_entry(&format!("{at}/{name}.gz"), TreeEntry::file(compress_gzip(&fs::read(&file)?)?))?;
    }
    Ok(())
}
