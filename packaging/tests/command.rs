//! The command: its output, the files that it leaves alone, and the state that it leaves after a failure.

mod common;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::{file_names, put_wheel};
use tempfile::TempDir;

/// Runs `index` in a shell that first sets limits.
fn run_with_limits(limits: &str, directory: &Path) -> Output {
    let line =
        format!("{limits} exec '{}' index --wheels wheels --out index", env!("CARGO_BIN_EXE_oarlock-pack"));
    let mut shell = Command::new("bash");
    shell.args(["-c", &line]).current_dir(directory).output().expect("bash")
}

/// A wheel that is not in our matrix, and its index.
fn indexed_wheel() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(directory.path().join("wheels")).expect("a directory");
    put_wheel(&directory.path().join("wheels"), "other", "1");
    assert!(run_with_limits("", directory.path()).status.success());
    directory
}

#[test]
fn a_disk_that_is_full_half_way_leaves_the_old_index() {
    let directory = indexed_wheel();
    let wheels = directory.path().join("wheels");
    (2..9).for_each(|version| put_wheel(&wheels, "other", &version.to_string()));
    // Limits files to one block; the page of this many wheels is larger.
    let full = run_with_limits("trap '' XFSZ; ulimit -f 1;", directory.path());
    let message = String::from_utf8_lossy(&full.stderr);
    assert!(
        !full.status.success() && message.contains("simple/other/index.html`: File too large"),
        "{message}"
    );
    assert_eq!(listed_count(&directory), 1);
    assert_eq!(file_names(directory.path()), ["index", "wheels"]);
    assert!(run_with_limits("", directory.path()).status.success());
    assert_eq!(listed_count(&directory), 8);
}

#[test]
fn what_an_interrupted_run_left_is_no_wheel_and_goes_away() {
    let directory = indexed_wheel();
    // The signal kills the process at the first file over the limit, without any cleanup.
    let ended = run_with_limits("ulimit -f 0;", directory.path());
    assert_eq!(ended.status.code(), None);
    assert_eq!(file_names(directory.path()).len(), 3, "{:?}", file_names(directory.path()));
    std::fs::write(directory.path().join("wheels/.unfinished-x"), "half a wheel").expect("a file");
    let again = run_with_limits("", directory.path());
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    assert_eq!(file_names(directory.path()), ["index", "wheels"]);
}

/// The number of wheels on the project's page.
fn listed_count(directory: &TempDir) -> usize {
    let page = directory.path().join("index/simple/other/index.html");
    std::fs::read_to_string(page).expect("a page").matches("<a href").count()
}

/// The JSON output of the command, and whether it succeeded.
fn run_for_json(directory: &Path, arguments: &[&str]) -> (serde_json::Value, bool) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oarlock-pack"));
    let output = command.arg("--json").args(arguments).current_dir(directory).output().expect("the command");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    (serde_json::from_slice(&output.stdout).expect("JSON"), output.status.success())
}

/// The error message of the command.
fn refusal_of(directory: &Path, arguments: &[&str]) -> String {
    let (message, succeeds) = run_for_json(directory, arguments);
    assert!(!succeeds, "{message}");
    message["error"]["message"].as_str().expect("a message").to_owned()
}

#[test]
fn a_dry_run_writes_nothing_and_finds_what_is_wrong() {
    let directory = indexed_wheel();
    let place = directory.path();
    put_wheel(&place.join("wheels"), "other", "2");
    let index = ["--dry-run", "index", "--wheels", "wheels", "--out"];
    let (message, succeeds) = run_for_json(place, &[&index[..], &["index"]].concat());
    assert!(succeeds && message == serde_json::json!({ "index": "index", "wheels": 2 }), "{message}");
    assert_eq!(listed_count(&directory), 1);
    assert!(
        refusal_of(place, &[&index[..], &["wheels"]].concat())
            .contains("found `other-1-py3-none-any.whl` in it")
    );
    let (message, succeeds) = run_for_json(place, &["--dry-run", "serve", "index", "--port", "0"]);
    assert!(succeeds && message["address"].as_str().is_some_and(|it| it.ends_with("/simple/")), "{message}");
    assert!(
        refusal_of(place, &["--dry-run", "serve", "wheels", "--port", "0"]).contains("expected an index")
    );
    let (message, succeeds) = run_for_json(place, &["--dry-run", "pages", "--era", "2.3.2"]);
    assert!(succeeds && message["pages"].as_array().is_some_and(|pages| pages.len() == 9), "{message}");
    assert_eq!(file_names(place), ["index", "wheels"]);
}

#[test]
fn what_is_missing_stops_a_complete_index() {
    let directory = indexed_wheel();
    let index = ["index", "--wheels", "wheels", "--out", "index", "--complete"];
    let message = refusal_of(directory.path(), &index);
    assert!(
        message.starts_with("`wheels`: expected every wheel of the matrix, found none of `oarlock-"),
        "{message}"
    );
    assert!(!message.contains("rocm"), "{message}");
}

#[test]
fn pages_lead_to_the_host_that_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let host = "http://mirror.example/wheels/";
    run_for_json(directory.path(), &["pages", "--era", "2.3.2", "--host", host]);
    let page = std::fs::read_to_string(directory.path().join("dist/whl/rocm/develop.html")).expect("a page");
    assert!(
        page.contains("href=\"http://mirror.example/wheels/develop/linux/rocm/paddlepaddle_rocm-"),
        "{page}"
    );
}

#[test]
fn a_matrix_without_pages_writes_none_and_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let message = refusal_of(directory.path(), &["pages"]);
    assert!(message.starts_with("expected a matrix with pages, found none in it"), "{message}");
}

#[test]
fn a_row_that_there_is_not_is_answered_with_those_that_look_like_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let build = |row| refusal_of(directory.path(), &["--dry-run", "build", "--row", row]);
    assert_eq!(build("Opencl"), "expected a row of the matrix, found `Opencl`; did you mean `OpenCL`");
    assert_eq!(
        build("cuda 12"),
        "expected a row of the matrix, found `cuda 12`; did you mean `CUDA 12` or `CUDA 13`"
    );
    assert!(build("abacus").starts_with("expected a row of the matrix, one of core; "));
}

#[test]
fn a_dry_run_promises_no_wheel_that_cannot_be_built() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    for era in ["1.5", "2.2.1", "2.3.2"] {
        for dry in [&["--dry-run"][..], &[]] {
            let message = refusal_of(root, &[dry, &["build", "--era", era]].concat());
            assert!(message.ends_with("found none; what others published cannot be built here"), "{message}");
        }
    }
    let own = oarlock_matrix::OWN_MATRIX;
    for (parts, words) in [
        ("\"opencl\", \"mkl\"", "found opencl, mkl"),
        ("\"cpu\", \"core\"", "found `core` among them"),
        ("\"command\"", "found `command` among them"),
        ("", "found none; what others"),
    ] {
        let matrix = own.replacen("parts = [\"opencl\"]", &format!("parts = [{parts}]"), 1);
        std::fs::write(place.join("matrix.toml"), matrix).expect("a file");
        let file = place.join("matrix.toml").display().to_string();
        let message = refusal_of(root, &["--dry-run", "build", "--matrix", &file, "--row", "OpenCL"]);
        assert!(
            message.starts_with("expected `parts` of `OpenCL` in the matrix") && message.contains(words),
            "{message}"
        );
    }
    let message = refusal_of(place, &["--dry-run", "build", "--row", "OpenCL"]);
    assert!(message.ends_with("expected the root of the sources of Oarlock"), "{message}");
    let (message, succeeds) = run_for_json(root, &["--dry-run", "build", "--row", "OpenCL"]);
    assert!(succeeds && message["wheels"].as_array().is_some_and(|wheels| wheels.len() == 1), "{message}");
}

#[test]
fn who_stops_reading_stops_nothing_else() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut child = Command::new(env!("CARGO_BIN_EXE_oarlock-pack"))
        .args(["pages", "--era", "2.3.2", "--out"])
        .arg(directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command");
    drop(child.stdout.take());
    let message = child.wait_with_output().expect("the command");
    assert!(message.status.success(), "{}", String::from_utf8_lossy(&message.stderr));
    let pages = oarlock_matrix::WheelMatrix::historical("2.3.2").expect("an era").pages.len();
    let mut left = vec![directory.path().to_owned()];
    let mut found = 0;
    while let Some(place) = left.pop() {
        for entry in std::fs::read_dir(place).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { left.push(path) } else { found += 1 }
        }
    }
    assert_eq!(found, pages, "all pages are written");
}

#[test]
fn a_key_is_made_where_a_directory_is_and_one_that_others_may_read_is_warned_of() {
    let directory = tempfile::tempdir().expect("a directory");
    let nowhere = ["apt-key", "new", "--dry-run", "--out", "nowhere/my.key"];
    assert!(refusal_of(directory.path(), &nowhere).contains("expected the directory `nowhere`, found none"));
    let (made, succeeds) = run_for_json(directory.path(), &["apt-key", "new", "--out", "my.key"]);
    assert!(succeeds, "{made}");
    let warned = |mode: u32| {
        let key = directory.path().join("my.key");
        std::fs::set_permissions(key, std::fs::Permissions::from_mode(mode)).expect("a mode");
        let mut command = Command::new(env!("CARGO_BIN_EXE_oarlock-pack"));
        command.args(["apt-repo", "none.deb", "--key", "my.key", "--dry-run"]).current_dir(directory.path());
        let message = command.output().expect("the command").stderr;
        String::from_utf8_lossy(&message).contains("others may read this secret key")
    };
    assert!(warned(0o644) && !warned(0o600));
}

#[test]
fn a_shell_is_told_of_every_command() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oarlock-pack"));
    let script = command.args(["completions", "bash"]).output().expect("the command").stdout;
    let script = String::from_utf8(script).expect("a text");
    assert!(script.contains("complete -F ") && script.contains("apt-repo"), "{script}");
}

#[test]
fn an_architecture_has_the_packages_of_the_parts_that_are_built_for_it() {
    let plan = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_oarlock-pack"));
        command.args(["deb", "--dry-run"]).args(arguments).current_dir("..").output().expect("the command")
    };
    let planned = |architecture: &str| {
        let text = String::from_utf8(plan(&["--architecture", architecture]).stdout).expect("text");
        let names = text.lines().filter_map(|line| line.strip_prefix("would write "));
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(planned("amd64").contains(&"oarlock-plugin-cpu-noavx".to_owned()));
    assert_eq!(
        planned("arm64"),
        [
            "liboarlock1",
            "liboarlock-dev",
            "oarlock",
            "oarlock-plugin-cpu",
            "python3-oarlock",
            "oarlock-device-sdk"
        ]
    );
    let refusal = |arguments: &[&str]| String::from_utf8(plan(arguments).stderr).expect("text");
    let error = refusal(&["--architecture", "arm64", "oarlock-plugin-cuda12"]);
    assert!(error.contains("expected a package for arm64, one of liboarlock1, "), "{error}");
    assert!(error.contains("; found `oarlock-plugin-cuda12`"), "{error}");
    assert!(refusal(&["--architecture", "x86"]).contains("one of amd64, arm64; found `x86`"));
}
