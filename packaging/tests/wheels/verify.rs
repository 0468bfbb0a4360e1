//! The same plugin as a wheel and as a package for Debian.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use md5::{Digest as _, Md5};
use oarlock_pack::assemble;
use oarlock_pack::deb::Package;
use oarlock_pack::deb::control::Paragraph;
use oarlock_pack::image::Images;
use oarlock_pack::image::images::OWN as IMAGES;
use oarlock_pack::matrix::{Matrix, OWN};
use oarlock_pack::packages::{OWN as PACKAGES, Packages};
use oarlock_pack::packed::Effort;
use oarlock_pack::tree::{Entry, Tree};
use oarlock_pack::verify::Found;
use tempfile::TempDir;

use crate::built::{compiled, loadable};

/// A directory with the plugin for OpenBLAS as a wheel, and as a package that has these files.
struct Published {
    wheel: PathBuf,
    package: PathBuf,
    matrix: Matrix,
    _directory: TempDir,
}

impl Published {
    fn new(files: &[(&str, Vec<u8>)]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let matrix = Matrix::read("matrix.toml", OWN).expect("our own matrix");
        let row = matrix.wheels.iter().find(|row| row.label == "openblas").expect("a row");
        let wheel = assemble::plugin(row, &loadable("openblas")).expect("a wheel");
        let wheel = wheel.to_bytes(&Effort::Usual.into()).expect("a wheel");
        let mut contents = Tree::default();
        for (path, bytes) in files {
            contents.put(path, Entry::file(bytes.clone())).expect("a path");
        }
        let mut control = Paragraph::default();
        for (field, value) in
            [("Package", "oarlock-plugin-openblas"), ("Version", "0.1.0-1"), ("Architecture", "amd64")]
        {
            control.set(field, value);
        }
        let package = Package { control, contents, ..Package::default() };
        let package = package.to_bytes(0).expect("a package");
        let place = |name: &str| directory.path().join(name);
        let files = (place(&row.name.to_string()), place("oarlock-plugin-openblas_0.1.0-1_amd64.deb"));
        std::fs::write(&files.0, wheel).expect("a file");
        std::fs::write(&files.1, package).expect("a file");
        Self { wheel: files.0, package: files.1, matrix, _directory: directory }
    }

    /// What is found in both, or why not.
    fn found(&self) -> Result<Found, oarlock_pack::Error> {
        let packages = Packages::read("packages.toml", PACKAGES).expect("our own packages");
        let mut found = Found::default();
        found.wheel(&self.matrix, &self.wheel)?;
        found.package(&self.matrix, &packages, &self.package)?;
        Ok(found)
    }
}

const PLACE: &str = "usr/lib/x86_64-linux-gnu/oarlock/plugins/liboarlock_plugin_openblas.so";

#[test]
fn a_part_that_is_the_same_in_wheel_and_package_is_told_once_with_both() {
    let published =
        Published::new(&[(PLACE, loadable("openblas").library), ("usr/share/text", b"x".to_vec())]);
    let found = published.found().expect("a wheel and a package");
    let same = found.same().expect("the same");
    assert_eq!((same.len(), same[0].part), (1, "openblas for glibc 2.28"));
    assert_eq!(same[0].places, [published.wheel.as_path(), &published.package]);
}

#[test]
fn one_that_differs_is_an_error_that_names_both() {
    let published = Published::new(&[(PLACE, compiled("int other(void) { return 1; }"))]);
    let error = published.found().expect("a wheel and a package").same().expect_err("others").to_string();
    assert!(error.contains("the same bytes of openblas for glibc 2.28 everywhere"), "{error}");
    assert!(error.contains(".whl`") && error.contains("_0.1.0-1_amd64.deb`"), "{error}");
}

#[test]
fn a_package_with_something_that_nobody_told_of_is_refused() {
    let library = loadable("openblas").library;
    let published = Published::new(&[(PLACE, library.clone()), ("usr/bin/other", library)]);
    let error = published.found().expect_err("too much").to_string();
    assert!(error.contains("expected 1 compiled files in `oarlock-plugin-openblas`, found 2"), "{error}");
}

/// A file that a package brought, and a program that may run as somebody else.
const BROUGHT: &str = "etc/brought";
const RUNS_AS_ROOT: &str = "usr/bin/su";

fn md5(bytes: &[u8]) -> String {
    Md5::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The image without a suffix, which has the package for OpenBLAS with these bytes as its plugin, and another file.
fn image(directory: &TempDir, plugin: Option<Vec<u8>>, more: &str) -> PathBuf {
    let mut layer = Tree::default();
    let status = "Package: base\nVersion: 1\n\nPackage: oarlock-plugin-openblas\nVersion: 0.1.0-1\n";
    layer.put("var/lib/dpkg/status", Entry::file(status.as_bytes())).expect("a path");
    if let Some(bytes) = plugin {
        let hashes = format!("{}  {PLACE}\n", md5(&bytes));
        layer.put("var/lib/dpkg/info/plugin.md5sums", Entry::file(hashes.into_bytes())).expect("a path");
        layer.put(PLACE, Entry::file(bytes)).expect("a path");
    }
    let hashes = format!("{}  {BROUGHT}\n", md5(b"brought"));
    layer.put("var/lib/dpkg/info/base.md5sums", Entry::file(hashes.into_bytes())).expect("a path");
    layer.put(BROUGHT, Entry::file(*b"brought")).expect("a path");
    let mode = match more {
        RUNS_AS_ROOT => 0o4755,
        file if file.starts_with("etc/") => 0o644,
        _ => 0o755,
    };
    layer.put(more, Entry { mode, ..Entry::program(*b"") }).expect("a path");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&layer.to_tar("", 0).expect("an archive")).expect("bytes");
    let mut archive = Tree::default();
    archive.put("layer", Entry::file(packed.finish().expect("bytes"))).expect("a path");
    archive
        .put("manifest.json", Entry::file(*br#"[{"RepoTags": ["oarlock:0.1.0"], "Layers": ["layer"]}]"#))
        .expect("a path");
    let file = directory.path().join("image.tar");
    std::fs::write(&file, archive.to_tar("", 0).expect("an archive")).expect("a file");
    file
}

#[test]
fn an_image_has_what_its_packages_brought_and_the_same() {
    let matrix = Matrix::read("matrix.toml", OWN).expect("our own matrix");
    let packages = Packages::read("packages.toml", PACKAGES).expect("our own packages");
    let library = loadable("openblas").library;
    let published = Published::new(&[(PLACE, library.clone())]);
    let directory = tempfile::tempdir().expect("a directory");
    let images = Images::read("images.toml", IMAGES).expect("our own images");
    let image = |plugin, more: &str| image(&directory, plugin, more);
    let mut found = published.found().expect("a wheel and a package");
    let mut look =
        |file: &Path| found.image(&matrix, &packages, &images, file).map_err(|error| error.to_string());
    look(&image(Some(library.clone()), "etc/x")).expect("an image");
    for (file, told) in [
        ("usr/bin/gcc", "expected no compiler in an image to run programs, found `usr/bin/gcc`"),
        ("usr/bin/x86_64-linux-gnu-g++-14", "expected no compiler"),
        ("usr/local/bin/clang-19", "expected no compiler"),
        ("usr/libexec/helper", "expected no program that no package brought, found `usr/libexec/helper`"),
        (RUNS_AS_ROOT, "expected no program that runs as somebody else, found `usr/bin/su`"),
        (BROUGHT, "expected `etc/brought` as the package `base` brought it, found another one"),
    ] {
        let error = look(&image(Some(library.clone()), file)).expect_err(file);
        assert!(error.contains(told), "{error}");
    }
    assert_eq!(found.same().expect("the same")[0].places.len(), 3);
    let other = compiled("int other(void) { return 1; }");
    found.image(&matrix, &packages, &images, &image(Some(other), "etc/x")).expect("an image");
    assert!(found.same().expect_err("others").to_string().contains("image.tar`"));
    let missing = found.image(&matrix, &packages, &images, &image(None, "etc/x"));
    let error = missing.expect_err("nothing there").to_string();
    assert!(error.contains(&format!("expected `{PLACE}` in the image, found none")), "{error}");
}
