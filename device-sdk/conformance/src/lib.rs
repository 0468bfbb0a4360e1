//! The conformance suite: what a plugin must do to be called conformant, as checks that can fail.
//!
//! A host loads a plugin as it always does, readies its devices, and hands the raw tables to [`run_suite`]. Each check calls the
//! plugin as the contract allows and quotes the numbered rule it is about, or the slot whose documentation it holds the
//! plugin to. The answer is a [`ConformanceReport`]: data, text or a page of HTML.
//!
//! A check that passes says that the rule held this time. One whose slots the plugin may leave out, and does, is
//! unsupported and not a failure. A check that does not return ends the run, since nobody knows what the plugin is doing.
//! A plugin that ends the process ends the suite with it, so a host that wants a report of that runs the suite in a child,
//! where it can also see whether the plugin prints anything.

mod bench;
mod callbacks;
mod checks;
mod device;
mod html_report;
mod kernel_call;
mod report;
mod runner;
mod snapshot;
mod stream;
mod subject;
mod text_report;

pub use report::{CheckOutcome, CheckResult, ConformanceReport, ProfileResult};
pub use runner::{DEFAULT_TIMEOUT, run_suite};
pub use subject::{ConformanceSubject, ErrorText};

/// The version of the suite. The first number is that of the contract; the second grows with the checks.
pub const SUITE_VERSION: &str = "1.0";

/// What each check is called, which rule or slot it is about, and which profile it belongs to, in the order of a run.
pub fn list_checks() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    checks::all_checks().map(|check| (check.name, check.rule, check.profile.name()))
}
