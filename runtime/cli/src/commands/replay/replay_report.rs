//! What came of a replay.

use std::collections::BTreeMap;

use oarlock_report::text::format_count;
use serde::Serialize;

use crate::output::CommandOutput;

/// Differences that are listed; more are counted.
const MAX_LISTED: usize = 100;

/// The outcome of a replay.
#[derive(Default, Serialize)]
pub(super) struct ReplayReport {
    pub(super) device: String,
    /// Calls in the recording.
    pub(super) calls: u64,
    pub(super) replayed: u64,
    /// Calls that were not carried out, by reason.
    pub(super) left_out: BTreeMap<String, u64>,
    /// True if the recording ends within a call.
    pub(super) is_cut_off: bool,
    /// Results that the recording also has; `None` without `--compare`.
    pub(super) compared: Option<u64>,
    pub(super) different: u64,
    pub(super) differences: Vec<ReplayDifference>,
}

/// A result that differs from the recorded one.
#[derive(Serialize)]
pub(super) struct ReplayDifference {
    /// The number of the call.
    pub(super) call: u64,
    /// The op, or the slot.
    pub(super) what: String,
    /// Which output of the op.
    pub(super) output: usize,
    /// The largest absolute difference over the largest element; `None` if only hashes or other things than numbers differ.
    pub(super) largest: Option<f64>,
}

impl ReplayReport {
    pub(super) fn leave_out(&mut self, reason: impl Into<String>) {
        *self.left_out.entry(reason.into()).or_insert(0) += 1;
    }

    pub(super) fn count_comparison(&mut self) {
        self.compared = self.compared.map(|count| count + 1);
    }

    pub(super) fn add_difference(&mut self, difference: ReplayDifference) {
        self.different += 1;
        if self.differences.len() < MAX_LISTED {
            self.differences.push(difference);
        }
    }

    pub(super) fn print_text(&self, output: &mut CommandOutput) {
        let calls = format_count(self.calls as usize, "call", "calls");
        output.write_line(&format!("replayed {} of {calls} on `{}`", self.replayed, self.device));
        if self.is_cut_off {
            output.write_line("  the recording ends within a call");
        }
        for (reason, count) in &self.left_out {
            output.write_line(&format!("  {count} left out: {reason}"));
        }
        let Some(compared) = self.compared else { return };
        let results = format_count(compared as usize, "result", "results");
        match self.different {
            0 if compared == 0 => output.write_line("compared nothing: the recording has no results"),
            0 => output.write_line(&format!("compared {results}: all as recorded")),
            different => output.write_line(&format!("compared {results}: {different} differ")),
        }
        for ReplayDifference { call, what, output: index, largest } in &self.differences {
            let how = largest.map_or("other bytes".to_owned(), |largest| {
                format!("by {largest:.1e} of the largest element")
            });
            output.write_line(&format!("  call {call}: {what}, output {index}: {how}"));
        }
    }
}
