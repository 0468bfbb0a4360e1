//! The layers around our own devices: `validate` finds nothing to report, `record` changes nothing, `fault` does what its script says.

use std::sync::{Arc, Mutex};

use oarlock_core::flags::Flags;
use oarlock_core::{Op, Runtime, Tensor};
use oarlock_host::{BuiltInPlugin, LogLevel, LogSink};
use oarlock_plugin_record::{RecordingFrame, RecordingReader};
use oarlock_tests::bare_host::{CPU_PLUGIN, SIM_PLUGIN, VALIDATE_PLUGIN, host_options};

const FAULT_PLUGIN: BuiltInPlugin = BuiltInPlugin { name: "fault", query: oarlock_plugin_fault::QUERY };
const RECORD_PLUGIN: BuiltInPlugin = BuiltInPlugin { name: "record", query: oarlock_plugin_record::QUERY };

/// Collects what layers say, and warnings.
#[derive(Default)]
struct LayerMessages(Mutex<Vec<String>>);

impl LogSink for LayerMessages {
    fn log(&self, plugin: &str, level: LogLevel, message: &str) {
        if level.0 <= LogLevel::WARNING.0 {
            self.0.lock().expect("no panic").push(format!("{plugin}: {message}"));
        }
    }

    fn log_layer_note(&self, layer: &str, message: &str) {
        self.0.lock().expect("no panic").push(format!("{layer}: {message}"));
    }
}

fn start_runtime(config: &str) -> (Runtime, Arc<LayerMessages>) {
    let built_in = [CPU_PLUGIN, SIM_PLUGIN, FAULT_PLUGIN, RECORD_PLUGIN, VALIDATE_PLUGIN];
    let mut options = host_options("tests 1.0", config, &built_in);
    let heard = Arc::new(LayerMessages::default());
    options.log = heard.clone();
    let flags = Flags::from_environment(|_| None).expect("defaults");
    (Runtime::start(options, flags).expect("a runtime"), heard)
}

/// Ends a runtime, and returns what was said until then.
fn end_runtime(runtime: Runtime, heard: &LayerMessages) -> Vec<String> {
    drop(runtime);
    std::mem::take(&mut *heard.0.lock().expect("no panic"))
}

/// Ops with and without attributes, states and outputs whose shape depends on data, on several streams.
fn run_work(runtime: &Runtime, device: &str) -> Vec<f32> {
    let device = runtime.device(device).expect("a device");
    let op = |name| Op::latest(runtime, name).expect("an op");
    let tensor =
        |dims: &[i64], elements: &[f32]| Tensor::from_slice(&device, dims, elements).expect("a tensor");
    let (a, b) = (tensor(&[2, 3], &[1.0, 0.0, 3.0, 4.0, 0.0, 6.0]), tensor(&[3, 2], &[1.0; 6]));
    let product = op("MatMul").run(runtime, &[&a, &b]).expect("a product");
    let softmax = op("Softmax").run(runtime, &[&product]).expect("a softmax");
    let places = op("NonZero").run(runtime, &[&a]).expect("places");
    assert_eq!(places.dims(), [2, 4]);
    let turned = a.transpose(&[1, 0]).expect("a view");
    let sum = op("Add").run(runtime, &[&turned, &b]).expect("a sum");
    let joined = op("MatMul").run(runtime, &[&sum, &softmax]).expect("a product");
    joined.to_vec::<f32>().expect("a copy")
}

#[test]
fn our_own_devices_break_no_rule() {
    for device in ["cpu", "sim"] {
        let (runtime, heard) = start_runtime("[plugins]\nlayers = ['validate']");
        let (plain, _) = start_runtime("");
        assert_eq!(run_work(&runtime, device), run_work(&plain, device), "{device}");
        let heard = end_runtime(runtime, &heard);
        let [summary] = &heard[..] else { panic!("{device}: {heard:#?}") };
        assert!(summary.starts_with("validate: 0 breaches in "), "{summary}");
    }
}

#[test]
fn layers_stack_and_a_fault_below_is_no_breach() {
    let script = "fail memory_copy_h2d 1 timed-out";
    let config = format!("[plugins]\nlayers = ['validate', 'fault']\n[plugin.fault]\nscript = '{script}'");
    let (runtime, heard) = start_runtime(&config);
    let device = runtime.device("cpu").expect("the CPU");
    let error = Tensor::from_slice(&device, &[1], &[1.0f32]).expect_err("no copy").to_string();
    assert!(error.contains("`memory_copy_h2d` failed as scripted, on its call 1"), "{error}");
    assert!(Tensor::from_slice(&device, &[1], &[1.0f32]).is_ok(), "only the first call fails");
    drop(device);
    let mut heard = end_runtime(runtime, &heard);
    heard.sort();
    assert_eq!(heard[0], "fault: 1 fault as scripted", "{heard:#?}");
    assert!(heard[1].starts_with("validate: 0 breaches in "), "{heard:#?}");
}

/// Writes two numbers to a device through the fault layer, and reads them back.
fn copy_with_fault(script: &str) -> Result<Vec<u8>, String> {
    let config = format!("[plugins]\nlayers = ['fault']\n[plugin.fault]\nscript = '{script}'");
    let (runtime, _) = start_runtime(&config);
    let device = runtime.device("sim").expect("the simulated device");
    let device = device.host_device();
    let failed = |failure: oarlock_host::PluginFailure| failure.to_string();
    let mut block = device.allocate(4).map_err(failed)?;
    block.write_bytes(0, &[8, 8, 8, 8]).map_err(failed)?;
    let mut other = device.allocate(4).map_err(failed)?;
    other.write_bytes(0, &[2, 2, 2, 2]).map_err(failed)?;
    other.copy_from(0, &block, 0, 4).map_err(failed)?;
    let mut bytes = vec![0; 4];
    other.read_bytes(0, &mut bytes).map_err(failed)?;
    Ok(bytes)
}

#[test]
fn a_script_spoils_the_copies_that_it_names() {
    assert_eq!(copy_with_fault(""), Ok(vec![8, 8, 8, 8]));
    assert_eq!(copy_with_fault("lie copy 1"), Ok(vec![9, 8, 8, 8]), "the first copy goes to the device");
    assert_eq!(copy_with_fault("lie copy 3"), Ok(vec![8, 8, 8, 2]), "the third is within the device");
    assert_eq!(copy_with_fault("lie copy 4"), Ok(vec![9, 8, 8, 8]), "the fourth comes back");
    assert_eq!(copy_with_fault("shorten memory_copy_d2d 1"), Ok(vec![8, 8, 2, 2]));
    assert_eq!(copy_with_fault("shorten memory_copy_d2h 1"), Ok(vec![8, 8, 0, 0]));
}

#[test]
fn a_script_makes_calls_fail_in_every_way_that_it_names() {
    for (script, told) in [
        ("fail memory_copy_d2d 1 timed-out", "`memory_copy_d2d` failed as scripted"),
        ("fail_later memory_copy_d2d 1 internal", "`memory_copy_d2d` failed as scripted"),
        ("panic memory_copy_d2h 1", "`memory_copy_d2h` panicked as scripted"),
        ("lose 0 after 8", "device 0 is lost, as scripted after 8 calls"),
        ("fail memory_allocate 100% out-of-memory", "`memory_allocate` failed as scripted"),
    ] {
        let found = copy_with_fault(script).expect_err(script);
        assert!(found.contains(told), "{script}: {found}");
    }
    let patient = copy_with_fault("delay memory_copy_d2d 1 1ms; hang memory_copy_d2h 1 1ms");
    assert_eq!(patient, Ok(vec![8, 8, 8, 8]), "it waits, and goes on");
}

#[test]
fn a_kernel_fails_as_scripted_and_runs_the_next_time() {
    let config = "[plugins]\nlayers = ['fault']\n[plugin.fault]\nscript = 'fail run 1 internal'";
    let (runtime, _) = start_runtime(config);
    let device = runtime.device("cpu").expect("the CPU");
    let number = Tensor::from_slice(&device, &[1], &[4.0f32]).expect("a tensor");
    let root = Op::latest(&runtime, "Sqrt").expect("an op");
    let error = root.run(&runtime, &[&number]).expect_err("a fault").to_string();
    assert!(error.contains("`run` failed as scripted, on its call 1"), "{error}");
    assert_eq!(root.run(&runtime, &[&number]).expect("a root").to_vec::<f32>().expect("a copy"), [2.0]);
}

#[test]
fn a_wrong_script_is_told_and_the_layer_left_out() {
    let config = "[plugins]\nlayers = ['fault']\n[plugin.fault]\nscript = 'fail memory_alocate 1 internal'";
    let (runtime, _) = start_runtime(config);
    let report = format!("{:?}", runtime.host().report());
    assert!(
        report.contains("memory_alocate") && report.contains("the layer `fault` is left out"),
        "{report}"
    );
}

#[test]
fn a_recording_has_every_call_in_order_and_changes_no_result() {
    let place = tempfile::tempdir().expect("a directory");
    for (contents, has_hash, has_bytes) in
        [("full", true, true), ("referenced", true, false), ("shapes", false, false)]
    {
        let file = place.path().join(contents);
        let config = format!(
            "[plugins]\nlayers = ['record']\n[plugin.record]\nfile = '{}'\ncontents = '{contents}'",
            file.display()
        );
        let (runtime, heard) = start_runtime(&config);
        let (plain, _) = start_runtime("");
        assert_eq!(run_work(&runtime, "cpu"), run_work(&plain, "cpu"));
        let [told] = end_runtime(runtime, &heard).try_into().expect("one message");

        let bytes = std::fs::read(&file).expect("a recording");
        let mut reader = RecordingReader::open_recording(&bytes[..]).expect("a recording");
        let (mut targets, mut runs, mut calls, mut outputs) = (Vec::new(), Vec::new(), 0, 0);
        while let Some(frame) = reader.next_frame().expect("a frame") {
            match frame {
                RecordingFrame::Target(target) => targets.push(target),
                RecordingFrame::Slot(_) => {}
                RecordingFrame::Call(call) => {
                    calls += 1;
                    for part in &call.parts {
                        let oarlock_plugin_record::RecordedPart::Kernel(kernel) = part else { continue };
                        runs.push(targets[call.target as usize].op.clone());
                        for output in kernel.outputs.iter().filter_map(|output| output.contents.as_ref()) {
                            outputs += 1;
                            assert_eq!(
                                (output.hash.is_some(), output.bytes.is_some()),
                                (has_hash, has_bytes)
                            );
                        }
                    }
                }
            }
        }
        assert!(!reader.is_cut_off());
        assert_eq!(told, format!("record: {calls} calls in `{}`", file.display()));
        assert_eq!(runs.first().map(String::as_str), Some("MatMul"), "{runs:?}");
        assert!(runs.iter().any(|op| op == "NonZero") && runs.iter().any(|op| op == "Softmax"), "{runs:?}");
        assert_eq!(outputs > 0, has_hash, "{contents}");
    }
}

#[test]
fn a_recording_ends_at_its_limit_and_says_so() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("short");
    let config = format!(
        "[plugins]\nlayers = ['record']\n[plugin.record]\nfile = '{}'\nlimit = '200'",
        file.display()
    );
    let (runtime, heard) = start_runtime(&config);
    run_work(&runtime, "cpu");
    let [told] = end_runtime(runtime, &heard).try_into().expect("one message");
    assert!(told.contains("has reached its limit of 200 bytes") && told.ends_with("more are lost"), "{told}");
    let bytes = std::fs::read(&file).expect("a recording");
    let mut reader = RecordingReader::open_recording(&bytes[..]).expect("a recording");
    while reader.next_frame().expect("a frame").is_some() {}
    assert!(!reader.is_cut_off() && bytes.len() < 2000);
}
