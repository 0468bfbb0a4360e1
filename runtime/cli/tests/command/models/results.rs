//! Where results go, and what happens to them where they cannot go there.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Command, Stdio};

use super::build::{Build, product};
use super::{floats, npy, npz, read_npz, user};
use crate::user::User;

/// A shell that may use the command as `$0`.
fn shell(user: &User, script: &str) -> std::process::Output {
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_oarlock")]).env_clear().env("HOME", user.home.path());
    shell.env("PATH", "/usr/bin:/bin").current_dir(user.home.path()).output().expect("a shell")
}

#[test]
fn a_model_with_one_output_may_have_one_file() {
    let user = user();
    let outcome = user.run(&["run", "product.onnx", "-i", "x=f32:[[1,2,3]]", "-o", "out.npy"]);
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    let made = fs::read(user.home.path().join("out.npy")).unwrap();
    assert_eq!(made, npy("<f4", "(1, 2)", &floats(&[6.0, 0.0])));
    let outcome = user.run(&["run", "pair.onnx", "--random", "0", "-o", "two.npy"]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.err.starts_with("error: `two.npy`: expected a model with one output"), "{}", outcome.err);
    assert!(!user.home.path().join("two.npy").exists());
    let asked = Build::new().input("x: optional f32[…]").node("y = Identity(x)").output("y: optional f32[…]");
    user.file("asked.onnx", &asked.bytes());
    let outcome = user.run(&["run", "asked.onnx", "-i", "x=-", "-o", "none.npy"]);
    let said =
        "error: `none.npy`: expected a model with one output for it, found an optional that holds nothing";
    assert!(outcome.status == 1 && outcome.err.starts_with(said), "{}", outcome.err);
    assert_eq!(user.run(&["run", "asked.onnx", "-i", "x=f32:[1]", "-o", "one.npy"]).status, 0);
}

#[test]
fn a_file_of_a_kind_that_nobody_writes_is_no_directory() {
    let user = user();
    let call = ["run", "product.onnx", "-i", "x=f32:[[1,2,3]]", "-o"];
    let outcome = user.run(&[&call[..], &["out.txt"]].concat());
    assert_eq!(outcome.status, 1);
    assert!(outcome.err.starts_with("error: `out.txt`: expected a directory, or a file"), "{}", outcome.err);
    assert!(!user.home.path().join("out.txt").exists());
    assert_eq!(user.run(&[&call[..], &["run-1.2"]].concat()).status, 0);
    fs::create_dir(user.home.path().join("out.txt")).unwrap();
    assert_eq!(user.run(&[&call[..], &["out.txt"]].concat()).status, 0);
}

#[test]
fn a_run_that_fails_leaves_no_directory() {
    let user = user();
    user.file("bad.onnx", b"no model");
    assert_eq!(user.run(&["run", "bad.onnx", "--random", "0", "-o", "new/one"]).status, 1);
    assert!(!user.home.path().join("new").exists());
}

#[test]
fn a_target_that_cannot_be_written_to_is_told_before_the_work() {
    let user = user();
    // The model is none, so whoever looked at the target later would name the model.
    for call in [
        &["bench", "none.onnx", "--html", "nowhere/page.html"][..],
        &["explain", "none.onnx", "--html", "nowhere/page.html"],
        &["explain", "none.onnx", "--svg", "nowhere/page.svg"],
        &["trace", "none.onnx", "-o", "nowhere/trace.json"],
        &["run", "none.onnx", "-o", "nowhere/out.npz"],
    ] {
        let outcome = user.run(call);
        assert_eq!(outcome.status, 1);
        assert!(outcome.err.starts_with("error: `nowhere/"), "{}", outcome.err);
    }
}

#[test]
fn a_closed_standard_output_is_an_error() {
    let user = user();
    let closed = shell(&user, "\"$0\" run product.onnx -i 'x=f32:[[1,2,3]]' >&-");
    assert_eq!(closed.status.code(), Some(1));
    let said = String::from_utf8(closed.stderr).unwrap();
    assert_eq!(
        said.lines().next(),
        Some("error: expected to write to the standard output, found: it is closed")
    );
    // Who throws output away does so on purpose, whichever way it is opened.
    let thrown_away = shell(&user, "\"$0\" run product.onnx -i 'x=f32:[[1,2,3]]' 1<>/dev/null");
    assert_eq!(thrown_away.status.code(), Some(0));
}

#[test]
fn a_full_device_is_told_once_and_without_a_library() {
    let user = user();
    std::os::unix::fs::symlink("/dev/full", user.home.path().join("full.npz")).unwrap();
    let outcome = user.run(&["run", "product.onnx", "-i", "x=f32:[[1,2,3]]", "-o", "full.npz"]);
    assert_eq!(outcome.status, 1);
    assert!(
        outcome.err.starts_with("error: `full.npz`") && !outcome.err.contains("ZipWriter"),
        "{}",
        outcome.err
    );
}

#[test]
fn names_of_outputs_never_lead_out_of_an_archive() {
    let user = user();
    let model = Build::new().input("x: f32[1]").node("../../evil = Relu(x)").output("../../evil: f32[1]");
    user.file("evil.onnx", &model.bytes());
    assert_eq!(user.run(&["run", "evil.onnx", "-i", "f32:[1]", "-o", "out.npz"]).status, 0);
    assert_eq!(read_npz(&user.home.path().join("out.npz"))[0].0, "_../_../evil.npy");
}

#[test]
fn a_model_comes_through_a_pipe() {
    let user = user();
    for place in ["-", "/dev/stdin"] {
        let mut child = user.command(&["run", place, "-i", "x=f32:[[1,2,3]]"]);
        let mut child =
            child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(&product()).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), said.as_str()), (Some(0), ""));
        assert!(output.stdout.starts_with(b"y: f32 [1, 2]\n"));
    }
    let outcome = user.run(&["run", "-"]);
    assert!(outcome.err.starts_with("error: `-`: expected an ONNX model"), "{}", outcome.err);
}

#[test]
fn a_path_may_be_any_bytes() {
    let user = user();
    let name = OsStr::from_bytes(b"in\xFF.npy");
    fs::write(user.home.path().join(name), npy("<f4", "(1, 3)", &floats(&[1.0, 2.0, 3.0]))).unwrap();
    let output =
        user.command(&["run", "product.onnx", "-i"]).arg(OsStr::from_bytes(b"x=in\xFF.npy")).output();
    assert_eq!(output.unwrap().status.code(), Some(0));
}

#[test]
fn an_archive_is_not_unpacked_for_what_the_model_does_not_want() {
    let user = user();
    let array = npy("<f4", "(500000000, 4)", &[]);
    user.file("bomb.npz", &npz(&[("x", array)], zip::CompressionMethod::Deflated));
    let outcome = user.run(&["run", "product.onnx", "-i", "bomb.npz"]);
    assert!(outcome.err.contains("expected f32[batch, 3], found f32[500000000, 4]"), "{}", outcome.err);
}

#[test]
fn what_goes_wrong_is_there_for_programs() {
    let user = user();
    for command in ["run", "bench", "explain", "trace", "check"] {
        let outcome = user.run(&[command, "nowhere.onnx", "--json"]);
        assert_eq!(outcome.status, 1);
        let error = &outcome.json()["error"];
        assert_eq!(error["kind"], "NotFoundError", "{command}");
        assert!(error["message"].as_str().unwrap().starts_with("`nowhere.onnx`: expected a file"), "{error}");
        assert!(error["hint"].is_string() && error["node"].is_null(), "{error}");
        let is_check = command == "check";
        assert!(is_check || outcome.err.starts_with("error: `nowhere.onnx`"), "{}", outcome.err);
    }
    let error = user.run(&["run", "foreign.onnx", "--random", "0", "--json"]).json()["error"].clone();
    assert_eq!((&error["op"], &error["node"]), (&"Magic".into(), &"Y".into()), "{error}");
}

#[test]
fn a_model_without_outputs_gives_nothing() {
    let user = user();
    user.file("nothing.onnx", &Build::new().input("x: f32[1]").bytes());
    let outcome = user.run(&["run", "nothing.onnx", "--random", "0"]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.err.contains("`nothing.onnx`: expected a model with outputs"), "{}", outcome.err);
    let outcome = user.run(&["check", "nothing.onnx"]);
    assert!(outcome.status == 1 && outcome.out.contains("gives nothing"), "{}", outcome.out);
}

#[test]
fn a_long_name_is_cut_for_people_and_whole_for_programs() {
    let user = user();
    let long = "n".repeat(500);
    let model =
        Build::new().input("x: f32[1]").node(&format!("{long} = Relu(x)")).output(&format!("{long}: f32[1]"));
    user.file("long.onnx", &model.bytes());
    let outcome = user.run(&["explain", "long.onnx"]);
    assert!(outcome.out.lines().all(|line| line.chars().count() < 400), "{}", outcome.out);
    let report = user.run(&["explain", "long.onnx", "--json"]).json();
    assert_eq!(report["outputs"][0]["name"], long.as_str());
}

#[test]
fn a_graph_that_is_too_large_is_not_drawn() {
    let user = user();
    let mut model = Build::new().input("x: f32[1]").node("v0 = Sin(x)");
    for step in 0..3000 {
        model = model.node(&format!("v{} = Sin(v{step})", step + 1));
    }
    user.file("large.onnx", &model.output("v3000: f32[1]").bytes());
    let outcome = user.run(&["explain", "large.onnx", "--svg", "large.svg", "--html", "large.html"]);
    assert!(outcome.err.contains("at most 3000 nodes for a picture, found 3001"), "{}", outcome.err);
    assert!(!user.home.path().join("large.svg").exists());
}

#[test]
fn a_node_without_a_name_that_nobody_knows_is_told_by_what_it_makes() {
    let user = user();
    let model = Build::new().input("x: f32[1]").nameless("y = Frobnicate(x)").output("y: f32[1]");
    user.file("odd.onnx", &model.bytes());
    let outcome = user.run(&["run", "odd.onnx", "--random", "0"]);
    let start = "error: `odd.onnx`: `Frobnicate`: the node that makes `y`: expected an op of `ai.onnx`";
    assert!(outcome.err.starts_with(start), "{}", outcome.err);
    assert!(outcome.err.contains("of opset 18") && outcome.err.contains("a plugin"), "{}", outcome.err);
}

#[test]
fn a_run_that_needs_too_much_memory_names_the_value_that_does() {
    let user = user();
    // Each of the values has 2^40 bytes, which no machine of these days has at once.
    let model = Build::new()
        .input("x: f32[1]")
        .shape("shape", &[1 << 19, 1 << 19])
        .node("large = ConstantOfShape(shape)")
        .node("sum = Add(large, x)")
        .node("y = ReduceSum(sum)")
        .output("y: f32[1, 1]");
    user.file("large.onnx", &model.bytes());
    let outcome = user.run(&["run", "large.onnx", "--random", "0"]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.err.contains("the values of a run, the largest of which is `"), "{}", outcome.err);
    assert!(outcome.err.contains("hint: give smaller inputs"), "{}", outcome.err);
}
