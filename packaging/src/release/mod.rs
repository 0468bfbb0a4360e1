//! A release: all files that users install, in one directory that can be published on a server unchanged.
//!
//! | where | what |
//! |---|---|
//! | `wheels/` | an index of the wheels, for pip and uv |
//! | `apt/` | a signed repository of the Debian packages |
//! | `images/` | the container images |
//! | `book/` | the documentation |
//! | `sboms/` | the SBOM of each wheel, package and image, in the formats SPDX and CycloneDX |
//! | `provenance.json` | the sources and materials of the build, as a signed SLSA 1.0 statement |
//! | `SHA256SUMS`, `SHA256SUMS.asc` | the hashes of all files above, and the signatures of that list |
//! | `release-key.gpg`, `release-key.pem` | the public keys, for OpenPGP and for other programs |
//! | `index.html`, `release.json` | a summary, for people and for programs |

mod page;
pub mod provenance;
pub mod release_sboms;
mod source;

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use oarlock_formats::deb::DebPackage;
use oarlock_formats::error::Error;
use oarlock_formats::openpgp::{self, OpenPgpKey};
use oarlock_formats::output_directory::{DirectoryKind, DirectoryWriter};
use oarlock_formats::wheel::Wheel;

use self::provenance::BuildMaterials;
use self::release_sboms::{SbomDocument, SbomSubject};
pub use self::source::SourceRevision;
use crate::apt_repository::{AptRepository, SuiteRelease};
use crate::index::WheelIndex;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// The description of a release.
#[derive(Debug)]
pub struct ReleaseDescription<'r> {
    /// The version of Oarlock.
    pub version: &'r str,
    /// The sources that it was built from.
    pub source: SourceRevision,
    /// The address where it will be published.
    pub host: &'r str,
    /// The rows of the matrix that it contains.
    pub rows: Vec<String>,
    /// The names of the images that it contains.
    pub images: Vec<String>,
}

/// The files of a release before they are assembled.
pub struct ReleaseContents {
    /// The wheels.
    pub wheels: WheelIndex,
    /// The Debian packages.
    pub packages: AptRepository,
    /// The suite of their repository.
    pub suite: SuiteRelease,
    /// The image archives, each with its SBOM.
    pub images: Vec<(PathBuf, SbomDocument)>,
    /// The documentation, as a directory of pages.
    pub book: PathBuf,
    /// The materials of the build.
    pub materials: BuildMaterials,
}

/// A file that users install.
#[derive(Clone, Debug, Serialize)]
pub struct ReleaseItem {
    /// The path in the release.
    pub path: String,
    /// The kind of file.
    pub kind: ReleaseItemKind,
    /// The size in bytes.
    pub bytes: u64,
    /// The SHA-256.
    pub sha256: String,
}

/// A kind of installable file.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReleaseItemKind {
    /// A wheel, for pip.
    Wheel,
    /// A Debian package.
    Package,
    /// A container image.
    Image,
}

/// The kind of directory that a release is.
const RELEASE_DIRECTORY: DirectoryKind =
    DirectoryKind { list: ".oarlock-release", one: "a release", none: "no release" };

/// Directory and file suffix of each kind.
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

/// Checks that a release may be written to a directory.
///
/// # Errors
///
/// When the directory contains anything but a release, or cannot be read.
pub fn check_target(out: &Path) -> Result<(), Error> {
    RELEASE_DIRECTORY.check_directory(out)
}

impl ReleaseContents {
    /// Writes the release in place of an older one, and returns its installable files. Readers see the old or the new release
    /// in full. The same contents always give the same bytes.
    ///
    /// # Errors
    ///
    /// When the directory contains anything but a release, a file has no SBOM, or writing fails.
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
                || self.images.iter().find(|(file, _)| file_name(file) == name).map(|(_, sbom)| sbom.clone());
            let sbom = match item.kind {
                ReleaseItemKind::Wheel => SbomDocument::of_wheel(&Wheel::read_file(&path)?),
                ReleaseItemKind::Package => SbomDocument::of_package(&DebPackage::read_file(&path)?),
                ReleaseItemKind::Image => Ok(image().unwrap_or_default()),
            };
            let sbom = sbom.map_err(|error| error.in_part(&name))?;
            let subject = SbomSubject {
                file: &name,
                version: about.version,
                sha256: &item.sha256,
                seconds: about.source.seconds,
            };
            files.write_file(&format!("sboms/{name}.spdx.json"), sbom.to_spdx(&subject).as_bytes())?;
            files.write_file(&format!("sboms/{name}.cdx.json"), sbom.to_cyclonedx(&subject).as_bytes())?;
        }
        Ok(())
    }
}

impl ReleaseDescription<'_> {
    /// The address of a part of the release, for its pages.
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

/// The installable files of a complete release.
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

/// Writes and signs the hashes of all files.
fn sign_checksums(
    files: &mut DirectoryWriter<'_>,
    about: &ReleaseDescription<'_>,
    keys: &[OpenPgpKey],
) -> Result<(), Error> {
    let mut sums = String::new();
    // Hidden files are bookkeeping of the nested output directories.
    let is_kept = |path: &String| path.rsplit('/').next().is_some_and(|name| name.starts_with('.'));
    for path in files_below(files.path())?.into_iter().filter(|path| !is_kept(path)) {
        sums += &format!("{}  {path}\n", hash_file(&files.path().join(&path))?.0);
    }
    files.write_file(CHECKSUMS_FILE, sums.as_bytes())?;
    let signatures = openpgp::sign_detached(sums.as_bytes(), keys, about.source.seconds)?;
    files.write_file(CHECKSUMS_SIGNATURE_FILE, signatures.as_bytes())
}

/// The sorted paths of all files below a directory.
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

/// The SHA-256 and the size of a file.
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
