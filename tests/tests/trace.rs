//! The trace layer around the CPU device: the file contains what happened, in the format of Chrome's trace viewer.

use std::sync::{Arc, Mutex};

use oarlock_core::flags::Flags;
use oarlock_core::{Op, Runtime, Tensor};
use oarlock_host::{BuiltInPlugin, LogLevel, LogSink};
use oarlock_tests::bare_host::{CPU_PLUGIN, host_options};
use serde_json::Value;

/// Collects messages to the user: notes of layers, and warnings.
#[derive(Default)]
struct HeardMessages(Mutex<Vec<String>>);

impl LogSink for HeardMessages {
    fn log(&self, plugin: &str, level: LogLevel, message: &str) {
        if level.0 <= LogLevel::WARNING.0 {
            self.0.lock().expect("no panic").push(format!("warning of {plugin}: {message}"));
        }
    }

    fn log_layer_note(&self, layer: &str, message: &str) {
        self.0.lock().expect("no panic").push(format!("note of {layer}: {message}"));
    }
}

fn start_runtime(config: &str) -> Runtime {
    start_with_messages(config, Arc::default())
}

fn start_with_messages(config: &str, heard: Arc<HeardMessages>) -> Runtime {
    let trace = BuiltInPlugin { name: "trace", query: oarlock_plugin_trace::QUERY };
    let mut options = host_options("tests 1.0", config, &[CPU_PLUGIN, trace]);
    options.log = heard;
    Runtime::start(options, Flags::from_environment(|_| None).expect("defaults")).expect("a runtime")
}

/// Adds two numbers on the CPU, then gathers an element that does not exist, which fails.
fn run_traced_work(runtime: &Runtime) -> f32 {
    let cpu = runtime.device("cpu").expect("the CPU");
    let number = |value: f32| Tensor::from_slice(&cpu, &[1], &[value]).expect("a tensor");
    let (a, b) = (number(1.5), number(2.25));
    let op = |name| Op::latest(runtime, name).expect("an op");
    let beyond = Tensor::from_slice(&cpu, &[1], &[7i64]).expect("a tensor");
    assert!(op("Gather").run(runtime, &[&a, &beyond]).is_err(), "there is no such element");
    let sum = op("Add").run(runtime, &[&a, &b]).expect("a sum");
    sum.to_vec::<f32>().expect("a copy")[0]
}

#[test]
fn every_call_is_recorded_with_its_numbers_and_the_results_stay_the_same() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("trace.json");
    let config = format!("[plugins]\nlayers = ['trace']\n[plugin.trace]\nfile = '{}'", file.display());
    let runtime = start_runtime(&config);
    assert_eq!(run_traced_work(&runtime).to_bits(), 3.75f32.to_bits());
    drop(runtime);

    let text = std::fs::read_to_string(&file).expect("a trace");
    let events: Vec<Value> = serde_json::from_str(&text).expect("the trace is JSON");
    let named = |name: &str| events.iter().filter(|event| event["name"] == name).collect::<Vec<_>>();
    let runs: Vec<_> =
        named("kernel.run").iter().map(|run| (&run["args"]["to"], &run["args"]["failed"])).collect();
    assert_eq!(
        runs,
        [(&"oarlock-cpu Gather".into(), &true.into()), (&"oarlock-cpu Add".into(), &false.into())]
    );
    let writes = named("core.memory_copy_h2d");
    assert_eq!(writes.len(), 3);
    assert_eq!(writes[0]["args"]["source_size"], 4);
    assert_eq!(named("core.memory_allocate").len(), named("core.memory_deallocate").len());
    for event in &events {
        let is_timed = event["ts"].is_number() && event["dur"].is_number() && event["tid"].is_number();
        assert!(event["ph"] == "M" || is_timed, "{event}");
    }
}

#[test]
fn without_the_layer_nothing_is_written() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("trace.json");
    let config = format!("[plugin.trace]\nfile = '{}'", file.display());
    let runtime = start_runtime(&config);
    assert_eq!(run_traced_work(&runtime).to_bits(), 3.75f32.to_bits());
    drop(runtime);
    assert!(!file.exists());
}

#[test]
fn a_file_that_cannot_be_written_is_said_and_the_work_goes_on() {
    let config = "[plugins]\nlayers = ['trace']\n[plugin.trace]\nfile = '/nonexistent/trace.json'";
    let runtime = start_runtime(config);
    assert_eq!(run_traced_work(&runtime).to_bits(), 3.75f32.to_bits());
    let said = format!("{:?}", runtime.host().report());
    assert!(said.contains("/nonexistent/trace.json"), "{said}");
}

/// The messages to the user from a runtime that traces some work into a file.
fn messages_about(file: &str) -> Vec<String> {
    let heard = Arc::new(HeardMessages::default());
    let config = format!("[plugins]\nlayers = ['trace']\n[plugin.trace]\nfile = '{file}'");
    let runtime = start_with_messages(&config, heard.clone());
    assert_eq!(run_traced_work(&runtime).to_bits(), 3.75f32.to_bits());
    drop(runtime);
    std::mem::take(&mut *heard.0.lock().expect("no panic"))
}

#[test]
fn at_its_end_the_layer_says_how_many_calls_are_in_which_file() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("trace.json");
    let heard = messages_about(&file.display().to_string());
    let text = std::fs::read_to_string(&file).expect("a trace");
    let events: Vec<Value> = serde_json::from_str(&text).expect("the trace is JSON");
    let calls = events.iter().filter(|event| event["ph"] == "X").count();
    assert_eq!(heard, [format!("note of trace: {calls} calls in `{}`", file.display())]);
}

#[test]
fn a_disk_that_is_full_is_said_once_and_the_work_goes_on() {
    let [heard] = messages_about("/dev/full").try_into().expect("one message");
    let start =
        "warning of trace: expected to write the trace to `/dev/full`, found: No space left on device";
    assert!(heard.starts_with(start) && heard.ends_with("it ends after 0 calls"), "{heard}");
}
