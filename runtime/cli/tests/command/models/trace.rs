//! `oarlock trace`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::user_with_models;

#[test]
fn a_trace_has_a_row_for_the_host_and_one_for_each_device_with_arrows_between() {
    let user = user_with_models();
    let outcome =
        user.run_command(&["trace", "pair.onnx", "-o", "t.json", "--repeat", "2", "--shape", "n=8"]);
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    assert!(
        outcome.out.contains("2 runs of 2 steps in ") && outcome.out.contains("`t.json`"),
        "{}",
        outcome.out
    );
    let trace: Value =
        serde_json::from_str(&std::fs::read_to_string(user.home.path().join("t.json")).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let rows: BTreeMap<u64, &str> = events
        .iter()
        .filter(|event| event["name"] == "thread_name")
        .map(|event| (event["tid"].as_u64().unwrap(), event["args"]["name"].as_str().unwrap()))
        .collect();
    assert_eq!(rows.into_values().collect::<Vec<_>>(), ["host", "cpu:0"]);
    let spans: Vec<&Value> = events.iter().filter(|event| event["ph"] == "X").collect();
    assert!(spans.iter().all(|span| span["dur"].as_f64().unwrap() >= 0.0), "{spans:?}");
    let on_device: Vec<&str> =
        spans.iter().filter(|span| span["tid"] == 1).filter_map(|span| span["name"].as_str()).collect();
    assert_eq!(on_device, ["Add SUM", "Cast SUM/ROUNDED", "Add SUM", "Cast SUM/ROUNDED"]);
    let add = spans.iter().find(|span| span["name"] == "Add SUM").unwrap();
    assert_eq!(add["args"]["inputs"][0], "a: f32 [8]");
    assert_eq!(add["args"]["bytes"], 96);
    let arrows = |phase: &str| -> Vec<u64> {
        events
            .iter()
            .filter(|event| event["ph"] == phase)
            .map(|event| event["id"].as_u64().unwrap())
            .collect()
    };
    assert_eq!((arrows("s"), arrows("f")), (vec![1, 2, 3, 4], vec![1, 2, 3, 4]));
    for name in ["read the model", "optimize", "first run", "run 2", "launch Add", "wait"] {
        assert!(spans.iter().any(|span| span["name"] == name), "{name}");
    }
}

#[test]
fn the_steps_of_a_branch_are_told_within_it() {
    let user = user_with_models();
    let model = super::model_builder::ModelBuilder::new()
        .with_input("c: bool[]")
        .with_input("x: f32[4]")
        .with_branches(["Relu(x)", "Neg(x)"]);
    user.write_file("choice.onnx", &model.with_output("y: f32[4]").into_bytes());
    let call = ["choice.onnx", "-i", "c=bool:true", "-i", "x=f32:[1,-2,3,-4]"];
    let outcome = user.run_command(&[&["trace", "-o", "t.json"], &call[..]].concat());
    assert!(outcome.out.contains("1 run of 2 steps in "), "{}{}", outcome.out, outcome.err);
    let trace: Value =
        serde_json::from_str(&std::fs::read_to_string(user.home.path().join("t.json")).unwrap()).unwrap();
    let span = |name: &str| {
        let event = trace["traceEvents"].as_array().unwrap().iter().find(|event| event["name"] == name);
        let event = event.unwrap_or_else(|| panic!("`{name}` in {trace}"));
        let begin = event["ts"].as_f64().unwrap();
        (begin, begin + event["dur"].as_f64().unwrap())
    };
    let ((from, to), (begin, end)) = (span("If Y"), span("Relu MADE"));
    assert!(from <= begin && end <= to, "{from} {begin} {end} {to}");

    let profile = user.run_command(&[&["bench", "--repeat", "3", "--json"], &call[..]].concat()).parse_json();
    let ops: Vec<&Value> = profile["ops"].as_array().unwrap().iter().map(|row| &row["op"]).collect();
    assert!(ops.contains(&&"Relu".into()) && ops.contains(&&"If".into()), "{profile}");
    let relu = profile["steps"].as_array().unwrap().iter().find(|row| row["op"] == "Relu").unwrap();
    assert_eq!((&relu["within"], &relu["count"]), (&"Y".into(), &1.into()));
}

#[test]
fn an_unwritable_trace_file_is_reported() {
    let outcome = user_with_models().run_command(&["trace", "pair.onnx", "-o", "nowhere/t.json"]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.err.contains("`nowhere/t.json`: expected to write to it"), "{}", outcome.err);
}
