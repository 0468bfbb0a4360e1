//! `oarlock check`.

use super::model_builder::ModelBuilder;
use super::user_with_models;

#[test]
fn a_model_that_some_device_can_run_is_well() {
    let outcome = user_with_models().run_command(&["check", "pair.onnx", "--shape", "n=5"]);
    let expected = "`pair.onnx` is valid: ONNX, IR 8, 2 nodes, 0 B of weights\n\n\
                    cpu:0 runs all of it, 2 nodes\n\n\
                    It can be run, as with `-d cpu:0`\n";
    assert_eq!((outcome.status, outcome.out.as_str(), outcome.err.as_str()), (0, expected, ""));
}

#[test]
fn what_no_device_can_run_is_named_and_is_an_error() {
    let user = user_with_models();
    let outcome = user.run_command(&["check", "foreign.onnx"]);
    assert_eq!(outcome.status, 1);
    assert!(
        outcome.out.contains("cpu:0 runs 1 of 2 nodes, and not\n  `acme.Magic` (1 node, such as `Y`): "),
        "{}",
        outcome.out
    );
    assert!(
        outcome.out.ends_with("No device here can run it, not with the help of the CPU either\n"),
        "{}",
        outcome.out
    );
    let report = user.run_command(&["check", "foreign.onnx", "--json"]).parse_json();
    assert_eq!((&report["valid"], &report["runnable"]), (&true.into(), &false.into()));
    let device = &report["devices"][0];
    assert_eq!(
        (&device["device"], &device["runs"], &device["nodes"]),
        (&"cpu:0".into(), &1.into(), &2.into())
    );
    assert_eq!(device["refused"][0]["nodes"], serde_json::json!(["Y"]));
}

#[test]
fn what_is_no_model_is_told_to_people_and_programs() {
    let user = user_with_models();
    user.write_file("text.onnx", b"no model");
    for more in [&[][..], &["--json"]] {
        let outcome = user.run_command(&[&["check", "text.onnx"], more].concat());
        assert_eq!(outcome.status, 1);
        if more.is_empty() {
            assert!(outcome.err.starts_with("error: `text.onnx`: expected an ONNX model"), "{}", outcome.err);
        } else {
            assert_eq!(outcome.parse_json()["valid"], false);
            assert!(outcome.parse_json()["problem"].as_str().unwrap().contains("expected an ONNX model"));
        }
    }
}

#[test]
fn a_wrong_declared_output_dtype_is_reported_without_running() {
    let user = user_with_models();
    user.write_file(
        "lie.onnx",
        &ModelBuilder::new()
            .with_input("x: f32[2]")
            .with_node("y = Relu(x)")
            .with_output("y: i64[2]")
            .into_bytes(),
    );
    for command in ["check", "run"] {
        let outcome =
            user.run_command(&[command, "lie.onnx", "--random", "1"][..if command == "run" { 4 } else { 2 }]);
        assert_eq!(outcome.status, 1, "{command}");
        let message = "expected i64, as the model says, found that its nodes make f32";
        assert!(outcome.err.contains(message), "{command}: {}", outcome.err);
    }
}

#[test]
fn shapes_that_do_not_fit_together_are_found_without_running() {
    let user = user_with_models();
    let model = ModelBuilder::new()
        .with_input("a: f32[2]")
        .with_input("b: f32[3]")
        .with_node("y = Add(a, b)")
        .with_output("y: f32[2]");
    user.write_file("apart.onnx", &model.into_bytes());
    let outcome = user.run_command(&["check", "apart.onnx"]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.err.contains("found [2] and [3]") && outcome.err.contains("`Y`"), "{}", outcome.err);
}

#[test]
fn a_cycle_is_no_model() {
    let user = user_with_models();
    let model = ModelBuilder::new()
        .with_input("x: f32[2]")
        .with_node("a = Add(x, b)")
        .with_node("b = Relu(a)")
        .with_output("b: f32[2]");
    user.write_file("cycle.onnx", &model.into_bytes());
    let outcome = user.run_command(&["check", "cycle.onnx"]);
    assert_eq!((outcome.status, outcome.out.as_str()), (1, ""));
    assert!(outcome.err.starts_with("error: `cycle.onnx`"), "{}", outcome.err);
}
