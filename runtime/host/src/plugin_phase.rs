//! What a host is doing with a plugin, told to whoever watches, and plugins that failed a start before.
//!
//! A plugin that crashes, ends the process or hangs takes the host along, so the host cannot report it. Somebody outside can:
//! before the host runs code of a plugin of its own accord, it tells an observer which file and why. A program that runs in a
//! child process hands that on to its parent, which starts it again without the plugin.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Refusal, RefusalReason};

/// How long a plugin may take for one phase, if the configuration does not say otherwise.
pub const START_TIMEOUT: Duration = Duration::from_secs(10);

/// A moment in which the host runs code of a plugin of its own accord, before or after the program uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PluginPhase {
    /// The file is loaded, which runs its initializers.
    Load,
    /// The plugin is asked who it is.
    Query,
    /// A layer wraps the tables of another plugin.
    Wrap,
    /// The plugin and its devices are initialized.
    Initialize,
    /// The devices are asked for their properties.
    Describe,
    /// The devices and the plugin are shut down.
    Finalize,
    /// A layer frees its wrappers.
    Unwrap,
    /// The plugin is unloaded.
    Unload,
}

impl PluginPhase {
    /// True if the program has done its work when the phase begins.
    pub fn is_at_end(self) -> bool {
        matches!(self, Self::Finalize | Self::Unwrap | Self::Unload)
    }
}

/// Completes "while …".
impl fmt::Display for PluginPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Load => "it was loaded",
            Self::Query => "it was queried",
            Self::Wrap => "it wrapped another plugin",
            Self::Initialize => "its devices were initialized",
            Self::Describe => "its devices were asked for their properties",
            Self::Finalize => "its devices were shut down",
            Self::Unwrap => "it was taken off another plugin",
            Self::Unload => "it was unloaded",
        })
    }
}

/// The beginning of a phase.
#[derive(Clone, Copy, Debug)]
pub struct PhaseStart<'a> {
    /// The file of the plugin; for one that is linked in, the program.
    pub file: &'a Path,
    /// What the host is about to do.
    pub phase: PluginPhase,
    /// How long it should take at most.
    pub limit: Duration,
    /// The files of the layers around the plugin, whose code runs too, without those that are part of the program.
    pub layers: &'a [PathBuf],
}

/// Learns when a host runs code of plugins, in order and on the thread that does it.
pub trait PhaseObserver: Send + Sync {
    /// The host is about to run code of a plugin.
    fn on_phase_begin(&self, start: &PhaseStart<'_>);

    /// The code has returned.
    fn on_phase_end(&self);
}

/// Nobody watches.
#[derive(Clone, Copy, Debug)]
pub struct UnwatchedPhases;

impl PhaseObserver for UnwatchedPhases {
    fn on_phase_begin(&self, _start: &PhaseStart<'_>) {}

    fn on_phase_end(&self) {}
}

/// A running phase. It ends when this is dropped.
pub(crate) struct RunningPhase(Arc<dyn PhaseObserver>);

impl RunningPhase {
    pub(crate) fn begin_phase(observer: &Arc<dyn PhaseObserver>, start: &PhaseStart<'_>) -> Self {
        observer.on_phase_begin(start);
        Self(observer.clone())
    }
}

impl Drop for RunningPhase {
    fn drop(&mut self) {
        self.0.on_phase_end();
    }
}

/// How a plugin took the process of an earlier start along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StartFault {
    /// The process was ended by this signal.
    Signal(i32),
    /// The plugin ended the process with this exit code.
    Exit(i32),
    /// The phase took longer than this many milliseconds.
    Hang(u64),
}

impl fmt::Display for StartFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal(signal) => write!(f, "a crash with {}", signal_name(*signal)),
            Self::Exit(code) => write!(f, "that it ended the process with exit code {code} (rule R-3)"),
            Self::Hang(limit) => write!(f, "no answer within {limit} ms"),
        }
    }
}

/// A plugin that took the process of an earlier start along. The host refuses it without running it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedStart {
    /// The file, as the observer was told.
    pub file: PathBuf,
    /// What the host was doing.
    pub phase: PluginPhase,
    /// What happened.
    pub fault: StartFault,
}

impl FailedStart {
    /// True if `path` leads to the plugin.
    pub(crate) fn concerns_file(&self, path: &Path) -> bool {
        self.file == path
            || matches!((self.file.canonicalize(), path.canonicalize()), (Ok(one), Ok(other)) if one == other)
    }

    /// The refusal of the plugin at `path`.
    pub(crate) fn to_refusal(&self, path: &Path) -> Refusal {
        let Self { phase, fault, .. } = self;
        let (reason, remedy) = match fault {
            StartFault::Hang(_) => (
                RefusalReason::HungAtStart,
                "update the plugin, or allow it more time with `start_timeout_ms` under `[plugins]`",
            ),
            StartFault::Signal(_) | StartFault::Exit(_) => {
                (RefusalReason::CrashedAtStart, "update the plugin, or tell its vendor")
            }
        };
        Refusal::new(reason, path, "a plugin that starts", format!("{fault} while {phase}"), remedy)
    }
}

/// The name of a signal that ends processes, such as `SIGSEGV`.
pub fn signal_name(number: i32) -> String {
    const NAMES: [(i32, &str); 14] = [
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (4, "SIGILL"),
        (5, "SIGTRAP"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (14, "SIGALRM"),
        (15, "SIGTERM"),
        (24, "SIGXCPU"),
        (25, "SIGXFSZ"),
        (31, "SIGSYS"),
    ];
    let name = NAMES.iter().find(|(known, _)| *known == number);
    name.map_or_else(|| format!("signal {number}"), |(_, name)| (*name).to_owned())
}
