//! Real plugins: the CPU, and the simulated device with and without scripted faults.

use oarlock_conformance::{CheckOutcome, SUITE_VERSION};

use crate::started_plugin::StartedPlugin;
use crate::{check_failure, failed_checks, only_failure};

#[track_caller]
fn check_passes(plugin: &StartedPlugin) {
    let report = plugin.run_checks();
    assert!(report.has_passed(), "{}", report.render_text());
    assert_eq!(report.passed_profiles(), ["core", "async", "kernels"]);
}

#[test]
fn the_processor_conforms_with_all_instructions_that_it_has() {
    // On a machine without this ISA the plugin falls back to the best one it has.
    for isa in ["scalar", "sse4.1", "avx2", "avx-vnni", "avx512", "amx"] {
        check_passes(&StartedPlugin::load_cpu_with_isa(isa));
    }
}

#[test]
fn the_simulated_device_conforms_however_it_schedules_its_work() {
    for script in
        ["mode eager", "mode lazy", "mode random; seed 1", "mode random; seed 2", "mode random; seed 3"]
    {
        check_passes(&StartedPlugin::load_sim_with_kernels(script));
    }
}

#[test]
fn the_simulated_device_conforms_with_odd_ids_little_memory_and_one_device() {
    for script in ["ids 3,7,11", "quota 8MiB; poison off", "devices 1"] {
        check_passes(&StartedPlugin::load_sim(script));
    }
}

#[test]
fn a_plugin_without_a_device_passes_nothing() {
    let report = StartedPlugin::load_sim("devices 0").run_checks();
    assert_eq!(failed_checks(&report), [""; 0]);
    assert!(!report.has_passed() && report.passed_profiles().is_empty());
}

#[test]
fn slots_that_may_be_empty_are_unsupported_and_no_failure() {
    let report =
        StartedPlugin::load_sim("missing memory_set; missing stream_add_callback; missing memory_copy_p2p")
            .run_checks();
    assert!(report.has_passed(), "{}", report.render_text());
    let unsupported = |name: &str| {
        let result = report.results.iter().find(|result| result.name == name);
        result.map(|result| result.outcome.clone())
    };
    assert_eq!(
        unsupported("a fill writes its byte, and only where it was asked to"),
        Some(CheckOutcome::Unsupported("the slot `memory_set` is empty".to_owned()))
    );
}

#[test]
fn a_plugin_without_streams_has_no_profile_for_them() {
    let report = StartedPlugin::load_cpu().run_checks_on_changed(|subject| subject.asynchronous = None);
    assert_eq!(report.passed_profiles(), ["core", "kernels"]);
    assert!(report.has_passed(), "{}", report.render_text());
}

#[test]
fn one_wrong_byte_is_found_wherever_it_is() {
    let round_trip = "bytes of every size and offset come back the same";
    for (script, name) in [
        ("lie copy 1", "calls on one device leave the others alone"),
        ("lie copy 5", round_trip),
        ("lie copy 100", round_trip),
    ] {
        let report = StartedPlugin::load_sim(script).run_checks();
        let message = only_failure(&report, name);
        assert!(message.contains("expected 0x"), "{message}");
        assert!(!report.has_passed() && report.passed_profiles() == ["async", "kernels"]);
    }
}

#[test]
fn a_device_that_always_lies_fails_every_check_that_compares_a_part_or_a_copy() {
    let report = StartedPlugin::load_sim("lie copy").run_checks();
    for name in [
        "a copy to a device leaves the bytes before and after it alone",
        "a copy between two devices transfers the bytes",
        "work in one stream happens in the order it was put there",
        "a copy in a stream transfers bytes to another device",
        "a kernel in a stream has its place between copies",
    ] {
        check_failure(&report, name);
    }
}

#[test]
fn each_scripted_fault_fails_the_check_that_is_about_it_and_no_other() {
    let cases = [
        (
            "lie memory_stats",
            "no more memory is free than there is, and taking some does not free any",
            "67108865",
        ),
        (
            "lie device_count 3",
            "the list of devices is as long as the count says, distinct and stable",
            "3 ids",
        ),
        (
            "fail memory_allocate 2 internal",
            "calls on one device leave the others alone",
            "`memory_allocate`",
        ),
        ("fail min_chunk_size 1 internal", "the smallest block is a power of two", "`min_chunk_size`"),
        (
            "fail host_memory_allocate 2 internal",
            "page-locked host memory can be written, copied from and copied to",
            "device 1",
        ),
        (
            "fail stream_query 3 internal",
            "a stream that is asked again and again says at last that it is done",
            "`external`",
        ),
        (
            "fail event_elapsed 1 internal",
            "the time between two events that have happened is known",
            "as scripted",
        ),
        ("fail_later run 2 internal", "every kernel computes what its op says", "`Add` of i8"),
        ("panic memory_set 1", "a fill writes its byte, and only where it was asked to", "`fatal`"),
    ];
    for (script, name, message) in cases {
        let report = StartedPlugin::load_sim(script).run_checks();
        let found = only_failure(&report, name);
        assert!(found.contains(message), "{script}: {found}");
    }
}

#[test]
fn a_plugin_that_hangs_is_given_up_and_the_rest_is_not_run() {
    let report = StartedPlugin::load_sim("hang memory_copy_d2d 1").run_checks_impatiently();
    let name = "a copy within a device transfers the bytes, from offset to offset";
    let message = only_failure(&report, name);
    assert_eq!(message, "did not return within 2 s; the last call was `memory_copy_d2d`");
    let after = report.results.iter().skip_while(|result| result.name != name).skip(1);
    for result in after {
        assert!(
            matches!(&result.outcome, CheckOutcome::NotRun(why) if why.contains(name)),
            "{}",
            result.name
        );
    }
    assert!(report.passed_profiles().is_empty());
}

#[test]
fn a_report_says_what_was_run_and_is_a_page_and_a_text() {
    let report = StartedPlugin::load_sim("lie memory_stats").run_checks();
    assert_eq!((report.suite.as_str(), report.plugin.as_str()), (SUITE_VERSION, "oarlock-sim"));
    let (text, page) = (report.render_text(), report.render_html());
    assert!(text.contains("core: failed (") && text.contains("async: passed ("), "{text}");
    for result in &report.results {
        assert!(text.contains(&result.name) && page.contains(&result.name), "{}", result.name);
    }
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<oarlock_conformance::ConformanceReport>(&json).unwrap(), report);
}
