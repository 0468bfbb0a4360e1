//! A tiny release: a wheel, a package, an image and a page of documentation.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use oarlock_formats::deb::DebPackage;
use oarlock_formats::deb::control::ControlParagraph;
use oarlock_formats::file_packer::CompressionEffort;
use oarlock_formats::openpgp::OpenPgpKey;
use oarlock_formats::tree::TreeEntry;
use oarlock_matrix::{CpuArchitecture, OWN_MATRIX, WheelMatrix};
use oarlock_pack::apt_repository::{AptRepository, SuiteRelease};
use oarlock_pack::assemble;
use oarlock_pack::crates::{self, CrateGraph, RustCompiler};
use oarlock_pack::index::WheelIndex;
use oarlock_pack::part_sbom;
use oarlock_pack::release::provenance::BuildMaterials;
use oarlock_pack::release::release_sboms::SbomDocument;
use oarlock_pack::release::{ReleaseContents, ReleaseDescription, ReleaseItem, SourceRevision};

use crate::built::loadable_plugin;
use crate::image::{IMAGE_CATALOG, ImageFixture};
use tempfile::TempDir;

/// The timestamp of everything in it.
pub(crate) const RELEASE_TIME: u64 = 1_700_000_000;

pub(crate) struct ReleaseFixture {
    directory: TempDir,
    image: ImageFixture,
}

impl ReleaseFixture {
    pub(crate) fn new() -> Self {
        let built = Self { directory: tempfile::tempdir().expect("a directory"), image: ImageFixture::new() };
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let crates = CrateGraph::of_workspace(root, CpuArchitecture::X86_64, None).expect("the workspace");
        let of_plugin = crates.linked_crates("oarlock-plugin-openblas", &["shared-object".to_owned()]);
        let matrix = WheelMatrix::from_toml("matrix.toml", OWN_MATRIX).expect("our own matrix");
        let sbom =
            part_sbom::render_sbom(&crates, &of_plugin.expect("a plugin"), &matrix.parts["openblas"].opens);
        let row = matrix.wheels.iter().find(|row| row.label == "openblas").expect("a row");
        let mut plugin = loadable_plugin("openblas");
        plugin.built.sbom.clone_from(&sbom);
        let wheel = assemble::assemble_plugin_wheel(row, &plugin).expect("a wheel");
        built.put_file(
            &format!("wheels/{}", row.name),
            &wheel.to_bytes(&CompressionEffort::Usual.into()).expect("a wheel"),
        );
        let mut control = ControlParagraph::default();
        for (field, value) in [
            ("Package", "ours"),
            ("Version", "0.1.0-1"),
            ("Architecture", "amd64"),
            ("Maintainer", "Us <us@example.org>"),
            ("Description", "ours"),
        ] {
            control.set(field, value);
        }
        let mut package = DebPackage { control, ..DebPackage::default() };
        package.contents.insert_entry("usr/bin/ours", TreeEntry::program(*b"ours")).expect("a path");
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(sbom.as_bytes()).expect("bytes");
        let place = "usr/share/doc/ours/oarlock-plugin-openblas.cyclonedx.json.gz";
        package
            .contents
            .insert_entry(place, TreeEntry::file(packed.finish().expect("bytes")))
            .expect("a path");
        built.put_file("debs/ours_0.1.0-1_amd64.deb", &package.to_bytes(RELEASE_TIME).expect("a package"));
        built.put_file("book/index.html", b"<p>Read.</p>\n");
        built.put_file("book/user/install.html", b"<p>Install.</p>\n");
        built
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn put_file(&self, path: &str, bytes: &[u8]) {
        let file = self.path(path);
        std::fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        std::fs::write(file, bytes).expect("a file");
    }

    /// Writes the release into a directory.
    pub(crate) fn write_release(
        &self,
        out: &Path,
        tag: Option<&str>,
    ) -> Result<Vec<ReleaseItem>, oarlock_formats::Error> {
        let matrix = WheelMatrix::from_toml("matrix.toml", OWN_MATRIX)?;
        let finished = self.image.build_first_image(IMAGE_CATALOG, &self.path("images"))?;
        let ours = DebPackage::read_file(&self.path("debs/ours_0.1.0-1_amd64.deb"))?;
        let debian = self.image.lock.packages.iter().collect::<Vec<_>>();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let contents = ReleaseContents {
            wheels: WheelIndex::of_directory(&self.path("wheels"), &matrix, &[].into(), |_, _| ())?,
            packages: AptRepository::of_files(&AptRepository::package_files(&self.path("debs"))?, |_, _| ())?,
            suite: SuiteRelease {
                suite: "stable".to_owned(),
                codename: "stable".to_owned(),
                origin: "Oarlock".to_owned(),
                host: "https://example.org/apt".to_owned(),
                made: RELEASE_TIME,
                ends: RELEASE_TIME + 86_400,
            },
            images: vec![(finished.file, SbomDocument::of_image(&[ours], &debian)?)],
            book: self.path("book"),
            materials: BuildMaterials {
                crates: crates::locked_crates(root)?,
                debian: self.image.lock.packages.clone(),
                tools: vec!["maturin==1.0".to_owned()],
                compilers: vec![RustCompiler {
                    version: "1.2.3".to_owned(),
                    commit: Some("0123abcd".to_owned()),
                }],
            },
        };
        let source = SourceRevision {
            commit: "0123456789abcdef0123456789abcdef01234567".to_owned(),
            tag: tag.map(str::to_owned),
            seconds: RELEASE_TIME,
        };
        let about = ReleaseDescription {
            version: "0.1.0",
            source,
            host: "https://example.org",
            rows: vec!["openblas".to_owned()],
            images: vec!["small".to_owned()],
        };
        contents.write_release(out, &about, &[self.signing_key()])
    }

    /// The signing key, which is the same in each run.
    fn signing_key(&self) -> OpenPgpKey {
        let file = self.path("key");
        if !file.exists() {
            self.put_file(
                "key",
                OpenPgpKey::new("Us", RELEASE_TIME).expect("a key").to_secret_armor().as_bytes(),
            );
        }
        OpenPgpKey::from_armor(&std::fs::read_to_string(file).expect("a file")).expect("a key")
    }
}

/// The paths of all files below a directory.
pub(crate) fn files_below(directory: &Path) -> Vec<String> {
    let (mut found, mut left) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(next).expect("a directory") {
            let path = entry.expect("a file").path();
            if path.is_dir() {
                left.push(path);
            } else {
                found.push(path.strip_prefix(directory).expect("below").display().to_string());
            }
        }
    }
    found.sort();
    found
}
