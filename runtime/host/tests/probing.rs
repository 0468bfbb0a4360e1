//! Plugins that do harm while they are asked who they are: the child that asks takes it, and the program goes on.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod common;

use std::time::Duration;

use common::{Place, refusal};
use oarlock_host::{Host, Outcome, Reason, probe};

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
fn a_plugin_that_ran_out_of_time_is_asked_again() {
    let place = Place::new();
    let file = place.compile("slow", &["FAULT_HANG"]);
    let command = place.options().probe.unwrap();
    let probed = probe(&command, &file, Duration::from_millis(100));
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
