//! A plugin's answer to a probe is kept while its driver stays as it is, and not longer.
//!
//! In these tests, only the child process that probes crashes, so a host that uses a wrong answer says so by loading a plugin that
//! it should refuse.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod common;

use std::path::Path;
use std::process::Command;

use common::{PluginDirectory, refusal_of};
use oarlock_host::{Host, HostOptions, PluginOutcome, RefusalReason};

/// Installs a driver in place of the last one, as a package manager does: a new file is renamed to the name of the old one.
fn install_driver(directory: &Path, is_broken: bool) {
    let source = directory.join("driver.c");
    std::fs::write(&source, format!("int is_broken(void) {{ return {}; }}", i32::from(is_broken))).unwrap();
    let new = directory.join("new");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-Wl,-soname,libdriver.so", "-o"])
        .args([&new, &source])
        .status()
        .expect("a C compiler");
    assert!(built.success());
    std::fs::rename(new, directory.join("libdriver.so")).unwrap();
}

/// Compiles a plugin that links the driver, or opens it while it starts.
fn compile_with_driver(place: &PluginDirectory, drivers: &Path, is_linked: bool) {
    if is_linked {
        let (search, runpath) =
            (format!("-L{}", drivers.display()), format!("-Wl,-rpath,{}", drivers.display()));
        place.compile_linked_plugin("plugin", &["LINKED"], &[&search, "-ldriver", &runpath]);
    } else {
        let driver = format!("DRIVER=\"{}/libdriver.so\"", drivers.display());
        place.compile_plugin("plugin", &[&driver]);
    }
}

/// A host that can use answers from the cache only.
fn start_from_cache(place: &PluginDirectory) -> Host {
    let mut options = place.host_options();
    options.probe.as_mut().unwrap().program = "/nonexistent".into();
    Host::start(&options).unwrap()
}

#[test]
fn a_driver_that_is_updated_is_tried_in_a_child_process_first() {
    for is_linked in [true, false] {
        let (place, drivers) = (PluginDirectory::new(), tempfile::tempdir().unwrap());
        install_driver(drivers.path(), false);
        compile_with_driver(&place, drivers.path(), is_linked);
        assert_eq!(place.start_host().plugins().len(), 1);
        assert_eq!(start_from_cache(&place).plugins().len(), 1, "the answer is kept");
        install_driver(drivers.path(), true);
        let (reason, _) = refusal_of(&place.start_host(), "plugin");
        assert_eq!(reason, RefusalReason::ProbeCrashed, "linked: {is_linked}");
    }
}

#[test]
fn a_driver_that_is_repaired_is_used_at_the_next_start() {
    let (place, drivers) = (PluginDirectory::new(), tempfile::tempdir().unwrap());
    install_driver(drivers.path(), true);
    compile_with_driver(&place, drivers.path(), true);
    assert_eq!(refusal_of(&place.start_host(), "plugin").0, RefusalReason::ProbeCrashed);
    let (reason, message) = refusal_of(&start_from_cache(&place), "plugin");
    assert_eq!(reason, RefusalReason::ProbeCrashed);
    assert!(message.contains("when it was last asked"), "{message}");
    assert!(message.contains("`oarlock plugins --ask-again`"), "{message}");
    install_driver(drivers.path(), false);
    assert_eq!(place.start_host().plugins().len(), 1);
}

#[test]
fn a_plugin_that_is_asked_again_gets_a_new_answer_both_ways() {
    let place = PluginDirectory::new();
    let switch = tempfile::tempdir().unwrap();
    let file = switch.path().join("broken");
    place.compile_plugin("plugin", &[&format!("SWITCH=\"{}\"", file.display())]);
    std::fs::write(&file, "").unwrap();
    assert_eq!(refusal_of(&place.start_host(), "plugin").0, RefusalReason::ProbeCrashed);
    // Nothing that the cache knows of has changed.
    std::fs::remove_file(&file).unwrap();
    assert_eq!(refusal_of(&place.start_host(), "plugin").0, RefusalReason::ProbeCrashed);
    assert_eq!(Host::start(&asking_again(&place)).unwrap().plugins().len(), 1);
    assert_eq!(start_from_cache(&place).plugins().len(), 1);
    std::fs::write(&file, "").unwrap();
    assert_eq!(place.start_host().plugins().len(), 1);
    assert_eq!(
        refusal_of(&Host::start(&asking_again(&place)).unwrap(), "plugin").0,
        RefusalReason::ProbeCrashed
    );
    assert_eq!(refusal_of(&start_from_cache(&place), "plugin").0, RefusalReason::ProbeCrashed);
}

fn asking_again(place: &PluginDirectory) -> HostOptions {
    let mut options = place.host_options();
    options.ask_again = true;
    options
}

#[test]
fn a_driver_that_starts_late_gets_its_time_twice_and_the_user_hears_of_it() {
    let place = PluginDirectory::new();
    place.compile_plugin("late", &["FAULT_INITIALIZE_LATE"]);
    let mut options = place.host_options();
    // It sleeps for 4 s.
    options.config.plugins.probe_timeout_ms = Some(3000);
    let host = Host::start(&options).unwrap();
    let report = &host.report().plugins[0];
    assert!(matches!(report.outcome, PluginOutcome::Loaded(_)), "{report:#?}");
    let notes = report.notes.join("\n");
    assert!(notes.contains("longer than the 3000 ms") && notes.contains("`probe_timeout_ms`"), "{notes}");
}
