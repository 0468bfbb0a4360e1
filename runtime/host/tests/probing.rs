//! Plugins that do harm when queried: only the child process is affected, and the program continues.

mod common;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use common::{PluginDirectory, refusal_of};
use oarlock_host::{Host, PROBE_TIMEOUT, PluginManifest, PluginOutcome, RefusalReason, probe_file};

#[test]
fn crashes_hangs_exits_and_forks_are_refused_without_leftovers() {
    let place = PluginDirectory::new();
    let faults = [
        ("FAULT_CRASH", RefusalReason::ProbeCrashed, "SIGSEGV"),
        ("FAULT_ABORT", RefusalReason::ProbeCrashed, "SIGABRT"),
        ("FAULT_EXIT", RefusalReason::ProbeCrashed, "status 3"),
        ("FAULT_HANG", RefusalReason::ProbeTimedOut, "no answer within"),
        ("FAULT_FORK", RefusalReason::ContractBroken, "rule R-3"),
        ("FAULT_FORK_AND_ANSWER", RefusalReason::ContractBroken, "rule R-3"),
        ("FAULT_INITIALIZE_CRASH", RefusalReason::ProbeCrashed, "SIGSEGV while its devices were readied"),
        ("FAULT_INITIALIZE_HANG", RefusalReason::ProbeTimedOut, "ms while its devices were readied"),
        ("FAULT_UNLOAD_ABORT", RefusalReason::ProbeCrashed, "SIGABRT while its devices were readied"),
        ("FAULT_SANITIZER", RefusalReason::SanitizerMismatch, "-fsanitize=thread"),
    ];
    place.compile_plugin("good", &[]);
    for (fault, ..) in faults {
        place.compile_plugin(fault, &[fault]);
    }
    let host = place.start_host();
    for (fault, reason, words) in faults {
        let (found, message) = refusal_of(&host, fault);
        assert!(found == reason && message.contains(words), "{fault}: {found:?}, {message}");
    }
    assert_eq!(host.plugins().len(), 1);
    let here = place.path().to_str().unwrap();
    let survivors = std::fs::read_dir("/proc").unwrap().flatten().filter(|process| {
        let command = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(here)
    });
    assert_eq!(survivors.count(), 0);
}

#[test]
fn printing_is_noted_and_does_not_disturb_the_answer() {
    let place = PluginDirectory::new();
    place.compile_plugin("noisy", &["PRINTS"]);
    let host = place.start_host();
    let report = &host.report().plugins[0];
    assert!(matches!(report.outcome, PluginOutcome::Loaded(_)), "{report:#?}");
    assert!(report.notes.iter().any(|note| note.contains("`hello from the plugin`")), "{:?}", report.notes);
}

#[test]
fn a_probe_is_remembered_until_the_file_changes() {
    let place = PluginDirectory::new();
    place.compile_plugin("plugin", &["FAULT_CRASH"]);
    assert_eq!(refusal_of(&place.start_host(), "plugin").0, RefusalReason::ProbeCrashed);
    // Probes are impossible from here on, so results have to come from the cache.
    let mut options = place.host_options();
    options.probe.as_mut().unwrap().program = "/nonexistent".into();
    assert_eq!(refusal_of(&Host::start(&options).unwrap(), "plugin").0, RefusalReason::ProbeCrashed);
    place.compile_plugin("plugin", &[]);
    assert_eq!(refusal_of(&Host::start(&options).unwrap(), "plugin").0, RefusalReason::ProbeFailed);
    assert_eq!(place.start_host().plugins().len(), 1);
}

#[test]
fn a_plugin_that_cannot_start_is_known_and_its_error_is_the_one_of_the_real_start() {
    let place = PluginDirectory::new();
    let file = place.compile_plugin("asleep", &["FAULT_INITIALIZE"]);
    let command = place.host_options().probe.unwrap();
    let probed = probe_file(&command, &file, &BTreeMap::new(), PROBE_TIMEOUT);
    assert_eq!(probed.verdict.unwrap().name, "asleep");
    assert_eq!(refusal_of(&place.start_host(), "asleep").0, RefusalReason::PluginError);
}

#[test]
fn a_plugin_is_probed_with_its_options_and_again_when_they_change() {
    let place = PluginDirectory::new();
    place.compile_plugin("picky", &["FAULT_INITIALIZE_OPTION"]);
    let mut options = place.host_options();
    let mode = |value: &str| [("mode".to_owned(), value.to_owned())].into();
    options.config.options.insert("picky".to_owned(), mode("crash"));
    assert_eq!(refusal_of(&Host::start(&options).unwrap(), "picky").0, RefusalReason::ProbeCrashed);
    options.config.options.insert("picky".to_owned(), mode("calm"));
    assert_eq!(Host::start(&options).unwrap().plugins().len(), 1);
}

#[test]
fn lines_that_a_plugin_writes_wherever_it_can_are_not_answers() {
    let place = PluginDirectory::new();
    let file = place.compile_plugin("forger", &["FORGES"]);
    let probed = probe_file(&place.host_options().probe.unwrap(), &file, &BTreeMap::new(), PROBE_TIMEOUT);
    assert_eq!(probed.verdict.unwrap().name, "forger");
}

#[test]
fn a_file_that_the_program_has_open_is_closed_to_the_plugin() {
    let place = PluginDirectory::new();
    let open = std::fs::File::open(place.path()).unwrap();
    // A descriptor that every started program inherits.
    let inherited = rustix::io::fcntl_dupfd_cloexec(&open, 200).unwrap();
    rustix::io::fcntl_setfd(&inherited, rustix::io::FdFlags::empty()).unwrap();
    let number = format!("FILE_NUMBER={}", inherited.as_raw_fd());
    let file = place.compile_plugin("curious", &["SEES_FILES", &number]);
    let probed = probe_file(&place.host_options().probe.unwrap(), &file, &BTreeMap::new(), PROBE_TIMEOUT);
    assert_eq!(probed.verdict.unwrap().name, "curious");
}

#[test]
fn names_of_files_that_are_not_utf8_can_be_reported_refused_and_loaded() {
    let place = PluginDirectory::new();
    let named = |bytes: &[u8]| place.path().join(OsStr::from_bytes(bytes));
    std::fs::write(named(b"bad\xff.so"), "no plugin").unwrap();
    std::fs::rename(place.compile_plugin("good", &[]), named(b"good\xff.so")).unwrap();
    std::fs::rename(place.compile_plugin("FAULT_CRASH", &["FAULT_CRASH"]), named(b"crash\xff.so")).unwrap();
    std::fs::rename(place.compile_plugin("FAULT_SLOT", &["FAULT_SLOT"]), named(b"slot\xff.so")).unwrap();
    // The second time, the answers come from the cache.
    for _ in 0..2 {
        let host = place.start_host();
        assert_eq!(host.plugins().len(), 1, "{:#?}", host.report());
        let refused = |name: &[u8]| {
            let file = named(name);
            host.report().refusals().find(|refusal| refusal.file == file).map(|refusal| refusal.reason)
        };
        assert_eq!(refused(b"crash\xff.so"), Some(RefusalReason::ProbeCrashed));
        assert_eq!(refused(b"slot\xff.so"), Some(RefusalReason::SlotMissing));
        assert!(refused(b"bad\xff.so").is_some());
        let report = serde_json::to_string(host.report()).unwrap();
        assert!(report.contains("bad\u{fffd}.so") && report.contains("good\u{fffd}.so"), "{report}");
    }
}

#[test]
fn what_a_link_leads_to_is_probed_and_refused_under_the_name_of_the_link() {
    let place = PluginDirectory::new();
    let real = PluginDirectory::new();
    let file = real.compile_plugin("crash", &["FAULT_CRASH"]);
    std::os::unix::fs::symlink(file, place.path().join("link.so")).unwrap();
    let (reason, message) = refusal_of(&place.start_host(), "link");
    assert_eq!(reason, RefusalReason::ProbeCrashed);
    assert!(message.contains("link.so`: expected"), "{message}");
}

#[test]
fn a_plugin_that_ran_out_of_time_is_asked_again() {
    let place = PluginDirectory::new();
    let file = place.compile_plugin("slow", &["FAULT_HANG"]);
    let command = place.host_options().probe.unwrap();
    let probed = probe_file(&command, &file, &BTreeMap::new(), Duration::from_millis(100));
    assert_eq!(probed.verdict.unwrap_err().reason, RefusalReason::ProbeTimedOut);
    assert!(!place.path().join("cache").exists());
}

#[test]
fn without_a_way_to_probe_a_plugin_needs_a_manifest() {
    let place = PluginDirectory::new();
    place.compile_plugin("plugin", &[]);
    let mut options = place.host_options();
    options.probe = None;
    let (reason, message) = refusal_of(&Host::start(&options).unwrap(), "plugin");
    assert_eq!(reason, RefusalReason::ProbeFailed);
    assert!(message.contains("plugin.oarlock.toml"), "{message}");
}

/// Writes the manifest of a plugin that was compiled from `plugin.c` under this name.
fn write_manifest(plugin: &Path, name: &str) {
    let text = format!(
        "name = '{name}'\nversion = '1.2.3'\nkind = 'device'\ndevice_type = '{name}'\ncontract = '1.0'\n\
         profiles = ['core']\narchitecture = '{}-linux'\n",
        std::env::consts::ARCH
    );
    let file = PluginManifest::path_beside(plugin);
    std::fs::write(&file, text).expect("a file");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("a mode");
}

#[test]
fn a_program_that_nobody_watches_probes_plugins_with_a_manifest_too_and_refuses_those_that_crash_or_hang() {
    let place = PluginDirectory::new();
    let faults = [
        ("crash", "FAULT_INITIALIZE_CRASH", RefusalReason::ProbeCrashed),
        ("hang", "FAULT_INITIALIZE_HANG", RefusalReason::ProbeTimedOut),
    ];
    for (name, fault, _) in faults {
        let file = place.compile_plugin(name, &[fault]);
        write_manifest(&file, name);
    }
    // What a probe finds besides is left to the start, which says it better.
    let failing = place.compile_plugin("failing", &["FAULT_INITIALIZE"]);
    write_manifest(&failing, "failing");
    let good = place.compile_plugin("good", &[]);
    write_manifest(&good, "good");
    let mut options = place.host_options();
    options.probes_known = true;
    options.config.plugins.start_timeout_ms = Some(300);
    let host = Host::start(&options).expect("a configuration without mistakes");
    for (name, _, reason) in faults {
        assert_eq!(refusal_of(&host, name).0, reason, "{name}");
    }
    assert_eq!(refusal_of(&host, "failing").0, RefusalReason::PluginError);
    assert!(host.plugin("good").is_some());
}
