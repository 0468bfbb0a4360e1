//! The conformance suite: the requirements on a plugin, as checks that can fail.
//!
//! A host loads a plugin as usual, initializes its devices, and passes the raw tables to [`run_suite`]. Each check calls the
//! plugin as the contract allows and quotes the numbered rule that it tests, or the slot whose documentation states the
//! requirement. The result is a [`ConformanceReport`]: data, text or a page of HTML.
//!
//! A check that passes shows that the rule held this time. A check that needs optional slots which the plugin leaves empty is
//! unsupported, not failed. A check that does not return ends the run, since the plugin is then in an unknown state. A plugin that
//! ends the process ends the suite too; a host that wants to report this runs the suite in a child process, where it also
//! sees whether the plugin prints anything.

mod bench;
mod callbacks;
mod checks;
mod device;
mod elements;
mod exceptions;
mod findings;
mod float_mode;
mod heat_map;
mod host_memory;
mod html_report;
mod junit_report;
mod kernel_call;
mod kernel_record;
mod markup;
mod measure;
mod numbers;
mod process_state;
mod reference;
mod report;
mod runner;
mod settings;
mod snapshot;
mod stream;
mod subject;
mod text_report;
mod trial;

pub use exceptions::{ConformanceException, ConformanceExceptions};
pub use findings::{CheckOutcome, CheckResult, KernelNumbers, NumbersOutcome, SpeedMeasurement};
pub use float_mode::{FloatMode, FloatModeGuard};
pub use host_memory::host_memory_table;
pub use process_state::ProcessState;
pub use reference::describe_tolerances;
pub use report::{ConformanceReport, ProfileResult};
pub use runner::run_suite;
pub use settings::SuiteSettings;
pub use subject::{ConformanceSubject, ErrorText, PluginEntry, SubjectRole};

/// The version of the suite. The first number is that of the contract; the second grows with the checks.
pub const SUITE_VERSION: &str = "1.1";

/// Name, rule or slot, and profile of each check, in the order of a run. A check of plugins of any kind counts for `core` here.
pub fn list_checks() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let profile = |check: &checks::ConformanceCheck| check.profile.unwrap_or(checks::CheckedProfile::Core);
    checks::all_checks().map(move |check| (check.name, check.rule, profile(check).name()))
}
