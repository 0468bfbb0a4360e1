//! Documents of a release, validated by the reference libraries of SPDX, CycloneDX and in-toto.
//!
//! `scripts/get-installers` installs those; without them there is one ignored test that says so.

#[path = "wheels/built.rs"]
#[expect(dead_code, reason = "this test uses only a part of it")]
mod built;
#[path = "common/image.rs"]
mod image;
#[path = "common/release.rs"]
#[expect(dead_code, reason = "this test uses only a part of it")]
mod release;
#[path = "common/trials.rs"]
mod trials;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

use crate::release::ReleaseFixture;

const TESTS: &[(&str, fn())] = &[
    (
        "sboms_and_provenance_pass_the_validators_of_their_formats",
        sboms_and_provenance_pass_the_validators_of_their_formats,
    ),
    ("what_is_wrong_is_noticed", what_is_wrong_is_noticed),
];

fn main() -> ExitCode {
    let missing = || format!("`{}` is missing: run `scripts/get-installers`", environment_marker().display());
    trials::run_trials(TESTS, (!environment_marker().is_file()).then(missing))
}

fn validator_environment() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("installers").join("environment")
}

/// A file that one of the libraries installs.
fn environment_marker() -> PathBuf {
    validator_environment().join("bin/pyspdxtools")
}

fn validate_release(release: &Path) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sboms/check.py");
    Command::new(validator_environment().join("bin/python"))
        .arg(script)
        .arg(release)
        .output()
        .expect("Python")
}

fn sboms_and_provenance_pass_the_validators_of_their_formats() {
    let built = ReleaseFixture::new();
    let out = built.path("out");
    built.write_release(&out, Some("v0.1.0")).expect("a release");
    let output = validate_release(&out);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "3 3 3\n");
}

fn what_is_wrong_is_noticed() {
    let built = ReleaseFixture::new();
    let out = built.path("out");
    let items = built.write_release(&out, Some("v0.1.0")).expect("a release");
    let name = items[0].path.rsplit('/').next().expect("a name");
    for (file, right, wrong) in [
        (format!("sboms/{name}.spdx.json"), "\"SPDXRef-File\"", "\"File\""),
        (format!("sboms/{name}.cdx.json"), "\"library\"", "\"book\""),
        ("provenance.json".to_owned(), "\"sig\":\"", "\"sig\":\"AAAA"),
    ] {
        let file = out.join(file);
        let before = std::fs::read_to_string(&file).expect("a file");
        let changed = before.replace(right, wrong);
        assert_ne!(changed, before, "{}", file.display());
        std::fs::write(&file, changed).expect("a file");
        assert!(!validate_release(&out).status.success(), "{}", file.display());
        std::fs::write(&file, before).expect("a file");
    }
    assert!(validate_release(&out).status.success());
}
