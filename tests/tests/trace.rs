//! The trace layer around the CPU device: what happened is in the file, in the format of Chrome's trace viewer.

use std::path::Path;

use oarlock_host::{BuiltIn, Config, DeviceTensor, Environment, Host, HostOptions, Identity};
use oarlock_sdk::Dtype;
use serde_json::Value;

fn options(config: &str) -> HostOptions {
    let environment = Environment::new(|_| None, false, Identity::of_process());
    let config = Config::parse(Path::new("test.toml"), config.as_bytes()).expect("a valid configuration");
    let mut options = HostOptions::new("tests 1.0", config, environment);
    options.built_in = vec![
        BuiltIn { name: "oarlock-cpu", query: oarlock_plugin_cpu::QUERY },
        BuiltIn { name: "trace", query: oarlock_plugin_trace::QUERY },
    ];
    options
}

/// Adds two numbers on the CPU, and once more without an output, which fails.
fn work(host: &Host) -> f32 {
    let device = host.device("cpu").expect("the CPU");
    let operand = |value: f32| {
        let mut tensor = DeviceTensor::allocate(&device, Dtype::F32, &[1]).expect("memory");
        tensor.block.write(0, &value.to_ne_bytes()).expect("a copy");
        tensor
    };
    let (a, b) = (operand(1.5), operand(2.25));
    let kernel = device.plugin().kernels().iter().find(|kernel| kernel.info.op == "Add").expect("a kernel");
    let mut outputs = [Some(operand(0.0))];
    kernel.run(&device, &[&a, &b], &mut outputs).expect("a sum");
    assert!(kernel.run(&device, &[&a, &b], &mut [None]).is_err(), "the kernel does not allocate outputs");
    let mut bytes = [0; 4];
    let [Some(sum)] = &outputs else { panic!("the output is still there") };
    sum.block.read(0, &mut bytes).expect("a copy");
    f32::from_ne_bytes(bytes)
}

#[test]
fn every_call_is_recorded_with_its_numbers_and_the_results_stay_the_same() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("trace.json");
    let config = format!("[plugins]\nlayers = ['trace']\n[plugin.trace]\nfile = '{}'", file.display());
    let host = Host::start(&options(&config)).expect("a host");
    assert_eq!(work(&host).to_bits(), 3.75f32.to_bits());
    drop(host);

    let text = std::fs::read_to_string(&file).expect("a trace");
    let events: Vec<Value> = serde_json::from_str(&text).expect("the trace is JSON");
    let named = |name: &str| events.iter().filter(|event| event["name"] == name).collect::<Vec<_>>();
    let runs = named("kernel.run");
    assert_eq!(runs[0]["args"]["to"], "oarlock-cpu Add");
    assert_eq!(runs[0]["args"]["failed"], false);
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
    let host = Host::start(&options(&config)).expect("a host");
    assert_eq!(work(&host).to_bits(), 3.75f32.to_bits());
    drop(host);
    assert!(!file.exists());
}

#[test]
fn a_file_that_cannot_be_written_is_said_and_the_work_goes_on() {
    let config = "[plugins]\nlayers = ['trace']\n[plugin.trace]\nfile = '/nonexistent/trace.json'";
    let host = Host::start(&options(config)).expect("a host");
    assert_eq!(work(&host).to_bits(), 3.75f32.to_bits());
    let said = format!("{:?}", host.report());
    assert!(said.contains("/nonexistent/trace.json"), "{said}");
}
