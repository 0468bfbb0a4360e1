//! Output files of a run, and the errors if they cannot be written.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Command, Stdio};

use super::model_builder::{ModelBuilder, product_model};
use super::{float_bytes, npy_file, npz_file, read_npz, user_with_models};
use crate::user::TestUser;

/// Runs a shell script that can call the command as `$0`.
fn run_shell(user: &TestUser, script: &str) -> std::process::Output {
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_oarlock")]).env_clear().env("HOME", user.home.path());
    shell.env("PATH", "/usr/bin:/bin").current_dir(user.home.path()).output().expect("a shell")
}

#[test]
fn a_model_with_one_output_may_have_one_file() {
    let user = user_with_models();
    let outcome = user.run_command(&["run", "product.onnx", "-i", "x=f32:[[1,2,3]]", "-o", "out.npy"]);
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    let result = fs::read(user.home.path().join("out.npy")).unwrap();
    assert_eq!(result, npy_file("<f4", "(1, 2)", &float_bytes(&[6.0, 0.0])));
    let outcome = user.run_command(&["run", "pair.onnx", "--random", "0", "-o", "two.npy"]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.err.starts_with("error: `two.npy`: expected a model with one output"), "{}", outcome.err);
    assert!(!user.home.path().join("two.npy").exists());
    let asked = ModelBuilder::new()
        .with_input("x: optional f32[…]")
        .with_node("y = Identity(x)")
        .with_output("y: optional f32[…]");
    user.write_file("asked.onnx", &asked.into_bytes());
    let outcome = user.run_command(&["run", "asked.onnx", "-i", "x=-", "-o", "none.npy"]);
    let message =
        "error: `none.npy`: expected a model with one output for it, found an optional that holds nothing";
    assert!(outcome.status == 1 && outcome.err.starts_with(message), "{}", outcome.err);
    assert_eq!(user.run_command(&["run", "asked.onnx", "-i", "x=f32:[1]", "-o", "one.npy"]).status, 0);
}

#[test]
fn a_file_of_a_kind_that_nobody_writes_is_no_directory() {
    let user = user_with_models();
    let call = ["run", "product.onnx", "-i", "x=f32:[[1,2,3]]", "-o"];
    let outcome = user.run_command(&[&call[..], &["out.txt"]].concat());
    assert_eq!(outcome.status, 1);
    assert!(outcome.err.starts_with("error: `out.txt`: expected a directory, or a file"), "{}", outcome.err);
    assert!(!user.home.path().join("out.txt").exists());
    assert_eq!(user.run_command(&[&call[..], &["run-1.2"]].concat()).status, 0);
    fs::create_dir(user.home.path().join("out.txt")).unwrap();
    assert_eq!(user.run_command(&[&call[..], &["out.txt"]].concat()).status, 0);
}

#[test]
fn a_run_that_fails_leaves_no_directory() {
    let user = user_with_models();
    user.write_file("bad.onnx", b"no model");
    assert_eq!(user.run_command(&["run", "bad.onnx", "--random", "0", "-o", "new/one"]).status, 1);
    assert!(!user.home.path().join("new").exists());
}

#[test]
fn an_unwritable_target_is_reported_before_the_model_loads() {
    let user = user_with_models();
    // The model is invalid, so a check of the target after loading would report the model instead.
    for call in [
        &["bench", "none.onnx", "--html", "nowhere/page.html"][..],
        &["explain", "none.onnx", "--html", "nowhere/page.html"],
        &["explain", "none.onnx", "--svg", "nowhere/page.svg"],
        &["trace", "none.onnx", "-o", "nowhere/trace.json"],
        &["run", "none.onnx", "-o", "nowhere/out.npz"],
    ] {
        let outcome = user.run_command(call);
        assert_eq!(outcome.status, 1);
        assert!(outcome.err.starts_with("error: `nowhere/"), "{}", outcome.err);
    }
}

#[test]
fn a_closed_standard_output_is_an_error() {
    let user = user_with_models();
    let closed = run_shell(&user, "\"$0\" run product.onnx -i 'x=f32:[[1,2,3]]' >&-");
    assert_eq!(closed.status.code(), Some(1));
    let message = String::from_utf8(closed.stderr).unwrap();
    assert_eq!(
        message.lines().next(),
        Some("error: expected to write to the standard output, found: it is closed")
    );
    // Output sent to `/dev/null` is thrown away on purpose, however it was opened.
    let thrown_away = run_shell(&user, "\"$0\" run product.onnx -i 'x=f32:[[1,2,3]]' 1<>/dev/null");
    assert_eq!(thrown_away.status.code(), Some(0));
}

#[test]
fn a_full_device_is_told_once_and_without_a_library() {
    let user = user_with_models();
    std::os::unix::fs::symlink("/dev/full", user.home.path().join("full.npz")).unwrap();
    let outcome = user.run_command(&["run", "product.onnx", "-i", "x=f32:[[1,2,3]]", "-o", "full.npz"]);
    assert_eq!(outcome.status, 1);
    assert!(
        outcome.err.starts_with("error: `full.npz`") && !outcome.err.contains("ZipWriter"),
        "{}",
        outcome.err
    );
}

#[test]
fn names_of_outputs_never_lead_out_of_an_archive() {
    let user = user_with_models();
    let model = ModelBuilder::new()
        .with_input("x: f32[1]")
        .with_node("../../evil = Relu(x)")
        .with_output("../../evil: f32[1]");
    user.write_file("evil.onnx", &model.into_bytes());
    assert_eq!(user.run_command(&["run", "evil.onnx", "-i", "f32:[1]", "-o", "out.npz"]).status, 0);
    assert_eq!(read_npz(&user.home.path().join("out.npz"))[0].0, "_../_../evil.npy");
}

#[test]
fn a_model_comes_through_a_pipe() {
    let user = user_with_models();
    for place in ["-", "/dev/stdin"] {
        let mut child = user.oarlock_command(&["run", place, "-i", "x=f32:[[1,2,3]]"]);
        let mut child =
            child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(&product_model()).unwrap();
        let output = child.wait_with_output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), message.as_str()), (Some(0), ""));
        assert!(output.stdout.starts_with(b"y: f32 [1, 2]\n"));
    }
    let outcome = user.run_command(&["run", "-"]);
    assert!(outcome.err.starts_with("error: `-`: expected an ONNX model"), "{}", outcome.err);
}

#[test]
fn a_path_may_be_any_bytes() {
    let user = user_with_models();
    let name = OsStr::from_bytes(b"in\xFF.npy");
    fs::write(user.home.path().join(name), npy_file("<f4", "(1, 3)", &float_bytes(&[1.0, 2.0, 3.0])))
        .unwrap();
    let output =
        user.oarlock_command(&["run", "product.onnx", "-i"]).arg(OsStr::from_bytes(b"x=in\xFF.npy")).output();
    assert_eq!(output.unwrap().status.code(), Some(0));
}

#[test]
fn an_array_of_the_wrong_shape_is_refused_without_decompression() {
    let user = user_with_models();
    let array = npy_file("<f4", "(500000000, 4)", &[]);
    user.write_file("bomb.npz", &npz_file(&[("x", array)], zip::CompressionMethod::Deflated));
    let outcome = user.run_command(&["run", "product.onnx", "-i", "bomb.npz"]);
    assert!(outcome.err.contains("expected f32[batch, 3], found f32[500000000, 4]"), "{}", outcome.err);
}

#[test]
fn what_goes_wrong_is_there_for_programs() {
    let user = user_with_models();
    for command in ["run", "bench", "explain", "trace", "check"] {
        let outcome = user.run_command(&[command, "nowhere.onnx", "--json"]);
        assert_eq!(outcome.status, 1);
        let error = &outcome.parse_json()["error"];
        assert_eq!(error["kind"], "NotFoundError", "{command}");
        assert!(error["message"].as_str().unwrap().starts_with("`nowhere.onnx`: expected a file"), "{error}");
        assert!(error["hint"].is_string() && error["node"].is_null(), "{error}");
        let is_check = command == "check";
        assert!(is_check || outcome.err.starts_with("error: `nowhere.onnx`"), "{}", outcome.err);
    }
    let error =
        user.run_command(&["run", "foreign.onnx", "--random", "0", "--json"]).parse_json()["error"].clone();
    assert_eq!((&error["op"], &error["node"]), (&"Magic".into(), &"Y".into()), "{error}");
}

#[test]
fn a_model_without_outputs_gives_nothing() {
    let user = user_with_models();
    user.write_file("nothing.onnx", &ModelBuilder::new().with_input("x: f32[1]").into_bytes());
    let outcome = user.run_command(&["run", "nothing.onnx", "--random", "0"]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.err.contains("`nothing.onnx`: expected a model with outputs"), "{}", outcome.err);
    let outcome = user.run_command(&["check", "nothing.onnx"]);
    assert!(outcome.status == 1 && outcome.out.contains("gives nothing"), "{}", outcome.out);
}

#[test]
fn a_long_name_is_cut_for_people_and_whole_for_programs() {
    let user = user_with_models();
    let long = "n".repeat(500);
    let model = ModelBuilder::new()
        .with_input("x: f32[1]")
        .with_node(&format!("{long} = Relu(x)"))
        .with_output(&format!("{long}: f32[1]"));
    user.write_file("long.onnx", &model.into_bytes());
    let outcome = user.run_command(&["explain", "long.onnx"]);
    assert!(outcome.out.lines().all(|line| line.chars().count() < 400), "{}", outcome.out);
    let report = user.run_command(&["explain", "long.onnx", "--json"]).parse_json();
    assert_eq!(report["outputs"][0]["name"], long.as_str());
}

#[test]
fn a_graph_that_is_too_large_for_one_picture_is_drawn_in_sections() {
    let user = user_with_models();
    let mut model = ModelBuilder::new().with_input("x: f32[1]").with_node("v0 = Softmax(x)");
    for step in 0..3000 {
        // Elementwise ops would run as one.
        model = model.with_node(&format!("v{} = Softmax(v{step})", step + 1));
    }
    user.write_file("large.onnx", &model.with_output("v3000: f32[1]").into_bytes());
    let outcome = user.run_command(&["explain", "large.onnx", "--svg", "large.svg", "--html", "large.html"]);
    assert!(outcome.err.contains("at most 3000 nodes for a picture, found 3001"), "{}", outcome.err);
    assert!(!user.home.path().join("large.svg").exists());
    let outcome = user.run_command(&["explain", "large.onnx", "--html", "large.html"]);
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    let page = std::fs::read_to_string(user.home.path().join("large.html")).unwrap();
    // 3001 nodes without scopes in their names, 300 in each section.
    assert!(page.contains("<a href=\"#section-11\">") && page.contains("11: nodes 3001 to 3001"), "{page}");
    assert!(page.contains("1: nodes 1 to 300, 300 nodes (300 Softmax)") && !page.contains("section-12"));
    // Each node has a box, and each section one for what comes from before and goes on.
    let boxes = page.matches("<g><title>").count();
    assert_eq!(boxes, 3001 + 11 + 2 * 11);
    assert!(page.contains("<title>from section 1, v299: f32 [1]</title>"), "{page}");
}

#[test]
fn a_node_without_a_name_that_nobody_knows_is_told_by_what_it_makes() {
    let user = user_with_models();
    let model = ModelBuilder::new()
        .with_input("x: f32[1]")
        .with_unnamed_node("y = Frobnicate(x)")
        .with_output("y: f32[1]");
    user.write_file("odd.onnx", &model.into_bytes());
    let outcome = user.run_command(&["run", "odd.onnx", "--random", "0"]);
    let start = "error: `odd.onnx`: `Frobnicate`: the node that makes `y`: expected an op of `ai.onnx`";
    assert!(outcome.err.starts_with(start), "{}", outcome.err);
    assert!(outcome.err.contains("of opset 18") && outcome.err.contains("a plugin"), "{}", outcome.err);
}

#[test]
fn a_run_that_needs_too_much_memory_names_the_value_that_does() {
    let user = user_with_models();
    // Each value takes 2^40 bytes, more than any machine has today.
    let model = ModelBuilder::new()
        .with_input("x: f32[1]")
        .with_shape("shape", &[1 << 19, 1 << 19])
        .with_node("large = ConstantOfShape(shape)")
        .with_node("sum = Add(large, x)")
        .with_node("y = ReduceSum(sum)")
        .with_output("y: f32[1, 1]");
    user.write_file("large.onnx", &model.into_bytes());
    let outcome = user.run_command(&["run", "large.onnx", "--random", "0"]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.err.contains("the values of a run, the largest of which is `"), "{}", outcome.err);
    assert!(outcome.err.contains("hint: give smaller inputs"), "{}", outcome.err);
}
