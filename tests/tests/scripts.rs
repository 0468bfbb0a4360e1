//! Messages of scripts on a machine that lacks something: one line that names it, before any slow work. The functions of
//! `scripts/common.sh` run with stubs for those that inspect the machine.

use std::path::{Path, PathBuf};
use std::process::Command;

fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs lines in bash after `common.sh`, with only `PATH` in the environment. Returns stdout, stderr and whether it succeeded.
fn run_bash(lines: &str) -> (String, String, bool) {
    let script = format!("source scripts/common.sh\n{lines}\n");
    let output = Command::new("bash")
        .args(["-c", &script])
        .current_dir(repository_root())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("CARGO_TARGET_DIR", env!("CARGO_TARGET_TMPDIR"))
        .env("LC_ALL", "C")
        .output()
        .expect("bash");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(output.stdout), text(output.stderr), output.status.success())
}

/// The one-line error with which these lines end a script.
fn script_error(lines: &str) -> String {
    let (out, error, is_well) = run_bash(lines);
    assert!(!is_well, "{out}{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    error.trim_end().to_owned()
}

#[test]
fn too_little_disk_is_said_with_how_much_it_takes() {
    let error = script_error("free_disk() { echo 8; }; need_disk 9 nothing");
    assert!(error.starts_with("error: expected 9 GB of disk for `"), "{error}");
    assert!(
        error.ends_with(", found 8 GB free; `export CARGO_TARGET_DIR=DIRECTORY` builds elsewhere"),
        "{error}"
    );
    // A partial build already exists.
    let (_, error, is_well) = run_bash(
        "free_disk() { echo 4; }; du() { printf '5\\tx\\n'; }; mkdir -p \"$TARGET/built\"; need_disk 9 built",
    );
    assert!(is_well, "{error}");
}

#[test]
fn with_little_memory_cargo_does_less_at_once() {
    let jobs = |free: u32, cores: u32, set: &str| {
        let machine = format!("free_memory() {{ echo {free}; }}; nproc() {{ echo {cores}; }}; {set}");
        let (out, error, is_well) =
            run_bash(&format!("{machine} fit_memory; echo \"jobs=${{CARGO_BUILD_JOBS:-}}\""));
        assert!(is_well, "{error}");
        let (message, jobs) = out.split_once("jobs=").expect("how many");
        (message.to_owned(), jobs.trim_end().to_owned())
    };
    assert_eq!(jobs(16_000, 2, ""), (String::new(), String::new()));
    let (message, some) = jobs(9_000, 8, "");
    assert_eq!(some, "4");
    assert!(
        message.starts_with("==> 9000 MB of memory are free, so cargo runs 4 jobs at a time"),
        "{message}"
    );
    assert_eq!(jobs(1_500, 2, "").1, "1");
    assert_eq!(jobs(1_500, 1, "").1, "1");
    assert_eq!(jobs(1_500, 8, "CARGO_BUILD_JOBS=3;"), (String::new(), "3".to_owned()));
    let (out, error, is_well) = run_bash("free_memory");
    assert!(is_well && out.trim().parse::<u64>().is_ok_and(|free| free > 0), "{out}{error}");
}

#[test]
fn a_home_that_cannot_be_written_is_named_with_the_variable_that_names_another() {
    let cargo = "cargo() { echo cargo 1.95; };";
    let error = script_error(&format!("{cargo} HOME=/proc/nowhere; need_cargo"));
    assert_eq!(
        error,
        "error: expected a directory for crates that can be written, found `/proc/nowhere/.cargo`; \
         `export CARGO_HOME=DIRECTORY` names another"
    );
    let (_, error, is_well) =
        run_bash(&format!("{cargo} HOME=/proc/nowhere; CARGO_HOME=$TARGET/crates; need_cargo"));
    assert!(is_well, "{error}");
    let error = script_error("cargo() { printf 'error: no toolchain\\nmore\\n' >&2; return 1; }; need_cargo");
    assert!(
        error.starts_with("error: expected `cargo --version` to work, found: error: no toolchain;"),
        "{error}"
    );
}

#[test]
fn packages_of_python_that_cannot_be_fetched_are_named() {
    let pip = "python3() { mkdir -p \"$3/bin\"; printf '#!/bin/sh\\nexit 1\\n' >\"$3/bin/pip\"; chmod +x \"$3/bin/pip\"; };";
    let error = script_error(&format!(
        "{pip} need_python() {{ :; }}; python_environment \"$TARGET/offline\" numpy==2.3.1"
    ));
    assert!(
        error.starts_with("error: expected numpy==2.3.1 from an index of Python packages, found none;"),
        "{error}"
    );
    assert!(error.contains("PIP_NO_INDEX=1 PIP_FIND_LINKS=DIRECTORY"), "{error}");
}

#[test]
fn a_python_environment_is_created_once_per_requirement() {
    let pip = "python3() { mkdir -p \"$3/bin\"; for it in python pip; do printf '#!/bin/sh\\necho made >>\"%s/made\"\\n' \"$3\" \
               >\"$3/bin/$it\"; chmod +x \"$3/bin/$it\"; done; }; need_python() { :; }; place=$TARGET/once; rm -rf \"$place\";";
    let (out, error, is_well) = run_bash(&format!(
        "{pip} for wanted in a==1 a==1 a==2; do python_environment \"$place\" $wanted; done; wc -l <\"$place/made\""
    ));
    assert!(is_well, "{error}");
    assert_eq!(out.trim(), "2");
}

#[test]
fn jobs_are_listed_with_their_budgets_and_unknown_ones_are_named() {
    let run = |arguments: &[&str]| {
        let output = Command::new(repository_root().join(".ci/run"))
            .args(arguments)
            .current_dir(repository_root())
            .output()
            .expect("bash");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (text(output.stdout), text(output.stderr))
    };
    let (list, _) = run(&["--list"]);
    let (mut names, mut together) = (Vec::new(), 0);
    for line in list.lines() {
        let mut words = line.split(' ');
        names.extend(words.next());
        let budget: u32 = words.next().and_then(|budget| budget.parse().ok()).unwrap_or(0);
        assert!(budget > 0, "{line}");
        together += budget;
        assert!(words.next().is_some(), "{line}");
    }
    assert!(together <= 40 * 60, "{together} s");
    assert_eq!((names.first(), names.last()), (Some(&"formatting"), Some(&"tests")));
    assert!(list.lines().last().is_some_and(|line| line.trim_end().ends_with(" scripts/test")), "{list}");
    let (_, error) = run(&["bok"]);
    assert_eq!(error, "error: expected names of jobs, as `.ci/run --list` prints them, found `bok`\n");
}

/// The entry of `tests/peers/zoo.toml` with what `scripts/zoo` cannot do without.
#[derive(serde::Deserialize)]
struct ZooModel {
    name: String,
    package: String,
    sha256: String,
    file: Option<String>,
    parts: Option<Vec<String>>,
}

#[derive(serde::Deserialize)]
struct ZooPackage {
    name: String,
    version: String,
}

#[derive(serde::Deserialize)]
struct ZooList {
    package: Vec<ZooPackage>,
    model: Vec<ZooModel>,
}

#[test]
fn every_model_of_the_zoo_is_pinned_by_version_and_hash_and_listed_once() {
    let text = std::fs::read_to_string(repository_root().join("tests/peers/zoo.toml")).expect("the list");
    let zoo: ZooList = toml::from_str(&text).expect("a list");
    assert!(zoo.model.len() >= 100, "{}", zoo.model.len());
    let (mut names, mut hashes) = (std::collections::HashSet::new(), std::collections::HashSet::new());
    for model in &zoo.model {
        assert!(zoo.package.iter().any(|package| package.name == model.package), "{}", model.name);
        assert!(model.file.is_some() != model.parts.is_some(), "{}", model.name);
        assert!(
            model.sha256.len() == 64 && model.sha256.chars().all(|it| it.is_ascii_hexdigit()),
            "{}",
            model.name
        );
        assert!(names.insert(&model.name), "{} is there twice", model.name);
        assert!(hashes.insert(&model.sha256), "{} is the file of another model", model.name);
    }
    for package in &zoo.package {
        assert!(package.version.starts_with(|first: char| first.is_ascii_digit()), "{}", package.name);
        let parts = |model: &ZooModel| model.parts.clone().unwrap_or_default();
        let is_used = |model: &ZooModel| {
            model.package == package.name
                || parts(model).iter().any(|part| part.starts_with(&format!("{}:", package.name)))
        };
        assert!(zoo.model.iter().any(is_used), "no model is of {}", package.name);
    }
}
