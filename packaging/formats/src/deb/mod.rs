//! Debian packages: a validating reader, and a reproducible writer: the same contents always give the same bytes.

mod archive;
pub mod compression;
pub mod control;
pub mod version;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use self::control::ControlParagraph;
use crate::error::Error;
use crate::tree::{FileTree, TreeEntry, TreeNode};
use md5::{Digest as _, Md5};

/// A package: its control fields, its maintainer scripts and its files.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DebPackage {
    /// Fields such as `Package` and `Depends`. `Installed-Size` is computed when the package is written.
    pub control: ControlParagraph,
    /// The other control files, such as `postinst`, `triggers` and `conffiles`, without `md5sums`, which is computed when the
    /// package is written.
    pub scripts: FileTree,
    /// The files that it installs.
    pub contents: FileTree,
}

/// The version of the format that is written; every version 2.x can be read.
const FORMAT_VERSION: &[u8] = b"2.0\n";

/// Limit for decompression, larger than any package.
const MAX_PACKAGE_BYTES: u64 = 4 << 30;

/// The same limit for the control archive.
const MAX_CONTROL_BYTES: u64 = 64 << 20;

/// Names in the control archive.
const CONTROL_FILE: &str = "control";
const HASHES_FILE: &str = "md5sums";

impl DebPackage {
    /// Reads a package and checks that it is complete and that its files match its `md5sums`.
    ///
    /// # Errors
    ///
    /// When it is damaged, or has no name, version or architecture.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let mut files = archive::read_ar(bytes)?.into_iter();
        match files.next() {
            Some(("debian-binary", version)) if version.starts_with(b"2.") => {}
            Some(("debian-binary", version)) => {
                let version = String::from_utf8_lossy(version);
                return Err(Error::new(format!(
                    "expected format 2 of Debian packages, found `{}`",
                    version.trim()
                )));
            }
            _ => return Err(Error::new("expected `debian-binary` first in a Debian package, found none")),
        }
        // The format reserves members with a leading underscore for extensions.
        let mut files = files.filter(|(name, _)| !name.starts_with('_'));
        let mut part = |start: &str, largest: u64| match files.next() {
            Some((name, bytes)) if name.starts_with(start) => {
                let tree = compression::decompress_by_name(name, bytes, largest)
                    .and_then(|tar| FileTree::from_tar(&tar));
                tree.map_err(|error| error.in_part(name))
            }
            Some((name, _)) => {
                Err(Error::new(format!("expected `{start}` in a Debian package, found `{name}`")))
            }
            None => Err(Error::new(format!("expected `{start}` in a Debian package, found none"))),
        };
        let mut scripts = part("control.tar", MAX_CONTROL_BYTES)?;
        let contents = part("data.tar", MAX_PACKAGE_BYTES)?;
        if let Some((name, _)) = files.next() {
            return Err(Error::new(format!("expected nothing after `data.tar`, found `{name}`")));
        }
        let control = file_text(&scripts, CONTROL_FILE)?
            .ok_or_else(|| Error::new("expected a file `control`, found none"))?;
        let control = ControlParagraph::parse_single(control).map_err(|error| error.in_part(CONTROL_FILE))?;
        let hashes = file_text(&scripts, HASHES_FILE)?.map(ToOwned::to_owned);
        scripts.retain(|path| ![CONTROL_FILE, HASHES_FILE].contains(&path));
        let package = Self { control, scripts, contents };
        package.check_fields()?;
        if let Some(hashes) = hashes {
            package.check_hashes(&hashes).map_err(|error| error.in_part(HASHES_FILE))?;
        }
        Ok(package)
    }

    /// Reads a package from a file.
    ///
    /// # Errors
    ///
    /// As [`DebPackage::from_bytes`], and when the file cannot be read; the error has the file name.
    pub fn read_file(file: &Path) -> Result<Self, Error> {
        let read = std::fs::read(file).map_err(Error::from).and_then(|bytes| Self::from_bytes(&bytes));
        read.map_err(|error| error.in_file(file.display()))
    }

    /// Writes the package with one timestamp for everything.
    ///
    /// # Errors
    ///
    /// When the name, version or architecture is missing, or a path is too long for the archive format.
    pub fn to_bytes(&self, seconds: u64) -> Result<Vec<u8>, Error> {
        self.check_fields()?;
        let mut control = self.control.clone();
        control.set_after("Maintainer", "Installed-Size", &self.installed_kibibytes().to_string());
        let mut scripts = self.scripts.clone();
        scripts.insert_entry(CONTROL_FILE, TreeEntry::file(control.to_string().into_bytes()))?;
        let hashes = self.md5sums_text()?;
        scripts.retain(|path| path != HASHES_FILE);
        if !hashes.is_empty() {
            scripts.insert_entry(HASHES_FILE, TreeEntry::file(hashes.into_bytes()))?;
        }
        let packed = |tree: &FileTree| compression::compress_xz(&tree.to_tar("./", seconds)?);
        let (scripts, contents) = (packed(&scripts)?, packed(&self.contents)?);
        let files: [(&str, &[u8]); 3] =
            [("debian-binary", FORMAT_VERSION), ("control.tar.xz", &scripts), ("data.tar.xz", &contents)];
        Ok(archive::write_ar(&files, seconds))
    }

    /// The package name.
    ///
    /// # Errors
    ///
    /// When it is missing or not a valid package name.
    pub fn name(&self) -> Result<&str, Error> {
        self.checked_field("Package", "lower-case letters, digits, `+`, `-` and `.`", is_package_name)
    }

    /// The package version.
    ///
    /// # Errors
    ///
    /// When it is missing or not a valid version.
    pub fn version(&self) -> Result<&str, Error> {
        let is_version = |version: &str| {
            let (epoch, rest) = version.split_once(':').unwrap_or(("0", version));
            epoch.parse::<u32>().is_ok()
                && rest.starts_with(|first: char| first.is_ascii_digit())
                && is_word_of(rest, "+-.~", u8::is_ascii_alphabetic)
        };
        self.checked_field("Version", "a version such as `1.0-1`", is_version)
    }

    /// The architecture that it is for, or `all`.
    ///
    /// # Errors
    ///
    /// When it is missing or not a valid architecture.
    pub fn architecture(&self) -> Result<&str, Error> {
        let is_architecture = |name: &str| is_word_of(name, "-", u8::is_ascii_lowercase);
        self.checked_field("Architecture", "lower-case letters, digits and `-`", is_architecture)
    }

    /// The conventional file name.
    ///
    /// # Errors
    ///
    /// When the name, version or architecture is missing.
    pub fn file_name(&self) -> Result<String, Error> {
        // File names omit the epoch, since a colon is special in them.
        let version = self.version()?;
        let version = version.split_once(':').map_or(version, |(_, version)| version);
        Ok(format!("{}_{version}_{}.deb", self.name()?, self.architecture()?))
    }

    fn checked_field(&self, name: &str, expected: &str, holds: impl Fn(&str) -> bool) -> Result<&str, Error> {
        let value = self.control.require_field(name)?;
        if holds(value) {
            return Ok(value);
        }
        let found = value.escape_debug();
        Err(Error::new(format!("expected {expected} in the field `{name}`, found `{found}`")))
    }

    fn check_fields(&self) -> Result<(), Error> {
        self.file_name().map(drop)
    }

    /// Installed size in KiB, computed as `dpkg` does.
    fn installed_kibibytes(&self) -> usize {
        let rooms = self.contents.entries().map(|(_, entry)| match &entry.node {
            TreeNode::File(bytes) => bytes.len().div_ceil(1024),
            TreeNode::Link(target) => target.len().div_ceil(1024),
            TreeNode::Directory => 1,
        });
        rooms.sum()
    }

    /// A line for each file, except for conffiles, which administrators may edit.
    fn md5sums_text(&self) -> Result<String, Error> {
        let kept = file_text(&self.scripts, "conffiles")?.unwrap_or_default();
        let is_kept = |path: &str| kept.lines().any(|line| line.trim_start_matches('/') == path);
        let mut lines = String::new();
        for (path, bytes) in self.contents.files().filter(|(path, _)| !is_kept(path)) {
            // Writing to a `String` cannot fail.
            _ = writeln!(lines, "{}  {path}", md5_hex(bytes));
        }
        Ok(lines)
    }

    fn check_hashes(&self, hashes: &str) -> Result<(), Error> {
        let files: BTreeMap<&str, &[u8]> = self.contents.files().collect();
        for line in hashes.lines().filter(|line| !line.is_empty()) {
            let (hash, path) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let path = path.trim_start().trim_start_matches("./");
            let bytes = files.get(path).ok_or_else(|| {
                Error::new(format!("expected `{path}`, which it lists; found no such file in the package"))
            })?;
            let found = md5_hex(bytes);
            if found != hash {
                return Err(Error::new(format!("`{path}`: expected the hash {hash}, found {found}")));
            }
        }
        Ok(())
    }
}

/// True for a valid package name.
pub fn is_package_name(name: &str) -> bool {
    name.len() >= 2 && is_word_of(name, "+-.", u8::is_ascii_lowercase)
}

/// True if a word begins with a letter of this kind or a digit and continues with those or characters in `others`.
fn is_word_of(word: &str, others: &str, is_letter: fn(&u8) -> bool) -> bool {
    let is_plain = |byte: &u8| is_letter(byte) || byte.is_ascii_digit();
    word.as_bytes().first().is_some_and(is_plain)
        && word.bytes().all(|byte| is_plain(&byte) || others.as_bytes().contains(&byte))
}

/// A file of a tree as text, if it is there.
fn file_text<'a>(tree: &'a FileTree, path: &str) -> Result<Option<&'a str>, Error> {
    let text = tree.file_bytes(path).map(std::str::from_utf8).transpose();
    text.map_err(|_| Error::new("expected UTF-8").in_part(path))
}

/// The MD5 hash as `dpkg` stores it.
pub fn md5_hex(bytes: &[u8]) -> String {
    Md5::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
