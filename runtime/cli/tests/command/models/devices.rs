//! Models on a device that can do a part of them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::user;
use crate::user::User;

/// A user with a plugin that has a kernel for `Add` and none for `Cast`.
fn with_plugin() -> User {
    let user = user();
    user.template("libcustom_cpu.so");
    user
}

const DEVICE: [&str; 4] = ["--plugin", "libcustom_cpu.so", "-d", "CustomCPU"];
const INPUTS: [&str; 4] = ["-i", "a=f32:[1,2]", "-i", "b=f32:[1,1]"];

#[test]
fn each_node_runs_on_the_first_device_that_can() {
    let user = with_plugin();
    let outcome = user.run(&[&["run", "pair.onnx"], &DEVICE[..], &INPUTS].concat());
    assert_eq!((outcome.status, outcome.err.as_str()), (0, ""));
    assert!(outcome.out.contains("[2.0, 3.0]") && outcome.out.contains("[2, 3]"), "{}", outcome.out);
    let report = user.run(&[&["explain", "pair.onnx", "--json"], &DEVICE[..]].concat()).json();
    let nodes = report["nodes"].as_array().unwrap();
    let place = |op: &str| nodes.iter().find(|node| node["op"] == op).unwrap();
    assert_eq!((&place("Add")["device"], &place("Cast")["device"]), (&"CustomCPU:0".into(), &"cpu:0".into()));
    let why = place("Cast")["why"].as_str().unwrap();
    assert!(why.contains("not `CustomCPU:0`: expected a kernel"), "{why}");
}

#[test]
fn what_a_device_cannot_run_is_named_with_who_can() {
    let outcome = with_plugin().run(&[&["check", "pair.onnx"], &DEVICE[..]].concat());
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    assert!(
        outcome.out.contains("CustomCPU:0 runs 1 of 2 nodes, and not\n  `Cast` (1 node, such as "),
        "{}",
        outcome.out
    );
    assert!(outcome.out.contains("; the CPU can\n"), "{}", outcome.out);
    assert!(outcome.out.ends_with("It can be run, as with `-d CustomCPU:0`\n"), "{}", outcome.out);
}

#[test]
fn a_device_that_is_named_twice_is_one() {
    let call = ["run", "product.onnx", "-i", "x=f32:[[1,2,3]]", "--json", "-d", "cpu", "-d", "cpu:0"];
    assert_eq!(user().run(&call).json()["devices"], serde_json::json!(["cpu:0"]));
}

#[test]
fn a_trace_and_a_benchmark_tell_devices_apart() {
    let user = with_plugin();
    let traced = user.run(&[&["trace", "pair.onnx", "-o", "t.json"], &DEVICE[..], &INPUTS].concat());
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
    let bench = user.run(&[&["bench", "pair.onnx", "--repeat", "10"], &DEVICE[..], &INPUTS].concat());
    assert_eq!(bench.status, 0, "{}", bench.err);
    for row in ["Add on CustomCPU:0", "Cast on cpu:0"] {
        assert!(bench.out.contains(row), "{row} in {}", bench.out);
    }
}
