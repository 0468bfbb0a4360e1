//! The table of checks.

mod callbacks;
mod devices;
mod errors;
mod events;
mod kernel_results;
mod kernels;
mod layers;
mod memory;
mod memory_stats;
mod negotiation;
mod process;
mod streams;
mod threads;

use crate::bench::{TestBench, Verdict};
use crate::subject::{ConformanceSubject, SubjectRole};

/// The profile that a check belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckedProfile {
    /// Devices and their memory.
    Core,
    /// Streams and events.
    Async,
    /// Kernels. Not a profile of the contract, but optional for a plugin, as a profile is.
    Kernels,
    /// What a layer does besides passing calls on.
    Layer,
}

impl CheckedProfile {
    pub(crate) const ALL: [Self; 4] = [Self::Core, Self::Async, Self::Kernels, Self::Layer];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Async => "async",
            Self::Kernels => "kernels",
            Self::Layer => "layer",
        }
    }

    /// The profile that checks of the whole plugin count for.
    pub(crate) fn base_of(role: &SubjectRole) -> Self {
        match role {
            SubjectRole::Device => Self::Core,
            SubjectRole::Kernels { .. } => Self::Kernels,
            SubjectRole::Layer { .. } => Self::Layer,
        }
    }

    /// True if the plugin has something that checks of this profile are about.
    pub(crate) fn is_offered(self, subject: &ConformanceSubject) -> bool {
        let has_devices = !matches!(subject.role, SubjectRole::Kernels { .. });
        match self {
            Self::Core => has_devices,
            Self::Async => has_devices && subject.asynchronous.is_some(),
            Self::Kernels => !subject.kernels.is_empty(),
            Self::Layer => subject.layer.is_some(),
        }
    }
}

pub(crate) struct ConformanceCheck {
    /// The requirement, as a sentence.
    pub(crate) name: &'static str,
    /// The rule of the contract, or the slot whose documentation states the requirement.
    pub(crate) rule: &'static str,
    /// `None` is the first profile of the plugin, whatever it brings.
    pub(crate) profile: Option<CheckedProfile>,
    pub(crate) run: fn(&TestBench) -> Verdict,
}

impl ConformanceCheck {
    const fn core_check(rule: &'static str, name: &'static str, run: fn(&TestBench) -> Verdict) -> Self {
        Self { name, rule, profile: Some(CheckedProfile::Core), run }
    }

    const fn async_check(rule: &'static str, name: &'static str, run: fn(&TestBench) -> Verdict) -> Self {
        Self { name, rule, profile: Some(CheckedProfile::Async), run }
    }

    const fn kernel_check(rule: &'static str, name: &'static str, run: fn(&TestBench) -> Verdict) -> Self {
        Self { name, rule, profile: Some(CheckedProfile::Kernels), run }
    }

    const fn layer_check(rule: &'static str, name: &'static str, run: fn(&TestBench) -> Verdict) -> Self {
        Self { name, rule, profile: Some(CheckedProfile::Layer), run }
    }

    /// A check of what a plugin of any kind does.
    const fn plugin_check(rule: &'static str, name: &'static str, run: fn(&TestBench) -> Verdict) -> Self {
        Self { name, rule, profile: None, run }
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
        layers::CHECKS,
        negotiation::CHECKS,
        process::CHECKS,
    ]
    .into_iter()
    .flatten()
}
