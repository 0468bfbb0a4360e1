//! The same plugin as a wheel and as a Debian package.

use std::path::PathBuf;

use oarlock_formats::deb::DebPackage;
use oarlock_formats::deb::control::ControlParagraph;
use oarlock_formats::file_packer::CompressionEffort;
use oarlock_formats::tree::{FileTree, TreeEntry};
use oarlock_matrix::{OWN_MATRIX, WheelMatrix};
use oarlock_pack::assemble;
use oarlock_pack::packages::{OWN_PACKAGES as PACKAGES, PackageCatalog};
use oarlock_pack::verify::FoundParts;

use crate::built::{compile_library, loadable_plugin};
use tempfile::TempDir;

/// A directory with the OpenBLAS plugin as a wheel, and as a package with these files.
struct PublishedPlugin {
    wheel: PathBuf,
    package: PathBuf,
    matrix: WheelMatrix,
    _directory: TempDir,
}

impl PublishedPlugin {
    fn new(files: &[(&str, Vec<u8>)]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let matrix = WheelMatrix::from_toml("matrix.toml", OWN_MATRIX).expect("our own matrix");
        let row = matrix.wheels.iter().find(|row| row.label == "openblas").expect("a row");
        let wheel = assemble::assemble_plugin_wheel(row, &loadable_plugin("openblas")).expect("a wheel");
        let wheel = wheel.to_bytes(&CompressionEffort::Usual.into()).expect("a wheel");
        let mut contents = FileTree::default();
        for (path, bytes) in files {
            contents.insert_entry(path, TreeEntry::file(bytes.clone())).expect("a path");
        }
        let mut control = ControlParagraph::default();
        for (field, value) in
            [("Package", "oarlock-plugin-openblas"), ("Version", "0.1.0-1"), ("Architecture", "amd64")]
        {
            control.set(field, value);
        }
        let package = DebPackage { control, contents, ..DebPackage::default() };
        let package = package.to_bytes(0).expect("a package");
        let place = |name: &str| directory.path().join(name);
        let files = (place(&row.name.to_string()), place("oarlock-plugin-openblas_0.1.0-1_amd64.deb"));
        std::fs::write(&files.0, wheel).expect("a file");
        std::fs::write(&files.1, package).expect("a file");
        Self { wheel: files.0, package: files.1, matrix, _directory: directory }
    }

    /// Verifies both, or returns the error.
    fn find_parts(&self) -> Result<FoundParts, oarlock_formats::Error> {
        let packages = PackageCatalog::from_toml("packages.toml", PACKAGES).expect("our own packages");
        let mut found = FoundParts::default();
        found.add_wheel(&self.matrix, &self.wheel)?;
        found.add_package(&self.matrix, &packages, &self.package)?;
        Ok(found)
    }
}

const PLUGIN_PATH: &str = "usr/lib/x86_64-linux-gnu/oarlock/plugins/liboarlock_plugin_openblas.so";

#[test]
fn a_part_that_is_the_same_in_wheel_and_package_is_told_once_with_both() {
    let published = PublishedPlugin::new(&[
        (PLUGIN_PATH, loadable_plugin("openblas").library),
        ("usr/share/text", b"x".to_vec()),
    ]);
    let found = published.find_parts().expect("a wheel and a package");
    let same = found.identical_parts().expect("the same");
    assert_eq!((same.len(), same[0].part), (1, "openblas for glibc 2.28"));
    assert_eq!(same[0].places, [published.wheel.as_path(), &published.package]);
}

#[test]
fn one_that_differs_is_an_error_that_names_both() {
    let published = PublishedPlugin::new(&[(PLUGIN_PATH, compile_library("int other(void) { return 1; }"))]);
    let error = published
        .find_parts()
        .expect("a wheel and a package")
        .identical_parts()
        .expect_err("others")
        .to_string();
    assert!(error.contains("the same bytes of openblas for glibc 2.28 everywhere"), "{error}");
    assert!(error.contains(".whl`") && error.contains("_0.1.0-1_amd64.deb`"), "{error}");
}

#[test]
fn a_package_with_something_that_nobody_told_of_is_refused() {
    let library = loadable_plugin("openblas").library;
    let published = PublishedPlugin::new(&[(PLUGIN_PATH, library.clone()), ("usr/bin/other", library)]);
    let error = published.find_parts().expect_err("too much").to_string();
    assert!(error.contains("expected 1 compiled files in `oarlock-plugin-openblas`, found 2"), "{error}");
}
