//! The simulated device, loaded like a vendor's plugin, and the host's reaction to each scripted fault.

use oarlock_core::flags::Flags;
use oarlock_core::{Op, Runtime, Tensor};
use oarlock_host::{Code, Host, HostOptions, PluginDevice, PluginFailure, RefusalReason};
use oarlock_sdk::abi;
use oarlock_tests::bare_host::{CPU_PLUGIN, host_options};

const FRESH_POISON: u8 = 0xCD;

/// A host that sees only the simulated device, set up by a script.
fn start_host(script: &str) -> (Host, tempfile::TempDir) {
    let (options, place) = scripted_options(script);
    (Host::start(&options).expect("a host"), place)
}

/// The core on such a host, which also has the CPU.
fn start_core(script: &str) -> (Runtime, tempfile::TempDir) {
    let (mut options, place) = scripted_options(script);
    options.built_in = vec![CPU_PLUGIN];
    let flags = Flags::from_environment(|_| None).expect("defaults");
    (Runtime::start(options, flags).expect("a runtime"), place)
}

fn scripted_options(script: &str) -> (HostOptions, tempfile::TempDir) {
    let place = tempfile::tempdir().expect("a directory");
    let here = std::env::current_exe().expect("this program");
    let built = here.with_file_name("liboarlock_plugin_sim.so");
    let file = place.path().join("liboarlock_plugin_sim.so");
    std::fs::copy(&built, &file).expect("the plugin is built beside this program");
    let manifest = "name = 'oarlock-sim'\nversion = '0.1.0'\nkind = 'device'\ndevice_type = 'sim'\n\
                    profiles = ['core', 'async']\n";
    let abi::Versions { major, oldest_minor, newest_minor } = abi::Versions::OURS;
    let contract = format!("contract = '{major}.{oldest_minor}..{major}.{newest_minor}'\n");
    let architecture = format!("architecture = '{}-linux'\n", std::env::consts::ARCH);
    std::fs::write(file.with_extension("oarlock.toml"), format!("{manifest}{contract}{architecture}"))
        .expect("a manifest");
    let config = format!("[plugin.oarlock-sim]\nscript = '{script}'");
    let mut options = host_options("tests 1.0", &config, &[]);
    options.paths = vec![file];
    (options, place)
}

fn open_device(host: &Host, name: &str) -> PluginDevice {
    host.device(name).unwrap_or_else(|| panic!("no `{name}`: {:#?}", host.report()))
}

fn plugin_refusal(script: &str) -> (RefusalReason, String) {
    let (host, _place) = start_host(script);
    let refusal = host.report().refusals().next().unwrap_or_else(|| panic!("it loads: {:#?}", host.report()));
    (refusal.reason, refusal.to_string())
}

fn read_device_bytes(device: &PluginDevice, size: usize) -> Result<Vec<u8>, PluginFailure> {
    let mut block = device.allocate(size as u64)?;
    block.write_bytes(0, &vec![7; size])?;
    let mut bytes = vec![0; size];
    block.read_bytes(0, &mut bytes)?;
    Ok(bytes)
}

fn add_on_device(runtime: &Runtime, device: &str) -> Vec<i32> {
    let device = runtime.device(device).expect("the device");
    let number = |value: i32| Tensor::from_slice(&device, &[1], &[value]).expect("a tensor");
    let add = Op::latest(runtime, "Add").expect("an op");
    let sum = add.run(runtime, &[&number(40), &number(2)]).expect("a sum");
    sum.to_vec().expect("a copy")
}

#[test]
fn several_devices_with_scattered_ids_copy_and_compute() {
    let (runtime, _place) = start_core("ids 3,9; mode random; seed 5");
    let host = runtime.host();
    for name in ["sim:3", "sim:9"] {
        assert_eq!(read_device_bytes(&open_device(host, name), 1000).expect("copies"), [7; 1000]);
        assert_eq!(add_on_device(&runtime, name), [42]);
    }
    assert!(host.device("sim:0").is_none());
    assert!(host.device_reports().iter().all(|report| report.simulated == report.device.starts_with("sim:")));
}

#[test]
fn an_allocation_that_fails_leaves_the_device_usable() {
    let (host, _place) = start_host("fail memory_allocate 2 out-of-memory; quota 1MiB");
    let device = open_device(&host, "sim:0");
    assert!(read_device_bytes(&device, 16).is_ok());
    assert_eq!(device.allocate(16).expect_err("the second one fails").code, Code::RESOURCE_EXHAUSTED);
    assert_eq!(device.allocate(2 << 20).expect_err("more than there is").code, Code::RESOURCE_EXHAUSTED);
    assert!(read_device_bytes(&device, 16).is_ok());
}

#[test]
fn a_lost_device_says_so_and_the_other_goes_on() {
    let (host, _place) = start_host("lose 0 after 8");
    let (lost, other) = (open_device(&host, "sim:0"), open_device(&host, "sim:1"));
    let failure = (0..20).find_map(|_| read_device_bytes(&lost, 16).err()).expect("it is lost at some point");
    assert!(failure.is_device_lost(), "{failure}");
    assert!(read_device_bytes(&lost, 16).expect_err("it stays lost").is_device_lost());
    assert_eq!(read_device_bytes(&other, 16).expect("the other device works"), [7; 16]);
}

#[test]
fn a_panic_in_the_plugin_is_an_error_and_the_next_call_works() {
    let (host, _place) = start_host("panic memory_set 1");
    let device = open_device(&host, "sim:0");
    let mut block = device.allocate(16).expect("memory");
    let failure = block.fill_bytes(0, 1, 16).expect_err("it panics");
    assert_eq!(failure.code, Code::FATAL);
    assert!(failure.message.contains("the plugin panicked at plugins/sim/src/engine.rs:"), "{failure}");
    assert!(block.fill_bytes(0, 1, 16).is_ok());
}

#[test]
fn what_an_optional_slot_would_do_is_done_without_it() {
    let (host, _place) = start_host("missing memory_set; missing memory_copy_p2p; missing stream_query");
    let (first, second) = (open_device(&host, "sim:0"), open_device(&host, "sim:1"));
    let mut block = first.allocate(64).expect("memory");
    block.fill_bytes(8, 5, 16).expect("filled by a copy");
    let mut target = second.allocate(64).expect("memory");
    target.copy_from(0, &block, 8, 16).expect("copied by way of the host");
    let mut bytes = [0; 16];
    target.read_bytes(0, &mut bytes).expect("a copy");
    assert_eq!(bytes, [5; 16]);
    assert!(first.create_stream(0).expect("a stream").is_done().expect("it is asked"));
}

#[test]
fn a_program_that_does_not_wait_reads_poison() {
    let (host, _place) = start_host("mode lazy");
    let device = open_device(&host, "sim:0");
    let stream = device.create_stream(0).expect("a stream");
    let mut block = device.allocate(32).expect("memory");
    let (source, mut early, mut late) = ([1u8; 32], [0u8; 32], [0u8; 32]);
    enqueue_write(&mut block, &stream, &source);
    block.read_bytes(0, &mut early).expect("a copy");
    stream.synchronize().expect("the work is done");
    block.read_bytes(0, &mut late).expect("a copy");
    assert_eq!((early, late), ([FRESH_POISON; 32], source));
}

#[expect(unsafe_code, reason = "an asynchronous copy trusts its caller with the host's memory")]
fn enqueue_write(block: &mut oarlock_host::DeviceBlock, stream: &oarlock_host::PluginStream, source: &[u8]) {
    // SAFETY: the test keeps the source until it has synchronized the stream.
    unsafe { block.write_on_stream(stream, 0, source) }.expect("the copy is queued");
}

#[test]
fn a_stream_error_is_reported_by_the_next_wait() {
    let (host, _place) = start_host("fail_later memory_copy_h2d_async 1 internal");
    let device = open_device(&host, "sim:0");
    let stream = device.create_stream(0).expect("a stream");
    let mut block = device.allocate(32).expect("memory");
    let source = [1u8; 32];
    enqueue_write(&mut block, &stream, &source);
    assert_eq!(stream.synchronize().expect_err("the copy failed").code, Code::EXTERNAL);
    assert!(stream.synchronize().is_ok(), "it is told once");
}

#[test]
fn a_plugin_that_lies_about_its_devices_is_refused() {
    let (reason, message) = plugin_refusal("lie device_count 7");
    assert_eq!(reason, RefusalReason::ContractBroken);
    assert!(message.contains("D-1"), "{message}");
}

#[test]
fn a_table_without_a_required_slot_is_refused_by_name() {
    let (reason, message) = plugin_refusal("missing memory_copy_d2d");
    assert_eq!(reason, RefusalReason::SlotMissing);
    assert!(message.contains("`memory_copy_d2d`"), "{message}");
}

#[test]
fn a_table_too_short_is_refused_and_a_longer_one_that_is_empty_behind_is_taken() {
    let (reason, message) = plugin_refusal("short core 64");
    assert_eq!(reason, RefusalReason::ContractBroken);
    assert!(message.contains("S-2"), "{message}");
    let (host, _place) = start_host("long core 4096; long async 4096");
    assert!(read_device_bytes(&open_device(&host, "sim:0"), 16).is_ok());
}

#[test]
fn a_device_that_cannot_be_readied_and_a_script_that_is_wrong_are_told_in_their_own_words() {
    let (reason, message) = plugin_refusal("fail device_init 1 internal; fail device_init 2 internal");
    assert_eq!(reason, RefusalReason::PluginError);
    assert!(message.contains("device_init"), "{message}");
    let (reason, message) = plugin_refusal("fail memory_alocate 1 internal");
    assert_eq!(reason, RefusalReason::PluginError);
    assert!(message.contains("`memory_alocate`"), "{message}");
    assert!(plugin_refusal("sead 7").1.contains("seed"));
}

#[test]
fn a_device_that_cannot_be_readied_is_left_out_with_a_note_and_the_other_works() {
    let (host, _place) = start_host("fail device_init 2 internal");
    assert!(host.device("sim:1").is_none());
    assert_eq!(read_device_bytes(&open_device(&host, "sim:0"), 16).expect("the other device works"), [7; 16]);
    let (report, loaded) = host.report().loaded_plugins().next().expect("it loads");
    assert_eq!(loaded.devices, ["sim:0"]);
    assert!(report.notes[0].contains("`sim:1`") && report.notes[0].contains("device_init"), "{report:?}");
}

#[test]
fn a_built_in_plugin_and_a_loaded_one_work_side_by_side() {
    let (runtime, _place) = start_core("seed 1");
    assert_eq!((add_on_device(&runtime, "sim"), add_on_device(&runtime, "cpu")), (vec![42], vec![42]));
}
