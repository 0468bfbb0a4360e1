//! Scripted faults: which calls go wrong, and how.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::fault_kind::FaultKind;
use crate::fault_rule::{DeviceLoss, FaultEffect, FaultRule};
use crate::random::SplitMix64;
use crate::statements::FaultStatements;

/// A failure that a script asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptedFault {
    /// The kind, for programs.
    pub kind: FaultKind,
    /// The message, for people.
    pub message: String,
}

/// Something to do before a call's work, or instead of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultAction {
    /// Return this error and do nothing.
    Fail(ScriptedFault),
    /// Accept the call; its work reports this error when it runs on its stream. A synchronous call fails at once.
    FailLater(ScriptedFault),
    /// Advance the virtual clock of the device.
    Delay(Duration),
    /// Sleep in real time.
    Sleep(Duration),
    /// Block in real time until the device is shut down, or at most this long, then continue.
    Hang(Option<Duration>),
    /// Flip one bit of the copied bytes.
    Corrupt,
    /// Copy or fill only the first half of the bytes.
    Shorten,
    /// Panic.
    Panic,
    /// Abort the process.
    Abort,
    /// Lose the device, with this error.
    Lose(ScriptedFault),
}

/// The faults of a script, with their counters.
#[derive(Clone, Debug)]
pub struct FaultPlan {
    rules: Vec<FaultRule>,
    losses: Vec<DeviceLoss>,
    calls: BTreeMap<String, u64>,
    random: SplitMix64,
}

impl FaultPlan {
    /// Reads the faults from a script.
    pub fn new(script: &FaultStatements) -> Self {
        Self {
            rules: script.rules.clone(),
            losses: script.losses.clone(),
            calls: BTreeMap::new(),
            random: SplitMix64::new(script.seed),
        }
    }

    /// Number of calls so far, by name.
    pub fn call_counts(&self) -> &BTreeMap<String, u64> {
        &self.calls
    }

    /// Counts a call, on a device if it names one, and returns its faults in order; usually none.
    pub fn on_call(&mut self, call: &str, device: Option<u32>) -> Vec<FaultAction> {
        match self.calls.get_mut(call) {
            Some(count) => *count += 1,
            None => _ = self.calls.insert(call.to_owned(), 1),
        }
        for loss in self.losses.iter_mut().filter(|loss| Some(loss.device) == device) {
            loss.seen = loss.seen.saturating_add(1);
            if loss.seen > loss.after {
                let message =
                    format!("device {} is lost, as scripted after {} calls", loss.device, loss.after);
                return vec![FaultAction::Lose(ScriptedFault { kind: FaultKind::DeviceLost, message })];
            }
        }
        let scripted = |seen, kind| ScriptedFault {
            kind,
            message: format!("`{call}` failed as scripted, on its call {seen}"),
        };
        let random = &mut self.random;
        let effects = self
            .rules
            .iter_mut()
            .filter_map(|rule| rule.count_call(call, random).map(|effect| (effect, rule.seen)));
        effects
            .map(|(effect, seen)| match effect {
                FaultEffect::Fail(kind) => FaultAction::Fail(scripted(seen, kind)),
                FaultEffect::FailLater(kind) => FaultAction::FailLater(scripted(seen, kind)),
                FaultEffect::Delay(time) => FaultAction::Delay(time),
                FaultEffect::Sleep(time) => FaultAction::Sleep(time),
                FaultEffect::Hang(limit) => FaultAction::Hang(limit),
                FaultEffect::Corrupt => FaultAction::Corrupt,
                FaultEffect::Shorten => FaultAction::Shorten,
                FaultEffect::Panic => FaultAction::Panic,
                FaultEffect::Abort => FaultAction::Abort,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::parse_statements;

    fn test_plan(text: &str) -> FaultPlan {
        let mut script = FaultStatements::default();
        parse_statements(text, |first, words| {
            if first == "lie" {
                words.parse_choice(&[("copy", ())])?;
                return script.parse_lying_copy(words);
            }
            assert!(script.parse_statement(first, words)?, "{first}");
            Ok(())
        })
        .expect("a script");
        FaultPlan::new(&script)
    }

    fn faulty_calls(plan: &mut FaultPlan, call: &str, calls: u64) -> Vec<u64> {
        (1..=calls).filter(|_| !plan.on_call(call, Some(0)).is_empty()).collect()
    }

    #[test]
    fn each_form_of_when_hits_its_calls_and_no_others() {
        assert_eq!(faulty_calls(&mut test_plan("fail stream_create 3 internal"), "stream_create", 5), [3]);
        assert_eq!(
            faulty_calls(&mut test_plan("fail stream_create 2.. internal"), "stream_create", 5),
            [2, 3, 4, 5]
        );
        assert_eq!(
            faulty_calls(&mut test_plan("fail stream_create 2..3 internal"), "stream_create", 5),
            [2, 3]
        );
        assert_eq!(
            faulty_calls(&mut test_plan("fail stream_create 1 internal"), "stream_destroy", 5),
            [0; 0]
        );
    }

    #[test]
    fn a_lost_device_stays_lost_and_the_others_live() {
        let mut plan = test_plan("lose 1 after 2");
        let mut lost =
            |device| matches!(plan.on_call("memory_set", Some(device))[..], [FaultAction::Lose(_)]);
        assert_eq!([1, 1, 1, 0, 1, 0].map(&mut lost), [false, false, true, false, true, false]);
    }

    #[test]
    fn a_lying_copy_counts_copies_of_every_sort() {
        let mut plan = test_plan("lie copy 2");
        assert!(plan.on_call("memory_copy_h2d", Some(0)).is_empty());
        assert!(plan.on_call("memory_set", Some(0)).is_empty());
        assert_eq!(plan.on_call("memory_copy_d2h", Some(0)), [FaultAction::Corrupt]);
    }

    #[test]
    fn a_chance_hits_its_share_of_calls_and_the_same_ones_with_the_same_seed() {
        let hits = |seed: u64| {
            faulty_calls(
                &mut test_plan(&format!("seed {seed}; fail memory_set 25% internal")),
                "memory_set",
                1000,
            )
        };
        assert!((200..300).contains(&hits(1).len()), "{}", hits(1).len());
        assert_eq!(hits(1), hits(1));
        assert_ne!(hits(1), hits(2));
    }

    #[test]
    fn calls_are_counted_by_name() {
        let mut plan = test_plan("");
        for call in ["memory_set", "stream_create", "memory_set"] {
            assert!(plan.on_call(call, Some(0)).is_empty());
        }
        assert_eq!((plan.call_counts()["memory_set"], plan.call_counts()["stream_create"]), (2, 1));
    }

    #[test]
    fn several_faults_on_one_call_come_in_script_order() {
        let mut plan = test_plan("delay memory_set 1 5ms; fail memory_set 1 timed-out");
        let actions = plan.on_call("memory_set", Some(0));
        assert_eq!(actions[0], FaultAction::Delay(Duration::from_millis(5)));
        assert!(matches!(&actions[1], FaultAction::Fail(error) if error.kind == FaultKind::TimedOut));
    }
}
