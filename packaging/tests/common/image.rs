//! Tiny packages, and images of them.

use std::path::{Path, PathBuf};

use oarlock_formats::Error;
use oarlock_formats::deb::DebPackage;
use oarlock_formats::deb::control::ControlParagraph;
use oarlock_formats::tree::TreeEntry;
use oarlock_image::image_builder::{FinishedImage, ImageBuilder};
use oarlock_image::local_packages::LocalPackages;
use oarlock_image::lock::LockedPackage;
use oarlock_image::{DebianLock, ImageCatalog, PackageCache};
use oarlock_matrix::CpuArchitecture;

use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

/// A catalog of images with those packages.
pub(crate) const IMAGE_CATALOG: &str = r#"
name = "example"
[debian]
suites = ["stable"]
architectures = ["amd64", "arm64"]
[[left_out]]
below = ["usr/share/man"]
why = "nobody reads it"
[layers.base]
purpose = "to begin with"
debian = ["base"]
environment = { PATH = "/usr/bin", GREETING = 'hello "you" \ $HOME' }
[layers.more]
purpose = "what it is for"
debian = ["more"]
own = ["ours"]
[[images]]
suffix = "-small"
title = "An image"
layers = ["base", "more"]
budget_mb = 1
"#;

/// Two third-party packages and one of our own, in directories.
pub(crate) struct ImageFixture {
    directory: TempDir,
    pub(crate) lock: DebianLock,
}

/// A catalog for an architecture.
pub(crate) fn read_catalog(text: &str, architecture: CpuArchitecture) -> Result<ImageCatalog, Error> {
    ImageCatalog::from_toml("images.toml", text, architecture)
}

impl ImageFixture {
    pub(crate) fn new() -> Self {
        Self::for_architecture(CpuArchitecture::X86_64)
    }

    pub(crate) fn for_architecture(architecture: CpuArchitecture) -> Self {
        let debian_name = architecture.debian_name();
        let directory = tempfile::tempdir().expect("a directory");
        let put = |place: &str, name: &str, more: &str, files: &[(&str, Vec<u8>)]| {
            let place = directory.path().join(place);
            std::fs::create_dir_all(&place).expect("a directory");
            let control = format!("Package: {name}\nVersion: 1.0-1\nArchitecture: {debian_name}\n{more}");
            let mut package = DebPackage {
                control: ControlParagraph::parse_single(&control).expect("fields"),
                ..DebPackage::default()
            };
            for (path, bytes) in files {
                let is_program = path.starts_with("usr/bin/");
                let entry = if is_program { TreeEntry::program } else { TreeEntry::file };
                package.contents.insert_entry(path, entry(bytes.clone())).expect("a path");
            }
            let bytes = package.to_bytes(1).expect("a package");
            std::fs::write(place.join(format!("{name}_1.0-1_{debian_name}.deb")), &bytes).expect("a file");
            bytes
        };
        let of_base = [("lib/base.so", b"base".to_vec()), ("usr/share/man/base.1", b"manual".to_vec())];
        let base = put("pool", "base", "", &of_base);
        let more = put("pool", "more", "Depends: base\n", &[("usr/lib/more.so", random_bytes(300_000))]);
        put("debs", "ours", "Depends: base, more\n", &[("usr/bin/ours", b"ours".to_vec())]);
        let locked = |name: &str, bytes: &[u8], layers: &[&str]| LockedPackage {
            name: name.to_owned(),
            version: "1.0-1".to_owned(),
            architecture: debian_name.to_owned(),
            layers: layers.iter().map(|&layer| layer.to_owned()).collect(),
            suite: "stable".to_owned(),
            path: format!("pool/{name}_1.0-1_{debian_name}.deb"),
            size: bytes.len() as u64,
            sha256: sha256_hex(bytes),
        };
        let packages = vec![locked("base", &base, &["base", "more"]), locked("more", &more, &["more"])];
        Self { directory, lock: DebianLock { architecture, date: 1_700_000_000, packages } }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Builds the first image of a catalog, with its Dockerfile.
    pub(crate) fn build_first_image(&self, images: &str, out: &Path) -> Result<FinishedImage, Error> {
        let images = read_catalog(images, self.lock.architecture)?;
        let pool = PackageCache::in_directory(&self.path("pool"));
        let own = LocalPackages::in_directory(&self.path("debs"), self.lock.architecture.debian_name())?;
        let mut workshop = ImageBuilder::new(&images, &self.lock, &pool, &own, out);
        let chosen = images.select_images(&[])?;
        workshop.build_image(chosen[0], out, true, &|_| ())
    }
}

/// Incompressible bytes.
fn random_bytes(count: usize) -> Vec<u8> {
    let mut state: u64 = 1;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(count).collect()
}

pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
