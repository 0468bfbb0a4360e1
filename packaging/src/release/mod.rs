//! A release: everything that people install, in one directory that can be put on a server as it is.
//!
//! | where | what |
//! |---|---|
//! | `wheels/` | an index of the wheels, for pip and uv |
//! | `apt/` | a signed repository of the packages for Debian |
//! | `images/` | the images for containers |
//! | `book/` | the documentation |
//! | `bills/` | what each wheel, package and image is made of, in the forms of SPDX and CycloneDX |
//! | `provenance.json` | of which sources and of what else all of it was built, by SLSA 1.0, signed |
//! | `SHA256SUMS`, `SHA256SUMS.asc` | the hash of every file above, and the signatures of that list |
//! | `release-key.gpg`, `release-key.pem` | what signatures are checked with, for OpenPGP and for others |
//! | `index.html`, `release.json` | all that, for people and for programs |

pub mod bills;
mod page;
pub mod provenance;
mod source;

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use self::bills::{Bill, Subject};
use self::provenance::Materials;
pub use self::source::Source;
use crate::deb::Package;
use crate::error::Error;
use crate::index::Index;
use crate::openpgp::{self, Key};
use crate::place::{Files, Place};
use crate::repository::{Release as Suite, Repository};
use crate::wheel::Wheel;

/// What is said of a release.
#[derive(Debug)]
pub struct About<'r> {
    /// The version of Oarlock.
    pub version: &'r str,
    /// What it is made of.
    pub source: Source,
    /// The address at which it will be.
    pub host: &'r str,
    /// The rows of the matrix that are in it.
    pub rows: Vec<String>,
    /// The images that are in it, by what they are called.
    pub images: Vec<String>,
}

/// What was built for it.
pub struct Contents {
    /// The wheels.
    pub wheels: Index,
    /// The packages for Debian.
    pub packages: Repository,
    /// What is said of their repository.
    pub suite: Suite,
    /// The images, as archives, each with what it is made of.
    pub images: Vec<(PathBuf, Bill)>,
    /// The documentation, as a directory of pages.
    pub book: PathBuf,
    /// What all of it was built of.
    pub materials: Materials,
}

/// A file that somebody installs.
#[derive(Clone, Debug, Serialize)]
pub struct Item {
    /// Where it lies in the release.
    pub path: String,
    /// What it is.
    pub kind: Kind,
    /// How many bytes it has.
    pub bytes: u64,
    /// The hash of those.
    pub sha256: String,
}

/// What people install.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A wheel, for pip.
    Wheel,
    /// A package for Debian.
    Package,
    /// An image for containers.
    Image,
}

/// Where a release lies.
const PLACE: Place = Place { list: ".oarlock-release", one: "a release", none: "no release" };

/// Where wheels, packages and images lie in it, and how their names end.
const KINDS: [(Kind, &str, &str); 3] = [
    (Kind::Wheel, "wheels/files/", ".whl"),
    (Kind::Package, "apt/pool/", ".deb"),
    (Kind::Image, "images/", ".tar"),
];

const SUMS: &str = "SHA256SUMS";
const SIGNATURES: &str = "SHA256SUMS.asc";
const KEYRING: &str = "release-key.gpg";
const KEY: &str = "release-key.pem";
const PROVENANCE: &str = "provenance.json";

/// That a release may be written there.
///
/// # Errors
///
/// When the directory holds anything but a release, or cannot be read.
pub fn check_place(out: &Path) -> Result<(), Error> {
    PLACE.check(out)
}

impl Contents {
    /// Writes the release in place of the one that was there; gives what people install of it. Readers see the old one or the new
    /// one. The same contents are the same bytes.
    ///
    /// # Errors
    ///
    /// When the directory holds anything but a release, something in it carries no bill, or it cannot be written.
    pub fn write(&self, out: &Path, about: &About<'_>, keys: &[Key]) -> Result<Vec<Item>, Error> {
        let mut items = Vec::new();
        PLACE.write(out, |files| {
            self.wheels.write(&files.path().join("wheels"))?;
            self.packages.write(&files.path().join("apt"), &self.suite, keys)?;
            for (image, _) in &self.images {
                files.take(&format!("images/{}", file_name(image)), image)?;
            }
            for page in files_below(&self.book)? {
                files.take(&format!("book/{page}"), &self.book.join(&page))?;
            }
            items = listed(files.path())?;
            self.write_bills(files, about, &items)?;
            let statement = provenance::statement(about, &self.materials, &items);
            files.write(PROVENANCE, provenance::envelope(&statement, keys).as_bytes())?;
            files.write(KEYRING, &keys.iter().flat_map(Key::public_bytes).collect::<Vec<u8>>())?;
            let texts = keys.iter().map(Key::public_text).collect::<Result<Vec<_>, _>>()?;
            files.write(KEY, texts.concat().as_bytes())?;
            files.write("release.json", format!("{:#}\n", about.to_json(&items)).as_bytes())?;
            files.write("index.html", page::html(about, &items).as_bytes())?;
            sign(files, about, keys)?;
            files_below(files.path())?.iter().for_each(|path| files.leave(path));
            Ok(())
        })?;
        Ok(items)
    }

    fn write_bills(&self, files: &mut Files<'_>, about: &About<'_>, items: &[Item]) -> Result<(), Error> {
        for item in items {
            let path = files.path().join(&item.path);
            let name = file_name(&path);
            let image =
                || self.images.iter().find(|(file, _)| file_name(file) == name).map(|(_, bill)| bill.clone());
            let bill = match item.kind {
                Kind::Wheel => Bill::of_wheel(&Wheel::read(&path)?),
                Kind::Package => Bill::of_package(&Package::read_file(&path)?),
                Kind::Image => Ok(image().unwrap_or_default()),
            };
            let bill = bill.map_err(|error| error.of_part(&name))?;
            let subject = Subject {
                file: &name,
                version: about.version,
                sha256: &item.sha256,
                seconds: about.source.seconds,
            };
            files.write(&format!("bills/{name}.spdx.json"), bill.to_spdx(&subject).as_bytes())?;
            files.write(&format!("bills/{name}.cdx.json"), bill.to_cyclonedx(&subject).as_bytes())?;
        }
        Ok(())
    }
}

impl About<'_> {
    /// Where pages say that a part of the release is.
    fn address(&self, part: &str) -> String {
        format!("{}/{part}", self.host.trim_end_matches('/'))
    }

    fn to_json(&self, items: &[Item]) -> serde_json::Value {
        serde_json::json!({
            "version": self.version,
            "commit": self.source.commit,
            "tag": self.source.tag,
            "is_rehearsal": self.source.tag.is_none(),
            "files": items,
        })
    }
}

/// What people install of a release that is all there.
fn listed(release: &Path) -> Result<Vec<Item>, Error> {
    let mut items = Vec::new();
    for path in files_below(release)? {
        let kind = KINDS.iter().find(|(_, start, end)| path.starts_with(start) && path.ends_with(end));
        if let Some((kind, ..)) = kind {
            let (sha256, bytes) = hash(&release.join(&path))?;
            items.push(Item { path, kind: *kind, bytes, sha256 });
        }
    }
    items.sort_by(|one, other| (one.kind, &one.path).cmp(&(other.kind, &other.path)));
    Ok(items)
}

/// Writes the hashes of all that is there, and signs them.
fn sign(files: &mut Files<'_>, about: &About<'_>, keys: &[Key]) -> Result<(), Error> {
    let mut sums = String::new();
    // What other directories in it keep for themselves begins with a dot.
    let is_kept = |path: &String| path.rsplit('/').next().is_some_and(|name| name.starts_with('.'));
    for path in files_below(files.path())?.into_iter().filter(|path| !is_kept(path)) {
        sums += &format!("{}  {path}\n", hash(&files.path().join(&path))?.0);
    }
    files.write(SUMS, sums.as_bytes())?;
    let signatures = openpgp::sign_bytes(sums.as_bytes(), keys, about.source.seconds)?;
    files.write(SIGNATURES, signatures.as_bytes())
}

/// The paths of all files below a directory, in their order.
fn files_below(directory: &Path) -> Result<Vec<String>, Error> {
    let (mut found, mut left) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(next) = left.pop() {
        let entries = std::fs::read_dir(&next).map_err(|error| Error::from(error).of_file(next.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                left.push(path);
            } else {
                found.push(path.strip_prefix(directory).unwrap_or(&path).to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The hash of a file, and how many bytes it has.
fn hash(file: &Path) -> Result<(String, u64), Error> {
    let of_file = |error: std::io::Error| Error::from(error).of_file(file.display());
    let mut open = File::open(file).map_err(of_file)?;
    let (mut hash, mut bytes, mut some) = (Sha256::new(), 0, vec![0; 1 << 20]);
    loop {
        match open.read(&mut some).map_err(of_file)? {
            0 => return Ok((hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect(), bytes)),
            count => {
                hash.update(&some[..count]);
                bytes += count as u64;
            }
        }
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
