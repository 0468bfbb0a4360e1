//! The table of checks.

mod callbacks;
mod devices;
mod errors;
mod events;
mod kernel_results;
mod kernels;
mod memory;
mod memory_stats;
mod process;
mod reference;
mod streams;
mod threads;

use crate::bench::{TestBench, Verdict};

/// The profile that a check belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckedProfile {
    /// Devices and their memory.
    Core,
    /// Streams and events.
    Async,
    /// Kernels. Not a profile of the contract, but optional for a plugin, as a profile is.
    Kernels,
}

impl CheckedProfile {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Async => "async",
            Self::Kernels => "kernels",
        }
    }
}

pub(crate) struct ConformanceCheck {
    /// The requirement, as a sentence.
    pub(crate) name: &'static str,
    /// The rule of the contract, or the slot whose documentation states the requirement.
    pub(crate) rule: &'static str,
    pub(crate) profile: CheckedProfile,
    pub(crate) run: fn(&TestBench) -> Verdict,
}

impl ConformanceCheck {
    const fn core_check(rule: &'static str, name: &'static str, run: fn(&TestBench) -> Verdict) -> Self {
        Self { name, rule, profile: CheckedProfile::Core, run }
    }

    const fn async_check(rule: &'static str, name: &'static str, run: fn(&TestBench) -> Verdict) -> Self {
        Self { name, rule, profile: CheckedProfile::Async, run }
    }

    const fn kernel_check(rule: &'static str, name: &'static str, run: fn(&TestBench) -> Verdict) -> Self {
        Self { name, rule, profile: CheckedProfile::Kernels, run }
    }
}

/// All checks, in the order of a run. Checks of what the others left behind come last.
pub(crate) fn all_checks() -> impl Iterator<Item = &'static ConformanceCheck> {
    [
        devices::CHECKS,
        memory::CHECKS,
        memory_stats::CHECKS,
        threads::CHECKS,
        errors::CHECKS,
        streams::CHECKS,
        events::CHECKS,
        callbacks::CHECKS,
        kernels::CHECKS,
        kernel_results::CHECKS,
        process::CHECKS,
    ]
    .into_iter()
    .flatten()
}
