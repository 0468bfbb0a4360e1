//! The host as the command starts it: with what the arguments say on top of the environment and the configuration.

use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use oarlock_host::{
    BuiltIn, Config, ConfigError, Environment, Host, HostOptions, LogLevel, LogSink, ProbeCommand, Reason,
    Refusal,
};

use crate::arguments::Global;
use crate::output::{self, ColorChoice};
use crate::problem::Problem;
use crate::render::count;

/// The plugins that are linked into this program.
const BUILT_IN: [BuiltIn; 2] = [
    BuiltIn { name: "oarlock-cpu", query: oarlock_plugin_cpu::QUERY },
    BuiltIn { name: "trace", query: oarlock_plugin_trace::QUERY },
];

/// What the program starts itself for: a plugin is tried in a process of its own first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// To ask the plugin who it is.
    Probe,
    /// To run the conformance suite on it.
    Conform,
    /// To do what the user asked for while the parent watches.
    Watched,
}

impl Task {
    /// The argument that comes before the file of the plugin.
    pub(crate) const fn argument(self) -> &'static str {
        match self {
            Self::Probe => "__probe",
            Self::Conform => "__conform",
            Self::Watched => "__watched",
        }
    }
}

/// A host that has started.
pub(crate) struct Session {
    pub(crate) host: Host,
    pub(crate) messages: Arc<Messages>,
    color: ColorChoice,
}

impl Session {
    /// Starts a host that takes plugins from everywhere it should.
    pub(crate) fn start(global: &Global) -> Result<Self, Problem> {
        let messages = Messages::new(global);
        let options = options(global, &messages)?;
        Self::with(&options, messages, global)
    }

    /// Starts a host with these options.
    pub(crate) fn with(
        options: &HostOptions,
        messages: Arc<Messages>,
        global: &Global,
    ) -> Result<Self, Problem> {
        let host = Host::start(options)?;
        Ok(Self { host, messages, color: global.color })
    }

    /// Says beside the output that there is more to know about the plugins.
    pub(crate) fn mention_refusals(&self) {
        let report = self.host.report();
        for note in &report.notes {
            output::say(self.color, "warning", note, None);
        }
        let unused = report.refused().filter(|refusal| is_wrong(refusal)).count();
        if unused > 0 {
            let plugins = count(unused, "plugin is", "plugins are");
            output::say(self.color, "note", &format!("{plugins} not used; `oarlock plugins` says why"), None);
        }
    }
}

/// What the arguments, the environment and the configuration say of the host.
pub(crate) fn options(global: &Global, messages: &Arc<Messages>) -> Result<HostOptions, Problem> {
    let mut environment = Environment::from_process();
    if let Some(file) = &global.config {
        let absolute = std::path::absolute(file);
        environment.config = Some(absolute.map_err(|error| unusable(file, &error))?);
    }
    let config = Config::load(&environment)?;
    let program = format!("oarlock {}", env!("CARGO_PKG_VERSION"));
    let mut options = HostOptions::new(program, config, environment);
    options.paths.clone_from(&global.plugins);
    options.layers.clone_from(&global.layers);
    options.built_in = BUILT_IN.to_vec();
    options.log = messages.clone();
    options.probe = Some(probe_command());
    Ok(options)
}

/// This very program, even if its file has been replaced since it started.
pub(crate) const THIS_PROGRAM: &str = "/proc/self/exe";

pub(crate) fn probe_command() -> ProbeCommand {
    ProbeCommand { program: THIS_PROGRAM.into(), arguments: vec![Task::Probe.argument().into()] }
}

/// What the program was started for, if it started itself.
pub(crate) fn task_of_child(mut arguments: impl Iterator<Item = OsString>) -> Option<Task> {
    let first = arguments.nth(1)?;
    [Task::Probe, Task::Conform, Task::Watched].into_iter().find(|task| first == task.argument())
}

/// Whether a plugin is not used because something is wrong with it. Plugins that were disabled, and variants for other
/// processors, are left out on purpose.
pub(crate) fn is_wrong(refusal: &Refusal) -> bool {
    !matches!(refusal.reason, Reason::Disabled | Reason::BetterVariant | Reason::IsaUnsupported)
}

/// The problem of a file that a command was to work on.
pub(crate) fn unusable(file: &Path, error: &dyn std::fmt::Display) -> Problem {
    Problem::new(format!("`{}`: {error}", file.display())).hint("name a file that is there and can be read")
}

impl From<ConfigError> for Problem {
    fn from(error: ConfigError) -> Self {
        let ConfigError { file, problem } = error;
        Self::new(format!("`{}`: {problem}", file.display())).hint("correct the configuration")
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let Refusal { file, expected, found, remedy, .. } = refusal;
        Self::new(format!("`{}`: expected {expected}, found {found}", file.display())).hint(remedy)
    }
}

/// Shows what plugins have to say, and keeps what they complain about.
pub(crate) struct Messages {
    color: ColorChoice,
    /// The least important level that is shown.
    shown: LogLevel,
    /// Errors and warnings, each with the name of its plugin.
    complaints: Mutex<Vec<(String, String)>>,
}

impl Messages {
    pub(crate) fn new(global: &Global) -> Arc<Self> {
        let shown = match global.verbose {
            0 => LogLevel::WARNING,
            1 => LogLevel::INFO,
            _ => LogLevel::DEBUG,
        };
        Arc::new(Self { color: global.color, shown, complaints: Mutex::default() })
    }

    /// Shows nothing.
    pub(crate) fn silent() -> Arc<Self> {
        Arc::new(Self { color: ColorChoice::Never, shown: LogLevel(0), complaints: Mutex::default() })
    }

    /// What a plugin complained about since this was last asked.
    pub(crate) fn take_complaints(&self, plugin: &str) -> Vec<String> {
        let mut complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = complaints.extract_if(.., |(name, _)| name == plugin);
        taken.map(|(_, message)| message).collect()
    }
}

impl LogSink for Messages {
    fn log(&self, plugin: &str, level: LogLevel, message: &str) {
        if level.0 <= LogLevel::WARNING.0 {
            let mut complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
            complaints.push((plugin.to_owned(), message.to_owned()));
        }
        if level.0 <= self.shown.0 {
            let name = level.name().unwrap_or("message");
            output::say(self.color, name, &format!("`{plugin}`: {message}"), None);
        }
    }
}
