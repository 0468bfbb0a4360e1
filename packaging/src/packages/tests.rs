//! Packages of a tiny C library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use oarlock_formats::tree::TreeNode;
use oarlock_matrix::WheelMatrix;

use super::*;
use crate::build_artifact::{BuiltFile, CompiledPart};
use crate::library_requirements::build_id_path;
use tempfile::TempDir;

const CATALOG_TEXT: &str = r#"
maintainer = "Somebody <somebody@example.org>"
homepage = "https://example.org"
revision = 3

[[sets]]
name = "all"
packages = ["libsum1"]
budget_mb = 1

[[packages]]
name = "libsum1"
section = "contrib/libs"
summary = "sums"
description = "Sums of numbers."
multi_arch = "same"
soname = "libsum.so.1"
depends = ["adders (>= {version})", "others (= {package})"]
contents = [
    { part = "library", at = "{lib}/libsum.so.1.{version}" },
    { link = "libsum.so.1.{version}", at = "{lib}/libsum.so.1" },
    { template = "sum.pc.in", at = "{lib}/pkgconfig/sum.pc" },
    { file = "headers", at = "usr/include/sum" },
    { says = ["one", "two"], at = "usr/share/said" },
    { keys = "public", at = "usr/share/keyrings/sum.gpg" },
    { writes = ["man"], at = "usr/share/man/man1" },
]
"#;

/// A directory with sources, a command and compiled files.
struct PackageFixture {
    directory: TempDir,
    packages: PackageCatalog,
    command: PathBuf,
}

fn example_part() -> CompiledPart {
    CompiledPart {
        part: "library".to_owned(),
        package: "sum".to_owned(),
        opens: Vec::new(),
        sbom: "{}\n".to_owned(),
        licenses: "of others".to_owned(),
        license: "ours".to_owned(),
    }
}

impl PackageFixture {
    fn new(text: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        fs::create_dir_all(at("headers/deep")).expect("a directory");
        fs::write(at("headers/deep/sum.h"), "int sum(int, int);\n").expect("a file");
        fs::write(at("sum.pc.in"), "prefix=@PREFIX@\nlibdir=@LIBDIR@\nVersion: @VERSION@\n").expect("a file");
        fs::write(at("sum.c"), "int sum(int one, int other) { return one + other; }").expect("a file");
        let command = at("command");
        let script = "#!/bin/sh\nif [ $1 = man ]; then echo page >\"$2/sum.1\"; else echo \"$@\"; fi\n";
        oarlock_formats::file::write_program(&command, script.as_bytes()).expect("a file");
        let packages = PackageCatalog::from_toml("packages.toml", text).expect("packages");
        Self { directory, packages, command }
    }

    fn root_path(&self) -> &Path {
        self.directory.path()
    }

    /// Builds the first package, and its debug package.
    fn build_packages(&self, version: &str) -> Result<Vec<DebPackage>, Error> {
        let library = self.root_path().join("libsum.so");
        let mut compiler = Command::new("gcc");
        compiler
            .args(["-shared", "-fPIC", "-Wl,--build-id=sha1", "-o"])
            .arg(&library)
            .arg(self.root_path().join("sum.c"));
        assert!(compiler.status().expect("a compiler").success());
        let bytes = fs::read(&library).expect("a library");
        let id =
            oarlock_formats::library_needs::LibraryNeeds::from_library(&bytes)?.build_id.expect("a build id");
        oarlock_formats::file::write_file(
            &self.root_path().join(".build-id").join(build_id_path(&id)),
            b"symbols",
        )?;
        let made = BuildArtifact::Other(BuiltFile { built: example_part(), bytes });
        let maker = PackageBuilder {
            root: self.root_path(),
            packages: &self.packages,
            made: [(PackagePart { part: "library".to_owned(), without_avx: false }, made)]
                .into_iter()
                .collect(),
            version,
            seconds: 1_700_000_000,
            architecture: CpuArchitecture::Aarch64,
            command: std::slice::from_ref(&self.command),
            keys: b"keys",
            debug: self.root_path(),
        };
        maker.build_packages(&self.packages.packages[0])
    }
}

fn file_text<'p>(package: &'p DebPackage, path: &str) -> &'p str {
    let bytes = package.contents.file_bytes(path).or_else(|| package.scripts.file_bytes(path));
    std::str::from_utf8(bytes.unwrap_or_else(|| panic!("no `{path}`"))).expect("text")
}

#[test]
fn a_package_says_what_it_needs_and_has_what_is_written_of_it() {
    let place = PackageFixture::new(CATALOG_TEXT);
    let made = place.build_packages("1.2.0").expect("packages");
    let package = &made[0];
    let field = |name| package.control.get(name).unwrap_or_default();
    assert_eq!(package.file_name().expect("a name"), "libsum1_1.2.0-3_arm64.deb");
    assert_eq!(field("Depends"), "adders (>= 1.2.0), others (= 1.2.0-3)");
    assert_eq!((field("Source"), field("Section"), field("Multi-Arch")), ("oarlock", "contrib/libs", "same"));
    assert_eq!(field("Description"), "sums\nSums of numbers.");
    let libraries = library_directory(CpuArchitecture::Aarch64);
    assert!(package.contents.file_bytes(&format!("{libraries}/libsum.so.1.1.2.0")).is_some());
    let link = package.contents.get(&format!("{libraries}/libsum.so.1")).expect("a link");
    assert_eq!(link.node, TreeNode::Link("libsum.so.1.1.2.0".to_owned()));
    let prefix = "prefix=/usr\nlibdir=${prefix}/lib/";
    assert!(file_text(package, &format!("{libraries}/pkgconfig/sum.pc")).starts_with(prefix));
    assert_eq!(file_text(package, "usr/include/sum/deep/sum.h"), "int sum(int, int);\n");
    assert_eq!(file_text(package, "usr/share/said"), "one two\n");
    assert_eq!(file_text(package, "usr/share/keyrings/sum.gpg"), "keys");
    assert!(package.contents.file_bytes("usr/share/man/man1/sum.1.gz").is_some());
    let licenses = file_text(package, "usr/share/doc/libsum1/copyright");
    assert!(licenses.contains("/usr/share/common-licenses/Apache-2.0") && licenses.contains("of others"));
    assert!(package.contents.file_bytes("usr/share/doc/libsum1/changelog.Debian.gz").is_some());
    assert!(package.contents.file_bytes("usr/share/doc/libsum1/sum.cyclonedx.json.gz").is_some());
}

#[test]
fn a_library_tells_debian_who_has_it_and_debuggers_get_a_package_of_their_own() {
    let place = PackageFixture::new(CATALOG_TEXT);
    let made = place.build_packages("1.2.0").expect("packages");
    assert_eq!(file_text(&made[0], "shlibs"), "libsum 1 libsum1 (>= 0.1.0)\n");
    assert_eq!(file_text(&made[0], "symbols"), "libsum.so.1 libsum1 #MINVER#\n sum@Base 0.1.0\n");
    assert_eq!(file_text(&made[0], "triggers"), "activate-noawait ldconfig\n");
    let beside = &made[1];
    let field = |name| beside.control.get(name).unwrap_or_default();
    assert_eq!(field("Package"), "libsum1-dbgsym");
    assert_eq!((field("Section"), field("Depends")), ("contrib/debug", "libsum1 (= 1.2.0-3)"));
    assert_eq!(
        file_text(beside, &format!("usr/lib/debug/.build-id/{}", build_id_path(field("Build-Ids")))),
        "symbols"
    );
}

#[test]
fn what_comes_before_a_release_comes_before_it_for_debian_too() {
    let place = PackageFixture::new(CATALOG_TEXT);
    for (version, wanted) in
        [("1.2.0", "1.2.0-3"), ("1.2.0rc1", "1.2.0~rc1-3"), ("1.2.0.dev4", "1.2.0~dev4-3")]
    {
        let made = place.build_packages(version).expect("packages");
        assert_eq!(made[0].version().expect("a version"), wanted);
    }
}

#[test]
fn what_cannot_be_made_is_told_of() {
    let refused =
        |text: &str| PackageCatalog::from_toml("packages.toml", text).expect_err("no packages").to_string();
    assert!(refused(&CATALOG_TEXT.replace("link =", "lnk =")).contains("expected `at`, and one of `part`"));
    assert!(refused(&CATALOG_TEXT.replace("[\"libsum1\"]", "[\"libsum2\"]")).contains("found no `libsum2`"));
    let packages = CATALOG_TEXT.split_once("[[packages]]").expect("packages").1;
    assert!(refused(&format!("{CATALOG_TEXT}[[packages]]{packages}")).contains("found two `libsum1`"));
    for (old, new, expected) in [
        ("part = \"library\"", "part = \"other\"", "what is compiled of `other`"),
        ("file = \"headers\"", "file = \"none\"", "none`: No such file"),
        ("soname = \"libsum.so.1\"", "soname = \"libother.so.1\"", "the library `libother.so.1`"),
        ("says = [\"one\"", "says = [\"man\"", "`oarlock man two` failed"),
    ] {
        let error = PackageFixture::new(&CATALOG_TEXT.replace(old, new))
            .build_packages("1.2.0")
            .expect_err(expected)
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_package_of_keys_is_there_where_keys_are() {
    let packages = PackageCatalog::from_toml("packages.toml", CATALOG_TEXT).expect("packages");
    let names = ["libsum1".to_owned()];
    assert_eq!(
        (
            packages.select_packages(&[], true).map(|it| it.len()),
            packages.select_packages(&[], false).map(|it| it.len())
        ),
        (Ok(1), Ok(0))
    );
    assert!(packages.select_packages(&names, true).is_ok());
    let error = packages.select_packages(&names, false).expect_err("no keys").to_string();
    assert!(error.contains("expected keys for `libsum1`, found none; name some with `--key`"), "{error}");
}

#[test]
fn sets_that_grow_too_large_are_refused() {
    let place = PackageFixture::new(CATALOG_TEXT);
    let written = |bytes| vec![(PathBuf::from("dist/libsum1_1.2.0-3_amd64.deb"), bytes)];
    place.packages.check_set_sizes(&written(1_000_000)).expect("what fits");
    let error = place.packages.check_set_sizes(&written(1_000_001)).expect_err("what does not").to_string();
    assert!(
        error
            .contains("at most 1 MB for the packages of the set `all`, found 1000001 bytes: libsum1 1000001"),
        "{error}"
    );
}

#[test]
fn our_own_packages_are_of_what_there_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let matrix = WheelMatrix::from_toml("matrix.toml", oarlock_matrix::OWN_MATRIX).expect("our own matrix");
    let packages = PackageCatalog::from_toml("packages.toml", OWN_PACKAGES).expect("our own packages");
    for about in &packages.packages {
        for content in &about.contents {
            match content {
                PackageContent::Part { compiled, .. } => {
                    assert!(matrix.parts.contains_key(&compiled.part), "{compiled:?}");
                }
                PackageContent::File { file, .. } => assert!(root.join(file).exists(), "{file}"),
                PackageContent::Template { template, .. } => {
                    assert!(root.join(template).is_file(), "{template}");
                }
                PackageContent::Link { .. }
                | PackageContent::Keys { .. }
                | PackageContent::Says { .. }
                | PackageContent::Writes { .. } => {}
            }
        }
        for script in &about.scripts {
            let file = root.join(format!("packaging/debian/{}.{script}", about.name));
            assert!(file.is_file(), "{}", file.display());
        }
    }
}
