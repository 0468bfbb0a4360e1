//! Plugins that run in a process of their own.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use common::PluginDirectory;
use oarlock_conformance::CheckOutcome;
use oarlock_host::{Host, HostOptions, PluginDevice};

/// Compiles the template of a device plugin in C.
fn compile_template(directory: &PluginDirectory) -> PathBuf {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../device-sdk");
    let file = directory.path().join("libcustom_cpu.so");
    let sources = ["add.c", "custom_cpu.c", "memory.c", "stream.c"].map(|name| sdk.join("templates/c").join(name));
    let built = common::compiler_command()
        .args(["-std=c11", "-O2", "-fPIC", "-shared"])
        .arg("-I")
        .arg(sdk.join("include"))
        .arg("-o")
        .arg(&file)
        .args(sources)
        .status()
        .expect("a C compiler");
    assert!(built.success());
    file
}

fn isolated_options(directory: &PluginDirectory) -> HostOptions {
    let mut options = directory.host_options();
    options.isolate = vec!["*".to_owned()];
    options
}

/// The only device, which runs in another process.
fn only_device(host: &Host) -> PluginDevice {
    let devices = host.devices();
    let [device] = devices.as_slice() else { panic!("{:#?}", host.report()) };
    assert_ne!(device.plugin().process_id().expect("an isolated plugin"), std::process::id());
    device.clone()
}

#[test]
fn the_template_in_c_passes_the_suite_in_a_process_of_its_own() {
    let directory = PluginDirectory::new();
    compile_template(&directory);
    let host = Host::start(&isolated_options(&directory)).expect("a sound configuration");
    let plugin = only_device(&host).plugin().clone();
    let report = plugin.check_conformance(Duration::from_secs(30), &mut |_| {}).expect("a device");
    let failed = report.results.iter().filter(|result| matches!(result.outcome, CheckOutcome::Failed(_))).count();
    assert_eq!(failed, 0, "{}", report.render_text());
}

#[test]
fn memory_goes_there_and_back_at_any_size() {
    let directory = PluginDirectory::new();
    compile_template(&directory);
    let host = Host::start(&isolated_options(&directory)).expect("a sound configuration");
    let device = only_device(&host);
    for size in [1, 4095, 256 << 10, (256 << 10) + 1, 5_000_000] {
        let data: Vec<u8> = (0..size).map(|index| (index * 7 % 251) as u8).collect();
        let mut block = device.allocate(size as u64).expect("memory");
        block.write_bytes(0, &data).expect("a copy");
        let mut back = vec![0; size];
        block.read_bytes(0, &mut back).expect("a copy");
        assert!(back == data, "{size}");
    }
    let described = device.describe_device().expect("a description");
    assert!(!described.flags.contains(oarlock_host::DeviceFlags::HOST_ADDRESSABLE), "addresses of another process");
}

fn kill_process(number: u32) {
    let status = Command::new("kill").args(["-KILL", &number.to_string()]).status().expect("`kill`");
    assert!(status.success());
}

#[test]
fn a_killed_process_is_a_lost_device_and_a_new_one_can_be_started() {
    let directory = PluginDirectory::new();
    compile_template(&directory);
    let mut host = Host::start(&isolated_options(&directory)).expect("a sound configuration");
    let device = only_device(&host);
    let process = device.plugin().process_id().expect("an isolated plugin");
    let block = device.allocate(64).expect("memory");
    kill_process(process);
    let failure = device.allocate(64).expect_err("the process is gone");
    assert!(failure.is_device_lost());
    let text = failure.to_string();
    for part in ["custom-cpu", "core.memory_allocate", &process.to_string(), "SIGKILL"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    drop(block);
    drop(device);
    host = Host::start(&isolated_options(&directory)).expect("a sound configuration");
    only_device(&host).allocate(64).expect("a new process");
}
