//! Models on a device that can run only a part of them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::model_builder::ModelBuilder;
use super::user_with_models;
use crate::user::TestUser;

/// A user with a plugin that has a kernel for `Add` and none for `Cast`.
fn user_with_plugin() -> TestUser {
    let user = user_with_models();
    user.compile_template("libcustom_cpu.so");
    user
}

const DEVICE_ARGUMENTS: [&str; 4] = ["--plugin", "libcustom_cpu.so", "-d", "CustomCPU"];
const INPUT_ARGUMENTS: [&str; 4] = ["-i", "a=f32:[1,2]", "-i", "b=f32:[1,1]"];

#[test]
fn each_node_runs_on_the_first_device_that_can() {
    let user = user_with_plugin();
    let outcome = user.run_command(
        &[&["run", "pair.onnx"], &DEVICE_ARGUMENTS[..], &["-d", "cpu"], &INPUT_ARGUMENTS].concat(),
    );
    assert_eq!((outcome.status, outcome.err.as_str()), (0, ""));
    assert!(outcome.out.contains("[2.0, 3.0]") && outcome.out.contains("[2, 3]"), "{}", outcome.out);
    let report =
        user.run_command(&[&["explain", "pair.onnx", "--json"], &DEVICE_ARGUMENTS[..]].concat()).parse_json();
    let nodes = report["nodes"].as_array().unwrap();
    let place = |op: &str| nodes.iter().find(|node| node["op"] == op).unwrap();
    assert_eq!((&place("Add")["device"], &place("Cast")["device"]), (&"CustomCPU:0".into(), &"cpu:0".into()));
    let why = place("Cast")["why"].as_str().unwrap();
    assert!(why.contains("not `CustomCPU:0`: expected a kernel"), "{why}");
}

/// The note for a device that can run one node of two.
const FALLBACK_NOTE: &str = "note: 1 of the 2 nodes that take a kernel runs on `cpu:0`, as `CustomCPU:0` has no kernel for `Cast`; \
                    `oarlock explain pair.onnx -d CustomCPU` says why for each node\n";

#[test]
fn what_the_cpu_runs_for_a_device_is_one_line_beside_the_data_and_a_field_for_programs() {
    let user = user_with_plugin();
    for command in
        [&["run", "pair.onnx"][..], &["bench", "pair.onnx", "--repeat", "10"], &["trace", "pair.onnx"]]
    {
        let call = [command, &DEVICE_ARGUMENTS[..], &INPUT_ARGUMENTS].concat();
        let outcome = user.run_command(&call);
        assert_eq!((outcome.status, outcome.err.as_str()), (0, FALLBACK_NOTE), "{command:?}");
        let outcome = user.run_command(&[&call[..], &["--json"]].concat());
        assert_eq!(outcome.err, FALLBACK_NOTE, "{command:?}");
        let fallback = &outcome.parse_json()["fallback"];
        assert_eq!((&fallback["nodes"], &fallback["of"]), (&1.into(), &2.into()));
        assert_eq!(fallback["cpu_named"], false);
        assert_eq!(fallback["devices"], json!({ "CustomCPU:0": 1, "cpu:0": 1 }));
        let op = &fallback["ops"][0];
        assert_eq!((&op["op"], &op["count"], &op["missing"]), (&"Cast".into(), &1.into(), &"op".into()));
        assert!(op["reason"].as_str().unwrap().starts_with("expected a kernel for this device"), "{op}");
    }
}

#[test]
fn a_cpu_that_is_named_runs_the_rest_without_a_word_but_for_programs() {
    let user = user_with_plugin();
    let devices = ["--plugin", "libcustom_cpu.so", "-d", "CustomCPU,cpu"];
    let outcome =
        user.run_command(&[&["run", "pair.onnx", "--json"], &devices[..], &INPUT_ARGUMENTS].concat());
    assert_eq!((outcome.status, outcome.err.as_str()), (0, ""));
    let fallback = &outcome.parse_json()["fallback"];
    assert_eq!((&fallback["nodes"], &fallback["cpu_named"]), (&1.into(), &true.into()));
}

#[test]
fn a_model_obeys_the_flag_that_lets_the_cpu_run_nothing_and_explain_shows_it_all_the_same() {
    let user = user_with_plugin();
    let call = |words: &[&str]| {
        let set = ["--set", "kernel_fallback=error"];
        user.run_command(&[&words[..1], &["pair.onnx"], &DEVICE_ARGUMENTS[..], &set, &words[1..]].concat())
    };
    let outcome = call(&[&["run"], &INPUT_ARGUMENTS[..]].concat());
    assert_eq!((outcome.status, outcome.out.as_str()), (1, ""));
    let message = "expected kernels of `CustomCPU:0` for all nodes that take one, found none for 1 of 2: `Cast` (`SUM/ROUNDED`)";
    assert!(outcome.err.starts_with(&format!("error: {message}\n")), "{}", outcome.err);
    assert!(
        outcome.err.contains("name `cpu` as the last device, or set `kernel_fallback=models`"),
        "{}",
        outcome.err
    );
    let outcome = call(&["explain"]);
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    assert!(outcome.out.contains("not `CustomCPU:0`: expected a kernel"), "{}", outcome.out);
    assert_eq!(
        outcome.err,
        format!("note: a run fails, as the flag `kernel_fallback` is `error`: {message}\n")
    );
    let checked = call(&["check"]);
    assert_eq!(checked.status, 1, "{}", checked.out);
    assert!(checked.err.contains("a device that lacks kernels cannot run the model"), "{}", checked.err);
    assert!(
        checked.out.ends_with("No device here can run all of it, and the CPU may not help\n"),
        "{}",
        checked.out
    );
    let helped = call(&["check", "-d", "cpu"]);
    assert_eq!((helped.status, helped.err.as_str()), (0, ""));
    let outcome = call(&[&["run", "-d", "cpu"], &INPUT_ARGUMENTS[..]].concat());
    assert_eq!((outcome.status, outcome.err.as_str()), (0, ""));
}

#[test]
fn a_call_that_a_device_refuses_in_the_run_falls_back_as_other_nodes_do() {
    let user = user_with_plugin();
    // `Add` has a kernel there, but not for bytes, and their number is known only during the run.
    let model =
        ModelBuilder::new().with_input("x: f32[4]").with_output("y: u8[…]").with_node("i = NonZero(x)");
    let model = model.with_attributed_node("c = Cast(i)", &[("to", 2)]).with_node("y = Add(c, c)");
    user.write_file("later.onnx", &model.into_bytes());
    let call = ["run", "later.onnx", "-i", "x=f32:[0,1,1,0]", "--json"];
    let outcome = user.run_command(&[&call[..], &DEVICE_ARGUMENTS].concat());
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    assert!(outcome.err.contains("`Add` has no kernel on `CustomCPU:0` for this call"), "{}", outcome.err);
    let report = outcome.parse_json();
    assert_eq!(report["outputs"][0]["shape"], json!([1, 2]));
    let calls = &report["fallback"]["in_the_run"][0];
    assert_eq!((&calls["op"], &calls["device"]), (&"Add".into(), &"CustomCPU:0".into()));
    assert_eq!(calls["calls"], 1);
    let named = user.run_command(&[&call[..], &DEVICE_ARGUMENTS, &["-d", "cpu"]].concat());
    assert_eq!((named.status, named.err.as_str()), (0, ""));
    let refused =
        user.run_command(&[&call[..], &DEVICE_ARGUMENTS, &["--set", "kernel_fallback=error"]].concat());
    assert_eq!(refused.status, 1, "{}", refused.err);
}

#[test]
fn what_a_device_cannot_run_is_named_with_who_can() {
    let outcome = user_with_plugin().run_command(&[&["check", "pair.onnx"], &DEVICE_ARGUMENTS[..]].concat());
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    assert!(
        outcome.out.contains("CustomCPU:0 runs 1 of 2 nodes, and not\n  `Cast` (1 node, such as "),
        "{}",
        outcome.out
    );
    assert!(outcome.out.contains("; the CPU can\n"), "{}", outcome.out);
    assert!(
        outcome.out.ends_with("It can be run, as with `-d CustomCPU:0`; the CPU runs 1 of 2 nodes\n"),
        "{}",
        outcome.out
    );
}

#[test]
fn a_device_that_is_named_twice_is_one() {
    let call = ["run", "product.onnx", "-i", "x=f32:[[1,2,3]]", "--json", "-d", "cpu,cpu:0", "-d", "cpu"];
    assert_eq!(user_with_models().run_command(&call).parse_json()["devices"], serde_json::json!(["cpu:0"]));
}

#[test]
fn a_trace_and_a_benchmark_tell_devices_apart() {
    let user = user_with_plugin();
    let traced = user.run_command(
        &[&["trace", "pair.onnx", "-o", "t.json"], &DEVICE_ARGUMENTS[..], &INPUT_ARGUMENTS].concat(),
    );
    assert_eq!(traced.status, 0, "{}", traced.err);
    let text = std::fs::read_to_string(user.home.path().join("t.json")).unwrap();
    let trace: Value = serde_json::from_str(&text).unwrap();
    let on: BTreeSet<(&str, u64)> = trace["traceEvents"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["args"]["kernel"].is_string())
        .map(|event| (event["cat"].as_str().unwrap(), event["tid"].as_u64().unwrap()))
        .collect();
    assert!(on.contains(&("Add", 1)) && on.contains(&("Cast", 2)), "{on:?}");
    let bench = user.run_command(
        &[&["bench", "pair.onnx", "--repeat", "10"], &DEVICE_ARGUMENTS[..], &INPUT_ARGUMENTS].concat(),
    );
    assert_eq!(bench.status, 0, "{}", bench.err);
    for row in ["Add on CustomCPU:0", "Cast on cpu:0"] {
        assert!(bench.out.contains(row), "{row} in {}", bench.out);
    }
}
