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

mod page;
pub mod provenance;
pub mod sboms;
mod source;

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use self::provenance::BuildMaterials;
use self::sboms::{SbomDocument, SbomSubject};
pub use self::source::SourceRevision;
use crate::deb::DebPackage;
use crate::error::Error;
use crate::index::WheelIndex;
use crate::openpgp::{self, OpenPgpKey};
use crate::output_directory::{DirectoryKind, DirectoryWriter};
use crate::repository::{AptRepository, SuiteRelease as Suite};
use crate::wheel::Wheel;

/// What is said of a release.
#[derive(Debug)]
pub struct ReleaseDescription<'r> {
    /// The version of Oarlock.
    pub version: &'r str,
    /// What it is made of.
    pub source: SourceRevision,
    /// The address at which it will be.
    pub host: &'r str,
    /// The rows of the matrix that are in it.
    pub rows: Vec<String>,
    /// The images that are in it, by what they are called.
    pub images: Vec<String>,
}

/// What was built for it.
pub struct ReleaseContents {
    /// The wheels.
    pub wheels: WheelIndex,
    /// The packages for Debian.
    pub packages: AptRepository,
    /// What is said of their repository.
    pub suite: Suite,
    /// The images, as archives, each with what it is made of.
    pub images: Vec<(PathBuf, SbomDocument)>,
    /// The documentation, as a directory of pages.
    pub book: PathBuf,
    /// What all of it was built of.
    pub materials: BuildMaterials,
}

/// A file that somebody installs.
#[derive(Clone, Debug, Serialize)]
pub struct ReleaseItem {
    /// Where it lies in the release.
    pub path: String,
    /// What it is.
    pub kind: ReleaseItemKind,
    /// How many bytes it has.
    pub bytes: u64,
    /// The hash of those.
    pub sha256: String,
}

/// What people install.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReleaseItemKind {
    /// A wheel, for pip.
    Wheel,
    /// A package for Debian.
    Package,
    /// An image for containers.
    Image,
}

/// Where a release lies.
const RELEASE_DIRECTORY: DirectoryKind =
    DirectoryKind { list: ".oarlock-release", one: "a release", none: "no release" };

/// Where wheels, packages and images lie in it, and how their names end.
const ITEM_KINDS: [(ReleaseItemKind, &str, &str); 3] = [
    (ReleaseItemKind::Wheel, "wheels/files/", ".whl"),
    (ReleaseItemKind::Package, "apt/pool/", ".deb"),
    (ReleaseItemKind::Image, "images/", ".tar"),
];

const CHECKSUMS_FILE: &str = "SHA256SUMS";
const CHECKSUMS_SIGNATURE_FILE: &str = "SHA256SUMS.asc";
const KEYRING_FILE: &str = "release-key.gpg";
const PUBLIC_KEY_FILE: &str = "release-key.pem";
const PROVENANCE_FILE: &str = "provenance.json";

/// That a release may be written there.
///
/// # Errors
///
/// When the directory holds anything but a release, or cannot be read.
pub fn check_target(out: &Path) -> Result<(), Error> {
    RELEASE_DIRECTORY.check_directory(out)
}

impl ReleaseContents {
    /// Writes the release in place of the one that was there; gives what people install of it. Readers see the old one or the new
    /// one. The same contents are the same bytes.
    ///
    /// # Errors
    ///
    /// When the directory holds anything but a release, something in it carries no bill, or it cannot be written.
    pub fn write_release(
        &self,
        out: &Path,
        about: &ReleaseDescription<'_>,
        keys: &[OpenPgpKey],
    ) -> Result<Vec<ReleaseItem>, Error> {
        let mut items = Vec::new();
        RELEASE_DIRECTORY.write_directory(out, |files| {
            self.wheels.write_index(&files.path().join("wheels"))?;
            self.packages.write_repository(&files.path().join("apt"), &self.suite, keys)?;
            for (image, _) in &self.images {
                files.copy_file(&format!("images/{}", file_name(image)), image)?;
            }
            for page in files_below(&self.book)? {
                files.copy_file(&format!("book/{page}"), &self.book.join(&page))?;
            }
            items = list_items(files.path())?;
            self.write_sboms(files, about, &items)?;
            let statement = provenance::provenance_statement(about, &self.materials, &items);
            files.write_file(PROVENANCE_FILE, provenance::sign_envelope(&statement, keys).as_bytes())?;
            files.write_file(
                KEYRING_FILE,
                &keys.iter().flat_map(OpenPgpKey::to_public_packets).collect::<Vec<u8>>(),
            )?;
            let texts = keys.iter().map(OpenPgpKey::to_public_pem).collect::<Result<Vec<_>, _>>()?;
            files.write_file(PUBLIC_KEY_FILE, texts.concat().as_bytes())?;
            files.write_file("release.json", format!("{:#}\n", about.to_json(&items)).as_bytes())?;
            files.write_file("index.html", page::release_page(about, &items).as_bytes())?;
            sign_checksums(files, about, keys)?;
            files_below(files.path())?.iter().for_each(|path| files.reserve_path(path));
            Ok(())
        })?;
        Ok(items)
    }

    fn write_sboms(
        &self,
        files: &mut DirectoryWriter<'_>,
        about: &ReleaseDescription<'_>,
        items: &[ReleaseItem],
    ) -> Result<(), Error> {
        for item in items {
            let path = files.path().join(&item.path);
            let name = file_name(&path);
            let image =
                || self.images.iter().find(|(file, _)| file_name(file) == name).map(|(_, bill)| bill.clone());
            let bill = match item.kind {
                ReleaseItemKind::Wheel => SbomDocument::of_wheel(&Wheel::read_file(&path)?),
                ReleaseItemKind::Package => SbomDocument::of_package(&DebPackage::read_file(&path)?),
                ReleaseItemKind::Image => Ok(image().unwrap_or_default()),
            };
            let bill = bill.map_err(|error| error.in_part(&name))?;
            let subject = SbomSubject {
                file: &name,
                version: about.version,
                sha256: &item.sha256,
                seconds: about.source.seconds,
            };
            files.write_file(&format!("bills/{name}.spdx.json"), bill.to_spdx(&subject).as_bytes())?;
            files.write_file(&format!("bills/{name}.cdx.json"), bill.to_cyclonedx(&subject).as_bytes())?;
        }
        Ok(())
    }
}

impl ReleaseDescription<'_> {
    /// Where pages say that a part of the release is.
    fn part_address(&self, part: &str) -> String {
        format!("{}/{part}", self.host.trim_end_matches('/'))
    }

    fn to_json(&self, items: &[ReleaseItem]) -> serde_json::Value {
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
fn list_items(release: &Path) -> Result<Vec<ReleaseItem>, Error> {
    let mut items = Vec::new();
    for path in files_below(release)? {
        let kind = ITEM_KINDS.iter().find(|(_, start, end)| path.starts_with(start) && path.ends_with(end));
        if let Some((kind, ..)) = kind {
            let (sha256, bytes) = hash_file(&release.join(&path))?;
            items.push(ReleaseItem { path, kind: *kind, bytes, sha256 });
        }
    }
    items.sort_by(|one, other| (one.kind, &one.path).cmp(&(other.kind, &other.path)));
    Ok(items)
}

/// Writes the hashes of all that is there, and signs them.
fn sign_checksums(
    files: &mut DirectoryWriter<'_>,
    about: &ReleaseDescription<'_>,
    keys: &[OpenPgpKey],
) -> Result<(), Error> {
    let mut sums = String::new();
    // What other directories in it keep for themselves begins with a dot.
    let is_kept = |path: &String| path.rsplit('/').next().is_some_and(|name| name.starts_with('.'));
    for path in files_below(files.path())?.into_iter().filter(|path| !is_kept(path)) {
        sums += &format!("{}  {path}\n", hash_file(&files.path().join(&path))?.0);
    }
    files.write_file(CHECKSUMS_FILE, sums.as_bytes())?;
    let signatures = openpgp::sign_detached(sums.as_bytes(), keys, about.source.seconds)?;
    files.write_file(CHECKSUMS_SIGNATURE_FILE, signatures.as_bytes())
}

/// The paths of all files below a directory, in their order.
fn files_below(directory: &Path) -> Result<Vec<String>, Error> {
    let (mut found, mut left) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(next) = left.pop() {
        let entries = std::fs::read_dir(&next).map_err(|error| Error::from(error).in_file(next.display()))?;
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
fn hash_file(file: &Path) -> Result<(String, u64), Error> {
    let of_file = |error: std::io::Error| Error::from(error).in_file(file.display());
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
