//! Hosts with real plugins: valid ones work, and each kind of invalid one is refused for its specific reason.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod common;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use common::{PluginDirectory, refusal_of};
use oarlock_host::{Host, PluginManifest, RefusalReason, live_errors};

/// Every fault that can be found in a plugin's answer, the reason for its refusal, and a part of the message.
const FAULTS: [(&str, RefusalReason, &str); 20] = [
    ("FAULT_MAJOR", RefusalReason::ContractVersion, "update `oarlock`"),
    ("FAULT_NEEDS_NEWER", RefusalReason::ContractVersion, "update `oarlock`"),
    ("FAULT_ERROR", RefusalReason::PluginError, "expected a driver, found none"),
    ("FAULT_JUNK_ERROR", RefusalReason::PluginError, "rule R-1"),
    ("FAULT_NO_NAME", RefusalReason::BadName, "rule E-4"),
    ("FAULT_NOT_UTF8", RefusalReason::BadName, "rule S-5"),
    ("FAULT_LONG_NAME", RefusalReason::BadName, "rule E-4"),
    ("FAULT_SLOT", RefusalReason::SlotMissing, "`memory_stats` of the table `core` (rule P-1)"),
    ("FAULT_PAIR", RefusalReason::ContractBroken, "rule P-2"),
    ("FAULT_SHORT", RefusalReason::ContractBroken, "rule S-2"),
    ("FAULT_LONG", RefusalReason::ContractBroken, "rule S-3"),
    ("FAULT_NO_CORE", RefusalReason::ContractBroken, "rule E-5"),
    ("FAULT_PLUGIN_LONG", RefusalReason::ContractBroken, "rule S-3"),
    ("FAULT_OVERRUN", RefusalReason::ContractBroken, "rule S-3"),
    ("FAULT_RANKS", RefusalReason::ContractBroken, "rule K-1"),
    ("FAULT_NO_RUN", RefusalReason::ContractBroken, "rule K-2"),
    ("FAULT_PREPARE_WITHOUT_RELEASE", RefusalReason::ContractBroken, "rule K-2"),
    ("FAULT_INITIALIZE", RefusalReason::PluginError, "found it asleep"),
    ("FAULT_LIST_SHORT", RefusalReason::ContractBroken, "rule D-1"),
    ("FAULT_LIST_TWICE", RefusalReason::ContractBroken, "rule D-1"),
];

/// Writes a manifest beside a plugin, so that it loads without a probe.
fn write_manifest(file: &Path, change: impl Fn(String) -> String) {
    let name = file.file_stem().unwrap().to_str().unwrap();
    let text = format!(
        "name = \"{name}\"\nversion = \"1.2.3\"\nkind = \"device\"\ndevice_type = \"{name}\"\n\
         contract = \"1.0\"\nprofiles = [\"core\"]\narchitecture = \"{}-linux\"\n",
        std::env::consts::ARCH
    );
    std::fs::write(PluginManifest::path_beside(file), change(text)).unwrap();
}

fn plugin_names(host: &Host) -> Vec<&str> {
    host.plugins().iter().map(|plugin| plugin.info().name.as_str()).collect()
}

#[test]
fn each_fault_is_refused_for_its_own_reason_and_the_good_plugin_works_beside_them() {
    let place = PluginDirectory::new();
    place.compile_plugin("good", &[]);
    for (fault, ..) in FAULTS {
        write_manifest(&place.compile_plugin(fault, &[fault]), |text| text);
    }
    let host = place.start_host();
    assert_eq!(plugin_names(&host), ["good"]);
    for (fault, reason, words) in FAULTS {
        let (found, message) = refusal_of(&host, fault);
        assert!(found == reason && message.contains(words), "{fault}: {found:?}, {message}");
        assert!(message.contains(&format!("{fault}.so`: expected ")), "{message}");
    }
    assert_eq!(host.devices().len(), 2);
}

#[test]
fn the_next_variant_stands_in_for_one_that_is_refused_while_it_is_loaded_or_started() {
    let place = PluginDirectory::new();
    let isa = if cfg!(target_arch = "x86_64") { "sse3" } else { "neon" };
    for (file, fault, isa) in [
        ("a.so", "FAULT_SLOT", Some(isa)),
        ("b.so", "FAULT_INITIALIZE", Some(isa)),
        ("c.so", "LONG_ZERO", Some(isa)),
        ("d.so", "LONG_ZERO", None),
    ] {
        let built = place.compile_plugin("npu", &[fault]);
        write_manifest(&built, |text| isa.map_or(text.clone(), |isa| format!("{text}isa = \"{isa}\"\n")));
        let file = place.path().join(file);
        std::fs::rename(PluginManifest::path_beside(&built), PluginManifest::path_beside(&file)).unwrap();
        std::fs::rename(built, file).unwrap();
    }
    let host = place.start_host();
    assert!(host.plugin("npu").unwrap().file().ends_with("c.so"));
    assert_eq!(refusal_of(&host, "a").0, RefusalReason::SlotMissing);
    assert_eq!(refusal_of(&host, "b").0, RefusalReason::PluginError);
    assert_eq!(refusal_of(&host, "d").0, RefusalReason::BetterVariant);
    let (report, _) = host.report().loaded_plugins().next().unwrap();
    assert!(report.notes.iter().any(|note| note.contains("b.so`, which is refused")), "{:?}", report.notes);
}

#[test]
fn the_same_faults_are_found_by_a_probe() {
    let place = PluginDirectory::new();
    for (fault, ..) in FAULTS {
        place.compile_plugin(fault, &[fault]);
    }
    let host = place.start_host();
    for (fault, reason, _) in FAULTS {
        assert_eq!(refusal_of(&host, fault).0, reason, "{fault}");
    }
}

#[test]
fn memory_and_defaults_work_on_a_device() {
    let place = PluginDirectory::new();
    place.compile_plugin("good", &["LONG_ZERO"]);
    let host = place.start_host();
    let device = host.device("good:7").unwrap();
    assert_eq!(device.to_string(), "good:7");
    assert_eq!(host.device("good").unwrap().id(), 0);
    assert!(host.device("good:1").is_none() && host.device("none").is_none());

    let mut block = device.allocate(100).unwrap();
    block.fill_bytes(0, 7, 100).unwrap();
    block.write_bytes(10, &[1, 2, 3]).unwrap();
    let mut other = host.device("good:0").unwrap().allocate(10).unwrap();
    other.copy_from(0, &block, 8, 10).unwrap();
    let mut bytes = [0; 10];
    other.read_bytes(0, &mut bytes).unwrap();
    assert_eq!(bytes, [7, 7, 1, 2, 3, 7, 7, 7, 7, 7]);
    assert_eq!(block.read_bytes(95, &mut bytes).unwrap_err().rule, "M-2");
    assert_eq!(device.allocate(0).unwrap().size(), 0);
    assert_eq!(device.memory_sizes().unwrap().max_chunk, 1 << 29);

    let stream = device.create_stream(0).unwrap();
    let event = device.create_event().unwrap();
    stream.record_event(&event).unwrap();
    stream.wait_for(&event).unwrap();
    assert!(stream.is_done().unwrap() && event.has_happened().unwrap());
    let (sender, receiver) = std::sync::mpsc::channel();
    stream.add_callback(move |result| sender.send(result).unwrap()).unwrap();
    receiver.recv().unwrap().unwrap();
    let mut pinned = device.allocate_pinned(4).unwrap();
    pinned.as_bytes_mut().copy_from_slice(&[1, 2, 3, 4]);
    assert!(!pinned.is_locked());

    let live = device.plugin().live_handles();
    assert_eq!((live.blocks, live.streams, live.events, live.pinned), (2, 1, 1, 1));
}

#[test]
fn errors_of_a_plugin_are_read_and_released() {
    let place = PluginDirectory::new();
    place.compile_plugin("good", &[]);
    let host = place.start_host();
    let device = host.device("good").unwrap();
    let failure = device.allocate(1 << 31).unwrap_err();
    assert_eq!(failure.to_string(), "`good`: expected at most 1 GiB, found more");
    assert_eq!(failure.code, oarlock_host::Code::RESOURCE_EXHAUSTED);
    assert_eq!(device.allocate(13).unwrap_err().rule, "R-1");
    assert_eq!(device.plugin().live_handles().blocks, 0);
    assert!(live_errors() < 10);
}

#[test]
fn reports_have_no_control_characters_and_turn_into_json() {
    let place = PluginDirectory::new();
    place.compile_plugin("good", &[]);
    place.compile_plugin("bad", &["FAULT_SLOT"]);
    let host = place.start_host();
    let json = serde_json::to_value(host.report()).unwrap();
    assert_eq!(json["plugins"][0]["outcome"], "refused");
    assert_eq!(json["plugins"][0]["reason"], "slot-missing");
    assert_eq!(json["plugins"][1]["outcome"], "loaded");
    assert_eq!(json["plugins"][1]["vendor"], r"Acme\u{1b}[31m");
    let devices = serde_json::to_value(host.device_reports()).unwrap();
    assert_eq!(devices[1]["device"], "good:7");
    assert_eq!(devices[1]["memory"]["total"], 1 << 30);
    assert_eq!(devices[1]["problems"].as_array().unwrap().len(), 0);
}

#[test]
fn the_second_of_two_plugins_with_one_device_type_is_refused_and_names_the_first() {
    let place = PluginDirectory::new();
    place.compile_plugin("a", &["DEVICE_TYPE=\"npu\""]);
    write_manifest(&place.compile_plugin("b", &["DEVICE_TYPE=\"npu\""]), |text| {
        text.replace("device_type = \"b\"", "device_type = \"npu\"")
    });
    let host = place.start_host();
    assert_eq!(plugin_names(&host), ["a"]);
    let (reason, message) = refusal_of(&host, "b");
    assert_eq!(reason, RefusalReason::Duplicate);
    assert!(message.contains("a.so"), "{message}");
}

#[test]
fn a_manifest_that_says_something_else_than_the_plugin_is_refused() {
    let place = PluginDirectory::new();
    for (name, from, to) in [
        ("a", "1.2.3", "1.2.4"),
        ("b", "[\"core\"]", "[\"core\", \"async\"]"),
        ("c", "version = \"1.2.3\"", "version = \"1.2.3\"\nunloadable = true"),
    ] {
        write_manifest(&place.compile_plugin(name, &[]), |text| text.replace(from, to));
    }
    let host = place.start_host();
    for name in ["a", "b", "c"] {
        assert_eq!(refusal_of(&host, name).0, RefusalReason::ManifestLies, "{name}");
    }
}

#[test]
fn a_plugin_is_unloaded_only_if_it_says_so_and_nothing_of_it_is_in_use() {
    let place = PluginDirectory::new();
    place.compile_plugin("stays", &[]);
    place.compile_plugin("goes", &["UNLOADABLE"]);
    let mut host = place.start_host();
    assert!(host.unload("stays").unwrap_err().message.contains("which does not"));
    assert_eq!(host.unload("none").unwrap_err().code, oarlock_host::Code::NOT_FOUND);

    let block = host.device("goes").unwrap().allocate(8).unwrap();
    let refused = host.unload("goes").unwrap_err();
    assert!(refused.message.contains("1 block of memory"), "{refused}");
    let is_mapped = || std::fs::read_to_string("/proc/self/maps").unwrap().contains("goes.so");
    assert!(is_mapped());
    drop(block);
    host.unload("goes").unwrap();
    assert!(!is_mapped());
    assert_eq!(plugin_names(&host), ["stays"]);
}

#[test]
fn handles_outlive_the_host() {
    let place = PluginDirectory::new();
    place.compile_plugin("good", &["UNLOADABLE"]);
    let mut block = place.start_host().device("good").unwrap().allocate(3).unwrap();
    block.write_bytes(0, &[1, 2, 3]).unwrap();
    let mut bytes = [0; 3];
    block.read_bytes(0, &mut bytes).unwrap();
    assert_eq!(bytes, [1, 2, 3]);
}

#[test]
fn a_file_of_the_program_is_not_judged_and_comes_before_others_of_its_name() {
    let place = PluginDirectory::new();
    let others = PluginDirectory::new();
    let bundled = place.compile_plugin("good", &[]);
    std::fs::set_permissions(place.path(), Permissions::from_mode(0o777)).unwrap();
    let later = PluginDirectory::new();
    others.compile_plugin("good", &[]);
    later.compile_plugin("good", &[]);
    let mut options = others.host_options();
    let cut = place.path().join("cut.so");
    let whole = std::fs::read(&bundled).unwrap();
    std::fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    options.bundled = vec![bundled.clone(), cut.clone()];
    // Naming the same file again adds nothing.
    options.paths.push(bundled.clone());
    options.wheels = vec![later.path().to_path_buf()];
    let host = Host::start(&options).unwrap();
    assert_eq!(host.plugin("good").unwrap().file(), bundled);
    let (_, good) = host.report().loaded_plugins().next().unwrap();
    assert!(good.built_in);
    let of = |directory: &Path| host.report().refusals().find(|it| it.file.starts_with(directory)).unwrap();
    assert_eq!(of(others.path()).reason, RefusalReason::Duplicate);
    assert!(of(others.path()).to_string().contains("which is built into the program"));
    assert!(host.report().is_fault(of(others.path())), "it was asked for");
    assert_eq!(of(later.path()).reason, RefusalReason::PartOfProgram);
    assert!(!host.report().is_fault(of(later.path())), "it is for other programs");
    assert_eq!((of(place.path()).reason, &of(place.path()).file), (RefusalReason::Truncated, &cut));
    assert_eq!(host.report().plugins.iter().filter(|it| it.file == bundled).count(), 1);
}

#[test]
fn a_disabled_plugin_without_a_manifest_is_refused_by_its_name() {
    let place = PluginDirectory::new();
    std::fs::rename(place.compile_plugin("secret", &[]), place.path().join("other.so")).unwrap();
    let mut options = place.host_options();
    options.config.plugins.disable = vec!["sec*".to_owned()];
    let host = Host::start(&options).unwrap();
    assert_eq!(refusal_of(&host, "other").0, RefusalReason::Disabled);
}

#[test]
fn a_plugin_that_serves_one_host_is_refused_to_a_second_until_the_first_ends() {
    let place = PluginDirectory::new();
    place.compile_plugin("alone", &[]);
    let first = place.start_host();
    assert_eq!(refusal_of(&place.start_host(), "alone").0, RefusalReason::Duplicate);
    drop(first);
    assert_eq!(plugin_names(&place.start_host()), ["alone"]);
}
