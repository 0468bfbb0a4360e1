//! The table of checks.

mod asynchronous;
mod callbacks;
mod devices;
mod errors;
mod events;
mod kernels;
mod memory;
mod process;
mod reference;
mod results;
mod stats;
mod threads;

use crate::bench::{Bench, Verdict};

/// What a check belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// Devices and their memory.
    Core,
    /// Streams and events.
    Async,
    /// Kernels, which are no profile of the contract but are offered or not like one.
    Kernels,
}

impl Profile {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Async => "async",
            Self::Kernels => "kernels",
        }
    }
}

/// One check.
pub(crate) struct Check {
    /// What must hold, as a sentence.
    pub(crate) name: &'static str,
    /// The rule of the contract, or the slot whose documentation says so.
    pub(crate) rule: &'static str,
    pub(crate) profile: Profile,
    pub(crate) run: fn(&Bench) -> Verdict,
}

impl Check {
    const fn core(rule: &'static str, name: &'static str, run: fn(&Bench) -> Verdict) -> Self {
        Self { name, rule, profile: Profile::Core, run }
    }

    const fn asynchronous(rule: &'static str, name: &'static str, run: fn(&Bench) -> Verdict) -> Self {
        Self { name, rule, profile: Profile::Async, run }
    }

    const fn kernels(rule: &'static str, name: &'static str, run: fn(&Bench) -> Verdict) -> Self {
        Self { name, rule, profile: Profile::Kernels, run }
    }
}

/// Every check, in the order of a run. Those that look back at the others come last.
pub(crate) fn all() -> impl Iterator<Item = &'static Check> {
    [
        devices::CHECKS,
        memory::CHECKS,
        stats::CHECKS,
        threads::CHECKS,
        errors::CHECKS,
        asynchronous::CHECKS,
        events::CHECKS,
        callbacks::CHECKS,
        kernels::CHECKS,
        results::CHECKS,
        process::CHECKS,
    ]
    .into_iter()
    .flatten()
}
