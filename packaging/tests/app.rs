//! Output of `oarlock-pack app`, validated against the Kubernetes schemas that `kubernetes-validate` includes.
//!
//! `scripts/get-installers` installs it; without it there is one ignored test that says so.

#[path = "common/trials.rs"]
mod trials;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

const TESTS: &[(&str, fn())] = &[
    ("app_jobs_pass_kubernetes_validation", app_jobs_pass_kubernetes_validation),
    ("the_schemas_notice_what_is_wrong", the_schemas_notice_what_is_wrong),
    ("files_that_are_there_are_kept", files_that_are_there_are_kept),
];

fn main() -> ExitCode {
    let missing =
        || format!("`{}` is missing: run `scripts/get-installers`", kubernetes_validator().display());
    trials::run_trials(TESTS, (!kubernetes_validator().is_file()).then(missing))
}

fn kubernetes_validator() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .with_file_name("installers")
        .join("environment/bin/kubernetes-validate")
}

fn run_app_command(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oarlock-pack"));
    command.arg("app").args(arguments).current_dir(directory);
    command.output().expect("the command")
}

/// Validates a manifest; returns the messages and whether it passed.
fn validate_manifest(file: &Path) -> (bool, String) {
    let message =
        Command::new(kubernetes_validator()).arg("--strict").arg(file).output().expect("the validator");
    let text =
        String::from_utf8_lossy(&message.stdout).into_owned() + &String::from_utf8_lossy(&message.stderr);
    (message.status.success(), text)
}

fn app_jobs_pass_kubernetes_validation() {
    for (arguments, resources) in [
        (&["train.py"][..], 1),
        (
            &["--gpus", "2", "--gpu-resource", "amd.com/gpu", "--port", "80", "train.py", "--epochs", "3"][..],
            1,
        ),
        // Words that YAML would parse as another type without quotes.
        (&["true.py"], 1),
        (&["--namespace", "123", "1e3.py"], 1),
        (&["--hosts", "4", "--gpus", "8", "--namespace", "team", "--cpu", "500m", "train.py"][..], 2),
    ] {
        let place = tempfile::tempdir().expect("a directory");
        assert!(run_app_command(place.path(), arguments).status.success());
        let (passes, message) = validate_manifest(&place.path().join("job.yaml"));
        assert!(
            passes && message.matches(" passed for resource ").count() == resources,
            "{arguments:?}: {message}"
        );
    }
}

fn the_schemas_notice_what_is_wrong() {
    let place = tempfile::tempdir().expect("a directory");
    assert!(run_app_command(place.path(), &["--hosts", "2", "train.py"]).status.success());
    let file = place.path().join("job.yaml");
    let text = std::fs::read_to_string(&file).expect("a manifest");
    for (right, wrong) in [("completionMode: ", "completions_mode: "), ("parallelism: 2", "parallelism: two")]
    {
        assert!(text.contains(right));
        std::fs::write(&file, text.replace(right, wrong)).expect("a manifest");
        let (passes, message) = validate_manifest(&file);
        assert!(!passes, "{message}");
    }
}

fn files_that_are_there_are_kept() {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::write(place.path().join("Dockerfile"), "mine").expect("a file");
    let message = run_app_command(place.path(), &["train.py"]);
    let text = String::from_utf8_lossy(&message.stderr).into_owned();
    assert!(!message.status.success() && text.contains("`--replace` writes over it"), "{text}");
    assert!(!place.path().join("job.yaml").exists(), "nothing is written then");
    assert!(run_app_command(place.path(), &["--replace", "train.py"]).status.success());
    let written = std::fs::read_to_string(place.path().join("Dockerfile")).expect("a file");
    assert!(written.contains("CMD [\"train.py\"]"), "{written}");
}
