//! The conformance suite, run on conforming plugins and on broken ones.
//!
//! A suite that passes everything is worthless, so most of these tests break something, with a script of the simulated device
//! or by replacing a slot, and expect the matching check to fail.

#![expect(unsafe_code, reason = "the test plays the host, which calls through pointers")]

mod broken;
mod layers;
mod numbers;
mod scripted;
mod started_plugin;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use oarlock_conformance::{CheckOutcome, ConformanceReport, list_checks};
use oarlock_sdk::abi;

/// Names of the failed checks.
fn failed_checks(report: &ConformanceReport) -> Vec<&str> {
    let is_failed = |outcome: &CheckOutcome| matches!(outcome, CheckOutcome::Failed(_));
    report
        .results
        .iter()
        .filter(|result| is_failed(&result.outcome))
        .map(|result| result.name.as_str())
        .collect()
}

/// The message of the only failed check, which must have the expected name.
#[track_caller]
fn only_failure<'a>(report: &'a ConformanceReport, name: &str) -> &'a str {
    assert_eq!(failed_checks(report), [name], "{}", report.render_text());
    check_failure(report, name)
}

/// The message of the check with this name, which must have failed.
#[track_caller]
fn check_failure<'a>(report: &'a ConformanceReport, name: &str) -> &'a str {
    assert!(failed_checks(report).contains(&name), "{name}: {}", report.render_text());
    let result = report.results.iter().find(|result| result.name == name);
    result.and_then(|result| result.outcome.message()).unwrap_or_default()
}

fn contract_text() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../device-sdk/contract/oarlock.contract");
    fs::read_to_string(path).expect("the contract")
}

#[test]
fn every_check_has_a_name_of_its_own_and_quotes_a_rule_or_a_slot_that_exists() {
    let contract = contract_text();
    let rules = contract.lines().filter_map(|line| line.strip_prefix("rule ")?.split(' ').next());
    let slots = abi::CoreTable::SLOTS.iter().chain(abi::AsyncTable::SLOTS).map(|(name, _)| *name);
    let others = ["run", "wrap", "oarlock_plugin_query"];
    let known: BTreeSet<&str> = rules.chain(slots).chain(others).collect();
    let mut names = BTreeSet::new();
    for (name, rule, _) in list_checks() {
        assert!(known.contains(rule), "`{name}` quotes `{rule}`, which is nothing of the contract");
        assert!(names.insert(name), "two checks are called `{name}`");
    }
}

/// No check covers these: the entry point, a lost device or a failing stream, which cannot be provoked from outside, layers,
/// and the host's promises to a plugin.
#[test]
fn the_suite_checks_every_rule_that_it_is_said_to_notice_and_none_that_nobody_is() {
    let checked: BTreeSet<&str> = list_checks().map(|(_, rule, _)| rule).collect();
    let of = |who: &str| -> BTreeSet<&str> {
        abi::RULES.iter().filter(|(_, by, _)| *by == who).map(|(rule, _, _)| *rule).collect()
    };
    assert_eq!(of("conformance").difference(&checked).collect::<Vec<_>>(), Vec::<&&str>::new());
    assert_eq!(of("nobody").intersection(&checked).collect::<Vec<_>>(), Vec::<&&str>::new());
}
