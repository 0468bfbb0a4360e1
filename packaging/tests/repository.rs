//! Repositories of tiny packages as files, and the commands that create them.

#[path = "common/package.rs"]
mod package;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use oarlock_formats::date::{self, SECONDS_PER_DAY};
use oarlock_formats::deb::control::ControlParagraph;
use oarlock_formats::openpgp::OpenPgpKey;
use oarlock_pack::apt_repository::{AptRepository, SuiteRelease};

use crate::package::put_package;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

const RELEASE_TIME: u64 = 1_700_000_000;

fn test_release() -> SuiteRelease {
    let word = str::to_owned;
    let (made, ends) = (RELEASE_TIME, RELEASE_TIME + 90 * SECONDS_PER_DAY);
    let host = word("https://example.org/apt");
    SuiteRelease { suite: word("stable"), codename: word("first"), origin: word("Here"), host, made, ends }
}

fn test_key() -> OpenPgpKey {
    OpenPgpKey::new("Archive <archive@example.org>", RELEASE_TIME).expect("a key")
}

fn test_repository(files: &[PathBuf]) -> AptRepository {
    AptRepository::of_files(files, |_, _| ()).expect("packages")
}

fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn refusal_of(files: &[PathBuf]) -> String {
    AptRepository::of_files(files, |_, _| ()).expect_err("no repository").to_string()
}

/// All files below a directory with their contents.
fn files_below(directory: &Path) -> BTreeMap<String, Vec<u8>> {
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
        put_package(place.path(), "oarlock", &[]),
        put_package(place.path(), "liboarlock0", &[("Source", "oarlock (1.0)"), ("Section", "libs")]),
        put_package(place.path(), "oarlock-doc", &[("Architecture", "all")]),
        put_package(
            place.path(),
            "oarlock-cuda",
            &[("Section", "contrib/science"), ("Architecture", "arm64")],
        ),
    ]
    .into();
    let (key, one, other) = (test_key(), place.path().join("one"), place.path().join("other"));
    test_repository(&all)
        .write_repository(&one, &test_release(), std::slice::from_ref(&key))
        .expect("a repository");
    let turned: Vec<PathBuf> = all.iter().rev().chain(&all[..1]).cloned().collect();
    test_repository(&turned)
        .write_repository(&other, &test_release(), std::slice::from_ref(&key))
        .expect("a repository");
    assert_eq!(files_below(&one), files_below(&other));
    test_repository(&all).write_repository(&one, &test_release(), &[key]).expect("the same again");
    assert_eq!(files_below(&one), files_below(&other));

    let files = files_below(&one);
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
        let paragraphs = ControlParagraph::parse_all(&text).expect("paragraphs");
        paragraphs
            .iter()
            .map(|it| it.require_field("Package").expect("a name").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(packages("main", "amd64"), ["oarlock-doc", "liboarlock0", "oarlock"]);
    assert_eq!(packages("main", "arm64"), ["oarlock-doc"]);
    assert_eq!(packages("contrib", "arm64"), ["oarlock-cuda"]);
    assert!(packages("contrib", "amd64").is_empty());

    let release = ControlParagraph::parse_single(&text("dists/stable/Release")).expect("a paragraph");
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
    let hashes = release.require_field("SHA256").expect("hashes");
    assert_eq!(hashes.trim().lines().count(), 8);
    for line in hashes.trim().lines() {
        let [hash, size, path] = line.split(' ').collect::<Vec<_>>().try_into().expect("three words");
        let list = &files[&format!("dists/stable/{path}")];
        assert_eq!((sha256_hex(list), list.len().to_string()), (hash.to_owned(), size.to_owned()));
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
    let file = put_package(place.path(), "oarlock-doc", &[("Architecture", "all")]);
    let target = place.path().join("apt");
    test_repository(&[file]).write_repository(&target, &test_release(), &[]).expect("a repository");
    let files = files_below(&target);
    assert!(files.contains_key("dists/stable/main/binary-all/Packages"));
    // Without a key nothing is signed, and the `.sources` file tells apt to accept only signed repositories.
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
        let file = put_package(place.path(), "oarlock", &[("Version", &version.to_string())]);
        test_repository(&[file]).write_repository(&target, &test_release(), &[]).expect("a repository");
        let files = files_below(&target);
        let hashes = || files.keys().filter(|path| path.contains("by-hash"));
        assert_eq!(hashes().count(), 2 * version.min(3));
        seen.push(sha256_hex(&files["dists/stable/main/binary-amd64/Packages"]));
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
    assert_eq!(refusal_of(&[]), "expected packages, found none");
    assert!(
        AptRepository::package_files(&directory)
            .expect_err("no files")
            .to_string()
            .ends_with("expected files `*.deb`, found none")
    );
    let one = put_package(place.path(), "oarlock", &[]);
    let other = put_package(&directory, "oarlock", &[("Description", "different")]);
    let error = refusal_of(&[one.clone(), other]);
    assert!(
        error.starts_with("expected one file for `pool/main/o/oarlock/oarlock_1_amd64.deb`, found `"),
        "{error}"
    );
    let epoch = put_package(&directory, "oarlock", &[("Version", "2:1")]);
    assert!(refusal_of(&[one.clone(), epoch]).contains("which are different"));
    for (field, value) in [("Section", "games/oarlock"), ("Source", "../up")] {
        let error = refusal_of(&[put_package(&directory, "wrong", &[(field, value)])]);
        assert!(
            error.contains("wrong.deb`: expected") && error.ends_with(&format!("found `{value}`")),
            "{error}"
        );
    }
    let mut bytes = std::fs::read(&one).expect("a package");
    bytes.truncate(bytes.len() - 9);
    std::fs::write(&one, bytes).expect("a file");
    assert!(refusal_of(&[one]).contains("oarlock.deb`: expected "));
}

#[test]
fn a_repository_takes_the_place_of_one_of_its_suite_and_of_nothing_else() {
    let place = tempfile::tempdir().expect("a directory");
    let target = place.path().join("apt");
    let repository = test_repository(&[put_package(place.path(), "oarlock", &[])]);
    let write = |release: &SuiteRelease| repository.write_repository(&target, release, &[]);
    write(&test_release()).expect("a repository");
    let before = files_below(&target);
    let testing = SuiteRelease { suite: "testing".to_owned(), ..test_release() };
    let error = write(&testing).expect_err("another suite").to_string();
    assert!(error.contains("expected a repository of the suite `testing`"), "{error}");
    assert_eq!(repository.check_target(&target, &testing).expect_err("another suite").to_string(), error);
    std::fs::write(target.join("pool/notes"), "mine").expect("a file");
    let error = write(&test_release()).expect_err("a file of somebody").to_string();
    assert!(error.ends_with("found `pool/notes` in it, which no repository put there"), "{error}");
    std::fs::remove_file(target.join("pool/notes")).expect("the file");
    assert_eq!(files_below(&target), before);
    std::fs::write(target.join(".oarlock-generations"), "0 ../up\n").expect("a file");
    let error = write(&test_release()).expect_err("what no repository remembers").to_string();
    assert!(error.contains("apt`: `.oarlock-generations`: line 1: expected a number and a path"), "{error}");
}

#[test]
fn what_apt_would_not_take_is_refused() {
    let now = RELEASE_TIME + SECONDS_PER_DAY;
    let refused =
        |release: SuiteRelease| release.check_usable(&[], now).expect_err("a wrong release").to_string();
    assert_eq!(test_release().check_usable(&[test_key()], now), Ok(()));
    assert!(
        refused(SuiteRelease { made: now + 1, ..test_release() })
            .starts_with("expected a repository that is made by now")
    );
    let ended = refused(SuiteRelease { ends: now, ..test_release() });
    assert!(
        ended.contains("that ends on Wed, 15 Nov 2023 22:13:20 UTC; it may be valid for longer"),
        "{ended}"
    );
    for wrong in ["", "../up", "a/b", "Stable", "a b", "1"] {
        assert!(
            refused(SuiteRelease { suite: wrong.to_owned(), ..test_release() })
                .contains("expected a suite such as")
        );
        assert!(
            refused(SuiteRelease { codename: wrong.to_owned(), ..test_release() })
                .contains("expected a codename such as")
        );
    }
    assert!(
        refused(SuiteRelease { origin: "a\nb".to_owned(), ..test_release() }).contains("expected an origin")
    );
    assert!(
        refused(SuiteRelease { host: "https://a b".to_owned(), ..test_release() })
            .contains("expected an address")
    );
}

/// Runs the command in a directory, with yesterday as the build time.
fn run_command(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oarlock-pack"));
    let yesterday = (date::seconds_now() / SECONDS_PER_DAY - 1) * SECONDS_PER_DAY;
    command.args(arguments).current_dir(directory).env("SOURCE_DATE_EPOCH", yesterday.to_string());
    command.output().expect("the command")
}

/// Runs the command, which must succeed, and returns its output.
fn run_successfully(directory: &Path, arguments: &[&str]) -> String {
    let output = run_command(directory, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a text")
}

/// Runs the command, which must fail, and returns its error.
fn run_to_failure(directory: &Path, arguments: &[&str]) -> String {
    let output = run_command(directory, arguments);
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).expect("a text")
}

/// A directory with a key, packages and an unrelated file.
fn packages_with_key() -> TempDir {
    let place = tempfile::tempdir().expect("a directory");
    put_package(&place.path().join("dist"), "oarlock", &[]);
    put_package(&place.path().join("dist"), "oarlock-data", &[("Architecture", "all")]);
    std::fs::write(place.path().join("dist/oarlock.whl"), "a wheel").expect("a file");
    run_successfully(place.path(), &["apt-key", "new", "--out", "key"]);
    place
}

#[test]
fn the_same_packages_of_one_day_are_the_same_bytes() {
    let place = packages_with_key();
    let text = run_successfully(place.path(), &["apt-repo", "dist", "--key", "key"]);
    assert!(text.starts_with("dist/apt has 2 packages, signed by "), "{text}");
    let json = run_successfully(
        place.path(),
        &["--json", "apt-repo", "dist", "--key", "key", "--out", "again", "--codename", "one"],
    );
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["packages"], &json["suite"]), (&2.into(), &"stable".into()));
    assert!(text.contains(json["signed_by"][0].as_str().expect("a key")), "{text}");
    let sources = std::fs::read_to_string(place.path().join("dist/apt/oarlock.sources")).expect("a file");
    assert!(sources.contains("\nArchitectures: amd64\n"), "{sources}");
    assert!(text.contains(json["valid_until"].as_str().expect("a time")), "{text}");
    run_successfully(
        place.path(),
        &["apt-repo", "dist/oarlock-data.deb", "dist/oarlock.deb", "--key", "key", "--out", "again"],
    );
    assert_eq!(files_below(&place.path().join("again")), files_below(&place.path().join("dist/apt")));
}

#[test]
fn a_dry_run_says_the_same_and_writes_nothing() {
    let place = packages_with_key();
    let before = files_below(place.path());
    let text = run_successfully(place.path(), &["--dry-run", "apt-repo", "dist", "--key", "key"]);
    assert!(text.starts_with("dist/apt would have 2 packages, signed by "), "{text}");
    assert_eq!(
        run_successfully(place.path(), &["--dry-run", "apt-key", "new", "--out", "next"]),
        "would write next\n"
    );
    assert!(
        run_to_failure(place.path(), &["--dry-run", "apt-repo", "dist", "--unsigned", "--out", "dist"])
            .contains("no repository put there")
    );
    assert_eq!(files_below(place.path()), before);
}

#[test]
fn nothing_is_unsigned_unless_that_is_asked_for() {
    let place = packages_with_key();
    assert!(run_to_failure(place.path(), &["apt-repo", "dist"]).contains("--key <FILE>|--unsigned"));
    assert!(
        run_to_failure(place.path(), &["apt-repo", "dist", "--unsigned", "--key", "key"])
            .contains("cannot be used with")
    );
    let text = run_successfully(place.path(), &["apt-repo", "dist", "--unsigned"]);
    assert!(text.starts_with("dist/apt has 2 packages, signed by nobody"), "{text}");
    // Like an external signer that keeps the key elsewhere.
    std::fs::write(place.path().join("dist/apt/dists/stable/InRelease"), "signed").expect("a file");
    std::fs::write(place.path().join("dist/apt/oarlock-archive-keyring.gpg"), "a key").expect("a file");
    run_successfully(place.path(), &["apt-repo", "dist", "--unsigned"]);
    assert!(!place.path().join("dist/apt/dists/stable/InRelease").exists());
}

#[test]
fn keys_are_for_their_owner_alone_and_are_never_replaced() {
    let place = packages_with_key();
    let before = files_below(place.path());
    for arguments in
        [["apt-key", "new", "--out", "key"].as_slice(), &["--dry-run", "apt-key", "new", "--out", "key"]]
    {
        assert_eq!(
            run_to_failure(place.path(), arguments),
            "error: `key`: expected no file, for no key is replaced; found one\n"
        );
    }
    assert_eq!(files_below(place.path()), before);
    for wrong in ["dist/oarlock.whl", "nothing"] {
        let error = run_to_failure(place.path(), &["apt-repo", "dist", "--key", wrong]);
        assert!(error.starts_with(&format!("error: `{wrong}`: ")), "{error}");
    }
}

#[test]
fn times_that_say_nothing_are_refused() {
    let place = packages_with_key();
    let repository = ["apt-repo", "dist", "--key", "key"];
    assert!(
        run_to_failure(place.path(), &[&repository[..], &["--valid-for", "0"]].concat()).contains("1..=3650")
    );
    // Built yesterday, so it expires today.
    assert!(
        run_to_failure(place.path(), &[&repository[..], &["--valid-for", "1"]].concat())
            .contains("that apt takes now")
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_oarlock-pack"));
    command.args(repository).current_dir(place.path()).env("SOURCE_DATE_EPOCH", "soon");
    let error = String::from_utf8(command.output().expect("the command").stderr).expect("a text");
    assert!(error.ends_with("expected seconds since 1970 in `SOURCE_DATE_EPOCH`, found `soon`\n"), "{error}");
}
