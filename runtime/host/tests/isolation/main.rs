//! Plugins that run in a process of their own.

#[path = "../common/mod.rs"]
mod common;
mod deaths;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::{PluginDirectory, compiler_command, refusal_of};
use oarlock_conformance::CheckOutcome;
use oarlock_conformance::SuiteSettings;
use oarlock_host::{Digest, Host, HostConfig, HostOptions, PluginDevice, RefusalReason};

/// Some of these tests count what the process has open, so they run one after another.
fn wait_for_turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Compiles the template of a device plugin in C.
fn compile_template(directory: &PluginDirectory) {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../device-sdk");
    let sources =
        ["add.c", "custom_cpu.c", "memory.c", "stream.c"].map(|name| sdk.join("templates/c").join(name));
    let built = compiler_command()
        .args(["-std=c11", "-O2", "-fPIC", "-shared"])
        .arg("-I")
        .arg(sdk.join("include"))
        .arg("-o")
        .arg(directory.path().join("libcustom_cpu.so"))
        .args(sources)
        .status()
        .expect("a C compiler");
    assert!(built.success());
}

/// Options for a host that isolates every plugin of the directory.
fn isolating_options(directory: &PluginDirectory) -> HostOptions {
    let mut options = directory.host_options();
    options.isolate = vec!["*".to_owned()];
    options
}

/// The only device, whose plugin is isolated.
fn only_device(host: &Host) -> PluginDevice {
    let devices = host.devices();
    let [device] = devices.as_slice() else { panic!("{:#?}", host.report()) };
    assert_ne!(device.plugin().process_id().expect("an isolated plugin"), std::process::id());
    device.clone()
}

fn kill_process(number: u32) {
    let number = rustix::process::Pid::from_raw(number.cast_signed()).expect("the number of a process");
    rustix::process::kill_process(number, rustix::process::Signal::KILL).expect("a process of ours");
}

#[test]
fn the_template_in_c_passes_the_suite_in_a_process_of_its_own() {
    let _alone = wait_for_turn();
    let directory = PluginDirectory::new();
    compile_template(&directory);
    let host = Host::start(&isolating_options(&directory)).expect("a sound configuration");
    let plugin = only_device(&host).plugin().clone();
    let report = plugin.check_conformance(&[], &SuiteSettings::default(), &mut |_| {}).expect("a report");
    let is_failed = |outcome: &CheckOutcome| matches!(outcome, CheckOutcome::Failed(_));
    let failed = report.results.iter().filter(|result| is_failed(&result.outcome)).count();
    assert_eq!(failed, 0, "{}", report.render_text());
    assert!(report.results.len() > 40, "the suite ran");
}

#[test]
fn memory_goes_there_and_back_at_any_size() {
    let _alone = wait_for_turn();
    let directory = PluginDirectory::new();
    compile_template(&directory);
    let host = Host::start(&isolating_options(&directory)).expect("a sound configuration");
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
    assert!(
        !described.flags.contains(oarlock_host::DeviceFlags::HOST_ADDRESSABLE),
        "addresses of another process"
    );
}

#[test]
fn a_killed_process_is_a_lost_device_and_a_new_one_can_be_started() {
    let _alone = wait_for_turn();
    let directory = PluginDirectory::new();
    compile_template(&directory);
    let mut host = Host::start(&isolating_options(&directory)).expect("a sound configuration");
    let device = only_device(&host);
    let process = device.plugin().process_id().expect("an isolated plugin");
    let block = device.allocate(64).expect("memory");
    let stream = device.create_stream(0).expect("a stream");
    kill_process(process);
    let failure = device.allocate(64).expect_err("the process is gone");
    assert!(failure.is_device_lost());
    let text = failure.to_string();
    for part in ["custom-cpu", "core.memory_allocate", &process.to_string(), "SIGKILL"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(stream.synchronize().expect_err("the process is gone").is_device_lost());
    let text = device.memory_stats().expect_err("the process is gone").to_string();
    assert!(text.contains("core.memory_stats"), "{text}");
    drop((block, stream, device));
    host = Host::start(&isolating_options(&directory)).expect("a sound configuration");
    only_device(&host).allocate(64).expect("a new process");
}

#[test]
fn only_chosen_and_unknown_plugins_are_isolated() {
    let _alone = wait_for_turn();
    let directory = PluginDirectory::new();
    let file = directory.compile_plugin("good", &[]);
    let digest = Digest::hash_bytes(&std::fs::read(file).expect("the plugin"));
    let is_isolated = |text: &str, isolate: &[&str]| {
        let mut options = directory.host_options();
        options.config =
            HostConfig::parse_file(Path::new("x.toml"), text.as_bytes()).expect("a sound configuration");
        options.isolate = isolate.iter().map(|name| (*name).to_owned()).collect();
        let host = Host::start(&options).expect("a sound configuration");
        host.plugin("good").unwrap_or_else(|| panic!("{:#?}", host.report())).process_id().is_some()
    };
    assert!(directory.start_host().plugin("good").expect("a plugin").process_id().is_none());
    assert!(is_isolated("", &["goo*"]) && !is_isolated("", &["bad"]));
    assert!(is_isolated("[plugins]\nisolate = ['good']", &[]));
    assert!(is_isolated("[plugins]\nisolation = 'always'", &[]));
    assert!(is_isolated("[plugins]\nisolation = 'unknown'", &[]));
    let known = format!("[plugins]\nisolation = 'unknown'\ntrusted_files = ['{digest}']");
    assert!(!is_isolated(&known, &[]));
}

#[test]
fn a_name_that_isolates_nothing_is_noted() {
    let _alone = wait_for_turn();
    let directory = PluginDirectory::new();
    directory.compile_plugin("good", &[]);
    let mut options = directory.host_options();
    options.isolate = vec!["good".to_owned(), "bad".to_owned(), "b*".to_owned()];
    let host = Host::start(&options).expect("a sound configuration");
    assert_eq!(host.report().notes, ["expected a plugin called `bad` to isolate, found none that works"]);
}

#[test]
fn an_isolated_plugin_does_not_reach_its_parent() {
    let _alone = wait_for_turn();
    let directory = PluginDirectory::new();
    directory.compile_plugin("good", &["REACHES_PARENT"]);
    let (reason, text) = refusal_of(&directory.start_host(), "good");
    assert_eq!(reason, RefusalReason::PluginError, "{text}");
    assert!(text.contains("found one"), "outside of a child it reaches the parent of this program: {text}");
    let host = Host::start(&isolating_options(&directory)).expect("a sound configuration");
    let devices = host.devices();
    devices.first().unwrap_or_else(|| panic!("{:#?}", host.report())).allocate(8).expect("memory");
}

#[test]
fn a_plugin_that_writes_to_the_connection_is_refused() {
    let _alone = wait_for_turn();
    let directory = PluginDirectory::new();
    directory.compile_plugin("good", &["FORGES"]);
    let host = Host::start(&isolating_options(&directory)).expect("a sound configuration");
    let (reason, text) = refusal_of(&host, "good");
    assert_eq!(reason, RefusalReason::PluginError, "{text}");
    assert!(text.contains("a process that describes its plugin"), "{text}");
}

#[test]
fn a_plugin_whose_process_crashes_is_refused() {
    let _alone = wait_for_turn();
    let directory = PluginDirectory::new();
    let file = directory.compile_plugin("good", &["FAULT_INITIALIZE_CRASH"]);
    let contract = oarlock_host::HOST_CONTRACT;
    let manifest = format!(
        "name = \"good\"\nkind = \"device\"\ndevice_type = \"good\"\nprofiles = [\"core\"]\nversion = \"1.2.3\"\n\
         contract = \"{}.0\"\narchitecture = \"{}-linux\"\nisolated = true\n",
        contract.major,
        std::env::consts::ARCH
    );
    std::fs::write(oarlock_host::PluginManifest::path_beside(&file), manifest)
        .expect("the directory is ours");
    // Its manifest asks for a process of its own.
    let (reason, text) = refusal_of(&directory.start_host(), "good");
    assert_eq!(reason, RefusalReason::PluginError, "{text}");
    assert!(text.contains("core.initialize") && text.contains("SIGSEGV"), "{text}");
}
