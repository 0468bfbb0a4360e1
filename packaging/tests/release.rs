//! Releases are reproducible, sign every file, and leave no files after a failure.

#[path = "wheels/built.rs"]
#[expect(dead_code, reason = "this test uses only a part of it")]
mod built;
#[path = "common/image.rs"]
mod image;
#[path = "common/release.rs"]
mod release;

use std::path::Path;
use std::process::Command;

use oarlock_pack::release::ReleaseItemKind;

use crate::release::{ReleaseFixture, files_below};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

fn read_file(directory: &Path, path: &str) -> String {
    std::fs::read_to_string(directory.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn a_release_is_the_same_bytes_twice_and_all_of_it_is_signed() {
    let built = ReleaseFixture::new();
    let (one, other) = (built.path("one"), built.path("other"));
    let items = built.write_release(&one, Some("v0.1.0")).expect("a release");
    built.write_release(&other, Some("v0.1.0")).expect("a release");
    let paths = files_below(&one);
    assert_eq!(paths, files_below(&other));
    for path in &paths {
        let same = std::fs::read(one.join(path)).expect(path) == std::fs::read(other.join(path)).expect(path);
        assert!(same, "{path}");
    }
    let kinds: Vec<ReleaseItemKind> = items.iter().map(|item| item.kind).collect();
    assert_eq!(kinds, [ReleaseItemKind::Wheel, ReleaseItemKind::Package, ReleaseItemKind::Image]);
    for item in &items {
        let name = item.path.rsplit('/').next().expect("a name");
        for end in ["spdx", "cdx"] {
            assert!(paths.contains(&format!("sboms/{name}.{end}.json")), "{name}");
        }
    }
    // The package contains the SBOM of its compiled part, and the image contains the package.
    for item in &items[1..] {
        let name = item.path.rsplit('/').next().expect("a name");
        let sbom: Value =
            serde_json::from_str(&read_file(&one, &format!("sboms/{name}.spdx.json"))).expect("JSON");
        let names: Vec<&str> = sbom["packages"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|it| it["name"].as_str())
            .collect();
        for part in ["oarlock-plugin-openblas", "oarlock-sdk", "libopenblas.so.0"] {
            assert!(names.contains(&part), "{name}: {names:?}");
        }
    }
    // All files are signed except for the list, its signatures, and bookkeeping files.
    let sums = read_file(&one, "SHA256SUMS");
    let listed: Vec<&str> = sums.lines().filter_map(|line| Some(line.split_once("  ")?.1)).collect();
    let is_listed = |path: &&String| {
        !path.starts_with("SHA256SUMS") && !path.rsplit('/').next().is_some_and(|name| name.starts_with('.'))
    };
    assert_eq!(listed, paths.iter().filter(is_listed).collect::<Vec<_>>());
    let run = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).current_dir(&one).output().expect(program).status.success()
    };
    let sha256sum = || run("sha256sum", &["--check", "--strict", "SHA256SUMS"]);
    let gpgv = || run("gpgv", &["--keyring", "./release-key.gpg", "SHA256SUMS.asc", "SHA256SUMS"]);
    assert!(sha256sum() && gpgv());
    std::fs::write(one.join("SHA256SUMS"), format!("{sums} ")).expect("a file");
    assert!(!gpgv());
}

#[test]
fn where_it_comes_from_is_signed_so_that_openssl_can_say_so() {
    let built = ReleaseFixture::new();
    let out = built.path("out");
    let items = built.write_release(&out, Some("v0.1.0")).expect("a release");
    let envelope: Value = serde_json::from_str(&read_file(&out, "provenance.json")).expect("JSON");
    let decoded = |text: &Value| STANDARD.decode(text.as_str().expect("a text")).expect("base64");
    let payload = decoded(&envelope["payload"]);
    let kind = envelope["payloadType"].as_str().expect("a text");
    let head = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len());
    built.put_file("signed", &[head.as_bytes(), payload.as_slice()].concat());
    built.put_file("signature", &decoded(&envelope["signatures"][0]["sig"]));
    let verify = || {
        let mut openssl = Command::new("openssl");
        openssl.args(["pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", "out/release-key.pem"]);
        openssl.args(["-in", "signed", "-sigfile", "signature"]).current_dir(built.path(""));
        openssl.output().expect("openssl").status.success()
    };
    assert!(verify());
    built.put_file("signed", &[head.as_bytes(), payload.as_slice(), b" "].concat());
    assert!(!verify());
    let statement: Value = serde_json::from_slice(&payload).expect("JSON");
    let subjects: Vec<(&str, &str)> = statement["subject"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| Some((it["name"].as_str()?, it["digest"]["sha256"].as_str()?)))
        .collect();
    let wanted: Vec<(&str, &str)> = items.iter().map(|it| (it.path.as_str(), it.sha256.as_str())).collect();
    assert_eq!(subjects, wanted);
    let definition = &statement["predicate"]["buildDefinition"];
    assert_eq!(definition["externalParameters"]["source"], "v0.1.0");
    let built_of = definition["resolvedDependencies"].as_array().expect("a list");
    let has =
        |start: &str| built_of.iter().any(|it| it["uri"].as_str().is_some_and(|uri| uri.starts_with(start)));
    for start in [
        "git+https://",
        "pkg:cargo/serde@",
        "pkg:deb/debian/base@1.0-1?arch=amd64",
        "pkg:pypi/maturin@1.0",
        "pkg:generic/rustc@1.2.3",
    ] {
        assert!(has(start), "{start}");
    }
}

#[test]
fn a_rehearsal_says_that_it_is_one() {
    let built = ReleaseFixture::new();
    let out = built.path("out");
    built.write_release(&out, None).expect("a release");
    assert!(read_file(&out, "index.html").contains("This is a rehearsal"));
    let message: Value = serde_json::from_str(&read_file(&out, "release.json")).expect("JSON");
    assert_eq!((&message["is_rehearsal"], &message["tag"]), (&Value::Bool(true), &Value::Null));
    // The release replaces the rehearsal.
    built.write_release(&out, Some("v0.1.0")).expect("a release");
    assert!(!read_file(&out, "index.html").contains("rehearsal"));
}

#[test]
fn nothing_is_left_where_a_release_cannot_be_made() {
    let built = ReleaseFixture::new();
    built.put_file("out/notes.txt", b"mine");
    let error = built.write_release(&built.path("out"), None).expect_err("a refusal").to_string();
    assert!(error.contains("found `notes.txt` in it, which no release put there"), "{error}");
    assert_eq!(files_below(&built.path("out")), ["notes.txt"]);
    // A wheel without an SBOM.
    let wheels = std::fs::read_dir(built.path("wheels")).expect("a directory");
    let wheel = wheels.map(|it| it.expect("a file").path()).next().expect("a wheel");
    let mut read = oarlock_formats::wheel::Wheel::read_file(&wheel).expect("a wheel");
    read.add_metadata("sboms/oarlock-plugin-openblas.cyclonedx.json", b"{}".to_vec());
    std::fs::write(
        &wheel,
        read.to_bytes(&oarlock_formats::file_packer::CompressionEffort::Usual.into()).expect("a wheel"),
    )
    .expect("a file");
    let error = built.write_release(&built.path("new"), None).expect_err("a refusal").to_string();
    assert!(error.contains("sboms/oarlock-plugin-openblas.cyclonedx.json"), "{error}");
    assert!(!built.path("new").exists());
}
