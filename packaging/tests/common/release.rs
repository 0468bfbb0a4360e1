//! A small release: a wheel, a package, an image and a page of a book.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use oarlock_pack::assemble;
use oarlock_pack::bill;
use oarlock_pack::crates::{self, Compiler, Crates};
use oarlock_pack::deb::Package;
use oarlock_pack::deb::control::Paragraph;
use oarlock_pack::index::Index;
use oarlock_pack::matrix::{Matrix, OWN};
use oarlock_pack::openpgp::Key;
use oarlock_pack::packed::Effort;
use oarlock_pack::release::bills::Bill;
use oarlock_pack::release::provenance::Materials;
use oarlock_pack::release::{About, Contents, Item, Source};
use oarlock_pack::repository::{Release as Suite, Repository};
use oarlock_pack::tree::Entry;
use tempfile::TempDir;

use crate::built::loadable;
use crate::image::{IMAGES, Place};

/// When everything in it was made.
pub(crate) const TIME: u64 = 1_700_000_000;

/// Where it is built.
pub(crate) struct Built {
    directory: TempDir,
    image: Place,
}

impl Built {
    pub(crate) fn new() -> Self {
        let built = Self { directory: tempfile::tempdir().expect("a directory"), image: Place::new() };
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let crates = Crates::of_workspace(root).expect("the workspace");
        let of_plugin = crates.of_package("oarlock-plugin-openblas", &["shared-object".to_owned()]);
        let matrix = Matrix::read("matrix.toml", OWN).expect("our own matrix");
        let bill = bill::of_packages(&crates, &of_plugin.expect("a plugin"), &matrix.parts["openblas"].opens);
        let row = matrix.wheels.iter().find(|row| row.label == "openblas").expect("a row");
        let mut plugin = loadable("openblas");
        plugin.built.bill.clone_from(&bill);
        let wheel = assemble::plugin(row, &plugin).expect("a wheel");
        built.put(&format!("wheels/{}", row.name), &wheel.to_bytes(&Effort::Usual.into()).expect("a wheel"));
        let mut control = Paragraph::default();
        for (field, value) in [
            ("Package", "ours"),
            ("Version", "0.1.0-1"),
            ("Architecture", "amd64"),
            ("Maintainer", "Us <us@example.org>"),
            ("Description", "ours"),
        ] {
            control.set(field, value);
        }
        let mut package = Package { control, ..Package::default() };
        package.contents.put("usr/bin/ours", Entry::program(*b"ours")).expect("a path");
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(bill.as_bytes()).expect("bytes");
        let place = "usr/share/doc/ours/oarlock-plugin-openblas.cyclonedx.json.gz";
        package.contents.put(place, Entry::file(packed.finish().expect("bytes"))).expect("a path");
        built.put("debs/ours_0.1.0-1_amd64.deb", &package.to_bytes(TIME).expect("a package"));
        built.put("book/index.html", b"<p>Read.</p>\n");
        built.put("book/user/install.html", b"<p>Install.</p>\n");
        built
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn put(&self, path: &str, bytes: &[u8]) {
        let file = self.path(path);
        std::fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        std::fs::write(file, bytes).expect("a file");
    }

    /// Writes the release into a directory.
    pub(crate) fn write(&self, out: &Path, tag: Option<&str>) -> Result<Vec<Item>, oarlock_pack::Error> {
        let matrix = Matrix::read("matrix.toml", OWN)?;
        let finished = self.image.make(IMAGES, &self.path("images"))?;
        let ours = Package::read_file(&self.path("debs/ours_0.1.0-1_amd64.deb"))?;
        let debian = self.image.lock.packages.iter().collect::<Vec<_>>();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let contents = Contents {
            wheels: Index::of_directory(&self.path("wheels"), &matrix, &[].into(), |_, _| ())?,
            packages: Repository::of_files(&Repository::files(&self.path("debs"))?, |_, _| ())?,
            suite: Suite {
                suite: "stable".to_owned(),
                codename: "stable".to_owned(),
                origin: "Oarlock".to_owned(),
                host: "https://example.org/apt".to_owned(),
                made: TIME,
                ends: TIME + 86_400,
            },
            images: vec![(finished.file, Bill::of_image(&[ours], &debian)?)],
            book: self.path("book"),
            materials: Materials {
                crates: crates::locked(root)?,
                debian: self.image.lock.packages.clone(),
                tools: vec!["maturin==1.0".to_owned()],
                compiler: Compiler { version: "1.2.3".to_owned(), commit: Some("0123abcd".to_owned()) },
            },
        };
        let source = Source {
            commit: "0123456789abcdef0123456789abcdef01234567".to_owned(),
            tag: tag.map(str::to_owned),
            seconds: TIME,
        };
        let about = About {
            version: "0.1.0",
            source,
            host: "https://example.org",
            rows: vec!["openblas".to_owned()],
            images: vec!["small".to_owned()],
        };
        contents.write(out, &about, &[self.key()])
    }

    /// The key that signs it, which is the same each time.
    fn key(&self) -> Key {
        let file = self.path("key");
        if !file.exists() {
            self.put("key", Key::new("Us", TIME).expect("a key").secret_text().as_bytes());
        }
        Key::read(&std::fs::read_to_string(file).expect("a file")).expect("a key")
    }
}

/// The paths of all files below a directory.
pub(crate) fn files(directory: &Path) -> Vec<String> {
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
