//! The option `--precision`.

use super::user_with_models;

const INPUT_ARGUMENTS: [&str; 2] = ["-i", "x=f32:[[1.01,2,3],[-1,-2,-3]]"];

#[test]
fn what_rounding_does_is_measured_against_f32() {
    for command in ["run", "bench"] {
        let rounded = ["--precision", "bf16", "--json"];
        let report = user_with_models()
            .run_command(&[&[command, "product.onnx"], &INPUT_ARGUMENTS[..], &rounded].concat())
            .parse_json();
        let accuracy = &report["accuracy"];
        assert_eq!(accuracy["precision"], "bf16", "{report}");
        let exact = accuracy["exact"].as_object().unwrap();
        let count = accuracy["rounded"].as_u64().unwrap();
        assert_eq!(count + exact.values().map(|count| count.as_u64().unwrap()).sum::<u64>(), 1, "{accuracy}");
        let output = &accuracy["outputs"][0];
        let difference = output["largest_difference"].as_f64().unwrap();
        assert_eq!((&output["name"], difference > 0.0), (&"y".into(), count == 1), "{accuracy}");
        assert!(difference < 0.01, "{accuracy}");
    }
}

#[test]
fn people_are_told_what_is_rounded_and_how_far_that_leads() {
    let user = user_with_models();
    let outcome = user
        .run_command(&[&["run", "product.onnx"], &INPUT_ARGUMENTS[..], &["--precision", "bf16"]].concat());
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    let notes: Vec<&str> = outcome.err.lines().collect();
    assert!(
        notes[0].starts_with("note: bf16 in ") && notes[0].ends_with(" product or convolution of f32"),
        "{notes:?}"
    );
    let last = notes.last().unwrap();
    assert!(last.starts_with("note: `y` ") && last.contains("f32"), "{notes:?}");
    let outcome = user.run_command(&["explain", "product.onnx", "--precision", "bf16"]);
    assert!(outcome.out.contains("\nprecision\n  bf16 in "), "{}", outcome.out);
    let outcome = user.run_command(&["bench", "product.onnx", "--repeat", "10", "--precision", "bf16"]);
    assert!(outcome.out.lines().any(|line| line.starts_with("precision   bf16 in ")), "{}", outcome.out);
}

#[test]
fn f32_is_f32_unless_something_else_was_allowed() {
    for precision in [&[][..], &["--precision", "f32"]] {
        let user = user_with_models();
        let report = user
            .run_command(&[&["run", "product.onnx", "--json"], &INPUT_ARGUMENTS[..], precision].concat())
            .parse_json();
        assert!(report["accuracy"].is_null(), "{report}");
        let report =
            user.run_command(&[&["explain", "product.onnx", "--json"], precision].concat()).parse_json();
        assert!(report["precision"].is_null(), "{report}");
    }
    let outcome = user_with_models().run_command(&["run", "product.onnx", "--precision", "f8"]);
    assert_eq!(outcome.status, 2);
    assert!(outcome.err.contains("[possible values: f32, bf16]"), "{}", outcome.err);
}
