//! `oarlock optimise`.

use std::fs;

use super::build::Build;
use super::user;

const X: &str = "x=f32:[[1,2,3],[-1,-2,-3]]";

#[test]
fn what_is_written_gives_the_same_and_says_what_became_of_the_model() {
    let user = user();
    let outcome = user.run(&["optimise", "product.onnx", "-o", "ready.onnx", "--shape", "batch=2"]);
    assert_eq!((outcome.status, outcome.err.as_str()), (0, ""));
    let lines: Vec<&str> = outcome.out.lines().collect();
    assert!(lines[0].starts_with("`ready.onnx`: ") && lines[0].ends_with(" B"), "{}", outcome.out);
    assert_eq!(lines[1], "1 node, of 2 in `product.onnx`, for cpu:0");
    assert!(lines[2].starts_with("1 node is of an op, or of an opset, that only Oarlock understands"));
    assert!(lines.iter().any(|line| line.starts_with("  products")), "{}", outcome.out);
    let results = ["product.onnx", "ready.onnx"].map(|model| user.run(&["run", model, "-i", X]).out);
    assert_eq!(results[0], results[1]);
    assert!(results[0].contains("y: f32 [2, 2]"), "{}", results[0]);
}

#[test]
fn a_model_that_is_plain_has_no_node_that_is_only_ours_and_a_program_is_told() {
    let user = user();
    let report = user.run(&["optimize", "product.onnx", "-o", "plain.onnx", "--plain", "--json"]).json();
    assert_eq!((&report["nodes"], &report["own_nodes"]), (&2.into(), &0.into()));
    assert_eq!(report["notes"], serde_json::json!([]));
    let size = fs::metadata(user.home.path().join("plain.onnx")).unwrap().len();
    assert_eq!(report["files"], serde_json::json!([{ "file": "plain.onnx", "bytes": size }]));
    let model = user.run(&["explain", "plain.onnx", "--json"]).json();
    assert!(model["producer"].as_str().unwrap().starts_with("oarlock "), "{model}");
}

#[test]
fn a_model_for_certain_sizes_takes_no_others() {
    let user = user();
    assert_eq!(user.run(&["optimise", "product.onnx", "-o", "two.onnx", "--shape", "batch=2"]).status, 0);
    assert_eq!(user.run(&["run", "two.onnx", "-i", X]).status, 0);
    let outcome = user.run(&["run", "two.onnx", "-i", "f32:[[1,2,3]]"]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.err.contains("expected f32[2, 3], found f32[1, 3]"), "{}", outcome.err);
    for (shape, problem) in [("x=2x4", "expected f32[batch, 3], found f32[2, 4]"), ("rows=2", "found `rows`")]
    {
        let outcome = user.run(&["optimise", "product.onnx", "-o", "none.onnx", "--shape", shape]);
        assert_eq!(outcome.status, 1);
        assert!(outcome.err.contains(problem), "{}", outcome.err);
        assert!(!user.home.path().join("none.onnx").exists());
    }
}

#[test]
fn a_model_may_take_the_place_of_itself() {
    let user = user();
    let before = user.run(&["run", "product.onnx", "-i", X]).out;
    assert_eq!(user.run(&["optimise", "product.onnx", "-o", "product.onnx"]).status, 0);
    assert_eq!(user.run(&["run", "product.onnx", "-i", X]).out, before);
}

#[test]
fn optional_inputs_become_constants_and_it_is_said() {
    let user = user();
    let model = Build::new().input("x: f32[2]").input("w: f32[2]").weight("w", &[2], &[1.0, 2.0]);
    user.file("optional.onnx", &model.node("y = Add(x, w)").output("y: f32[2]").bytes());
    let outcome = user.run(&["optimise", "optional.onnx", "-o", "fixed.onnx"]);
    assert!(outcome.out.contains("1 optional input is a constant now"), "{}", outcome.out);
    let outcome = user.run(&["run", "fixed.onnx", "-i", "w=f32:[0,0]", "-i", "x=f32:[0,0]"]);
    assert!(outcome.err.contains("expected one of the inputs `x`, found `w`"), "{}", outcome.err);
}

#[test]
fn what_a_model_is_read_from_is_not_written_over() {
    let user = user();
    let weights: Vec<u8> = (0..300u16).flat_map(|_| 1f32.to_le_bytes()).collect();
    user.file("weights.bin", &weights);
    let model = Build::new().input("x: f32[300]").external("w", &[300], "weights.bin");
    user.file("apart.onnx", &model.node("y = Add(x, w)").output("y: f32[300]").bytes());
    let outcome = user.run(&["optimise", "apart.onnx", "-o", "weights.bin"]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.err.contains("`weights.bin`: expected a file of its own"), "{}", outcome.err);
    assert_eq!(fs::read(user.home.path().join("weights.bin")).unwrap(), weights);
    for output in ["-", "/dev/stdout"] {
        let outcome = user.run(&["optimise", "apart.onnx", "-o", output]);
        assert_eq!((outcome.status, outcome.out.as_str()), (1, ""));
        assert!(outcome.err.contains("found the standard output"), "{}", outcome.err);
    }
}

/// A product with weights of eight bits, and one with the rows of such weights turned to columns.
fn quantised() -> Vec<u8> {
    let bytes: Vec<i8> = (0..64 * 64).map(|at| (at % 251) as i8).collect();
    let model = Build::new().input("x: f32[rows, 64]").weight("scale", &[], &[0.25]);
    let model = model.bytes_weight("w", &[64, 64], &bytes).bytes_weight("v", &[64, 64], &bytes);
    let model = model.node("wide = DequantizeLinear(w, scale)").node("a = MatMul(x, wide)");
    let model = model.node("rows = DequantizeLinear(v, scale)").node("columns = Transpose(rows)");
    model.node("y = MatMul(a, columns)").output("y: f32[rows, 64]").bytes()
}

#[test]
fn weights_of_eight_bits_stay_so_in_the_file() {
    let user = user();
    user.file("quantised.onnx", &quantised());
    let size = |file: &str| fs::metadata(user.home.path().join(file)).unwrap().len();
    let run = |file: &str| user.run(&["run", file, "--random", "0", "--shape", "rows=3"]);
    for more in [&[][..], &["--plain"]] {
        let outcome = user.run(&[&["optimise", "quantised.onnx", "-o", "ready.onnx"], more].concat());
        assert_eq!(outcome.status, 0, "{}", outcome.err);
        assert!(size("ready.onnx") < size("quantised.onnx") + 500, "{more:?}: {}", size("ready.onnx"));
        assert_eq!(run("ready.onnx").out, run("quantised.onnx").out);
    }
}

#[test]
fn a_model_that_was_optimised_stays_as_it_is() {
    let user = user();
    user.file("quantised.onnx", &quantised());
    let branches = Build::new().input("x: f32[n]").input("c: bool[]").weight("b", &[1], &[2.0]);
    let branches = branches.node("h = Add(x, b)").choice(["Relu(h)", "Mul(h, b)"]);
    user.file("branches.onnx", &branches.output("y: f32[n]").bytes());
    let file = |name: &str| fs::read(user.home.path().join(name)).unwrap();
    for model in ["product.onnx", "pair.onnx", "lookup.onnx", "quantised.onnx", "branches.onnx"] {
        for more in [&[][..], &["--plain"]] {
            let optimise = |from: &str, to: &str| user.run(&[&["optimise", from, "-o", to], more].concat());
            assert_eq!(optimise(model, "once.onnx").status, 0);
            assert_eq!(optimise("once.onnx", "twice.onnx").status, 0);
            assert!(file("once.onnx") == file("twice.onnx"), "{model} {more:?}");
        }
    }
}

#[test]
fn a_model_that_nothing_here_can_run_is_written_and_warned_of() {
    let user = user();
    let model = Build::new().input("x: u8[n]").node("y = ImageDecoder(x)").output("y: u8[…]");
    user.file("image.onnx", &model.bytes_of_opset(20));
    let warning = "no device here can run `ImageDecoder`: expected a kernel for `ImageDecoder`, found none";
    let outcome = user.run(&["optimise", "image.onnx", "-o", "ready.onnx"]);
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    assert!(outcome.err.starts_with(&format!("warning: {warning}")), "{}", outcome.err);
    let report = user.run(&["optimise", "image.onnx", "-o", "ready.onnx", "--json"]).json();
    assert!(report["warnings"][0].as_str().unwrap().starts_with(warning), "{report}");
    let report = user.run(&["optimise", "product.onnx", "-o", "ready.onnx", "--json"]).json();
    assert_eq!(report["warnings"], serde_json::json!([]));
}
