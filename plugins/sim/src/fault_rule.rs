//! The rules of a fault script.

use std::time::Duration;

use crate::error::SimErrorKind;

/// The effect of a rule on its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultEffect {
    Fail(SimErrorKind),
    FailLater(SimErrorKind),
    Delay(Duration),
    Sleep(Duration),
    Hang(Option<Duration>),
    Corrupt,
    Panic,
    Abort,
}

/// The calls a rule applies to, counted from 1; both ends are included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallRange {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl CallRange {
    pub(crate) const ALWAYS: CallRange = CallRange { first: 1, last: u64::MAX };
}

/// One scripted fault, and the number of calls it has seen.
#[derive(Clone, Debug)]
pub(crate) struct FaultRule {
    call: CallPattern,
    when: CallRange,
    effect: FaultEffect,
    pub(crate) seen: u64,
}

#[derive(Clone, Debug)]
enum CallPattern {
    Named(String),
    EveryCopy,
}

impl FaultRule {
    pub(crate) fn new(call: String, when: CallRange, effect: FaultEffect) -> Self {
        Self { call: CallPattern::Named(call), when, effect, seen: 0 }
    }

    pub(crate) fn for_every_copy(when: CallRange) -> Self {
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
    pub(crate) fn count_call(&mut self, call: &str) -> Option<FaultEffect> {
        let concerned = match &self.call {
            CallPattern::Named(name) => name == call,
            CallPattern::EveryCopy => call.starts_with("memory_copy_"),
        };
        if !concerned {
            return None;
        }
        self.seen += 1;
        (self.when.first..=self.when.last).contains(&self.seen).then_some(self.effect)
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
