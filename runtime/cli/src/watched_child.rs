//! What a watched command tells the process that watches it: what it is about to do, and how far it has come.
//!
//! Each message is one line of JSON in a pipe, written before the work that may end the process. In a command that is not watched,
//! the messages go nowhere.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::OnceLock;

use oarlock_host::{FailedStart, PhaseObserver, PhaseStart, PluginPhase, StartFault, sanitize_text};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

/// A message of a watched command.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChildMessage {
    /// Completes "while …".
    Doing(String),
    /// Code of a plugin runs, before the work or after it. Such phases may contain others.
    PhaseBegins(PhaseRecord),
    PhaseEnds,
    /// Something is about to be written to standard output, so the command cannot be started again.
    Writes,
    /// All is said; only the plugins have to be shut down.
    Answers {
        is_success: bool,
    },
    /// The command ends. An end without this is a crash, whatever the exit code.
    Done,
}

/// The beginning of a phase.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct PhaseRecord {
    /// Text would lose a name that is not UTF-8.
    pub(crate) file: OsString,
    pub(crate) phase: PluginPhase,
    pub(crate) limit_ms: u64,
    /// The files of the layers through which the plugin is called.
    pub(crate) layers: Vec<OsString>,
}

/// How a watched command is started.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct WatchOrder {
    /// The descriptor of the pipe.
    pub(crate) pipe: i32,
    /// The plugins that took an earlier start of the command along.
    failed: Vec<FailureRecord>,
}

#[derive(Debug, Deserialize, Serialize)]
struct FailureRecord {
    file: OsString,
    phase: PluginPhase,
    fault: StartFault,
}

impl WatchOrder {
    pub(crate) fn new(pipe: i32, failed: &[FailedStart]) -> Self {
        let record = |FailedStart { file, phase, fault }: &FailedStart| FailureRecord {
            file: file.clone().into_os_string(),
            phase: *phase,
            fault: *fault,
        };
        Self { pipe, failed: failed.iter().map(record).collect() }
    }
}

/// The write end of the pipe to the parent; empty in an unwatched command.
static STATUS_PIPE: OnceLock<File> = OnceLock::new();
static FAILED_STARTS: OnceLock<Vec<FailedStart>> = OnceLock::new();

/// In the child: takes the order of the watching process, a [`WatchOrder`] as JSON.
pub(crate) fn accept_order(order: &OsStr) {
    let order: WatchOrder =
        order.to_str().and_then(|order| serde_json::from_str(order).ok()).unwrap_or_default();
    if let Ok(file) = OpenOptions::new().write(true).open(format!("/proc/self/fd/{}", order.pipe)) {
        _ = STATUS_PIPE.set(file);
    }
    let failed = order.failed.into_iter().map(|FailureRecord { file, phase, fault }| FailedStart {
        file: file.into(),
        phase,
        fault,
    });
    _ = FAILED_STARTS.set(failed.collect());
    // Killing the parent must stop the child too, even if a plugin blocks signals.
    _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    send_status("the plugins were loaded");
}

pub(crate) fn is_watched() -> bool {
    STATUS_PIPE.get().is_some()
}

/// The plugins that took an earlier start of this command along.
pub(crate) fn failed_starts() -> &'static [FailedStart] {
    FAILED_STARTS.get().map_or(&[], Vec::as_slice)
}

/// Says what is about to happen; completes "while …".
pub(crate) fn send_status(doing: &str) {
    send_message(&ChildMessage::Doing(sanitize_text(doing)));
}

pub(crate) fn send_message(message: &ChildMessage) {
    if let (Some(mut pipe), Ok(mut line)) = (STATUS_PIPE.get(), serde_json::to_vec(message)) {
        line.push(b'\n');
        // A parent that is gone must not stop the work.
        _ = pipe.write_all(&line);
    }
}

/// Tells the watching process when code of plugins runs.
pub(crate) struct PhaseSender;

impl PhaseObserver for PhaseSender {
    fn on_phase_begin(&self, start: &PhaseStart<'_>) {
        send_message(&ChildMessage::PhaseBegins(PhaseRecord {
            file: start.file.into(),
            phase: start.phase,
            limit_ms: u64::try_from(start.limit.as_millis()).unwrap_or(u64::MAX),
            layers: start.layers.iter().map(Into::into).collect(),
        }));
    }

    fn on_phase_end(&self) {
        send_message(&ChildMessage::PhaseEnds);
    }
}
