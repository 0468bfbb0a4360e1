//! The same plugin as a wheel and as a package for Debian.

use std::path::PathBuf;

use oarlock_pack::assemble;
use oarlock_pack::deb::Package;
use oarlock_pack::deb::control::Paragraph;
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
