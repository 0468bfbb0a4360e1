//! Messages of commands that fail.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::process::Stdio;

use crate::user::TestUser;

#[test]
fn an_unknown_command_is_answered_with_the_nearest_one() {
    let outcome = TestUser::new().run_command(&["devcies"]);
    insta::assert_snapshot!("unknown_command", outcome.to_snapshot());
}

#[test]
fn programs_are_told_what_was_not_understood() {
    let calls: &[&[&str]] = &[
        &["--json", "devcies"],
        &["run", "--json", "x.onnx", "--rnadom", "0"],
        &["--json"],
        &["op", "--json"],
    ];
    let mut message = String::new();
    for call in calls {
        let outcome = TestUser::new().run_command(call);
        assert!(outcome.status == 2 && !outcome.err.is_empty(), "{call:?} {}", outcome.err);
        message += &format!("$ oarlock {}\n{}\n", call.join(" "), outcome.out);
    }
    insta::assert_snapshot!("not_understood_json", message.trim_end());
    for call in [&["run", "x.onnx", "--rnadom", "0"][..], &["op", "Add", "--set", "--", "--json"]] {
        assert_eq!(TestUser::new().run_command(call).out, "", "{call:?}");
    }
    let helped = TestUser::new().run_command(&["run", "--json", "--help"]);
    assert!(helped.status == 0 && helped.out.starts_with("Run a model"), "{}", helped.out);
}

#[test]
fn without_a_command_there_is_help() {
    let outcome = TestUser::new().run_command(&[]);
    assert_eq!(outcome.status, 2);
    assert!(outcome.err.contains("Usage: oarlock [OPTIONS] <COMMAND>"), "{}", outcome.err);
}

#[test]
fn a_configuration_that_cannot_be_read_stops_everything() {
    let user = TestUser::new();
    insta::assert_snapshot!(
        "missing_configuration",
        user.run_command(&["--config", "nowhere.toml", "devices"]).to_snapshot()
    );
    user.write_file("wrong.toml", b"[plugins]\ndisabled = []\n");
    insta::assert_snapshot!(
        "wrong_configuration",
        user.run_command(&["--config", "wrong.toml", "devices"]).to_snapshot()
    );
}

#[test]
fn a_layer_that_is_not_there_is_told() {
    let outcome = TestUser::new().run_command(&["--layer", "trcae", "plugins"]);
    assert_eq!(outcome.status, 1);
    insta::assert_snapshot!("missing_layer", outcome.err);
}

#[test]
fn a_reader_that_stops_reading_is_no_error() {
    let user = TestUser::new();
    for arguments in [&["doctor"][..], &["completions", "bash"], &["--help"], &["devices", "--json"]] {
        let mut child =
            user.oarlock_command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!((err.as_str(), child.wait().unwrap().code()), ("", Some(0)), "{arguments:?}");
    }
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let user = TestUser::new();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = user.oarlock_command(&["devices"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&output.stderr)
            .starts_with("error: expected to write to the standard output")
    );
}

#[test]
fn the_version_says_which_contract_it_speaks() {
    assert_eq!(TestUser::new().run_command(&["--version"]).out, "oarlock 0.1.0 (contract 1.0 to 1.2)\n");
}
