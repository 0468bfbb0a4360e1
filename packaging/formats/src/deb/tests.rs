//! Packages are written, read back, and read by `dpkg-deb`.

use std::io::ErrorKind;
use std::process::Command;

use super::*;

const BUILD_TIME: u64 = 1_700_000_000;

fn example_package() -> DebPackage {
    let control = "Package: example\nVersion: 1:1.0-1\nArchitecture: amd64\nMaintainer: Nobody <nobody@example.org>\n\
                   Description: does nothing\n At length.\n";
    let mut package = DebPackage {
        control: ControlParagraph::parse_single(control).expect("fields"),
        ..DebPackage::default()
    };
    package.scripts.insert_entry("postinst", TreeEntry::program(*b"#!/bin/sh\n")).expect("a path");
    package.scripts.insert_entry("conffiles", TreeEntry::file(*b"/etc/example\n")).expect("a path");
    package.contents.insert_entry("etc/example", TreeEntry::file(*b"setting")).expect("a path");
    package.contents.insert_entry("usr/bin/example", TreeEntry::program([7; 3000])).expect("a path");
    package.contents.insert_entry("usr/bin/other", TreeEntry::link("example")).expect("a path");
    let long = format!("usr/share/{}file", "directory/".repeat(20));
    package.contents.insert_entry(&long, TreeEntry::file(*b"")).expect("a path");
    package
}

fn refusal_of(bytes: &[u8]) -> String {
    DebPackage::from_bytes(bytes).expect_err("a broken package").to_string()
}

/// A package made of arbitrary archives.
fn package_of_archives(parts: &[(&str, &[u8])]) -> Vec<u8> {
    archive::write_ar(&[&[("debian-binary", FORMAT_VERSION)], parts].concat(), BUILD_TIME)
}

fn tar_of_files(files: &[(&str, &str)]) -> Vec<u8> {
    let mut tree = FileTree::default();
    for (path, text) in files {
        tree.insert_entry(path, TreeEntry::file(text.as_bytes())).expect("a path");
    }
    tree.to_tar("./", BUILD_TIME).expect("an archive")
}

#[test]
fn what_is_written_is_read_again_and_the_same_whenever_it_is_written() {
    let bytes = example_package().to_bytes(BUILD_TIME).expect("a package");
    let mut again = DebPackage::from_bytes(&bytes).expect("what was written");
    assert_eq!(again.to_bytes(BUILD_TIME).expect("a package"), bytes);
    // Two files of 1 and 3 KiB, an empty one, a link, and 24 directories.
    assert_eq!(again.control.get("Installed-Size"), Some("29"));
    again.control.remove("Installed-Size");
    assert_eq!(again, example_package());
    assert_eq!(again.file_name().expect("a name"), "example_1.0-1_amd64.deb");
}

#[test]
fn what_the_owner_may_change_has_no_hash() {
    let hashes = example_package().md5sums_text().expect("hashes");
    let paths: Vec<&str> = hashes.lines().filter_map(|line| line.split("  ").nth(1)).collect();
    assert_eq!(paths.len(), 2);
    assert!(paths.contains(&"usr/bin/example") && !paths.contains(&"etc/example"), "{paths:?}");
}

#[test]
fn dpkg_reads_the_written_package() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("example.deb");
    std::fs::write(&file, example_package().to_bytes(BUILD_TIME).expect("a package")).expect("a file");
    let dpkg = |option: &str| {
        let mut command = Command::new("dpkg-deb");
        command.arg(option).arg(&file).env("TZ", "UTC");
        if option == "--extract" {
            command.arg(place.path().join("unpacked"));
        }
        match command.output() {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            output => {
                let output = output.expect("dpkg-deb");
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                Some(String::from_utf8_lossy(&output.stdout).into_owned())
            }
        }
    };
    let Some(information) = dpkg("--info") else {
        eprintln!("`dpkg-deb` is not here, so nobody else reads the package");
        return;
    };
    for expected in ["new Debian package, version 2.0", "Installed-Size: 29", "postinst", "md5sums"] {
        assert!(information.contains(expected), "{information}");
    }
    let contents = dpkg("--contents").unwrap_or_default();
    assert!(contents.contains("3000 2023-11-14 22:13 ./usr/bin/example"), "{contents}");
    assert!(contents.contains("./usr/bin/other -> example"), "{contents}");
    dpkg("--extract");
    let read = |path: &str| std::fs::read(place.path().join("unpacked").join(path)).expect(path);
    assert_eq!(read("usr/bin/other"), [7; 3000]);
    assert!(read(&format!("usr/share/{}file", "directory/".repeat(20))).is_empty());
}

#[test]
fn what_dpkg_writes_is_read() {
    let place = tempfile::tempdir().expect("a directory");
    let root = place.path().join("root");
    std::fs::create_dir_all(root.join("DEBIAN")).expect("a directory");
    std::fs::write(root.join("hello"), "text").expect("a file");
    let control = "Package: hello\nVersion: 1\nArchitecture: all\nMaintainer: x\nDescription: y\n";
    std::fs::write(root.join("DEBIAN/control"), control).expect("a file");
    for way in ["-Zxz", "-Zgzip", "-Znone"] {
        let file = place.path().join("hello.deb");
        let output = Command::new("dpkg-deb")
            .args([way, "--root-owner-group", "--build"])
            .args([&root, &file])
            .output();
        match output {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return eprintln!("`dpkg-deb` is not here, so there is no package of it to read");
            }
            output => assert!(output.expect("dpkg-deb").status.success()),
        }
        let package = DebPackage::read_file(&file).expect("a package of dpkg");
        assert_eq!(package.contents.file_bytes("hello"), Some(b"text".as_slice()));
        assert_eq!(package.control.to_string(), control);
    }
}

#[test]
fn a_broken_package_is_refused_with_what_is_wrong() {
    let control = "Package: example\nVersion: 1\nArchitecture: all\n";
    let scripts = tar_of_files(&[("control", control)]);
    let data = tar_of_files(&[("file", "text")]);
    let of_control = |text: &str| {
        refusal_of(&package_of_archives(&[
            ("control.tar", &tar_of_files(&[("control", text)])),
            ("data.tar", &data),
        ]))
    };
    assert!(
        DebPackage::from_bytes(&package_of_archives(&[
            ("control.tar", &scripts),
            ("_mine", b"x"),
            ("data.tar", &data)
        ]))
        .is_ok()
    );
    assert!(refusal_of(b"").contains("begins with `!<arch>`"));
    assert!(refusal_of(&archive::write_ar(&[], 0)).contains("expected `debian-binary` first"));
    assert!(refusal_of(&archive::write_ar(&[("debian-binary", b"3.0\n")], 0)).ends_with("found `3.0`"));
    assert!(
        refusal_of(&package_of_archives(&[]))
            .contains("expected `control.tar` in a Debian package, found none")
    );
    assert!(refusal_of(&package_of_archives(&[("data.tar", &data)])).ends_with("found `data.tar`"));
    assert!(refusal_of(&package_of_archives(&[("control.tar", &scripts)])).contains("expected `data.tar`"));
    let other = refusal_of(&package_of_archives(&[("control.tar.zst", b"")]));
    assert!(
        other.starts_with("`control.tar.zst`: expected") && other.contains("`dpkg-deb --build -Zxz`"),
        "{other}"
    );
    let more: &[(&str, &[u8])] = &[("control.tar", &scripts), ("data.tar", &data), ("more", b"")];
    assert!(
        refusal_of(&package_of_archives(more)).contains("expected nothing after `data.tar`, found `more`")
    );
    assert!(
        refusal_of(&package_of_archives(&[("control.tar", &tar_of_files(&[])), ("data.tar", &data)]))
            .contains("expected a file `control`")
    );
    assert_eq!(
        of_control("Package\n"),
        "`control`: line 1: expected a field such as `Package: name`, found `Package`"
    );
    assert!(of_control("Package: example\nArchitecture: all\n").contains("expected a field `Version`"));
    for (field, wrong) in [
        ("Package", "../up"),
        ("Package", "x"),
        ("Package", "Upper"),
        ("Version", "a1"),
        ("Version", "1/2"),
        ("Version", "x:1"),
        ("Version", "1\n more"),
        ("Architecture", "amd 64"),
    ] {
        let mut paragraph = ControlParagraph::parse_single(control).expect("fields");
        paragraph.set(field, wrong);
        let error = of_control(&paragraph.to_string());
        assert!(error.contains(&format!("in the field `{field}`, found `")), "{error}");
    }
}

#[test]
fn files_are_those_that_the_package_says_it_has() {
    let control = "Package: example\nVersion: 1\nArchitecture: all\n";
    let of_hashes = |hashes: &str| {
        let scripts = tar_of_files(&[("control", control), ("md5sums", hashes)]);
        DebPackage::from_bytes(&package_of_archives(&[
            ("control.tar", &scripts),
            ("data.tar", &tar_of_files(&[("file", "text")])),
        ]))
    };
    assert!(of_hashes("1cb251ec0d568de6a929b520c4aed8d1  file\n").is_ok());
    let refused = |hashes: &str| of_hashes(hashes).expect_err("a wrong hash").to_string();
    assert!(refused("00  file\n").contains("`md5sums`: `file`: expected the hash 00, found 1cb251ec"));
    assert!(refused("00  other\n").contains("expected `other`, which it lists"));
}

#[test]
fn every_cut_and_every_changed_archive_is_refused() {
    let bytes = example_package().to_bytes(BUILD_TIME).expect("a package");
    for length in (0..bytes.len()).step_by(11) {
        refusal_of(&bytes[..length]);
    }
    // Offsets within the compressed archives: near the start and near the end.
    let (first, last) = (8 + 60 + 4 + 60, bytes.len() - 60);
    for place in (first..last).step_by(37) {
        let mut wrong = bytes.clone();
        wrong[place] ^= 0x55;
        let read = DebPackage::from_bytes(&wrong);
        // Times and owners in the container are ignored.
        assert!(read.is_err() || read == DebPackage::from_bytes(&bytes), "byte {place}");
    }
}
