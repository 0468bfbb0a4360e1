//! Packages of Debian: read with their checks, and written so that the same contents are the same bytes wherever and whenever
//! that is done.

mod archive;
pub(crate) mod compression;
pub mod control;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use md5::{Digest as _, Md5};

use self::control::Paragraph;
use crate::error::Error;
use crate::tree::{Entry, Node, Tree};

/// A package: what is said of it, what is run when it is installed, and what it installs.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Package {
    /// The fields such as `Package` and `Depends`. What is installed says how large that is, when the package is written.
    pub control: Paragraph,
    /// The other files beside them, such as `postinst`, `triggers` and `conffiles`, without `md5sums`, which is made when the
    /// package is written.
    pub scripts: Tree,
    /// What it installs.
    pub contents: Tree,
}

/// The version of the format, of which all of 2 can be read.
const FORMAT: &[u8] = b"2.0\n";

/// More than any package holds; what claims more is not unpacked.
const LARGEST: u64 = 4 << 30;

/// The same of what is said of a package.
const LARGEST_CONTROL: u64 = 64 << 20;

/// Where in the first archive the fields lie, and the hashes of what is installed.
const CONTROL: &str = "control";
const HASHES: &str = "md5sums";

impl Package {
    /// Reads a package and checks that it is whole and that its files are those that it says it has.
    ///
    /// # Errors
    ///
    /// When it is broken, or lacks a name, a version or an architecture.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        let mut files = archive::read(bytes)?.into_iter();
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
        // The format lets others put what is theirs between, under names that begin so.
        let mut files = files.filter(|(name, _)| !name.starts_with('_'));
        let mut part = |start: &str, largest: u64| match files.next() {
            Some((name, bytes)) if name.starts_with(start) => {
                let tree = compression::unpack(name, bytes, largest).and_then(|tar| Tree::of_tar(&tar));
                tree.map_err(|error| error.of_part(name))
            }
            Some((name, _)) => {
                Err(Error::new(format!("expected `{start}` in a Debian package, found `{name}`")))
            }
            None => Err(Error::new(format!("expected `{start}` in a Debian package, found none"))),
        };
        let mut scripts = part("control.tar", LARGEST_CONTROL)?;
        let contents = part("data.tar", LARGEST)?;
        if let Some((name, _)) = files.next() {
            return Err(Error::new(format!("expected nothing after `data.tar`, found `{name}`")));
        }
        let control =
            text(&scripts, CONTROL)?.ok_or_else(|| Error::new("expected a file `control`, found none"))?;
        let control = Paragraph::read_one(control).map_err(|error| error.of_part(CONTROL))?;
        let hashes = text(&scripts, HASHES)?.map(ToOwned::to_owned);
        scripts.retain(|path| ![CONTROL, HASHES].contains(&path));
        let package = Self { control, scripts, contents };
        package.check()?;
        if let Some(hashes) = hashes {
            package.check_hashes(&hashes).map_err(|error| error.of_part(HASHES))?;
        }
        Ok(package)
    }

    /// The same of a file.
    ///
    /// # Errors
    ///
    /// As [`Package::read`], and when the file cannot be read; the error names it.
    pub fn read_file(file: &Path) -> Result<Self, Error> {
        let read = std::fs::read(file).map_err(Error::from).and_then(|bytes| Self::read(&bytes));
        read.map_err(|error| error.of_file(file.display()))
    }

    /// The package as a file in which everything is of one time.
    ///
    /// # Errors
    ///
    /// When it lacks a name, a version or an architecture, or a path is longer than archives can say.
    pub fn to_bytes(&self, seconds: u64) -> Result<Vec<u8>, Error> {
        self.check()?;
        let mut control = self.control.clone();
        control.set_after("Maintainer", "Installed-Size", &self.installed_kibibytes().to_string());
        let mut scripts = self.scripts.clone();
        scripts.put(CONTROL, Entry::file(control.to_string().into_bytes()))?;
        let hashes = self.hashes()?;
        scripts.retain(|path| path != HASHES);
        if !hashes.is_empty() {
            scripts.put(HASHES, Entry::file(hashes.into_bytes()))?;
        }
        let packed = |tree: &Tree| compression::xz(&tree.to_tar("./", seconds)?);
        let (scripts, contents) = (packed(&scripts)?, packed(&self.contents)?);
        let files: [(&str, &[u8]); 3] =
            [("debian-binary", FORMAT), ("control.tar.xz", &scripts), ("data.tar.xz", &contents)];
        Ok(archive::write(&files, seconds))
    }

    /// What the package is called.
    ///
    /// # Errors
    ///
    /// When it has no name, or one that no package can have.
    pub fn name(&self) -> Result<&str, Error> {
        self.field("Package", "lower-case letters, digits, `+`, `-` and `.`", is_package_name)
    }

    /// Its version.
    ///
    /// # Errors
    ///
    /// When it has none, or one that no package can have.
    pub fn version(&self) -> Result<&str, Error> {
        let is_version = |version: &str| {
            let (epoch, rest) = version.split_once(':').unwrap_or(("0", version));
            epoch.parse::<u32>().is_ok()
                && rest.starts_with(|first: char| first.is_ascii_digit())
                && begins_and_is_made_of(rest, "+-.~", u8::is_ascii_alphabetic)
        };
        self.field("Version", "a version such as `1.0-1`", is_version)
    }

    /// The kind of machine that it is for, or `all`.
    ///
    /// # Errors
    ///
    /// When it says none, or one that cannot be.
    pub fn architecture(&self) -> Result<&str, Error> {
        let is_architecture = |name: &str| begins_and_is_made_of(name, "-", u8::is_ascii_lowercase);
        self.field("Architecture", "lower-case letters, digits and `-`", is_architecture)
    }

    /// What its file is called.
    ///
    /// # Errors
    ///
    /// When it lacks a name, a version or an architecture.
    pub fn file_name(&self) -> Result<String, Error> {
        // What tells an old way of counting from a new one is no part of names of files, where a colon means something.
        let version = self.version()?;
        let version = version.split_once(':').map_or(version, |(_, version)| version);
        Ok(format!("{}_{version}_{}.deb", self.name()?, self.architecture()?))
    }

    fn field(&self, name: &str, expected: &str, holds: impl Fn(&str) -> bool) -> Result<&str, Error> {
        let value = self.control.need(name)?;
        if holds(value) {
            return Ok(value);
        }
        let found = value.escape_debug();
        Err(Error::new(format!("expected {expected} in the field `{name}`, found `{found}`")))
    }

    fn check(&self) -> Result<(), Error> {
        self.file_name().map(drop)
    }

    /// How much room it takes, counted as `dpkg` does.
    fn installed_kibibytes(&self) -> usize {
        let rooms = self.contents.entries().map(|(_, entry)| match &entry.node {
            Node::File(bytes) => bytes.len().div_ceil(1024),
            Node::Link(target) => target.len().div_ceil(1024),
            Node::Directory => 1,
        });
        rooms.sum()
    }

    /// A line for each file, but for those that the machine's owner may change.
    fn hashes(&self) -> Result<String, Error> {
        let kept = text(&self.scripts, "conffiles")?.unwrap_or_default();
        let is_kept = |path: &str| kept.lines().any(|line| line.trim_start_matches('/') == path);
        let mut lines = String::new();
        for (path, bytes) in self.contents.files().filter(|(path, _)| !is_kept(path)) {
            // Writing to a text cannot fail.
            _ = writeln!(lines, "{}  {path}", md5(bytes));
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
            let found = md5(bytes);
            if found != hash {
                return Err(Error::new(format!("`{path}`: expected the hash {hash}, found {found}")));
            }
        }
        Ok(())
    }
}

/// Whether a package may be called so.
pub(crate) fn is_package_name(name: &str) -> bool {
    name.len() >= 2 && begins_and_is_made_of(name, "+-.", u8::is_ascii_lowercase)
}

/// Whether a word begins with a letter of a kind or a digit, and is made of those and of a few others.
fn begins_and_is_made_of(word: &str, others: &str, is_letter: fn(&u8) -> bool) -> bool {
    let is_plain = |byte: &u8| is_letter(byte) || byte.is_ascii_digit();
    word.as_bytes().first().is_some_and(is_plain)
        && word.bytes().all(|byte| is_plain(&byte) || others.as_bytes().contains(&byte))
}

/// A file of a tree as text, if it is there.
fn text<'a>(tree: &'a Tree, path: &str) -> Result<Option<&'a str>, Error> {
    let text = tree.file(path).map(std::str::from_utf8).transpose();
    text.map_err(|_| Error::new("expected UTF-8").of_part(path))
}

/// The hash of a file as `dpkg` notes it.
pub(crate) fn md5(bytes: &[u8]) -> String {
    Md5::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
