//! Plugins that do harm while they are asked who they are: the child that asks takes it, and the program goes on.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod common;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

use common::{Place, refusal};
use oarlock_host::{Host, Outcome, PROBE_TIMEOUT, Reason, probe};

#[test]
fn crashes_hangs_exits_and_forks_are_refused_and_nothing_survives() {
    let place = Place::new();
    let faults = [
        ("FAULT_CRASH", Reason::ProbeCrashed, "SIGSEGV"),
        ("FAULT_ABORT", Reason::ProbeCrashed, "SIGABRT"),
        ("FAULT_EXIT", Reason::ProbeCrashed, "status 3"),
        ("FAULT_HANG", Reason::ProbeTimedOut, "no answer within"),
        ("FAULT_FORK", Reason::ContractBroken, "rule R-3"),
        ("FAULT_FORK_AND_ANSWER", Reason::ContractBroken, "rule R-3"),
        ("FAULT_INITIALIZE_CRASH", Reason::ProbeCrashed, "SIGSEGV while its devices were readied"),
        ("FAULT_INITIALIZE_HANG", Reason::ProbeTimedOut, "ms while its devices were readied"),
        ("FAULT_UNLOAD_ABORT", Reason::ProbeCrashed, "SIGABRT while its devices were readied"),
        ("FAULT_SANITIZER", Reason::SanitizerMismatch, "-fsanitize=thread"),
    ];
    place.compile("good", &[]);
    for (fault, ..) in faults {
        place.compile(fault, &[fault]);
    }
    let host = place.start();
    for (fault, reason, words) in faults {
        let (found, message) = refusal(&host, fault);
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
    let place = Place::new();
    place.compile("noisy", &["PRINTS"]);
    let host = place.start();
    let report = &host.report().plugins[0];
    assert!(matches!(report.outcome, Outcome::Loaded(_)), "{report:#?}");
    assert!(report.notes.iter().any(|note| note.contains("`hello from the plugin`")), "{:?}", report.notes);
}

#[test]
fn a_probe_is_remembered_until_the_file_changes() {
    let place = Place::new();
    place.compile("plugin", &["FAULT_CRASH"]);
    assert_eq!(refusal(&place.start(), "plugin").0, Reason::ProbeCrashed);
    // Whatever cannot be probed now has to come from the cache.
    let mut options = place.options();
    options.probe.as_mut().unwrap().program = "/nonexistent".into();
    assert_eq!(refusal(&Host::start(&options).unwrap(), "plugin").0, Reason::ProbeCrashed);
    place.compile("plugin", &[]);
    assert_eq!(refusal(&Host::start(&options).unwrap(), "plugin").0, Reason::ProbeFailed);
    assert_eq!(place.start().plugins().len(), 1);
}

#[test]
fn a_plugin_that_cannot_start_is_known_and_its_error_is_the_one_of_the_real_start() {
    let place = Place::new();
    let file = place.compile("asleep", &["FAULT_INITIALIZE"]);
    let command = place.options().probe.unwrap();
    let probed = probe(&command, &file, &BTreeMap::new(), PROBE_TIMEOUT);
    assert_eq!(probed.verdict.unwrap().name, "asleep");
    assert_eq!(refusal(&place.start(), "asleep").0, Reason::PluginError);
}

#[test]
fn a_plugin_is_probed_with_its_options_and_again_when_they_change() {
    let place = Place::new();
    place.compile("picky", &["FAULT_INITIALIZE_OPTION"]);
    let mut options = place.options();
    let mode = |value: &str| [("mode".to_owned(), value.to_owned())].into();
    options.config.options.insert("picky".to_owned(), mode("crash"));
    assert_eq!(refusal(&Host::start(&options).unwrap(), "picky").0, Reason::ProbeCrashed);
    options.config.options.insert("picky".to_owned(), mode("calm"));
    assert_eq!(Host::start(&options).unwrap().plugins().len(), 1);
}

#[test]
fn lines_that_a_plugin_writes_wherever_it_can_are_not_answers() {
    let place = Place::new();
    let file = place.compile("forger", &["FORGES"]);
    let probed = probe(&place.options().probe.unwrap(), &file, &BTreeMap::new(), PROBE_TIMEOUT);
    assert_eq!(probed.verdict.unwrap().name, "forger");
}

#[test]
fn a_file_that_the_program_has_open_is_closed_to_the_plugin() {
    let place = Place::new();
    let open = std::fs::File::open(place.path()).unwrap();
    // A copy that is handed on to every program that is started.
    let inherited = rustix::io::fcntl_dupfd_cloexec(&open, 200).unwrap();
    rustix::io::fcntl_setfd(&inherited, rustix::io::FdFlags::empty()).unwrap();
    let number = format!("FILE_NUMBER={}", inherited.as_raw_fd());
    let file = place.compile("curious", &["SEES_FILES", &number]);
    let probed = probe(&place.options().probe.unwrap(), &file, &BTreeMap::new(), PROBE_TIMEOUT);
    assert_eq!(probed.verdict.unwrap().name, "curious");
}

#[test]
fn names_of_files_that_are_not_utf8_can_be_reported_refused_and_loaded() {
    let place = Place::new();
    let named = |bytes: &[u8]| place.path().join(OsStr::from_bytes(bytes));
    std::fs::write(named(b"bad\xff.so"), "no plugin").unwrap();
    std::fs::rename(place.compile("good", &[]), named(b"good\xff.so")).unwrap();
    std::fs::rename(place.compile("FAULT_CRASH", &["FAULT_CRASH"]), named(b"crash\xff.so")).unwrap();
    std::fs::rename(place.compile("FAULT_SLOT", &["FAULT_SLOT"]), named(b"slot\xff.so")).unwrap();
    // The second time, the answers come from the cache.
    for _ in 0..2 {
        let host = place.start();
        assert_eq!(host.plugins().len(), 1, "{:#?}", host.report());
        let refused = |name: &[u8]| {
            let file = named(name);
            host.report().refused().find(|refusal| refusal.file == file).map(|refusal| refusal.reason)
        };
        assert_eq!(refused(b"crash\xff.so"), Some(Reason::ProbeCrashed));
        assert_eq!(refused(b"slot\xff.so"), Some(Reason::SlotMissing));
        assert!(refused(b"bad\xff.so").is_some());
        let report = serde_json::to_string(host.report()).unwrap();
        assert!(report.contains("bad\u{fffd}.so") && report.contains("good\u{fffd}.so"), "{report}");
    }
}

#[test]
fn what_a_link_leads_to_is_probed_and_refused_under_the_name_of_the_link() {
    let place = Place::new();
    let real = Place::new();
    let file = real.compile("crash", &["FAULT_CRASH"]);
    std::os::unix::fs::symlink(file, place.path().join("link.so")).unwrap();
    let (reason, message) = refusal(&place.start(), "link");
    assert_eq!(reason, Reason::ProbeCrashed);
    assert!(message.contains("link.so`: expected"), "{message}");
}

#[test]
fn a_plugin_that_ran_out_of_time_is_asked_again() {
    let place = Place::new();
    let file = place.compile("slow", &["FAULT_HANG"]);
    let command = place.options().probe.unwrap();
    let probed = probe(&command, &file, &BTreeMap::new(), Duration::from_millis(100));
    assert_eq!(probed.verdict.unwrap_err().reason, Reason::ProbeTimedOut);
    assert!(!place.path().join("cache").exists());
}

#[test]
fn without_a_way_to_probe_a_plugin_needs_a_manifest() {
    let place = Place::new();
    place.compile("plugin", &[]);
    let mut options = place.options();
    options.probe = None;
    let (reason, message) = refusal(&Host::start(&options).unwrap(), "plugin");
    assert_eq!(reason, Reason::ProbeFailed);
    assert!(message.contains("plugin.oarlock.toml"), "{message}");
}
