//! The simulated device in a process of its own: the suite, a model, and the loss of the process.
//!
//! This program is also the child: the host starts it with `__probe` and a file.

#![expect(unsafe_code, reason = "work in a stream uses memory that the test keeps alive")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use oarlock_conformance::CheckOutcome;
use oarlock_conformance::SuiteSettings;
use oarlock_core::flags::Flags;
use oarlock_core::{Runtime, Tensor};
use oarlock_engine::import::load_model;
use oarlock_engine::{RuntimeValue, Session, SessionOptions};
use oarlock_host::{Host, HostOptions, PluginDevice, ProbeCommand, probe_child_main};
use oarlock_tests::bare_host::{CPU_PLUGIN, SIM_PLUGIN, host_options};

const PROBE_COMMAND: &str = "__probe";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == PROBE_COMMAND) {
        return probe_child_main(Path::new(&arguments.next().unwrap_or_default()), &[]);
    }
    let trials = vec![
        Trial::test("the simulated device passes the suite in a process of its own", pass_the_suite),
        Trial::test("a model computes the same in another process", run_a_model),
        Trial::test("a model whose process is killed fails, and runs again in a new one", lose_a_process),
        Trial::test("a plugin that aborts in a call is a lost device", abort_in_a_call),
        Trial::test("a call that exceeds its limit ends the process", exceed_the_limit),
        Trial::test(
            "a failure that nobody waited for is reported by the stream and by a later event",
            fail_in_a_stream,
        ),
        Trial::test("a callback whose process ends runs once, and is told of the loss", lose_a_callback),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Options for a host that finds the simulated device as a file, and runs it in a process of its own.
fn isolated_sim(directory: &Path, script: &str) -> Result<HostOptions, Failed> {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    let file = directory.join("liboarlock_plugin_sim.so");
    fs::copy(std::env::current_exe()?.with_file_name("liboarlock_plugin_sim.so"), &file)?;
    let config = format!("[plugin.{}]\nscript = \"{script}\"\n", SIM_PLUGIN.name);
    let mut options = host_options("isolation 1.0", &config, &[CPU_PLUGIN]);
    options.paths = vec![file];
    options.isolate = vec![SIM_PLUGIN.name.to_owned()];
    options.cache_home = Some(directory.join("cache"));
    options.probe =
        Some(ProbeCommand { program: std::env::current_exe()?, arguments: vec![PROBE_COMMAND.into()] });
    Ok(options)
}

fn pass_the_suite() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let host = Host::start(&isolated_sim(directory.path(), "quota 32MiB; ops Add,MatMul,Relu")?)?;
    let plugin = host.plugin(SIM_PLUGIN.name).ok_or_else(|| format!("{:#?}", host.report()))?;
    let report = plugin.check_conformance(&[], &SuiteSettings::default(), &mut |_| {})?;
    let is_failed = |outcome: &CheckOutcome| matches!(outcome, CheckOutcome::Failed(_));
    match report.results.iter().find(|result| is_failed(&result.outcome)) {
        None => Ok(()),
        Some(_) => Err(report.render_text().into()),
    }
}

fn default_flags() -> Result<Flags, Failed> {
    Ok(Flags::from_environment(|_| None)?)
}

/// Runs the model of the book on `sim`, all of it, and returns its outputs.
fn run_digits(runtime: &Arc<Runtime>) -> Result<Vec<Vec<u8>>, Failed> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/models/digits.onnx");
    let options = SessionOptions { devices: vec![runtime.device("sim")?], ..SessionOptions::default() };
    let session = Session::new(runtime.clone(), &load_model(&file)?, &options)?;
    let device = runtime.device("sim")?;
    let image = Tensor::from_fn(&device, &[2, 1, 8, 8], |index| (index % 17) as f32 / 16.0)?;
    let inputs = [RuntimeValue::Tensor(image)];
    let summary = session.fallback_summary(&inputs)?;
    if summary.fallback_nodes() > 0 || summary.nodes_by_device.get("sim:0").is_none_or(|count| *count == 0) {
        return Err(format!("expected the device to run the model, found {summary:?}").into());
    }
    let bytes = |value: &RuntimeValue| match value {
        RuntimeValue::Tensor(tensor) => Ok(tensor.to_bytes()?),
        _ => Err(Failed::from("expected tensors")),
    };
    session.run(&inputs)?.iter().map(bytes).collect()
}

fn run_a_model() -> Result<(), Failed> {
    let script = "mode random; seed 3; devices 1";
    let directory = tempfile::tempdir()?;
    let apart = Arc::new(Runtime::start(isolated_sim(directory.path(), script)?, default_flags()?)?);
    let config = format!("[plugin.{}]\nscript = \"{script}\"\n", SIM_PLUGIN.name);
    let here = host_options("isolation 1.0", &config, &[CPU_PLUGIN, SIM_PLUGIN]);
    let here = Arc::new(Runtime::start(here, default_flags()?)?);
    let process = |runtime: &Arc<Runtime>| {
        runtime.host().plugin(SIM_PLUGIN.name).and_then(|plugin| plugin.process_id())
    };
    if process(&apart).is_none() || process(&here).is_some() {
        return Err("expected one runtime whose device is isolated, and one whose device is not".into());
    }
    let (one, other) = (run_digits(&apart)?, run_digits(&here)?);
    if one == other { Ok(()) } else { Err(format!("{one:?} differs from {other:?}").into()) }
}

fn lose_a_process() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let options = isolated_sim(directory.path(), "devices 1")?;
    let runtime = Arc::new(Runtime::start(options.clone(), default_flags()?)?);
    let expected = run_digits(&runtime)?;
    let plugin = runtime.host().plugin(SIM_PLUGIN.name).ok_or("the plugin")?;
    let process = plugin.process_id().ok_or("a process")?;
    let killed = std::process::Command::new("kill").args(["-KILL", &process.to_string()]).status()?;
    assert!(killed.success());
    let device = runtime.device("sim")?;
    let failure = Tensor::from_slice(&device, &[1], &[1.0_f32]).and_then(|tensor| tensor.to_bytes());
    match failure {
        Err(error) if error.is_device_lost() => {}
        other => return Err(format!("expected a lost device, found {other:?}").into()),
    }
    drop(device);
    let again = Arc::new(Runtime::start(options, default_flags()?)?);
    if run_digits(&again)? == expected { Ok(()) } else { Err("other results in a new process".into()) }
}

/// A host whose only device is the isolated simulated one, with a limit on the time of calls.
fn start_alone(directory: &Path, script: &str) -> Result<(Host, PluginDevice), Failed> {
    let mut options = isolated_sim(directory, &format!("devices 1; ops Add; {script}"))?;
    options.config.plugins.isolated.call_timeout_ms = Some(2000);
    let host = Host::start(&options)?;
    let device = host.device("sim").ok_or_else(|| format!("{:#?}", host.report()))?;
    Ok((host, device))
}

fn abort_in_a_call() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let (_host, device) = start_alone(directory.path(), "abort memory_copy_h2d 2")?;
    let mut block = device.allocate(8)?;
    block.write_bytes(0, &[1; 8])?;
    let failure = block.write_bytes(0, &[2; 8]).err().ok_or("the process has ended")?;
    let text = failure.to_string();
    assert!(
        failure.is_device_lost() && text.contains("SIGABRT") && text.contains("memory_copy_h2d"),
        "{text}"
    );
    Ok(())
}

fn exceed_the_limit() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let (_host, device) = start_alone(directory.path(), "hang memory_stats 1")?;
    let failure = device.memory_stats().err().ok_or("the call hangs")?;
    let text = failure.to_string();
    assert!(failure.is_device_lost() && text.contains("longer than the limit of 2s"), "{text}");
    Ok(())
}

fn fail_in_a_stream() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let (_host, device) = start_alone(directory.path(), "fail memory_set_async 1 unavailable")?;
    let (stream, event) = (device.create_stream(0)?, device.create_event()?);
    let mut block = device.allocate(8)?;
    // SAFETY: the block lives until the stream is synchronized, here and below.
    unsafe { block.fill_on_stream(&stream, 0, 7, 8)? };
    stream.record_event(&event)?;
    let of_event = event.synchronize().err().ok_or("the fill failed before the event")?;
    let of_stream = stream.synchronize().err().ok_or("the fill failed in the stream")?;
    assert_eq!((of_event.code, &of_event.message), (of_stream.code, &of_stream.message));
    assert!(!of_stream.is_device_lost() && of_stream.origin == SIM_PLUGIN.name, "{of_stream:?}");
    stream.synchronize()?;
    // SAFETY: as above.
    unsafe { block.fill_on_stream(&stream, 0, 7, 8)? };
    stream.synchronize()?;
    let mut bytes = [0; 8];
    block.read_bytes(0, &mut bytes)?;
    assert_eq!(bytes, [7; 8]);
    Ok(())
}

fn lose_a_callback() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let (_host, device) = start_alone(directory.path(), "hang stream_add_callback 1")?;
    let stream = device.create_stream(0)?;
    let (sender, receiver) = channel();
    // The limit on calls ends the process.
    stream.add_callback(move |result| _ = sender.send(result))?;
    let told = receiver.recv_timeout(Duration::from_secs(60))?;
    assert!(told.is_err_and(|failure| failure.is_device_lost()));
    // The sender is gone, so the callback cannot run again.
    assert!(receiver.recv_timeout(Duration::from_secs(60)).is_err());
    Ok(())
}
