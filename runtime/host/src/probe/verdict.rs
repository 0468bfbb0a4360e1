//! Decides the result of a probe from the child's exit and answers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::probe::child::ProbeStep;
use crate::probe::parent::{ChildExit, ChildObservation};
use crate::probe::{NamedProbeResult, ProbeResult};
use crate::{Refusal, RefusalReason, sanitize_text, signal_name};

/// How a plugin gets more time.
const MORE_TIME: &str = "allow it more time with `probe_timeout_ms` under `[plugins]` in the configuration, or `start_timeout_ms` in its manifest";

impl ChildObservation {
    /// The description of the plugin at `path`, or the reason to refuse it.
    pub(crate) fn into_result(self, path: &Path, timeout: Duration) -> NamedProbeResult {
        let excerpt = self.output_excerpt().map(|excerpt| {
            format!("it printed `{excerpt}` while it was probed, although plugins have a log (rule R-4)")
        });
        let slowness = self.is_slow.then(|| {
            let limit = timeout.as_millis();
            format!("it took longer than the {limit} ms that a probe has, and got them twice; {MORE_TIME}")
        });
        let last = self.answers.last().map_or(&[][..], |answer| &answer.libraries);
        let libraries = last.iter().map(PathBuf::from).collect();
        let mut notes: Vec<String> =
            excerpt.into_iter().chain(slowness).chain(self.exit_note(timeout)).collect();
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
        notes.extend(changed);
        NamedProbeResult { probed: ProbeResult { verdict, notes }, name, libraries }
    }

    /// What the plugin does to the end of a process in which all went well until then: a host cannot prevent it.
    fn exit_note(&self, timeout: Duration) -> Option<String> {
        let is_ready = self.answers.last().is_some_and(|answer| answer.step == ProbeStep::Readied);
        let found = match self.ended {
            _ if !is_ready => return None,
            Some(ChildExit::Status(0)) => return None,
            Some(ChildExit::Status(code)) => format!("ends with exit code {code} in place of 0"),
            Some(ChildExit::Signal(signal)) => format!("crashes with {} when it ends", signal_name(signal)),
            None => format!("does not end within {} ms", timeout.as_millis()),
        };
        Some(format!("a process that used it {found}, by its destructors or `atexit` (rule R-3)"))
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
                let found = format!("no answer within 2 times {} ms{stage}", timeout.as_millis());
                let remedy = format!("update the plugin, or {MORE_TIME}");
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
