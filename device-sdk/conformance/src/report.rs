//! The results of a run of the suite.

use serde::{Deserialize, Serialize};

use crate::SUITE_VERSION;
use crate::bench::{TestBench, lock_unpoisoned};
use crate::checks::CheckedProfile;
use crate::findings::{CheckOutcome, CheckResult, KernelNumbers, SpeedMeasurement};
use crate::heat_map::numbers_summary;

/// The results of one run, as data for programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConformanceReport {
    /// The version of the suite, as in [`SUITE_VERSION`](crate::SUITE_VERSION).
    pub suite: String,
    /// The version of the contract that the suite tests.
    pub contract: String,
    /// The name that the plugin gave.
    pub plugin: String,
    /// The version that the plugin gave.
    pub plugin_version: String,
    /// The ids of the devices that were tested.
    pub devices: Vec<u32>,
    /// A verdict for each profile that the plugin offers.
    pub profiles: Vec<ProfileResult>,
    /// All checks, in the order of the run.
    pub results: Vec<CheckResult>,
    /// What each kernel computed with each dtype.
    #[serde(default)]
    pub numbers: Vec<KernelNumbers>,
    /// How fast a few things were, for information.
    #[serde(default)]
    pub measurements: Vec<SpeedMeasurement>,
}

/// The verdict on one profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileResult {
    /// The name of the profile in the contract, or `kernels`.
    pub name: String,
    /// True if there was a device, at least one check passed, and every other one passed or was unsupported.
    pub passed: bool,
}

impl ConformanceReport {
    pub(crate) fn new(bench: &TestBench, profiles: &[CheckedProfile], results: Vec<CheckResult>) -> Self {
        let subject = bench.subject();
        let profiles = profiles.iter().map(|profile| ProfileResult {
            name: profile.name().to_owned(),
            // Without a device, almost nothing was tested.
            passed: !subject.devices.is_empty()
                && profile_has_passed(results.iter().filter(|result| result.profile == profile.name())),
        });
        Self {
            suite: SUITE_VERSION.to_owned(),
            contract: oarlock_abi::Versions::OURS.to_string(),
            plugin: subject.name.clone(),
            plugin_version: subject.version.clone(),
            devices: subject.devices.clone(),
            profiles: profiles.collect(),
            results,
            numbers: lock_unpoisoned(&bench.numbers).clone(),
            measurements: lock_unpoisoned(&bench.measurements).clone(),
        }
    }

    /// True if every profile that the plugin offers passed.
    pub fn has_passed(&self) -> bool {
        self.profiles.iter().all(|profile| profile.passed)
    }

    /// The profiles that passed, to be listed in the plugin's manifest.
    pub fn passed_profiles(&self) -> Vec<&str> {
        self.profiles.iter().filter(|profile| profile.passed).map(|profile| profile.name.as_str()).collect()
    }

    /// Counts what kernels computed, such as `12 right, 1 wrong`; empty without kernels.
    pub fn numbers_summary(&self) -> String {
        numbers_summary(&self.numbers)
    }

    /// The results of the checks of one profile.
    pub fn results_for_profile<'a>(&'a self, profile: &'a str) -> impl Iterator<Item = &'a CheckResult> {
        self.results.iter().filter(move |result| result.profile == profile)
    }

    /// Counts the outcomes in a profile, such as `12 passed, 1 failed`.
    pub(crate) fn outcome_counts(&self, profile: &str) -> String {
        let count = |name: &&str| {
            let count =
                self.results_for_profile(profile).filter(|result| result.outcome.name() == *name).count();
            (count > 0).then(|| format!("{count} {name}"))
        };
        let counts: Vec<String> = ["passed", "failed", "expected failure", "unsupported", "not run"]
            .iter()
            .filter_map(count)
            .collect();
        counts.join(", ")
    }
}

fn profile_has_passed<'a>(results: impl Iterator<Item = &'a CheckResult>) -> bool {
    let mut any = false;
    for result in results {
        match result.outcome {
            CheckOutcome::Passed => any = true,
            CheckOutcome::Unsupported(_) | CheckOutcome::ExpectedFailure(_) => {}
            CheckOutcome::Failed(_) | CheckOutcome::NotRun(_) => return false,
        }
    }
    any
}
