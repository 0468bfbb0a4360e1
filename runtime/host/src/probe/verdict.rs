//! Decides the result of a probe from the child's exit and answers.

use std::path::Path;
use std::time::Duration;

use crate::probe::child::ProbeStep;
use crate::probe::parent::{ChildExit, ChildObservation};
use crate::probe::{NamedProbeResult, ProbeResult};
use crate::{Refusal, RefusalReason, sanitize_text};

impl ChildObservation {
    /// The description of the plugin at `path`, or the reason to refuse it.
    pub(crate) fn into_result(self, path: &Path, timeout: Duration) -> NamedProbeResult {
        let excerpt = self.output_excerpt().map(|excerpt| {
            format!("it printed `{excerpt}` while it was probed, although plugins have a log (rule R-4)")
        });
        let name = self.answers.iter().find_map(|answer| Some(answer.verdict.as_ref().ok()?.name.clone()));
        let verdict = match self.answers.last() {
            Some(answer) if answer.pid != self.pid => Err(Refusal::new(
                RefusalReason::ContractBroken,
                path,
                "a plugin that does not fork (rule R-3)",
                "an answer from a process it started",
                "update the plugin, or tell its vendor",
            )),
            Some(answer) if answer.step == ProbeStep::Readied => answer.verdict.clone(),
            Some(answer) if answer.verdict.is_err() => answer.verdict.clone(),
            known => Err(self.incomplete_refusal(path, timeout, known.is_some())),
        };
        // A path that is not UTF-8 does not survive the JSON from the child.
        let verdict = verdict.map_err(|refusal| Refusal { file: path.to_path_buf(), ..refusal });
        let changes = self.answers.last().map(|answer| answer.changes.clone()).unwrap_or_default();
        let changed = changes.iter().map(|change| {
            format!("it changes the process while it is loaded or started: {}", sanitize_text(change))
        });
        let notes = excerpt.into_iter().chain(changed).collect();
        NamedProbeResult { probed: ProbeResult { verdict, notes }, name }
    }

    /// The refusal of a plugin whose probe did not finish.
    fn incomplete_refusal(&self, path: &Path, timeout: Duration, is_known: bool) -> Refusal {
        let (expected, stage) = if is_known {
            ("a plugin that initializes its devices and shuts down", " while its devices were readied")
        } else {
            ("a plugin that answers the query", "")
        };
        let remedy = "update the plugin, or tell its vendor";
        let last_words =
            self.output_excerpt().map_or(String::new(), |excerpt| format!(", after printing `{excerpt}`"));
        match self.ended {
            Some(ChildExit::Signal(signal)) => {
                let found = format!("a crash with {}{stage}{last_words}", signal_name(signal));
                Refusal::new(RefusalReason::ProbeCrashed, path, expected, found, remedy)
            }
            Some(ChildExit::Status(status)) => {
                let found =
                    format!("that it ended the process with status {status}{stage} (rule R-3){last_words}");
                Refusal::new(RefusalReason::ProbeCrashed, path, expected, found, remedy)
            }
            None => {
                let found = format!("no answer within {} ms{stage}", timeout.as_millis());
                let remedy =
                    "update the plugin, or allow it more time with `probe_timeout_ms` under `[plugins]`";
                Refusal::new(RefusalReason::ProbeTimedOut, path, expected, found, remedy)
            }
        }
    }

    /// The beginning of the plugin's output, to be quoted in a message.
    fn output_excerpt(&self) -> Option<String> {
        const MAX_CHARACTERS: usize = 80;
        let text = String::from_utf8_lossy(&self.printed);
        let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
        let plain: String = line
            .chars()
            .take(MAX_CHARACTERS)
            .map(|c| if c.is_control() || c == '`' { ' ' } else { c })
            .collect();
        Some(plain)
    }
}

fn signal_name(number: i32) -> String {
    const NAMES: [(i32, &str); 10] = [
        (4, "SIGILL"),
        (5, "SIGTRAP"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (24, "SIGXCPU"),
        (25, "SIGXFSZ"),
        (31, "SIGSYS"),
    ];
    let name = NAMES.iter().find(|(known, _)| *known == number);
    name.map_or_else(|| format!("signal {number}"), |(_, name)| (*name).to_owned())
}
