//! What lies in a package, of what was compiled and of the sources.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::file::Keys;
use super::{About, Compiled, Content, Maker, library_directory};
use crate::assemble::Made;
use crate::error::Error;
use crate::packed::gzip;
use crate::tree::{Entry, Tree};

impl Maker<'_> {
    /// What is compiled for a package.
    pub(super) fn compiled(&self, about: &About) -> Result<Vec<&Made>, Error> {
        about.contents.iter().filter_map(Content::compiled).map(|part| self.part(part)).collect()
    }

    fn part(&self, compiled: &Compiled) -> Result<&Made, Error> {
        let missing = || Error::new(format!("expected what is compiled of `{}`, found none", compiled.part));
        self.made.get(compiled).ok_or_else(missing)
    }

    pub(super) fn contents(&self, about: &About) -> Result<Tree, Error> {
        let mut tree = Tree::default();
        for content in &about.contents {
            let at = self.filled(content.at());
            match content {
                Content::Part { compiled, .. } => self.put_part(&mut tree, about, compiled, &at)?,
                Content::File { file, .. } => put_file(&mut tree, &self.root.join(file), &at)?,
                Content::Template { template, .. } => {
                    let text = fs::read_to_string(self.root.join(template));
                    let text = text.map_err(|error| Error::from(error).of_file(template))?;
                    tree.put(&at, Entry::file(self.of_template(&text).into_bytes()))?;
                }
                Content::Keys { keys: Keys::Public, .. } => tree.put(&at, Entry::file(self.keys))?,
                Content::Link { link, .. } => tree.put(&at, Entry::link(&self.filled(link)))?,
                Content::Says { says, .. } => {
                    let said = self.ask(says)?;
                    tree.put(&at, Entry::file(said))?;
                }
                Content::Writes { writes, .. } => {
                    let place = tempfile::tempdir()?;
                    let directory = place.path().to_string_lossy().into_owned();
                    self.ask(&[&writes[..], &[directory]].concat())?;
                    put_packed(&mut tree, place.path(), &at)?;
                }
            }
        }
        Ok(tree)
    }

    fn put_part(&self, tree: &mut Tree, about: &About, part: &Compiled, at: &str) -> Result<(), Error> {
        match self.part(part)? {
            Made::Other(other) if at.starts_with("usr/bin/") => {
                tree.put(at, Entry::program(other.bytes.clone()))
            }
            Made::Other(other) => tree.put(at, Entry::file(other.bytes.clone())),
            Made::Plugin(plugin) => {
                let manifest = plugin.manifest_of(&about.name)?;
                let manifest = manifest.ok_or_else(|| {
                    Error::new(format!("expected a manifest of `{}`, found none", part.part))
                })?;
                tree.put(&at.replace(".so", ".oarlock.toml"), Entry::file(manifest.into_bytes()))?;
                tree.put(at, Entry::file(plugin.library.clone()))
            }
            Made::Core(core) => {
                for (path, bytes) in core.wheel.files() {
                    tree.put(&format!("{at}/{path}"), Entry::file(bytes))?;
                }
                // What installed it, as every package of Python says.
                let about = core.wheel.information_path("INSTALLER");
                tree.put(&format!("{at}/{about}"), Entry::file(*b"debian\n"))
            }
        }
    }

    /// What the command says.
    fn ask(&self, arguments: &[String]) -> Result<Vec<u8>, Error> {
        let said = Command::new(self.command).args(arguments).output();
        let said = said.map_err(|error| Error::from(error).of_file(self.command.display()))?;
        if said.status.success() {
            return Ok(said.stdout);
        }
        let complaint = String::from_utf8_lossy(&said.stderr).into_owned();
        Err(Error::new(format!("`oarlock {}` failed: {}", arguments.join(" "), complaint.trim())))
    }

    /// A file of the sources that says where things are installed.
    fn of_template(&self, text: &str) -> String {
        let libraries = library_directory();
        text.replace("@PREFIX@", "/usr")
            .replace("@LIBDIR@", &libraries.replacen("usr", "${prefix}", 1))
            .replace("@INCLUDEDIR_FROM_LIBDIR@", "../../include")
            .replace("@VERSION@", self.version)
    }
}

/// A file, or all that lies in a directory.
fn put_file(tree: &mut Tree, from: &Path, at: &str) -> Result<(), Error> {
    let of_file = |error: std::io::Error| Error::from(error).of_file(from.display());
    if !from.is_dir() {
        return tree.put(at, Entry::file(fs::read(from).map_err(of_file)?));
    }
    for entry in fs::read_dir(from).map_err(of_file)? {
        let name = entry?.file_name();
        put_file(tree, &from.join(&name), &format!("{at}/{}", name.to_string_lossy()))?;
    }
    Ok(())
}

/// The files of a directory, packed as pages of manuals are.
fn put_packed(tree: &mut Tree, directory: &Path, at: &str) -> Result<(), Error> {
    for entry in fs::read_dir(directory)? {
        let file = entry?.path();
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        tree.put(&format!("{at}/{name}.gz"), Entry::file(gzip(&fs::read(&file)?)?))?;
    }
    Ok(())
}
