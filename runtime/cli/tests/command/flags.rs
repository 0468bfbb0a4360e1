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
fn a_variable_that_makes_no_sense_is_an_error_that_names_it() {
    let outcome = run(&["flags"], &[("OARLOCK_DETERMINISTIC", "perhaps")]);
    assert_eq!(outcome.status, 1);
    assert_eq!(
        outcome.err,
        "error: expected `OARLOCK_DETERMINISTIC` to be `true` or `false`, found `perhaps`\n"
    );
}
