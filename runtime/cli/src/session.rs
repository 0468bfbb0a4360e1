//! Starts the host or the core with the arguments on top of environment and configuration.

use std::any::Any;
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use oarlock_core::Runtime;
use oarlock_core::flags::Flags;
use oarlock_host::{
    BuiltInPlugin, ConfigError, Host, HostConfig, HostEnvironment, HostOptions, LoadReport, PluginAdapter,
    PluginOutcome, PluginSelection, ProbeCommand, Refusal,
};

use crate::arguments::GlobalOptions;
use crate::environment_flags;
use crate::messages::{PluginMessages, UnshownNotice};
use crate::output::{self, ColorChoice};
use crate::problem::CommandError;
use crate::watched_child::{self, PhaseSender};
use oarlock_report::text::format_count;

/// The plugins linked into this program.
const BUILT_IN: &[BuiltInPlugin] = &[
    #[cfg(feature = "cpu")]
    BuiltInPlugin { name: "oarlock-cpu", query: oarlock_plugin_cpu::QUERY },
    BuiltInPlugin { name: "fault", query: oarlock_plugin_fault::QUERY },
    BuiltInPlugin { name: "record", query: oarlock_plugin_record::QUERY },
    BuiltInPlugin { name: "trace", query: oarlock_plugin_trace::QUERY },
    BuiltInPlugin { name: "validate", query: oarlock_plugin_validate::QUERY },
];

/// What makes plugins for other programs usable.
pub(crate) const ADAPTERS: &[PluginAdapter] =
    &[PluginAdapter { entry: oarlock_plugin_paddle::ENTRY, query: oarlock_plugin_paddle::query }];

/// Why the program started itself: a plugin is tried in a child process first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChildTask {
    /// Ask the plugin for its description.
    Probe,
    /// Run the conformance suite on the plugin.
    Conform,
    /// Run the user's command while the parent watches.
    Watched,
}

impl ChildTask {
    /// The argument before the plugin's file.
    pub(crate) const fn task_argument(self) -> &'static str {
        match self {
            Self::Probe => "__probe",
            Self::Conform => "__conform",
            Self::Watched => "__watched",
        }
    }
}

/// What keeps plugins loaded until the command has said all, and then counts what they print while they shut down.
type PluginKeeper = (Box<dyn Any + Send>, UnshownNotice);

/// The sessions of this command, in the order of their starts.
static KEPT_SESSIONS: Mutex<Vec<PluginKeeper>> = Mutex::new(Vec::new());

/// Shuts down all plugins. Until then they stay loaded, so that one that takes the process along takes no answer with it.
pub(crate) fn end_plugins() {
    while let Some((plugins, remainder)) =
        { KEPT_SESSIONS.lock().unwrap_or_else(PoisonError::into_inner).pop() }
    {
        drop(plugins);
        drop(remainder);
    }
}

fn keep_until_end(plugins: impl Any + Send, messages: &Arc<PluginMessages>) {
    let mut kept = KEPT_SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    kept.push((Box::new(plugins), UnshownNotice(messages.clone())));
}

/// A running host without a core.
pub(crate) struct HostSession {
    pub(crate) host: Arc<Host>,
    color: ColorChoice,
}

impl HostSession {
    /// Starts a host that takes plugins from all configured places. The host has no flags, but a variable with a wrong value
    /// is an error here as it is at the start of a runtime.
    pub(crate) fn start_host(global: &GlobalOptions) -> Result<Self, CommandError> {
        environment_flags::warn_about_ignored(global.color);
        environment_flags::flags_from_environment()?;
        let messages = PluginMessages::new(global);
        let options = host_options(global, &messages)?;
        Self::start_with_options(&options, &messages, global)
    }

    /// As [`Self::start_host`], with explicit options.
    pub(crate) fn start_with_options(
        options: &HostOptions,
        messages: &Arc<PluginMessages>,
        global: &GlobalOptions,
    ) -> Result<Self, CommandError> {
        let host = Arc::new(Host::start(options)?);
        keep_until_end(host.clone(), messages);
        Ok(Self { host, color: global.color })
    }

    /// Warns on standard error; returns true if everything that the arguments name exists.
    pub(crate) fn warn_about_missing(&self, global: &GlobalOptions, with_hint: bool) -> bool {
        warn_about_missing(self.host.report(), global, self.color, with_hint)
    }
}

/// A running host with the core on top.
pub(crate) struct CoreSession {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) messages: Arc<PluginMessages>,
}

impl CoreSession {
    /// Starts the core on plugins from all configured places.
    pub(crate) fn start_core(global: &GlobalOptions, flags: Flags) -> Result<Self, CommandError> {
        environment_flags::warn_about_ignored(global.color);
        let messages = PluginMessages::new(global);
        let options = host_options(global, &messages)?;
        Self::start_with_options(options, messages, flags)
    }

    /// As [`Self::start_core`], with explicit options.
    pub(crate) fn start_with_options(
        options: HostOptions,
        messages: Arc<PluginMessages>,
        flags: Flags,
    ) -> Result<Self, CommandError> {
        let runtime = Arc::new(Runtime::start(options, flags)?);
        keep_until_end(runtime.clone(), &messages);
        Ok(Self { runtime, messages })
    }

    /// Warns on standard error; returns true if everything that the arguments name exists.
    pub(crate) fn warn_about_missing(&self, global: &GlobalOptions, with_hint: bool) -> bool {
        warn_about_missing(self.runtime.host().report(), global, global.color, with_hint)
    }
}

/// `with_hint` is for commands that do not list the plugins themselves.
fn warn_about_missing(
    report: &LoadReport,
    global: &GlobalOptions,
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
        output::print_message(color, "warning", note, None);
    }
    let named: Vec<&Refusal> = named_plugin_refusals(report, global).collect();
    let unused = report.refusals().filter(|refusal| report.is_fault(refusal)).count();
    let others = unused.saturating_sub(named.len());
    if with_hint && others > 0 {
        let plugins = format_count(others, "plugin is", "plugins are");
        output::print_message(
            color,
            "note",
            &format!("{plugins} not used; `oarlock plugins` says why"),
            None,
        );
    }
    for note in &missing {
        output::print_message(color, "error", note, None);
    }
    for refusal in &named {
        output::print_message(color, "error", &refusal.to_string(), None);
    }
    let is_used = |entry: &&String| {
        report
            .loaded_plugins()
            .any(|(row, loaded)| PluginSelection::entry_matches(entry, &row.file, Some(&loaded.info.name)))
    };
    let unused: Vec<&String> = global.only.iter().filter(|entry| !is_used(entry)).collect();
    for entry in &unused {
        let message = format!("expected a plugin called `{entry}` that works, found none");
        output::print_message(color, "error", &message, Some("`oarlock plugins` lists all plugins"));
    }
    missing.is_empty() && named.is_empty() && unused.is_empty()
}

/// Refusals of plugins that the arguments name as files. A directory is only searched, so the plugins in it do not count as
/// named.
fn named_plugin_refusals<'a>(
    report: &'a LoadReport,
    global: &GlobalOptions,
) -> impl Iterator<Item = &'a Refusal> {
    let named: Vec<_> = global.plugins.iter().filter_map(|path| std::path::absolute(path).ok()).collect();
    report.plugins.iter().filter_map(move |plugin| match &plugin.outcome {
        PluginOutcome::Refused(refusal) if named.contains(&plugin.file) && report.is_fault(refusal) => {
            Some(refusal)
        }
        PluginOutcome::Refused(_) | PluginOutcome::Loaded(_) => None,
    })
}

/// The environment, with the configuration file that the arguments name.
pub(crate) fn host_environment(global: &GlobalOptions) -> Result<HostEnvironment, CommandError> {
    let mut environment = HostEnvironment::from_process();
    if let Some(file) = &global.config {
        let absolute = std::path::absolute(file);
        environment.config = Some(absolute.map_err(|error| unusable_file(file, &error))?);
    }
    Ok(environment)
}

/// Combines arguments, environment and configuration.
pub(crate) fn host_options(
    global: &GlobalOptions,
    messages: &Arc<PluginMessages>,
) -> Result<HostOptions, CommandError> {
    let environment = host_environment(global)?;
    let config = HostConfig::load(&environment)?;
    let program = format!("oarlock {}", env!("CARGO_PKG_VERSION"));
    let mut options = HostOptions::new(program, config, environment);
    options.paths.clone_from(&global.plugins);
    options.layers.clone_from(&global.layers);
    options.ask_again = global.ask_again;
    options.isolate.clone_from(&global.isolate);
    options.built_in = BUILT_IN.to_vec();
    options.adapters = ADAPTERS.to_vec();
    options.log = messages.clone();
    options.probe = Some(probe_command());
    options.selection = PluginSelection { only: global.only.clone(), without: global.without.clone() };
    if watched_child::is_watched() {
        options.phases = Arc::new(PhaseSender);
        options.failed_starts = watched_child::failed_starts().to_vec();
    }
    Ok(options)
}

/// True if there may be plugins besides the built-in ones: some searched place exists.
pub(crate) fn has_plugins(global: &GlobalOptions) -> bool {
    // Errors in the options are reported when the command starts.
    let Ok(HostOptions { paths, wheels, config, environment, .. }) =
        host_options(global, &PluginMessages::new_silent())
    else {
        return false;
    };
    let places = oarlock_host::search_places(&paths, &wheels, &config, &environment);
    places.iter().any(|(path, _)| match path.read_dir() {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => path.is_file(),
    })
}

/// This running executable, even if its file was replaced after the start.
pub(crate) const THIS_PROGRAM: &str = "/proc/self/exe";

pub(crate) fn probe_command() -> ProbeCommand {
    ProbeCommand { program: THIS_PROGRAM.into(), arguments: vec![ChildTask::Probe.task_argument().into()] }
}

/// The task if the program was started by itself.
pub(crate) fn parse_child_task(mut arguments: impl Iterator<Item = OsString>) -> Option<ChildTask> {
    let first = arguments.nth(1)?;
    [ChildTask::Probe, ChildTask::Conform, ChildTask::Watched]
        .into_iter()
        .find(|task| first == task.task_argument())
}

/// The error for a file that a command was to work on.
pub(crate) fn unusable_file(file: &Path, error: &dyn std::fmt::Display) -> CommandError {
    CommandError::new(format!("`{}`: {error}", file.display()))
        .with_hint("name a file that is there and can be read")
}

impl From<ConfigError> for CommandError {
    fn from(error: ConfigError) -> Self {
        let ConfigError { file, problem } = error;
        Self::new(format!("`{}`: {problem}", file.display())).with_hint("correct the configuration")
    }
}

impl From<Refusal> for CommandError {
    fn from(refusal: Refusal) -> Self {
        let Refusal { file, expected, found, remedy, .. } = refusal;
        Self::new(format!("`{}`: expected {expected}, found {found}", file.display())).with_hint(remedy)
    }
}
