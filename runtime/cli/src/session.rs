//! The host as the command starts it: with what the arguments say on top of the environment and the configuration.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use oarlock_core::Runtime;
use oarlock_core::flags::Flags;
use oarlock_host::{
    BuiltIn, Config, ConfigError, Environment, Host, HostOptions, LoadReport, Outcome, ProbeCommand, Refusal,
};

use crate::arguments::Global;
use crate::messages::{Messages, Remainder};
use crate::output::{self, ColorChoice};
use crate::problem::Problem;
use crate::render::count;
use crate::variables;

/// The plugins that are linked into this program.
const BUILT_IN: &[BuiltIn] = &[
    #[cfg(feature = "cpu")]
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
    color: ColorChoice,
    // Dropped after the host, so that it counts what plugins say when they end.
    _remainder: Remainder,
}

impl Session {
    /// Starts a host that takes plugins from everywhere it should.
    /// Flags mean nothing to it, but a variable with a wrong value is an error here as it is where a runtime starts.
    pub(crate) fn start(global: &Global) -> Result<Self, Problem> {
        variables::mention_ignored(global.color);
        variables::flags()?;
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
        Ok(Self { host, _remainder: Remainder(messages), color: global.color })
    }

    /// Says beside the output what else there is to know; gives whether everything that the arguments name is there.
    pub(crate) fn mention_what_is_missing(&self, global: &Global, with_hint: bool) -> bool {
        mention_what_is_missing(self.host.report(), global, self.color, with_hint)
    }
}

/// A runtime that has started: the host with the core on it.
pub(crate) struct Core {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) messages: Arc<Messages>,
    // Dropped after the host, so that it counts what plugins say when they end.
    _remainder: Remainder,
}

impl Core {
    /// Starts the core on plugins from everywhere they should be taken from.
    pub(crate) fn start(global: &Global, flags: Flags) -> Result<Self, Problem> {
        variables::mention_ignored(global.color);
        let messages = Messages::new(global);
        let options = options(global, &messages)?;
        Self::with(options, messages, flags)
    }

    /// Starts the core with these options.
    pub(crate) fn with(options: HostOptions, messages: Arc<Messages>, flags: Flags) -> Result<Self, Problem> {
        let runtime = Arc::new(Runtime::start(options, flags)?);
        Ok(Self { runtime, _remainder: Remainder(messages.clone()), messages })
    }

    /// Says beside the output what else there is to know; gives whether everything that the arguments name is there.
    pub(crate) fn mention_what_is_missing(&self, global: &Global, with_hint: bool) -> bool {
        mention_what_is_missing(self.runtime.host().report(), global, global.color, with_hint)
    }
}

/// `with_hint` is for a command that does not list the plugins itself.
fn mention_what_is_missing(
    report: &LoadReport,
    global: &Global,
    color: ColorChoice,
    with_hint: bool,
) -> bool {
    let is_named = |note: &String| {
        global.layers.iter().any(|name| {
            let starts =
                [format!("expected a layer called `{name}`"), format!("the layer `{name}` is left out")];
            starts.iter().any(|start| note.starts_with(start))
        })
    };
    let notes = report.layers_left_out();
    let (missing, other): (Vec<&String>, Vec<&String>) = notes.iter().partition(|note| is_named(note));
    for note in other {
        output::say(color, "warning", note, None);
    }
    let named: Vec<&Refusal> = refusals_of_named(report, global).collect();
    let unused = report.refused().filter(|refusal| report.is_wrong(refusal)).count();
    let others = unused.saturating_sub(named.len());
    if with_hint && others > 0 {
        let plugins = count(others, "plugin is", "plugins are");
        output::say(color, "note", &format!("{plugins} not used; `oarlock plugins` says why"), None);
    }
    for note in &missing {
        output::say(color, "error", note, None);
    }
    for refusal in &named {
        output::say(color, "error", &refusal.to_string(), None);
    }
    missing.is_empty() && named.is_empty()
}

/// Why plugins that the arguments name one by one are not used. A directory is a place to look in, so what lies in it is
/// not named.
fn refusals_of_named<'a>(report: &'a LoadReport, global: &Global) -> impl Iterator<Item = &'a Refusal> {
    let named: Vec<_> = global.plugins.iter().filter_map(|path| std::path::absolute(path).ok()).collect();
    report.plugins.iter().filter_map(move |plugin| match &plugin.outcome {
        Outcome::Refused(refusal) if named.contains(&plugin.file) && report.is_wrong(refusal) => {
            Some(refusal)
        }
        Outcome::Refused(_) | Outcome::Loaded(_) => None,
    })
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

/// Whether there may be plugins beside those that are linked in: something is where they are looked for.
pub(crate) fn has_plugins(global: &Global) -> bool {
    // Whatever keeps the options from being read is told when the command starts.
    let Ok(HostOptions { paths, wheels, config, environment, .. }) = options(global, &Messages::silent())
    else {
        return false;
    };
    let places = oarlock_host::places(&paths, &wheels, &config, &environment);
    places.iter().any(|(path, _)| match path.read_dir() {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => path.is_file(),
    })
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
