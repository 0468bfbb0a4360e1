//! `oarlock flags`.

use crate::user::{TestOutcome, TestUser};

fn run_flags(arguments: &[&str], variables: &[(&str, &str)]) -> TestOutcome {
    let user = TestUser::new();
    let output =
        user.oarlock_command(arguments).envs(variables.iter().copied()).output().expect("the command starts");
    let text = |bytes| String::from_utf8(bytes).expect("the command writes UTF-8");
    let status = output.status.code().expect("the command ends of itself");
    TestOutcome { status, out: text(output.stdout), err: text(output.stderr) }
}

#[test]
fn a_flag_is_shown_with_all_there_is_to_know() {
    insta::assert_snapshot!("flag", run_flags(&["flags", "allocator_strategy"], &[]).to_snapshot());
}

#[test]
fn every_flag_is_listed_once() {
    let flags = run_flags(&["flags", "--json"], &[]).parse_json();
    let names: Vec<&str> =
        flags.as_array().unwrap().iter().filter_map(|flag| flag["name"].as_str()).collect();
    assert!(names.contains(&"deterministic") && names.is_sorted(), "{names:?}");
    let shown = run_flags(&["flags"], &[]).out;
    let headings: Vec<&str> =
        shown.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name).collect();
    assert_eq!(headings, names);
}

#[test]
fn the_environment_sets_flags_by_name_and_by_alias() {
    let variables =
        [("OARLOCK_THREADS", "3"), ("FLAGS_check_nan_inf", "True"), ("PADDLE_INF_NAN_SKIP_OP", "a,b")];
    let flags = run_flags(&["flags", "--json"], &variables).parse_json();
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
        let shown = run_flags(&["flags", name], &[]).out;
        assert!(shown.starts_with("threads = 0\n") && shown.matches(" = ").count() == 1, "{name}: {shown}");
    }
}

#[test]
fn a_name_of_no_flag_is_an_error_with_the_nearest() {
    let outcome = run_flags(&["flags", "determinstic"], &[]);
    assert_eq!((outcome.status, outcome.out.as_str()), (1, ""));
    assert!(outcome.err.contains("did you mean `deterministic`?"), "{}", outcome.err);
}

#[test]
fn a_slip_in_the_name_of_a_variable_is_a_warning_with_the_nearest() {
    let variables = [("OARLOCK_DETERMINSTIC", "1")];
    for command in [["flags", "deterministic"].as_slice(), &["devices"], &["op", "Relu", "f32:[1]"]] {
        let outcome = run_flags(command, &variables);
        assert_eq!(outcome.status, 0, "{command:?}: {}", outcome.err);
        let message = "warning: the environment variable `OARLOCK_DETERMINSTIC` has no effect here; did you mean \
                    `OARLOCK_DETERMINISTIC`?\n";
        assert_eq!(outcome.err, message, "{command:?}");
    }
}

#[test]
fn variables_of_paddle_without_effect_are_told_once_each_with_what_to_use() {
    let variables = [("FLAGS_selected_gpus", "0"), ("PADDLE_TRAINER_ID", "1"), ("FLAGS_chek_nan_inf", "1")];
    for command in [["flags", "threads"].as_slice(), &["plugins"], &["kernels"], &["op", "Relu", "f32:[1]"]] {
        let outcome = run_flags(command, &variables);
        assert_eq!(outcome.status, 0, "{command:?}: {}", outcome.err);
        let message = [
            "warning: the environment variable `FLAGS_chek_nan_inf` has no effect here; did you mean \
             `FLAGS_check_nan_inf`?",
            "warning: the environment variable `FLAGS_selected_gpus` has no effect here; choose devices with \
             `-d cuda:0`, `set_device(\"cuda:0\")` or `CUDA_VISIBLE_DEVICES`",
            "warning: the environment variable `PADDLE_TRAINER_ID` has no effect here; Oarlock runs in one process, \
             which talks to no others; a program that is started several times divides its work itself",
        ];
        assert_eq!(outcome.err.lines().collect::<Vec<_>>(), message, "{command:?}");
    }
}

#[test]
fn only_paddle_variables_without_effect_are_reported() {
    let rows = run_flags(&["flags", "--paddle", "--json"], &[]).parse_json();
    let names = |sets: bool| -> Vec<&str> {
        let rows = rows.as_array().unwrap().iter().filter(|row| row["sets"].is_null() != sets);
        rows.map(|row| row["name"].as_str().unwrap()).collect()
    };
    let (effective, others) = (names(true), names(false));
    assert!(effective.len() >= 15 && others.len() >= 64, "{effective:?} {others:?}");
    let ignored: Vec<(&str, &str)> = others.iter().map(|name| (*name, "1")).collect();
    let message = run_flags(&["devices"], &ignored).err;
    let of = |line: &str| line.split('`').nth(1).map(str::to_owned);
    let mut warned: Vec<String> = message.lines().filter_map(of).collect();
    assert!(message.lines().all(|line| line.starts_with("warning: the environment variable `")), "{message}");
    warned.sort();
    assert_eq!(warned, others);
}

#[test]
fn variables_of_paddle_are_listed_with_what_they_do() {
    let listed = run_flags(&["flags", "--paddle"], &[]).out;
    let is_name = |line: &&str| !line.is_empty() && !line.starts_with(' ');
    let names: Vec<&str> = listed.lines().filter(is_name).collect();
    assert!(names.is_sorted() && names.contains(&"FLAGS_selected_gpus"), "{names:?}");
    let variables = [("FLAGS_use_mkldnn", "1")];
    insta::assert_snapshot!(
        "paddle_variable",
        run_flags(&["flags", "--paddle", "use_mkldnn"], &variables).to_snapshot()
    );
    let alias = run_flags(&["flags", "--paddle", "FLAGS_paddle_num_threads", "--json"], &[]).parse_json();
    assert_eq!((alias[0]["sets"].as_str(), alias[0]["instead"].as_str()), (Some("threads"), None));
}

#[test]
fn a_name_that_has_no_effect_is_an_error_that_says_what_to_use() {
    for arguments in [["flags", "FLAGS_rpc_deadline"], ["flags", "rpc_deadline"]] {
        let outcome = run_flags(&arguments, &[]);
        assert_eq!((outcome.status, outcome.out.as_str()), (1, ""));
        let message = "hint: it has no effect here; Oarlock has no parameter servers and no RPC\n";
        assert!(outcome.err.ends_with(message), "{}", outcome.err);
    }
}

#[test]
fn a_wrong_value_of_a_flag_is_an_error_of_every_command_that_starts_plugins() {
    for command in
        [["devices"].as_slice(), &["plugins"], &["kernels"], &["doctor"], &["op", "Relu", "f32:[1]"]]
    {
        let outcome = run_flags(command, &[("FLAGS_check_nan_inf", "maybe")]);
        assert_eq!(outcome.status, 1, "{command:?}: {}", outcome.out);
        let message = "error: expected `FLAGS_check_nan_inf` to be `true` or `false`, found `maybe`\n";
        assert_eq!(outcome.err, message, "{command:?}");
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
    assert_eq!(run_flags(&["flags"], &variables).err, "");
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let outcome = run_flags(&["flags", "deterministic"], &[("OARLOCK_DETERMINISTIC", "")]);
    assert_eq!((outcome.status, outcome.err.as_str()), (0, ""));
    assert!(outcome.out.contains("deterministic = false\n"), "{}", outcome.out);
}

#[test]
fn a_value_that_is_not_utf8_is_an_error_that_names_the_variable() {
    use std::os::unix::ffi::OsStrExt as _;
    let user = TestUser::new();
    let value = std::ffi::OsStr::from_bytes(b"cp\xff");
    let output = user.oarlock_command(&["flags"]).env("OARLOCK_DEVICE", value).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("expected `OARLOCK_DEVICE` to be text in UTF-8"), "{message}");
}

#[test]
fn a_variable_that_makes_no_sense_is_an_error_that_names_it() {
    let outcome = run_flags(&["flags"], &[("OARLOCK_DETERMINISTIC", "perhaps")]);
    assert_eq!(outcome.status, 1);
    assert_eq!(
        outcome.err,
        "error: expected `OARLOCK_DETERMINISTIC` to be `true` or `false`, found `perhaps`\n"
    );
}
