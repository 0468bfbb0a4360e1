//! `oarlock flags`.

use crate::user::{Outcome, User};

fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Outcome {
    let user = User::new();
    let output =
        user.command(arguments).envs(variables.iter().copied()).output().expect("the command starts");
    let text = |bytes| String::from_utf8(bytes).expect("the command writes UTF-8");
    let status = output.status.code().expect("the command ends of itself");
    Outcome { status, out: text(output.stdout), err: text(output.stderr) }
}

#[test]
fn a_flag_is_shown_with_all_there_is_to_know() {
    insta::assert_snapshot!("flag", run(&["flags", "allocator_strategy"], &[]).all());
}

#[test]
fn every_flag_is_listed_once() {
    let flags = run(&["flags", "--json"], &[]).json();
    let names: Vec<&str> =
        flags.as_array().unwrap().iter().filter_map(|flag| flag["name"].as_str()).collect();
    assert!(names.contains(&"deterministic") && names.is_sorted(), "{names:?}");
    let shown = run(&["flags"], &[]).out;
    let headings: Vec<&str> =
        shown.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name).collect();
    assert_eq!(headings, names);
}

#[test]
fn the_environment_sets_flags_by_name_and_by_alias() {
    let variables =
        [("OARLOCK_THREADS", "3"), ("FLAGS_check_nan_inf", "True"), ("PADDLE_INF_NAN_SKIP_OP", "a,b")];
    let flags = run(&["flags", "--json"], &variables).json();
    let of = |name: &str| {
        let flag = flags.as_array().unwrap().iter().find(|flag| flag["name"] == name).unwrap();
        (flag["value"].to_string(), flag["source"].as_str().unwrap().to_owned())
    };
    assert_eq!(of("threads"), ("3".to_owned(), "OARLOCK_THREADS".to_owned()));
    assert_eq!(of("check_nan_inf"), ("true".to_owned(), "FLAGS_check_nan_inf".to_owned()));
    assert_eq!(of("check_nan_inf_skip_ops").0, "[\"a\",\"b\"]");
    assert_eq!(of("device"), ("\"\"".to_owned(), "default".to_owned()));
}

#[test]
fn a_flag_is_found_by_every_name_it_has() {
    for name in ["threads", "OARLOCK_THREADS", "FLAGS_paddle_num_threads", "paddle_num_threads"] {
        let shown = run(&["flags", name], &[]).out;
        assert!(shown.starts_with("threads = 0\n") && shown.matches(" = ").count() == 1, "{name}: {shown}");
    }
}

#[test]
fn a_name_of_no_flag_is_an_error_with_the_nearest() {
    let outcome = run(&["flags", "determinstic"], &[]);
    assert_eq!((outcome.status, outcome.out.as_str()), (1, ""));
    assert!(outcome.err.contains("did you mean `deterministic`?"), "{}", outcome.err);
}

#[test]
fn a_slip_in_the_name_of_a_variable_is_a_warning_with_the_nearest() {
    let variables = [("OARLOCK_DETERMINSTIC", "1")];
    for command in [["flags", "deterministic"].as_slice(), &["devices"], &["op", "Relu", "f32:[1]"]] {
        let outcome = run(command, &variables);
        assert_eq!(outcome.status, 0, "{command:?}: {}", outcome.err);
        let told =
            "warning: expected variables that mean something to Oarlock, found `OARLOCK_DETERMINSTIC`\n";
        assert_eq!(outcome.err.matches(told).count(), 1, "{command:?}: {}", outcome.err);
        assert!(outcome.err.contains("did you mean `OARLOCK_DETERMINISTIC`?"), "{}", outcome.err);
    }
}

#[test]
fn variables_of_plugins_tests_and_other_programs_are_not_warned_of() {
    let variables = [
        ("OARLOCK_OPENCL_VISIBLE_DEVICES", "0"),
        ("OARLOCK_TEST_SEEDS", "1"),
        ("OARLOCK_THREADS", "1"),
        ("FLAGS_unknown", "1"),
    ];
    assert_eq!(run(&["flags"], &variables).err, "");
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let outcome = run(&["flags", "deterministic"], &[("OARLOCK_DETERMINISTIC", "")]);
    assert_eq!((outcome.status, outcome.err.as_str()), (0, ""));
    assert!(outcome.out.contains("deterministic = false\n"), "{}", outcome.out);
}

#[test]
fn a_value_that_is_not_utf8_is_an_error_that_names_the_variable() {
    use std::os::unix::ffi::OsStrExt as _;
    let user = User::new();
    let value = std::ffi::OsStr::from_bytes(b"cp\xff");
    let output = user.command(&["flags"]).env("OARLOCK_DEVICE", value).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("expected `OARLOCK_DEVICE` to be text in UTF-8"), "{told}");
}

#[test]
fn a_variable_that_makes_no_sense_is_an_error_that_names_it() {
    let outcome = run(&["flags"], &[("OARLOCK_DETERMINISTIC", "perhaps")]);
    assert_eq!(outcome.status, 1);
    assert_eq!(
        outcome.err,
        "error: expected `OARLOCK_DETERMINISTIC` to be `true` or `false`, found `perhaps`\n"
    );
}
