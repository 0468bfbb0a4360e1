//! The rules of a fault script.

use std::time::Duration;

use crate::fault_kind::FaultKind;
use crate::random::SplitMix64;

/// The effect of a rule on its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultEffect {
    Fail(FaultKind),
    FailLater(FaultKind),
    Delay(Duration),
    Sleep(Duration),
    Hang(Option<Duration>),
    Corrupt,
    Shorten,
    Panic,
    Abort,
}

/// The calls a rule applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallSelection {
    /// Counted from 1; both ends are included.
    Range(u64, u64),
    /// By chance, in percent.
    Chance(u64),
}

impl CallSelection {
    pub(crate) const ALWAYS: Self = Self::Range(1, u64::MAX);
}

/// One scripted fault, and the number of calls it has seen.
#[derive(Clone, Debug)]
pub(crate) struct FaultRule {
    call: CallPattern,
    when: CallSelection,
    effect: FaultEffect,
    pub(crate) seen: u64,
}

#[derive(Clone, Debug)]
enum CallPattern {
    Named(String),
    EveryCopy,
}

impl FaultRule {
    pub(crate) fn new(call: String, when: CallSelection, effect: FaultEffect) -> Self {
        Self { call: CallPattern::Named(call), when, effect, seen: 0 }
    }

    pub(crate) fn for_every_copy(when: CallSelection) -> Self {
        Self { call: CallPattern::EveryCopy, when, effect: FaultEffect::Corrupt, seen: 0 }
    }

    /// The call that the rule is about, if it is about a single one.
    pub(crate) fn call_name(&self) -> Option<&str> {
        match &self.call {
            CallPattern::Named(name) => Some(name),
            CallPattern::EveryCopy => None,
        }
    }

    /// Counts the call if the rule is about it. Returns the effect if the rule applies to this call.
    pub(crate) fn count_call(&mut self, call: &str, random: &mut SplitMix64) -> Option<FaultEffect> {
        let concerned = match &self.call {
            CallPattern::Named(name) => name == call,
            CallPattern::EveryCopy => call.starts_with("memory_copy_"),
        };
        if !concerned {
            return None;
        }
        self.seen += 1;
        let applies = match self.when {
            CallSelection::Range(first, last) => (first..=last).contains(&self.seen),
            CallSelection::Chance(percent) => random.next_below(100) < percent as usize,
        };
        applies.then_some(self.effect)
    }
}

/// A device that is lost after a number of calls.
#[derive(Clone, Debug)]
pub(crate) struct DeviceLoss {
    pub(crate) device: u32,
    pub(crate) after: u64,
    pub(crate) seen: u64,
    /// The line of the script, for error messages.
    pub(crate) line: usize,
}
