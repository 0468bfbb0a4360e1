//! Repositories of small packages, as files, and the commands that make them.

#[path = "common/package.rs"]
mod package;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use oarlock_pack::date::{self, DAY};
use oarlock_pack::deb::control::Paragraph;
use oarlock_pack::openpgp::Key;
use oarlock_pack::repository::{Release, Repository};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::package::put;

const TIME: u64 = 1_700_000_000;

fn release() -> Release {
    let word = str::to_owned;
    let (made, ends) = (TIME, TIME + 90 * DAY);
    let host = word("https://example.org/apt");
    Release { suite: word("stable"), codename: word("first"), origin: word("Here"), host, made, ends }
}

fn key() -> Key {
    Key::new("Archive <archive@example.org>", TIME).expect("a key")
}

fn repository(files: &[PathBuf]) -> Repository {
    Repository::of_files(files, |_, _| ()).expect("packages")
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn refused(files: &[PathBuf]) -> String {
    Repository::of_files(files, |_, _| ()).expect_err("no repository").to_string()
}

/// All files below a directory with what is in them.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut left = vec![directory.to_owned()];
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(next).expect("a directory") {
            let path = entry.expect("a file").path();
            if path.is_dir() {
                left.push(path);
            } else {
                let name = path.strip_prefix(directory).expect("a path below").display().to_string();
                found.insert(name, std::fs::read(path).expect("a file"));
            }
        }
    }
    found
}

#[test]
fn the_same_packages_are_the_same_repository_whatever_their_order() {
    let place = tempfile::tempdir().expect("a directory");
    let all: Vec<PathBuf> = [
        put(place.path(), "oarlock", &[]),
        put(place.path(), "liboarlock0", &[("Source", "oarlock (1.0)"), ("Section", "libs")]),
        put(place.path(), "oarlock-doc", &[("Architecture", "all")]),
        put(place.path(), "oarlock-cuda", &[("Section", "contrib/science"), ("Architecture", "arm64")]),
    ]
    .into();
    let (key, one, other) = (key(), place.path().join("one"), place.path().join("other"));
    repository(&all).write(&one, &release(), std::slice::from_ref(&key)).expect("a repository");
    let turned: Vec<PathBuf> = all.iter().rev().chain(&all[..1]).cloned().collect();
    repository(&turned).write(&other, &release(), std::slice::from_ref(&key)).expect("a repository");
    assert_eq!(files(&one), files(&other));
    repository(&all).write(&one, &release(), &[key]).expect("the same again");
    assert_eq!(files(&one), files(&other));

    let files = files(&one);
    for path in [
        "pool/main/o/oarlock/oarlock_1_amd64.deb",
        "pool/main/o/oarlock/liboarlock0_1_amd64.deb",
        "pool/main/o/oarlock-doc/oarlock-doc_1_all.deb",
        "pool/contrib/o/oarlock-cuda/oarlock-cuda_1_arm64.deb",
        "dists/stable/InRelease",
        "dists/stable/Release.gpg",
        "oarlock-archive-keyring.gpg",
    ] {
        assert!(files.contains_key(path), "{path}: {:?}", files.keys());
    }
    let text = |path: &str| String::from_utf8(files[path].clone()).expect("a text");
    let packages = |component: &str, machine: &str| {
        let text = text(&format!("dists/stable/{component}/binary-{machine}/Packages"));
        let paragraphs = Paragraph::read(&text).expect("paragraphs");
        paragraphs.iter().map(|it| it.need("Package").expect("a name").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(packages("main", "amd64"), ["oarlock-doc", "liboarlock0", "oarlock"]);
    assert_eq!(packages("main", "arm64"), ["oarlock-doc"]);
    assert_eq!(packages("contrib", "arm64"), ["oarlock-cuda"]);
    assert!(packages("contrib", "amd64").is_empty());

    let release = Paragraph::read_one(&text("dists/stable/Release")).expect("a paragraph");
    for (field, value) in [
        ("Origin", "Here"),
        ("Suite", "stable"),
        ("Codename", "first"),
        ("Date", "Tue, 14 Nov 2023 22:13:20 UTC"),
        ("Valid-Until", "Mon, 12 Feb 2024 22:13:20 UTC"),
        ("Acquire-By-Hash", "yes"),
        ("Architectures", "amd64 arm64"),
        ("Components", "contrib main"),
    ] {
        assert_eq!(release.get(field), Some(value), "{field}");
    }
    let hashes = release.need("SHA256").expect("hashes");
    assert_eq!(hashes.trim().lines().count(), 8);
    for line in hashes.trim().lines() {
        let [hash, size, path] = line.split(' ').collect::<Vec<_>>().try_into().expect("three words");
        let list = &files[&format!("dists/stable/{path}")];
        assert_eq!((sha256(list), list.len().to_string()), (hash.to_owned(), size.to_owned()));
        let (directory, _) = path.rsplit_once('/').expect("a directory");
        assert_eq!(&files[&format!("dists/stable/{directory}/by-hash/SHA256/{hash}")], list);
    }
    assert_eq!(
        text("oarlock.sources"),
        "Types: deb\nURIs: https://example.org/apt\nSuites: stable\nComponents: contrib main\n\
         Signed-By: /usr/share/keyrings/oarlock-archive-keyring.gpg\n"
    );
}

#[test]
fn what_is_for_all_machines_alone_is_listed_for_all() {
    let place = tempfile::tempdir().expect("a directory");
    let file = put(place.path(), "oarlock-doc", &[("Architecture", "all")]);
    let target = place.path().join("apt");
    repository(&[file]).write(&target, &release(), &[]).expect("a repository");
    let files = files(&target);
    assert!(files.contains_key("dists/stable/main/binary-all/Packages"));
    // Without a key nothing is signed, and apt is told to take nothing that is not.
    assert!(
        !files.contains_key("dists/stable/InRelease") && !files.contains_key("oarlock-archive-keyring.gpg")
    );
    let sources = String::from_utf8_lossy(&files["oarlock.sources"]);
    assert!(!sources.contains("Architectures") && sources.contains("Signed-By: "), "{sources}");
}

#[test]
fn lists_of_the_last_three_repositories_stay() {
    let place = tempfile::tempdir().expect("a directory");
    let target = place.path().join("apt");
    let mut seen = Vec::new();
    for version in 1..=5 {
        let file = put(place.path(), "oarlock", &[("Version", &version.to_string())]);
        repository(&[file]).write(&target, &release(), &[]).expect("a repository");
        let files = files(&target);
        let hashes = || files.keys().filter(|path| path.contains("by-hash"));
        assert_eq!(hashes().count(), 2 * version.min(3));
        seen.push(sha256(&files["dists/stable/main/binary-amd64/Packages"]));
        for hash in seen.iter().rev().take(3) {
            assert!(hashes().any(|path| path.ends_with(hash)), "{hash}");
        }
        assert_eq!(files.keys().filter(|path| path.starts_with("pool")).count(), 1);
    }
}

#[test]
fn packages_that_cannot_be_in_a_repository_are_refused_by_name() {
    let place = tempfile::tempdir().expect("a directory");
    let directory = place.path().join("other");
    std::fs::create_dir(&directory).expect("a directory");
    assert_eq!(refused(&[]), "expected packages, found none");
    assert!(
        Repository::files(&directory)
            .expect_err("no files")
            .to_string()
            .ends_with("expected files `*.deb`, found none")
    );
    let one = put(place.path(), "oarlock", &[]);
    let other = put(&directory, "oarlock", &[("Description", "different")]);
    let error = refused(&[one.clone(), other]);
    assert!(
        error.starts_with("expected one file for `pool/main/o/oarlock/oarlock_1_amd64.deb`, found `"),
        "{error}"
    );
    let epoch = put(&directory, "oarlock", &[("Version", "2:1")]);
    assert!(refused(&[one.clone(), epoch]).contains("which are different"));
    for (field, value) in [("Section", "games/oarlock"), ("Source", "../up")] {
        let error = refused(&[put(&directory, "wrong", &[(field, value)])]);
        assert!(
            error.contains("wrong.deb`: expected") && error.ends_with(&format!("found `{value}`")),
            "{error}"
        );
    }
    let mut bytes = std::fs::read(&one).expect("a package");
    bytes.truncate(bytes.len() - 9);
    std::fs::write(&one, bytes).expect("a file");
    assert!(refused(&[one]).contains("oarlock.deb`: expected "));
}

#[test]
fn a_repository_takes_the_place_of_one_of_its_suite_and_of_nothing_else() {
    let place = tempfile::tempdir().expect("a directory");
    let target = place.path().join("apt");
    let repository = repository(&[put(place.path(), "oarlock", &[])]);
    let write = |release: &Release| repository.write(&target, release, &[]);
    write(&release()).expect("a repository");
    let before = files(&target);
    let testing = Release { suite: "testing".to_owned(), ..release() };
    let error = write(&testing).expect_err("another suite").to_string();
    assert!(error.contains("expected a repository of the suite `testing`"), "{error}");
    assert_eq!(repository.check_place(&target, &testing).expect_err("another suite").to_string(), error);
    std::fs::write(target.join("pool/notes"), "mine").expect("a file");
    let error = write(&release()).expect_err("a file of somebody").to_string();
    assert!(error.ends_with("found `pool/notes` in it, which no repository put there"), "{error}");
    std::fs::remove_file(target.join("pool/notes")).expect("the file");
    assert_eq!(files(&target), before);
    std::fs::write(target.join(".oarlock-generations"), "0 ../up\n").expect("a file");
    let error = write(&release()).expect_err("what no repository remembers").to_string();
    assert!(error.contains("apt`: `.oarlock-generations`: line 1: expected a number and a path"), "{error}");
}

#[test]
fn what_apt_would_not_take_is_refused() {
    let now = TIME + DAY;
    let refused = |release: Release| release.check(&[], now).expect_err("a wrong release").to_string();
    assert_eq!(release().check(&[key()], now), Ok(()));
    assert!(
        refused(Release { made: now + 1, ..release() })
            .starts_with("expected a repository that is made by now")
    );
    let ended = refused(Release { ends: now, ..release() });
    assert!(
        ended.contains("that ends on Wed, 15 Nov 2023 22:13:20 UTC; it may be valid for longer"),
        "{ended}"
    );
    for wrong in ["", "../up", "a/b", "Stable", "a b", "1"] {
        assert!(
            refused(Release { suite: wrong.to_owned(), ..release() }).contains("expected a suite such as")
        );
        assert!(
            refused(Release { codename: wrong.to_owned(), ..release() })
                .contains("expected a codename such as")
        );
    }
    assert!(refused(Release { origin: "a\nb".to_owned(), ..release() }).contains("expected an origin"));
    assert!(refused(Release { host: "https://a b".to_owned(), ..release() }).contains("expected an address"));
}

/// What the command does in a directory; what it makes is of yesterday.
fn command(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oarlock-pack"));
    let yesterday = (date::now() / DAY - 1) * DAY;
    command.args(arguments).current_dir(directory).env("SOURCE_DATE_EPOCH", yesterday.to_string());
    command.output().expect("the command")
}

/// What it says as it succeeds.
fn said(directory: &Path, arguments: &[&str]) -> String {
    let output = command(directory, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a text")
}

/// What it says as it fails.
fn fails(directory: &Path, arguments: &[&str]) -> String {
    let output = command(directory, arguments);
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).expect("a text")
}

/// A directory with a key and packages beside something else.
fn filled() -> TempDir {
    let place = tempfile::tempdir().expect("a directory");
    put(&place.path().join("dist"), "oarlock", &[]);
    put(&place.path().join("dist"), "oarlock-data", &[("Architecture", "all")]);
    std::fs::write(place.path().join("dist/oarlock.whl"), "a wheel").expect("a file");
    said(place.path(), &["apt-key", "new", "--out", "key"]);
    place
}

#[test]
fn the_same_packages_of_one_day_are_the_same_bytes() {
    let place = filled();
    let text = said(place.path(), &["apt-repo", "dist", "--key", "key"]);
    assert!(text.starts_with("dist/apt has 2 packages, signed by "), "{text}");
    let json = said(
        place.path(),
        &["--json", "apt-repo", "dist", "--key", "key", "--out", "again", "--codename", "one"],
    );
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["packages"], &json["suite"]), (&2.into(), &"stable".into()));
    assert!(text.contains(json["signed_by"][0].as_str().expect("a key")), "{text}");
    let sources = std::fs::read_to_string(place.path().join("dist/apt/oarlock.sources")).expect("a file");
    assert!(sources.contains("\nArchitectures: amd64\n"), "{sources}");
    assert!(text.contains(json["valid_until"].as_str().expect("a time")), "{text}");
    said(
        place.path(),
        &["apt-repo", "dist/oarlock-data.deb", "dist/oarlock.deb", "--key", "key", "--out", "again"],
    );
    assert_eq!(files(&place.path().join("again")), files(&place.path().join("dist/apt")));
}

#[test]
fn a_dry_run_says_the_same_and_writes_nothing() {
    let place = filled();
    let before = files(place.path());
    let text = said(place.path(), &["--dry-run", "apt-repo", "dist", "--key", "key"]);
    assert!(text.starts_with("dist/apt would have 2 packages, signed by "), "{text}");
    assert_eq!(said(place.path(), &["--dry-run", "apt-key", "new", "--out", "next"]), "would write next\n");
    assert!(
        fails(place.path(), &["--dry-run", "apt-repo", "dist", "--unsigned", "--out", "dist"])
            .contains("no repository put there")
    );
    assert_eq!(files(place.path()), before);
}

#[test]
fn nothing_is_unsigned_unless_that_is_asked_for() {
    let place = filled();
    assert!(fails(place.path(), &["apt-repo", "dist"]).contains("--key <FILE>|--unsigned"));
    assert!(
        fails(place.path(), &["apt-repo", "dist", "--unsigned", "--key", "key"])
            .contains("cannot be used with")
    );
    let text = said(place.path(), &["apt-repo", "dist", "--unsigned"]);
    assert!(text.starts_with("dist/apt has 2 packages, signed by nobody"), "{text}");
    // As somebody does who keeps the key elsewhere.
    std::fs::write(place.path().join("dist/apt/dists/stable/InRelease"), "signed").expect("a file");
    std::fs::write(place.path().join("dist/apt/oarlock-archive-keyring.gpg"), "a key").expect("a file");
    said(place.path(), &["apt-repo", "dist", "--unsigned"]);
    assert!(!place.path().join("dist/apt/dists/stable/InRelease").exists());
}

#[test]
fn keys_are_for_their_owner_alone_and_are_never_replaced() {
    let place = filled();
    let before = files(place.path());
    for arguments in
        [["apt-key", "new", "--out", "key"].as_slice(), &["--dry-run", "apt-key", "new", "--out", "key"]]
    {
        assert_eq!(
            fails(place.path(), arguments),
            "error: `key`: expected no file, for no key is replaced; found one\n"
        );
    }
    assert_eq!(files(place.path()), before);
    for wrong in ["dist/oarlock.whl", "nothing"] {
        let error = fails(place.path(), &["apt-repo", "dist", "--key", wrong]);
        assert!(error.starts_with(&format!("error: `{wrong}`: ")), "{error}");
    }
}

#[test]
fn times_that_say_nothing_are_refused() {
    let place = filled();
    let repository = ["apt-repo", "dist", "--key", "key"];
    assert!(fails(place.path(), &[&repository[..], &["--valid-for", "0"]].concat()).contains("1..=3650"));
    // What is of yesterday ends today.
    assert!(
        fails(place.path(), &[&repository[..], &["--valid-for", "1"]].concat())
            .contains("that apt takes now")
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_oarlock-pack"));
    command.args(repository).current_dir(place.path()).env("SOURCE_DATE_EPOCH", "soon");
    let error = String::from_utf8(command.output().expect("the command").stderr).expect("a text");
    assert!(error.ends_with("expected seconds since 1970 in `SOURCE_DATE_EPOCH`, found `soon`\n"), "{error}");
}
