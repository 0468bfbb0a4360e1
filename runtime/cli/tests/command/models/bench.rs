//! `oarlock bench`.

use std::os::unix::fs::PermissionsExt as _;

use zip::CompressionMethod;

use super::{float_bytes, npy_file, npz_file, user_with_models};
use crate::user::TestUser;

#[test]
fn what_was_measured_is_there_for_programs() {
    let user = user_with_models();
    let arguments = ["bench", "product.onnx", "--repeat", "20", "--threads", "1", "--json"];
    let report = user.run_command(&[&arguments[..], &["--html", "report.html"]].concat()).parse_json();
    let latency = &report["latency_ms"];
    let time = |name: &str| latency[name].as_f64().unwrap_or_else(|| panic!("{name} in {latency}"));
    let sorted = ["min", "median", "p90", "p99", "max"].map(time);
    assert!(sorted.is_sorted() && sorted[0] > 0.0 && time("p50") == time("median"), "{latency}");
    assert_eq!((report["runs"].as_u64(), report["threads"].as_u64()), (Some(20), Some(1)));
    for number in ["load_ms", "first_run_ms", "throughput_per_s"] {
        assert!(report[number].as_f64().unwrap() > 0.0, "{number}");
    }
    assert_eq!(report["memory"]["weights_bytes"], 24);
    assert!(report["memory"]["peak_bytes"].as_u64().unwrap() > 1 << 20);
    let shares: f64 = report["ops"].as_array().unwrap().iter().map(|op| op["share"].as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-6 && !report["steps"].as_array().unwrap().is_empty(), "{report}");
    let product = report["ops"].as_array().unwrap().iter().find(|op| op["gflops"].is_number());
    assert!(product.is_some(), "{}", report["ops"]);
    assert!(report["compared"].is_null());
    let page = std::fs::read_to_string(user.home.path().join("report.html")).unwrap();
    assert!(page.contains("Latency, run by run") && page.contains("<svg") && !page.contains("<script"));
    assert!(!page.contains("src=") && !page.contains("href="), "the page fetches something");
}

#[test]
fn the_report_for_people_has_times_and_a_table_of_ops() {
    let outcome =
        user_with_models().run_command(&["bench", "pair.onnx", "--repeat", "10", "--shape", "n=64"]);
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    let starts: Vec<&str> = outcome.out.lines().filter_map(|line| line.split_whitespace().next()).collect();
    for start in ["model", "devices", "load", "first", "latency", "throughput", "memory", "Add", "Cast"] {
        assert!(starts.contains(&start), "{start} in {}", outcome.out);
    }
    assert!(
        outcome.err.contains("`a` is made up: f32 [64]") && !outcome.err.contains('\r'),
        "{}",
        outcome.err
    );
}

#[test]
fn without_the_other_runtime_it_is_said_how_to_get_it() {
    let user = user_with_models();
    let run = |python: &str| {
        user.run_command(&["bench", "pair.onnx", "--compare", "onnxruntime", "--python", python])
    };
    let outcome = run("no-python");
    assert_eq!(outcome.status, 1);
    assert!(
        outcome.err.starts_with("error: `no-python`: expected a Python that has onnxruntime"),
        "{}",
        outcome.err
    );
    assert!(outcome.err.contains("`no-python -m pip install onnxruntime numpy`"), "{}", outcome.err);
    let outcome = user.run_command(&["bench", "pair.onnx", "--python", "python3"]);
    assert_eq!(outcome.status, 2);
}

#[test]
fn callers_run_the_model_at_once() {
    let user = user_with_models();
    let arguments = ["bench", "product.onnx", "--callers", "3", "--repeat", "7", "--warmup", "2"];
    let report = user.run_command(&[&arguments[..], &["--json"]].concat()).parse_json();
    assert_eq!((report["callers"].as_u64(), report["runs"].as_u64()), (Some(3), Some(21)));
    // Callers do nothing but run, so at most three runs are under way at any time.
    let throughput = report["throughput_per_s"].as_f64().unwrap();
    let mean = report["latency_ms"]["mean"].as_f64().unwrap();
    assert!(throughput > 0.0 && throughput * mean <= 3e3 * (1.0 + 1e-9), "{throughput} {mean}");
    let outcome = user.run_command(&[&arguments[..], &["--html", "report.html"]].concat());
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    let page = std::fs::read_to_string(user.home.path().join("report.html")).unwrap();
    for text in [&outcome.out, &page] {
        assert!(text.contains("3 callers at once, 7 runs each") && text.contains("over 21 runs"), "{text}");
    }
    let outcome = user.run_command(&["bench", "product.onnx", "--repeat", "7"]);
    assert!(!outcome.out.contains("caller") && outcome.out.contains("over 7 runs"), "{}", outcome.out);
}

#[test]
fn a_senseless_number_of_callers_is_an_error() {
    for number in ["0", "1025", "-1", "many"] {
        let outcome =
            user_with_models().run_command(&["bench", "product.onnx", &format!("--callers={number}")]);
        let expected = format!("error: invalid value '{number}' for '--callers <NUMBER>'");
        assert!(outcome.status == 2 && outcome.err.starts_with(&expected), "{}", outcome.err);
    }
}

/// Installs a program that answers like the Python script: its outputs come from a file, every run takes 2 ms, and those of
/// all callers pass at the same time.
fn install_fake_peer(user: &TestUser, then: &str) {
    let text = format!(
        "#!/bin/sh\n\
         case \"$2\" in 'import numpy, onnxruntime') exit 0;; esac\n\
         cp outputs.npz \"$5\"\n\
         echo '{{\"version\":\"9.9\",\"load_ms\":5,\"first_run_ms\":3,\"peak_bytes\":4096}}'\n\
         {then}\n\
         while read runs; do\n\
           wall=$((2 * runs)); runs=$((runs * $7))\n\
           times=2; while [ \"$runs\" -gt 1 ]; do times=\"$times,2\"; runs=$((runs - 1)); done\n\
           echo \"{{\\\"times\\\":[$times],\\\"wall_ms\\\":$wall}}\"\n\
         done\n"
    );
    let file = user.write_file("other", text.as_bytes());
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).expect("the file is ours");
}

#[test]
fn compared_runtimes_take_turns_and_their_outputs_are_compared() {
    let user = user_with_models();
    let sum = npy_file("<f4", "(1,)", &float_bytes(&[4.0]));
    user.write_file("outputs.npz", &npz_file(&[("0", sum)], CompressionMethod::Stored));
    install_fake_peer(&user, "");
    let inputs = ["-i", "a=f32:[1]", "-i", "b=f32:[2]"];
    let compare = ["--compare", "onnxruntime", "--python", "./other", "--repeat", "25", "--json"];
    let outcome = user.run_command(&[&["bench", "pair.onnx"], &inputs[..], &compare].concat());
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    let compared = outcome.parse_json()["compared"].clone();
    assert_eq!((&compared["version"], compared["latency_ms"]["median"].as_f64()), (&"9.9".into(), Some(2.0)));
    assert_eq!(compared["largest_difference"].as_f64(), Some(0.25));
    assert!(compared["ratio"].as_f64().unwrap() > 0.0);
    assert_eq!(compared["throughput_per_s"].as_f64(), Some(500.0));
}

#[test]
fn with_several_callers_the_verdict_is_by_throughput() {
    let user = user_with_models();
    user.write_file("outputs.npz", &npz_file(&[], CompressionMethod::Stored));
    install_fake_peer(&user, "");
    let run = |more: &[&str]| {
        let arguments = ["bench", "product.onnx", "--compare", "onnxruntime", "--python", "./other"];
        user.run_command(&[&arguments[..], &["--repeat", "12", "--html", "report.html"], more].concat())
    };
    let report = run(&["--callers", "4", "--json"]).parse_json();
    let (own, compared) = (report["throughput_per_s"].as_f64().unwrap(), &report["compared"]);
    assert_eq!(report["runs"].as_u64(), Some(48));
    assert_eq!(
        (compared["latency_ms"]["p99"].as_f64(), compared["throughput_per_s"].as_f64()),
        (Some(2.0), Some(2000.0))
    );
    let ratio = compared["throughput_ratio"].as_f64().unwrap();
    assert!((ratio * 2000.0 / own - 1.0).abs() < 1e-9, "{ratio} {own}");
    let outcome = run(&["--callers", "4"]);
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    let page = std::fs::read_to_string(user.home.path().join("report.html")).unwrap();
    assert!(page.contains("times the throughput of") && page.contains("2000 runs a second"), "{page}");
    let verdict = outcome.out.lines().find(|line| line.starts_with("verdict")).unwrap();
    for part in ["times the throughput of", "against 2000 runs a second, 4 callers at once"] {
        assert!(verdict.contains(part), "{verdict}");
    }
    let outcome = run(&[]);
    let verdict = outcome.out.lines().find(|line| line.starts_with("verdict")).unwrap();
    assert!(verdict.contains("times as fast as") && verdict.contains("against 2.00 ms"), "{verdict}");
}

#[test]
fn a_failing_compared_runtime_is_reported_with_its_last_output() {
    let user = user_with_models();
    user.write_file("outputs.npz", b"");
    install_fake_peer(&user, "echo 'out of ideas' >&2; exit 3");
    let outcome =
        user.run_command(&["bench", "product.onnx", "--compare", "onnxruntime", "--python", "./other"]);
    assert_eq!(outcome.status, 1);
    assert!(
        outcome.err.contains("expected onnxruntime to run the model, found: out of ideas"),
        "{}",
        outcome.err
    );
}

/// Writes Python modules that stand in for the compared runtime. Python finds them in the working directory. `run` is a line of
/// the method that runs a model; `count` is the number of the call.
fn write_peer_modules(user: &TestUser, run: &str) {
    user.write_file("outputs.npz", &npz_file(&[], CompressionMethod::Stored));
    let numpy = "import contextlib, shutil\n\
                 load = lambda file: contextlib.nullcontext({})\n\
                 savez = lambda file, **arrays: shutil.copy('outputs.npz', file)\n";
    user.write_file("numpy.py", numpy.as_bytes());
    let runtime = format!(
        "import itertools, threading\n\
         __version__ = '9.9'\n\
         numbers, meeting = itertools.count(1), threading.Barrier(3)\n\
         class SessionOptions: pass\n\
         class InferenceSession:\n    \
             def __init__(self, model, options, providers): pass\n    \
             def get_inputs(self): return []\n    \
             def run(self, names, feeds):\n        \
                 count = next(numbers)\n        \
                 {run}\n        \
                 return []\n"
    );
    user.write_file("onnxruntime.py", runtime.as_bytes());
}

#[test]
fn callers_of_the_compared_runtime_run_at_once_and_the_error_of_one_ends_all() {
    let user = user_with_models();
    let run = || {
        let arguments = ["bench", "product.onnx", "--compare", "onnxruntime", "--callers", "3"];
        user.run_command(&[&arguments[..], &["--repeat", "400", "--warmup", "2", "--json"]].concat())
    };
    // Every run after the first waits until three run at the same time.
    write_peer_modules(&user, "if count > 1: meeting.wait()");
    let outcome = run();
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    let compared = &outcome.parse_json()["compared"];
    let throughput = compared["throughput_per_s"].as_f64().unwrap();
    let mean = compared["latency_ms"]["mean"].as_f64().unwrap();
    assert!(throughput > 0.0 && throughput * mean <= 3e3 * (1.0 + 1e-9), "{throughput} {mean}");
    write_peer_modules(&user, "if count == 40: raise RuntimeError('out of paper')");
    let outcome = run();
    let message = &outcome.parse_json()["error"]["message"];
    assert_eq!(message, "expected onnxruntime to run the model, found: RuntimeError: out of paper");
}
