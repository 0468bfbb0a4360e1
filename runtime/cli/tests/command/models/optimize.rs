//! `oarlock optimize`.

use std::fs;

use super::model_builder::ModelBuilder;
use super::user_with_models;

const X_INPUT: &str = "x=f32:[[1,2,3],[-1,-2,-3]]";

#[test]
fn what_is_written_gives_the_same_and_says_what_became_of_the_model() {
    let user = user_with_models();
    let outcome = user.run_command(&["optimize", "product.onnx", "-o", "ready.onnx", "--shape", "batch=2"]);
    assert_eq!((outcome.status, outcome.err.as_str()), (0, ""));
    let lines: Vec<&str> = outcome.out.lines().collect();
    assert!(lines[0].starts_with("`ready.onnx`: ") && lines[0].ends_with(" B"), "{}", outcome.out);
    assert_eq!(lines[1], "1 node, of 2 in `product.onnx`, for cpu:0");
    assert!(lines[2].starts_with("1 node is of an op, or of an opset, that only Oarlock understands"));
    assert!(lines.iter().any(|line| line.starts_with("  matrix product fusion")), "{}", outcome.out);
    let results =
        ["product.onnx", "ready.onnx"].map(|model| user.run_command(&["run", model, "-i", X_INPUT]).out);
    assert_eq!(results[0], results[1]);
    assert!(results[0].contains("y: f32 [2, 2]"), "{}", results[0]);
}

#[test]
fn a_model_that_is_plain_has_no_node_that_is_only_ours_and_a_program_is_told() {
    let user = user_with_models();
    let report =
        user.run_command(&["optimize", "product.onnx", "-o", "plain.onnx", "--plain", "--json"]).parse_json();
    assert_eq!((&report["nodes"], &report["own_nodes"]), (&2.into(), &0.into()));
    assert_eq!(report["notes"], serde_json::json!([]));
    let size = fs::metadata(user.home.path().join("plain.onnx")).unwrap().len();
    assert_eq!(report["files"], serde_json::json!([{ "file": "plain.onnx", "bytes": size }]));
    let model = user.run_command(&["explain", "plain.onnx", "--json"]).parse_json();
    assert!(model["producer"].as_str().unwrap().starts_with("oarlock "), "{model}");
}

#[test]
fn a_model_for_certain_sizes_takes_no_others() {
    let user = user_with_models();
    assert_eq!(
        user.run_command(&["optimize", "product.onnx", "-o", "two.onnx", "--shape", "batch=2"]).status,
        0
    );
    assert_eq!(user.run_command(&["run", "two.onnx", "-i", X_INPUT]).status, 0);
    let outcome = user.run_command(&["run", "two.onnx", "-i", "f32:[[1,2,3]]"]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.err.contains("expected f32[2, 3], found f32[1, 3]"), "{}", outcome.err);
    for (shape, problem) in [("x=2x4", "expected f32[batch, 3], found f32[2, 4]"), ("rows=2", "found `rows`")]
    {
        let outcome = user.run_command(&["optimize", "product.onnx", "-o", "none.onnx", "--shape", shape]);
        assert_eq!(outcome.status, 1);
        assert!(outcome.err.contains(problem), "{}", outcome.err);
        assert!(!user.home.path().join("none.onnx").exists());
    }
}

#[test]
fn a_model_may_take_the_place_of_itself() {
    let user = user_with_models();
    let before = user.run_command(&["run", "product.onnx", "-i", X_INPUT]).out;
    assert_eq!(user.run_command(&["optimize", "product.onnx", "-o", "product.onnx"]).status, 0);
    assert_eq!(user.run_command(&["run", "product.onnx", "-i", X_INPUT]).out, before);
}

#[test]
fn optional_inputs_become_constants_and_it_is_said() {
    let user = user_with_models();
    let model = ModelBuilder::new().with_input("x: f32[2]").with_input("w: f32[2]").with_weight(
        "w",
        &[2],
        &[1.0, 2.0],
    );
    user.write_file("optional.onnx", &model.with_node("y = Add(x, w)").with_output("y: f32[2]").into_bytes());
    let outcome = user.run_command(&["optimize", "optional.onnx", "-o", "fixed.onnx"]);
    assert!(outcome.out.contains("1 optional input is a constant now"), "{}", outcome.out);
    let outcome = user.run_command(&["run", "fixed.onnx", "-i", "w=f32:[0,0]", "-i", "x=f32:[0,0]"]);
    assert!(outcome.err.contains("expected one of the inputs `x`, found `w`"), "{}", outcome.err);
}

#[test]
fn what_a_model_is_read_from_is_not_written_over() {
    let user = user_with_models();
    let weights: Vec<u8> = (0..300u16).flat_map(|_| 1f32.to_le_bytes()).collect();
    user.write_file("weights.bin", &weights);
    let model =
        ModelBuilder::new().with_input("x: f32[300]").with_external_weight("w", &[300], "weights.bin");
    user.write_file("apart.onnx", &model.with_node("y = Add(x, w)").with_output("y: f32[300]").into_bytes());
    let outcome = user.run_command(&["optimize", "apart.onnx", "-o", "weights.bin"]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.err.contains("`weights.bin`: expected a file of its own"), "{}", outcome.err);
    assert_eq!(fs::read(user.home.path().join("weights.bin")).unwrap(), weights);
    for output in ["-", "/dev/stdout"] {
        let outcome = user.run_command(&["optimize", "apart.onnx", "-o", output]);
        assert_eq!((outcome.status, outcome.out.as_str()), (1, ""));
        assert!(outcome.err.contains("found the standard output"), "{}", outcome.err);
    }
}

/// A product with 8-bit weights, and one with such weights transposed.
fn quantized_model() -> Vec<u8> {
    let bytes: Vec<i8> = (0..64 * 64).map(|at| (at % 251) as i8).collect();
    let model = ModelBuilder::new().with_input("x: f32[rows, 64]").with_weight("scale", &[], &[0.25]);
    let model = model.with_bytes_weight("w", &[64, 64], &bytes).with_bytes_weight("v", &[64, 64], &bytes);
    let model = model.with_node("wide = DequantizeLinear(w, scale)").with_node("a = MatMul(x, wide)");
    let model = model.with_node("rows = DequantizeLinear(v, scale)").with_node("columns = Transpose(rows)");
    model.with_node("y = MatMul(a, columns)").with_output("y: f32[rows, 64]").into_bytes()
}

#[test]
fn weights_of_eight_bits_stay_so_in_the_file() {
    let user = user_with_models();
    user.write_file("quantized.onnx", &quantized_model());
    let size = |file: &str| fs::metadata(user.home.path().join(file)).unwrap().len();
    let run = |file: &str| user.run_command(&["run", file, "--random", "0", "--shape", "rows=3"]);
    for more in [&[][..], &["--plain"]] {
        let outcome = user.run_command(&[&["optimize", "quantized.onnx", "-o", "ready.onnx"], more].concat());
        assert_eq!(outcome.status, 0, "{}", outcome.err);
        assert!(size("ready.onnx") < size("quantized.onnx") + 500, "{more:?}: {}", size("ready.onnx"));
        assert_eq!(run("ready.onnx").out, run("quantized.onnx").out);
    }
}

#[test]
fn a_model_that_was_optimized_stays_as_it_is() {
    let user = user_with_models();
    user.write_file("quantized.onnx", &quantized_model());
    let branches =
        ModelBuilder::new().with_input("x: f32[n]").with_input("c: bool[]").with_weight("b", &[1], &[2.0]);
    let branches = branches.with_node("h = Add(x, b)").with_branches(["Relu(h)", "Mul(h, b)"]);
    user.write_file("branches.onnx", &branches.with_output("y: f32[n]").into_bytes());
    let file = |name: &str| fs::read(user.home.path().join(name)).unwrap();
    for model in ["product.onnx", "pair.onnx", "lookup.onnx", "quantized.onnx", "branches.onnx"] {
        for more in [&[][..], &["--plain"]] {
            let optimize =
                |from: &str, to: &str| user.run_command(&[&["optimize", from, "-o", to], more].concat());
            assert_eq!(optimize(model, "once.onnx").status, 0);
            assert_eq!(optimize("once.onnx", "twice.onnx").status, 0);
            assert!(file("once.onnx") == file("twice.onnx"), "{model} {more:?}");
        }
    }
}

#[test]
fn a_model_that_nothing_here_can_run_is_written_and_warned_of() {
    let user = user_with_models();
    let model =
        ModelBuilder::new().with_input("x: u8[n]").with_node("y = ImageDecoder(x)").with_output("y: u8[…]");
    user.write_file("image.onnx", &model.into_bytes_with_opset(20));
    let warning = "no device here can run `ImageDecoder`: expected a kernel for `ImageDecoder`, found none";
    let outcome = user.run_command(&["optimize", "image.onnx", "-o", "ready.onnx"]);
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    assert!(outcome.err.starts_with(&format!("warning: {warning}")), "{}", outcome.err);
    let report = user.run_command(&["optimize", "image.onnx", "-o", "ready.onnx", "--json"]).parse_json();
    assert!(report["warnings"][0].as_str().unwrap().starts_with(warning), "{report}");
    let report = user.run_command(&["optimize", "product.onnx", "-o", "ready.onnx", "--json"]).parse_json();
    assert_eq!(report["warnings"], serde_json::json!([]));
}
